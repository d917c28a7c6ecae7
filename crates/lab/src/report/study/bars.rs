//! One figure of all parts, the servers' bars side by side, each with the interval of its mean.

use super::super::figures::Figure;
use super::super::plot::{Axis, Frame, Svg};
use super::super::words;
use super::input::{Input, Run};
use crate::figures::{COST, FIGURES, Figure as Measure, estimate};
use crate::report::Estimate;

const HEIGHT: f64 = 240.0;
/// Of the room that a part has.
const GROUP_PART: f64 = 0.76;

/// What is plotted: a title, what the axis counts, and the figure.
struct Plot {
    title: &'static str,
    unit: &'static str,
    measure: Measure,
    is_time: bool,
}

/// Rates, tails and costs, as far as they are known.
pub(super) fn figures(input: &Input<'_>) -> Vec<Figure> {
    let plots = [
        Plot { title: "Throughput", unit: "operations/s", measure: FIGURES[0].1, is_time: false },
        Plot { title: "Response time, 99th percentile", unit: "p99", measure: FIGURES[2].1, is_time: true },
        Plot { title: "Server CPU of an operation", unit: "µs", measure: COST.1, is_time: false },
    ];
    plots.iter().filter_map(|plot| figure(input, plot)).collect()
}

/// A bar: whose it is, and how high.
type Bar<'a> = (&'a Run<'a>, Estimate);

fn figure(input: &Input<'_>, plot: &Plot) -> Option<Figure> {
    let known = |run: &Run<'_>| estimate(run.results, plot.measure).filter(|estimate| estimate.mean > 0.0);
    let bars: Vec<Bar<'_>> = input.runs.iter().filter_map(|run| Some((run, known(run)?))).collect();
    if bars.is_empty() {
        return None;
    }
    let high = |bar: &Bar<'_>| bar.1.mean + bar.1.margin.unwrap_or(0.0);
    let most = bars.iter().map(high).fold(0.0, f64::max);
    let names: Vec<&str> = input.study.parts.iter().map(|(part, _)| part.name.as_str()).collect();
    let y = match plot.is_time {
        true => {
            let least = bars.iter().map(|bar| bar.1.mean).fold(f64::INFINITY, f64::min);
            Axis::log_us(plot.unit, least / 2.0, most)
        }
        false => Axis::linear(plot.unit, most),
    };
    let frame = Frame::new(Axis::named("part", &names), y, HEIGHT, 0.0);
    let mut svg = Svg::new(plot.title, frame.height());
    frame.draw(&mut svg);
    bars.iter().for_each(|bar| draw(bar, input.servers.len(), plot, &frame, &mut svg));
    frame.names(&mut svg, &input.server_names());
    let caption = "Mean of what each kept repetition has; a line through the end of a bar is the 95% confidence interval \
                   (Student’s t).";
    Some(Figure { title: plot.title.to_owned(), caption: caption.to_owned(), svg: svg.finish() })
}

fn draw((run, estimate): &Bar<'_>, server_count: usize, plot: &Plot, frame: &Frame, svg: &mut Svg) {
    let width = GROUP_PART / server_count as f64;
    let left = (run.part_index + 1) as f64 - GROUP_PART / 2.0 + run.server_index as f64 * width;
    let words = match plot.is_time {
        true => words::time(estimate.mean as u64),
        false => format!("{} {}", words::figure(estimate.mean), plot.unit),
    };
    let class = format!("bar {}", run.class());
    let (top, bottom) = (frame.down(estimate.mean), frame.bottom);
    svg.rect(
        (frame.across(left), top),
        (frame.across(left + width * 0.92), bottom),
        &class,
        &format!("{}, {}: {words}", run.part.name, run.server),
    );
    if let Some(margin) = estimate.margin {
        let middle = frame.across(left + width * 0.46);
        let (low, high) = (frame.down((estimate.mean - margin).max(0.0)), frame.down(estimate.mean + margin));
        svg.line((middle, low), (middle, high), "whisker");
    }
}
