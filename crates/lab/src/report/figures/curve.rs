//! Latencies by percentile, as HdrHistogram plots them: as much room for the last 1% as for the 9% before.

use super::super::plot::{Axis, Frame, Svg};
use super::{Figure, Input, kind_class};
use crate::latencies::Latencies;

const HEIGHT: f64 = 300.0;
/// Points to each nine.
const POINTS_PER_NINE: f64 = 60.0;

/// A line: its class, and what it shows.
type Line<'a> = (String, &'a Latencies);

/// The plot.
pub(super) fn figure(input: &Input<'_>) -> Figure {
    let lines = lines(input);
    let some = || lines.iter().map(|line| line.1);
    let nines = some().map(nines).fold(1.0, f64::max);
    let least = some().map(|one| one.quantile_us(0.0)).min().unwrap_or(1);
    let most = some().map(Latencies::max_us).max().unwrap_or(1);
    let axes = (Axis::nines("percentile", nines), Axis::log_us("latency", least as f64, most as f64));
    let frame = Frame::new(axes.0, axes.1, HEIGHT, 0.0);
    let title = "Latency by percentile";
    let mut svg = Svg::new(title, frame.height());
    frame.draw(&mut svg);
    for (class, latencies) in &lines {
        svg.polyline(&points(latencies, &frame), class);
    }
    frame.names(&mut svg, &names(input));
    if lines.is_empty() {
        frame.say(&mut svg, "no operation went well");
    }
    let times = match input.is_closed() {
        true => "Response times (in a closed loop, service times are the same).",
        false => "Response times from when an operation was due; service times from when it was begun.",
    };
    let caption = format!("{times} All kept repetitions added up. A line ends at the longest.");
    Figure { title: title.to_owned(), caption, svg: svg.finish() }
}

fn lines<'a>(input: &Input<'a>) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for (index, figures) in input.summary.kinds.iter().enumerate().filter(|(_, figures)| figures.count > 0) {
        let class = kind_class(index);
        lines.push((format!("line {class}"), &figures.response.latencies));
        if !input.is_closed() {
            lines.push((format!("line inner {class}"), &figures.service.latencies));
        }
    }
    lines
}

/// Colours tell kinds, strokes tell times.
fn names(input: &Input<'_>) -> Vec<(String, String)> {
    let kind = |(index, name): (usize, &str)| (format!("line {}", kind_class(index)), name.to_owned());
    let mut names: Vec<(String, String)> = input.kinds().map(kind).collect();
    if !input.is_closed() {
        let times = [("line all", "response time"), ("line inner all", "service time")];
        names.extend(times.map(|(class, name)| (class.to_owned(), name.to_owned())));
    }
    names
}

/// How many nines a histogram can tell of: with a thousand values, three.
pub(in crate::report) fn nines(latencies: &Latencies) -> f64 {
    (latencies.count().max(1) as f64).log10()
}

pub(in crate::report) fn points(latencies: &Latencies, frame: &Frame) -> Vec<(f64, f64)> {
    let nines = nines(latencies);
    let steps = (nines * POINTS_PER_NINE).floor() as u32;
    let places = (0..=steps).map(|step| f64::from(step) / POINTS_PER_NINE);
    let us = |nines: f64| latencies.quantile_us(1.0 - 10f64.powf(-nines)) as f64;
    let mut points: Vec<(f64, f64)> = places.map(|nines| frame.at((nines, us(nines)))).collect();
    points.push(frame.at((nines, latencies.max_us() as f64)));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_rises_to_the_longest_at_its_right_end() {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|us| latencies.record(us * 10));
        let frame = Frame::new(Axis::nines("", 3.0), Axis::log_us("", 10.0, 10_000.0), 100.0, 0.0);
        let points = points(&latencies, &frame);
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 >= pair[1].1));
        assert_eq!(points.last(), Some(&(frame.right(), frame.down(10_000.0))));
        assert_eq!(points[0], (frame.left(), frame.down(10.0)));
    }
}
