//! What all servers did second by second in a part, laid over each other, with what was done to them.

use super::super::figures::Figure;
use super::super::figures::marks::{Marks, boundaries, shade, strokes, time_axis};
use super::super::plot::{Axis, Frame, Svg};
use super::super::timeline::{Slot, Timeline};
use super::input::{Input, Run};
use crate::results::Results;

const HEIGHT: f64 = 210.0;

/// A kind of line: its class, beside that of its server, and its value in a slot, if there is one.
type Stroke<'a> = (&'static str, &'a dyn Fn(&Slot) -> Option<f64>);

/// One server's seconds.
struct Line {
    class: String,
    name: String,
    timeline: Timeline,
}

/// Rate and tail over time, of each part.
pub(super) fn figures(input: &Input<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (part_index, (part, _)) in input.study.parts.iter().enumerate() {
        let results: Vec<&Results> = input.runs_of(part_index).map(|run| run.results).collect();
        let timelines = Timeline::side_by_side(&results);
        let line = |(run, timeline): (&Run<'_>, Timeline)| Line {
            class: run.class(),
            name: run.server.to_owned(),
            timeline,
        };
        let lines: Vec<Line> = input.runs_of(part_index).zip(timelines).map(line).collect();
        figures.extend(rate(&part.name, &lines));
        figures.extend(tail(&part.name, &lines));
    }
    figures
}

fn rate(part: &str, lines: &[Line]) -> Option<Figure> {
    let rate = |slot: &Slot| (slot.measured_s > 0.0).then(|| count(slot) as f64 / slot.measured_s);
    let most = slots(lines).filter_map(rate).fold(0.0, f64::max);
    let caption = "Operations/s that went well, by when they ended; dashed: those that failed.";
    let failed = |slot: &Slot| {
        let failed = slot.kinds.iter().map(|kind| kind.failed_count).sum::<u64>();
        (slot.measured_s > 0.0 && failed > 0).then(|| failed as f64 / slot.measured_s)
    };
    let draws: [Stroke<'_>; 2] = [("line", &rate), ("line high", &failed)];
    drawn(
        &format!("Throughput over time: {part}"),
        caption,
        Axis::linear("operations/s", most),
        lines,
        &draws,
    )
}

fn tail(part: &str, lines: &[Line]) -> Option<Figure> {
    let p99 = |slot: &Slot| slot.responses().map(|response| response.p99_us as f64).reduce(f64::max);
    let max = |slot: &Slot| slot.responses().map(|response| response.max_us as f64).reduce(f64::max);
    let least = slots(lines).filter_map(p99).fold(f64::INFINITY, f64::min);
    let most = slots(lines).filter_map(max).fold(0.0, f64::max);
    if most == 0.0 {
        return None;
    }
    let caption = "The 99th percentile of the slowest kind of operation; dashed: the longest of all.";
    let draws: [Stroke<'_>; 2] = [("line", &p99), ("line high", &max)];
    let axis = Axis::log_us("response time", least, most);
    drawn(&format!("Response time over time: {part}"), caption, axis, lines, &draws)
}

fn slots(lines: &[Line]) -> impl Iterator<Item = &Slot> {
    lines.iter().flat_map(|line| line.timeline.slots())
}

fn count(slot: &Slot) -> u64 {
    slot.kinds.iter().map(|kind| kind.count).sum()
}

/// Draws lines of all servers, each style of stroke with its own class.
fn drawn(title: &str, caption: &str, axis: Axis, lines: &[Line], styles: &[Stroke<'_>]) -> Option<Figure> {
    // Repetitions begin for all at the same second, so the one that has most of them stands for all.
    let most = lines.iter().max_by_key(|line| line.timeline.spans.len()).map(|line| &line.timeline)?;
    let named: Vec<(&str, &Timeline)> =
        lines.iter().map(|line| (line.name.as_str(), &line.timeline)).collect();
    let marks = Marks::of_servers(&named);
    let frame = Frame::new(time_axis(most, "measured time, s"), axis, HEIGHT, marks.height());
    let mut svg = Svg::new(title, frame.height());
    shade(most, &frame, &mut svg);
    frame.draw(&mut svg);
    for (style, of) in styles.iter().rev() {
        for line in lines {
            for points in strokes(&line.timeline, &frame, of) {
                svg.polyline(&points, &format!("{style} {}", line.class));
            }
        }
    }
    marks.draw(&frame, &mut svg);
    boundaries(most, &frame, &mut svg);
    let name = |line: &Line| (format!("line {}", line.class), line.name.clone());
    frame.names(&mut svg, &lines.iter().map(name).collect::<Vec<_>>());
    Some(Figure { title: title.to_owned(), caption: caption.to_owned(), svg: svg.finish() })
}
