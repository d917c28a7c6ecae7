//! What all plots over time have in common: strokes of points, where repetitions begin, which are dropped, events.

use super::super::plot::{Axis, Frame, Svg, WIDTH};
use super::super::timeline::{Slot, Timeline};
use super::super::words;

/// Rows of events above a plot; one that finds no room has its number only, or nothing but its line.
const ROW_COUNT_MAX: usize = 3;
const ROW_HEIGHT: f64 = 15.0;
/// About what a character takes.
const LETTER_WIDTH: f64 = 6.4;
const EVENT_LENGTH_MAX: usize = 36;
const GAP: f64 = 8.0;

/// Events with a place above a plot.
pub(in crate::report) struct Marks {
    events: Vec<Mark>,
    row_count: usize,
    /// For the numbers of repetitions, between the events and the plot.
    name_height: f64,
}

struct Mark {
    x: f64,
    /// The row from the top, and what stands there.
    label: Option<(usize, String)>,
    is_leftwards: bool,
}

impl Marks {
    /// Finds room for the events, which have the numbers of the page's table.
    pub(in crate::report) fn of(timeline: &Timeline) -> Marks {
        let all = timeline.spans.iter().flat_map(|span| &span.events);
        let label = |(index, (at_s, text)): (usize, &(f64, String))| {
            let number = (index + 1).to_string();
            (*at_s, [format!("{number} {}", words::shortened(text, EVENT_LENGTH_MAX)), number])
        };
        Marks::placed(timeline, all.enumerate().map(label))
    }

    /// Finds room for the events of servers that are laid over each other. What happened to all of them within a second
    /// is marked once.
    pub(in crate::report) fn of_servers(servers: &[(&str, &Timeline)]) -> Marks {
        let Some((_, widest)) = servers.iter().max_by_key(|(_, timeline)| timeline.spans.len()) else {
            return Marks { events: Vec::new(), row_count: 0, name_height: 0.0 };
        };
        let mut all: Vec<(f64, &str, Vec<&str>)> = Vec::new();
        for (server, timeline) in servers {
            for (at_s, text) in timeline.spans.iter().flat_map(|span| &span.events) {
                let is_same = |one: &&mut (f64, &str, Vec<&str>)| {
                    one.1 == text.as_str() && (one.0 - at_s).abs() < 1.0 && !one.2.contains(server)
                };
                match all.iter_mut().find(is_same) {
                    Some((_, _, whose)) => whose.push(server),
                    None => all.push((*at_s, text, vec![server])),
                }
            }
        }
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let label = |(at_s, text, whose): (f64, &str, Vec<&str>)| {
            let of_all = words::shortened(text, EVENT_LENGTH_MAX);
            match whose.len() == servers.len() {
                true => (at_s, [of_all.clone(), of_all]),
                false => (at_s, [format!("{}: {of_all}", whose.join(", ")), whose.join(", ")]),
            }
        };
        Marks::placed(widest, all.into_iter().map(label))
    }

    /// Each event with what may stand above it, the best first.
    fn placed(timeline: &Timeline, labelled: impl Iterator<Item = (f64, [String; 2])>) -> Marks {
        let ruler = Frame::new(time_axis(timeline, ""), Axis::linear("", 1.0), 1.0, 0.0);
        let mut rows = Rows::default();
        let events = labelled.map(|(at_s, labels)| rows.place(ruler.across(at_s), labels)).collect();
        let name_height = if timeline.spans.len() > 1 { ROW_HEIGHT } else { 0.0 };
        Marks { events, row_count: rows.used_count, name_height }
    }

    /// Room that a plot must leave above itself.
    pub(in crate::report) fn height(&self) -> f64 {
        self.name_height + self.row_count as f64 * ROW_HEIGHT
    }

    /// Lines of the events, with their words above.
    pub(in crate::report) fn draw(&self, frame: &Frame, svg: &mut Svg) {
        let top = frame.top - self.height();
        for Mark { x, label, is_leftwards } in &self.events {
            let Some((row, label)) = label else {
                svg.line((*x, frame.top), (*x, frame.bottom), "event");
                continue;
            };
            let y = top + *row as f64 * ROW_HEIGHT;
            svg.line((*x, y + 2.0), (*x, frame.bottom), "event");
            let (x, class) =
                if *is_leftwards { (x - 4.0, "event-name end") } else { (x + 4.0, "event-name") };
            svg.words((x, y + 11.0), class, label);
        }
    }
}

/// Rows from the top down. The line of an event goes through all rows below its own, so it takes room in them too.
#[derive(Default)]
struct Rows {
    taken_until: [f64; ROW_COUNT_MAX],
    used_count: usize,
}

impl Rows {
    /// Finds room for the first of some labels that has any; events come from left to right.
    fn place(&mut self, x: f64, labels: [String; 2]) -> Mark {
        for label in labels {
            let width = label.chars().count() as f64 * LETTER_WIDTH + GAP;
            let is_leftwards = x + width > WIDTH;
            let (from, until) = if is_leftwards { (x - width, x) } else { (x, x + width) };
            let is_free = |row: &usize| self.taken_until[*row..].iter().all(|taken| *taken <= from);
            if let Some(row) = (0..ROW_COUNT_MAX).find(is_free) {
                self.taken_until[row..].fill(x);
                self.taken_until[row] = until;
                self.used_count = self.used_count.max(row + 1);
                return Mark { x, label: Some((row, label)), is_leftwards };
            }
        }
        Mark { x, label: None, is_leftwards: false }
    }
}

/// The axis of all plots over time.
pub(in crate::report) fn time_axis(timeline: &Timeline, title: &str) -> Axis {
    Axis::up_to(title, timeline.seconds)
}

/// Points that hang together: a line ends where there is no value, and with its repetition.
pub(in crate::report) fn strokes(
    timeline: &Timeline,
    frame: &Frame,
    value: impl Fn(&Slot) -> Option<f64>,
) -> Vec<Vec<(f64, f64)>> {
    let mut strokes = Vec::new();
    for span in &timeline.spans {
        let mut stroke = Vec::new();
        for slot in &span.slots {
            match value(slot) {
                Some(value) => stroke.push(frame.at((slot.middle_s(), value))),
                None => strokes.push(std::mem::take(&mut stroke)),
            }
        }
        strokes.push(stroke);
    }
    strokes
}

/// Shades dropped repetitions; comes before what is plotted.
pub(in crate::report) fn shade(timeline: &Timeline, frame: &Frame, svg: &mut Svg) {
    for span in timeline.spans.iter().filter(|span| !span.is_kept) {
        let (from, to) = (frame.across(span.from_s), frame.across(span.until_s));
        svg.rect((from, frame.top), (to, frame.bottom), "dropped", "");
    }
}

/// Marks where repetitions begin, with their numbers; comes after what is plotted.
pub(in crate::report) fn boundaries(timeline: &Timeline, frame: &Frame, svg: &mut Svg) {
    if timeline.spans.len() < 2 {
        return;
    }
    for (index, span) in timeline.spans.iter().enumerate() {
        let (from, to) = (frame.across(span.from_s), frame.across(span.until_s));
        if index > 0 {
            svg.line((from, frame.top - ROW_HEIGHT), (from, frame.bottom), "boundary");
        }
        let number = index + 1;
        let dropped = if span.is_kept { "" } else { ", dropped" };
        let names =
            [format!("repetition {number}{dropped}"), format!("{number}{dropped}"), number.to_string()];
        let fits = |name: &&String| name.chars().count() as f64 * LETTER_WIDTH + GAP < to - from;
        if let Some(name) = names.iter().find(fits) {
            svg.words((f64::midpoint(from, to), frame.top - 4.0), "repetition middle", name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::example;
    use crate::results::Event;

    #[test]
    fn events_at_one_time_stand_in_rows() {
        let timeline = Timeline::of(&example());
        let marks = Marks::of(&timeline);
        let labels: Vec<&(usize, String)> =
            marks.events.iter().filter_map(|mark| mark.label.as_ref()).collect();
        assert_eq!((labels[0].0, labels[0].1.as_str()), (0, "1 node 2 <killed>"));
        assert_eq!([labels[1].0, labels[2].0], [1, 2]);
        assert_eq!(marks.events.len(), 3);
    }

    #[test]
    fn what_happened_to_all_servers_is_marked_once() {
        let (one, mut other) = (example(), example());
        other.repetitions[2].events[0].at_s += 0.3;
        other.repetitions[2].events[2].at_s += 14.0;
        let timelines = Timeline::side_by_side(&[&one, &other]);
        let marks = Marks::of_servers(&[("a", &timelines[0]), ("b", &timelines[1])]);
        let labels: Vec<&str> = marks
            .events
            .iter()
            .filter_map(|mark| mark.label.as_ref())
            .map(|label| label.1.as_str())
            .collect();
        // The last one stands below the words of the one before, and has its line only.
        assert_eq!(labels, ["node 2 <killed>", "clients see it", "a: node 2 & its data are back"]);
        assert_eq!(marks.events.len(), 4);
    }

    #[test]
    fn more_events_than_there_is_room_for_have_their_lines() {
        let mut results = example();
        let event = |index: u32| Event { at_s: f64::from(index) / 50.0, text: "again".repeat(9) };
        results.repetitions[1].events = (0..200).map(event).collect();
        let marks = Marks::of(&Timeline::of(&results));
        assert_eq!(marks.row_count, ROW_COUNT_MAX);
        assert_eq!(marks.events.len(), 203);
        assert!(marks.events.iter().any(|mark| mark.label.is_none()));
    }
}
