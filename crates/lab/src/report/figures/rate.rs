//! Operations each second over time, by kind.

use super::super::plot::{Axis, Frame, Svg};
use super::super::timeline::{Slot, Span};
use super::marks::{Marks, boundaries, shade, time_axis};
use super::{Figure, Input, kind_class};
use crate::manifest::Pace;

const HEIGHT: f64 = 240.0;

/// A line: its class, its name, the count that each slot has of it.
type Line<'a> = (String, String, Box<dyn Fn(&Slot) -> u64 + 'a>);

/// The plot.
pub(super) fn figure(input: &Input<'_>) -> Figure {
    let timeline = &input.timeline;
    let (lines, due) = (lines(input), due(input));
    let slots = timeline.slots().filter(|slot| slot.measured_s > 0.0);
    let rates = slots.flat_map(|slot| lines.iter().map(|line| rate(slot, line)));
    let most = rates.fold(due.unwrap_or(0.0), f64::max);
    let marks = Marks::of(timeline);
    let axes = (time_axis(timeline, &input.time_title()), Axis::linear("operations/s", most));
    let frame = Frame::new(axes.0, axes.1, HEIGHT, marks.height());
    let title = "Throughput over time";
    let mut svg = Svg::new(title, frame.height());
    shade(timeline, &frame, &mut svg);
    frame.draw(&mut svg);
    let mut names: Vec<(String, String)> =
        lines.iter().map(|(class, name, _)| (class.clone(), name.clone())).collect();
    if let Some(due) = due {
        let y = frame.down(due);
        svg.line((frame.left(), y), (frame.right(), y), "line due");
        names.push(("line due".to_owned(), "due".to_owned()));
    }
    for line in &lines {
        for span in &timeline.spans {
            draw(span, line, &frame, &mut svg);
        }
    }
    marks.draw(&frame, &mut svg);
    boundaries(timeline, &frame, &mut svg);
    frame.names(&mut svg, &names);
    if timeline.spans.iter().all(|span| span.slots.is_empty()) {
        frame.say(&mut svg, "nothing was measured");
    }
    let caption = format!(
        "Operations/s that went well, by when they ended, {}.{}",
        input.slot_words(),
        input.repetition_words()
    );
    Figure { title: title.to_owned(), caption, svg: svg.finish() }
}

fn lines<'a>(input: &'a Input<'a>) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    let kinds: Vec<(usize, &str)> = input.kinds().collect();
    if kinds.len() > 1 {
        let count = |slot: &Slot| slot.kinds.iter().map(|kind| kind.count).sum();
        lines.push(("line all".to_owned(), "all".to_owned(), Box::new(count)));
    }
    for (index, name) in kinds {
        let class = format!("line {}", kind_class(index));
        lines.push((class, name.to_owned(), Box::new(move |slot| slot.kinds[index].count)));
    }
    let failed = |slot: &Slot| slot.kinds.iter().map(|kind| kind.failed_count).sum();
    if input.timeline.slots().map(failed).sum::<u64>() > 0 {
        lines.push(("line failed".to_owned(), "failed or wrong".to_owned(), Box::new(failed)));
    }
    lines
}

fn draw(span: &Span, line: &Line<'_>, frame: &Frame, svg: &mut Svg) {
    let slots = span.slots.iter().filter(|slot| slot.measured_s > 0.0);
    let points = slots.map(|slot| frame.at((slot.middle_s(), rate(slot, line))));
    svg.polyline(&points.collect::<Vec<_>>(), &line.0);
}

/// Of a slot in which operations were due.
fn rate(slot: &Slot, line: &Line<'_>) -> f64 {
    line.2(slot) as f64 / slot.measured_s
}

/// What an open loop is asked for.
fn due(input: &Input<'_>) -> Option<f64> {
    match input.results.manifest.plan.pace {
        Pace::Open { rate } => Some(rate).filter(|rate| rate.is_finite() && *rate > 0.0),
        Pace::Closed { .. } => None,
    }
}
