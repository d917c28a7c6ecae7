//! The rate of each repetition, with the mean and its interval: whether they agree.

use super::super::plot::{Axis, Frame, Svg};
use super::super::words;
use super::{Figure, Input};
use crate::results::Repetition;

const HEIGHT: f64 = 200.0;
/// Of the room that a bar has.
const BAR_PART: f64 = 0.6;
/// More bars than this have no figures on them.
const NAMED_COUNT_MAX: usize = 14;

/// The plot, if there are several repetitions.
pub(super) fn figure(input: &Input<'_>) -> Option<Figure> {
    let repetitions = &input.results.repetitions;
    if repetitions.len() < 2 {
        return None;
    }
    let estimate = &input.summary.all.rate;
    let margin = estimate.margin.unwrap_or(0.0);
    let most = repetitions.iter().map(own_rate).fold(estimate.mean + margin, f64::max);
    let axes = (Axis::numbered("repetition", repetitions.len()), Axis::linear("operations/s", most));
    let frame = Frame::new(axes.0, axes.1, HEIGHT, 0.0);
    let title = "Throughput of each repetition";
    let mut svg = Svg::new(title, frame.height());
    frame.draw(&mut svg);
    for (index, repetition) in repetitions.iter().enumerate() {
        bar(index + 1, repetition, repetitions.len() <= NAMED_COUNT_MAX, &frame, &mut svg);
    }
    let mut names = vec![("line all".to_owned(), format!("mean {}", words::figure(estimate.mean)))];
    if let Some(margin) = estimate.margin {
        let (low, high) = (frame.down(estimate.mean - margin), frame.down(estimate.mean + margin));
        svg.rect((frame.left(), low), (frame.right(), high), "interval", "");
        names.push(("interval-name".to_owned(), format!("± {} (95%)", words::figure(margin))));
    }
    let y = frame.down(estimate.mean);
    svg.line((frame.left(), y), (frame.right(), y), "line all");
    frame.names(&mut svg, &names);
    let caption = match estimate.margin {
        Some(_) => "All kinds together. The band is the 95% confidence interval of the mean (Student's t).",
        None => "All kinds together. One repetition alone has no interval.",
    };
    let dropped = if input.summary.dropped_count > 0 { " Hollow bars were dropped." } else { "" };
    Some(Figure { title: title.to_owned(), caption: format!("{caption}{dropped}"), svg: svg.finish() })
}

fn bar(number: usize, repetition: &Repetition, is_named: bool, frame: &Frame, svg: &mut Svg) {
    let (middle, rate) = (number as f64, own_rate(repetition));
    let from = frame.at((middle - BAR_PART / 2.0, rate));
    let to = frame.at((middle + BAR_PART / 2.0, 0.0));
    let class = if repetition.is_kept { "bar" } else { "bar hollow" };
    let words = words::figure(rate);
    svg.rect(from, to, class, &format!("repetition {number}: {words} operations/s"));
    if is_named {
        let class = if repetition.is_kept { "bar-name middle" } else { "middle" };
        svg.words((frame.across(middle), frame.bottom - 8.0), class, &words);
    }
}

/// Of a repetition that took no time, 0.
fn own_rate(repetition: &Repetition) -> f64 {
    if repetition.seconds > 0.0 { repetition.rate() } else { 0.0 }
}
