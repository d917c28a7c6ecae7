//! Response times of all servers by percentile, in one plot for each part.

use super::super::figures::{Figure, curve};
use super::super::plot::{Axis, Frame, Svg};
use super::input::Input;
use crate::latencies::Latencies;

const HEIGHT: f64 = 260.0;

/// A plot for each part in which something went well.
pub(super) fn figures(input: &Input<'_>) -> Vec<Figure> {
    (0..input.study.parts.len()).filter_map(|part_index| figure(input, part_index)).collect()
}

fn figure(input: &Input<'_>, part_index: usize) -> Option<Figure> {
    let part = &input.study.parts[part_index].0;
    let lines: Vec<(String, String, &Latencies)> = input
        .runs_of(part_index)
        .filter(|run| run.summary.all.count > 0)
        .map(|run| {
            (format!("line {}", run.class()), run.server.to_owned(), &run.summary.all.response.latencies)
        })
        .collect();
    let least = lines.iter().map(|line| line.2.quantile_us(0.0)).min()?;
    let most = lines.iter().map(|line| line.2.max_us()).max()?;
    let nines = lines.iter().map(|line| curve::nines(line.2)).fold(1.0, f64::max);
    let axes = (Axis::nines("percentile", nines), Axis::log_us("response time", least as f64, most as f64));
    let frame = Frame::new(axes.0, axes.1, HEIGHT, 0.0);
    let title = format!("Response time by percentile: {}", part.name);
    let mut svg = Svg::new(&title, frame.height());
    frame.draw(&mut svg);
    lines.iter().for_each(|line| svg.polyline(&curve::points(line.2, &frame), &line.0));
    let names: Vec<(String, String)> = lines.iter().map(|line| (line.0.clone(), line.1.clone())).collect();
    frame.names(&mut svg, &names);
    let about = if part.about.is_empty() { String::new() } else { format!("{}. ", capital(&part.about)) };
    let caption = format!("{about}All kept repetitions added up; a line ends at the longest.");
    Some(Figure { title, caption, svg: svg.finish() })
}

/// As a sentence begins.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
