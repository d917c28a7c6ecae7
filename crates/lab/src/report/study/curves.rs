//! Response times of all servers by percentile, in one plot for each part.

use super::super::figures::{Figure, curve};
use super::super::plot::{Axis, Frame, Svg};
use super::{server_class, servers};
use crate::latencies::Latencies;
use crate::study::Study;

const HEIGHT: f64 = 260.0;

/// A plot for each part in which something went well.
pub(super) fn figures(study: &Study) -> Vec<Figure> {
    (0..study.parts.len()).filter_map(|part| figure(study, part)).collect()
}

fn figure(study: &Study, part: usize) -> Option<Figure> {
    let (part, comparison) = &study.parts[part];
    let servers = servers(study);
    let mut lines: Vec<(String, String, Latencies)> = Vec::new();
    for (name, results) in comparison.results() {
        let mut all = Latencies::new();
        results.kept().for_each(|kept| all.add(&kept.total().response));
        let place = servers.iter().position(|server| *server == name).unwrap_or(0);
        if all.count() > 0 {
            lines.push((format!("line {}", server_class(place)), name.to_owned(), all));
        }
    }
    let least = lines.iter().map(|line| line.2.quantile_us(0.0)).min()?;
    let most = lines.iter().map(|line| line.2.max_us()).max()?;
    let nines = lines.iter().map(|line| curve::nines(&line.2)).fold(1.0, f64::max);
    let axes = (Axis::nines("percentile", nines), Axis::log_us("response time", least as f64, most as f64));
    let frame = Frame::new(axes.0, axes.1, HEIGHT, 0.0);
    let title = format!("Response time by percentile: {}", part.name);
    let mut svg = Svg::new(&title, frame.height());
    frame.draw(&mut svg);
    lines.iter().for_each(|line| svg.polyline(&curve::points(&line.2, &frame), &line.0));
    let names: Vec<(String, String)> = lines.iter().map(|line| (line.0.clone(), line.1.clone())).collect();
    frame.names(&mut svg, &names);
    let caption = format!("{}. All kept repetitions added up; a line ends at the longest.", part.about);
    Some(Figure { title, caption, svg: svg.finish() })
}
