//! Response times as a heat map: what a percentile hides, as two humps or a band of retries, shows here.

use super::super::plot::{Axis, Frame, Point, Svg};
use super::super::timeline::{BUCKETS_PER_DECADE, Slot};
use super::super::words;
use super::marks::{Marks, boundaries, time_axis};
use super::{Figure, Input};

const HEIGHT: f64 = 230.0;
/// Shades that the page's style sheet has.
const SHADE_COUNT: usize = 7;

/// The plots, one for each kind.
pub(super) fn figures(input: &Input<'_>) -> Vec<Figure> {
    input.kinds().map(|(index, name)| figure(input, index, name)).collect()
}

fn figure(input: &Input<'_>, kind_index: usize, kind: &str) -> Figure {
    let (timeline, marks) = (&input.timeline, Marks::of(&input.timeline));
    let all = || timeline.slots().flat_map(|slot| buckets(slot, kind_index));
    let least = all().map(|(bucket, _)| bucket).min().unwrap_or(0);
    let most = all().map(|(bucket, _)| bucket).max().unwrap_or(0);
    let shades = Shades { most: all().map(|(_, count)| count).max().unwrap_or(1) };
    let axes = (
        time_axis(timeline, &input.time_title()),
        Axis::log_us("response time", floor_us(least), floor_us(most + 1)),
    );
    let frame = Frame::new(axes.0, axes.1, HEIGHT, marks.height());
    let title = format!("Heat map of response time: {kind}");
    let mut svg = Svg::new(&title, frame.height());
    frame.draw(&mut svg);
    for (shade, cells) in cells(input, kind_index, &shades, &frame).iter().enumerate() {
        svg.cells(cells, &format!("heat{shade}"));
    }
    marks.draw(&frame, &mut svg);
    boundaries(timeline, &frame, &mut svg);
    shades.names(&frame, &mut svg);
    let caption = format!(
        "How many operations ended {} and took how long, in {BUCKETS_PER_DECADE} bands to each power of ten. \
         Shades grow by a factor, so that one slow operation among thousands can be seen.",
        input.slot_words(),
    );
    Figure { title, caption, svg: svg.finish() }
}

/// Buckets of a slot that have any, with their counts.
fn buckets(slot: &Slot, kind_index: usize) -> impl Iterator<Item = (i32, u64)> {
    let response = slot.kinds[kind_index].response.iter();
    response.flat_map(|response| &response.heat).map(|(bucket, count)| (*bucket, *count))
}

/// By shade, from one corner to the other.
fn cells(input: &Input<'_>, kind_index: usize, shades: &Shades, frame: &Frame) -> Vec<Vec<(Point, Point)>> {
    let mut cells = vec![Vec::new(); SHADE_COUNT];
    for slot in input.timeline.slots() {
        for (bucket, count) in buckets(slot, kind_index) {
            let from = frame.at((slot.from_s, floor_us(bucket + 1)));
            let to = frame.at((slot.until_s, floor_us(bucket)));
            cells[shades.of(count)].push((from, to));
        }
    }
    cells
}

/// Where a bucket begins.
fn floor_us(bucket: i32) -> f64 {
    10f64.powf(f64::from(bucket) / BUCKETS_PER_DECADE)
}

/// Which count has which shade; each begins at the same multiple of the one before.
struct Shades {
    most: u64,
}

impl Shades {
    fn of(&self, count: u64) -> usize {
        (0..SHADE_COUNT).rev().find(|shade| self.least(*shade) <= count).unwrap_or(0)
    }

    /// The least count of a shade.
    fn least(&self, shade: usize) -> u64 {
        (self.most.max(1) as f64).powf(shade as f64 / SHADE_COUNT as f64).ceil() as u64
    }

    /// Shades with their counts, the darkest first; two that begin with the same count are one.
    fn names(&self, frame: &Frame, svg: &mut Svg) {
        let (x, mut y) = (frame.right() + 14.0, frame.top);
        svg.words((x, y + 8.0), "name", "operations");
        for shade in (0..SHADE_COUNT).rev() {
            if shade + 1 < SHADE_COUNT && self.least(shade) == self.least(shade + 1) {
                continue;
            }
            y += 20.0;
            svg.rect((x, y - 2.0), (x + 24.0, y + 14.0), &format!("heat{shade}"), "");
            svg.words((x + 30.0, y + 11.0), "name", &format!("from {}", words::count(self.least(shade))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_grow_by_a_factor_and_begin_with_one_operation() {
        let shades = Shades { most: 10_000_000 };
        assert_eq!([0, 1, 6].map(|shade| shades.least(shade)), [1, 10, 1_000_000]);
        assert_eq!([1, 9, 10, 10_000_000].map(|count| shades.of(count)), [0, 0, 1, 6]);
        assert_eq!(Shades { most: 1 }.of(1), 6);
    }
}
