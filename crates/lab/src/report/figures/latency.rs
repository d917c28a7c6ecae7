//! Response times over time: a plot for each kind, all with the same axes so that they can be compared.

use super::super::plot::{Axis, Frame, Svg};
use super::super::timeline::{Response, Slot};
use super::marks::{Marks, boundaries, shade, strokes, time_axis};
use super::{Figure, Input, kind_class};

const HEIGHT: f64 = 210.0;

/// A line's class, beside that of its kind, its name, and its figure.
type Line = (&'static str, &'static str, fn(&Response) -> u64);

/// From the one behind to the one in front.
const LINES: [Line; 3] = [
    ("line most", "max", |response| response.max_us),
    ("line high", "p99", |response| response.p99_us),
    ("line", "p50", |response| response.p50_us),
];

/// The plots.
pub(super) fn figures(input: &Input<'_>) -> Vec<Figure> {
    input.kinds().map(|(index, name)| figure(input, index, name)).collect()
}

fn figure(input: &Input<'_>, kind_index: usize, kind: &str) -> Figure {
    let (timeline, marks) = (&input.timeline, Marks::of(&input.timeline));
    let (least, most) = input.response_range();
    let axes = (time_axis(timeline, &input.time_title()), Axis::log_us("response time", least, most));
    let frame = Frame::new(axes.0, axes.1, HEIGHT, marks.height());
    let title = format!("Latency over time: {kind}");
    let mut svg = Svg::new(&title, frame.height());
    shade(timeline, &frame, &mut svg);
    frame.draw(&mut svg);
    let class = |line: &Line| format!("{} {}", line.0, kind_class(kind_index));
    for line in &LINES {
        let value = |slot: &Slot| slot.kinds[kind_index].response.as_ref().map(|one| line.2(one) as f64);
        for points in strokes(timeline, &frame, value) {
            svg.polyline(&points, &class(line));
        }
    }
    marks.draw(&frame, &mut svg);
    boundaries(timeline, &frame, &mut svg);
    let names: Vec<(String, String)> = LINES.iter().map(|line| (class(line), line.1.to_owned())).collect();
    frame.names(&mut svg, &names);
    let caption = format!(
        "Median, 99th percentile and longest of the response times of what ended {}.{}",
        input.slot_words(),
        input.repetition_words()
    );
    Figure { title, caption, svg: svg.finish() }
}
