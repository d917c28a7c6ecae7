//! The frame of a plot: two axes, their ticks and titles, and names at the right.

use super::{Axis, Point, Svg};
use crate::report::words;

/// Of every plot.
pub(crate) const WIDTH: f64 = 940.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 164.0;
const BOTTOM: f64 = 46.0;
/// For the title of y.
const TOP: f64 = 26.0;
/// Characters of a name that fit at the right.
const NAME_LENGTH_MAX: usize = 17;
const NAME_HEIGHT: f64 = 19.0;

/// Where a plot's values stand.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Of the inner part, from the top.
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Frame {
    /// An inner part of some height, with room above it for marks.
    pub(crate) fn new(x: Axis, y: Axis, inner_height: f64, marks_height: f64) -> Frame {
        let top = TOP + marks_height;
        Frame { x, y, top, bottom: top + inner_height }
    }

    /// Of the whole plot.
    pub(crate) fn height(&self) -> f64 {
        self.bottom + BOTTOM
    }

    /// Of the inner part, from the left.
    pub(crate) fn left(&self) -> f64 {
        LEFT
    }

    /// Of the inner part, from the left.
    pub(crate) fn right(&self) -> f64 {
        WIDTH - RIGHT
    }

    /// Where a value of x stands.
    pub(crate) fn across(&self, x: f64) -> f64 {
        self.left() + self.x.part(x) * (self.right() - self.left())
    }

    /// Where a value of y stands.
    pub(crate) fn down(&self, y: f64) -> f64 {
        self.bottom - self.y.part(y) * (self.bottom - self.top)
    }

    /// Where a pair of values stands.
    pub(crate) fn at(&self, (x, y): (f64, f64)) -> Point {
        (self.across(x), self.down(y))
    }

    /// Ticks, titles and faint lines; what is plotted comes on top.
    pub(crate) fn draw(&self, svg: &mut Svg) {
        for tick in self.y.ticks() {
            let y = self.down(tick.value);
            let class = if tick.name.is_empty() { "grid faint" } else { "grid" };
            svg.line((self.left(), y), (self.right(), y), class);
            svg_words(svg, (self.left() - 8.0, y + 4.0), "tick end", &tick.name);
        }
        for tick in self.x.ticks() {
            let x = self.across(tick.value);
            svg.line((x, self.bottom), (x, self.bottom + 5.0), "axis");
            svg_words(svg, (x, self.bottom + 18.0), "tick middle", &tick.name);
        }
        svg.line((self.left(), self.bottom), (self.right(), self.bottom), "axis");
        let middle = f64::midpoint(self.left(), self.right());
        svg_words(svg, (middle, self.bottom + 38.0), "title middle", self.x.title());
        svg_words(svg, (8.0, 15.0), "title", self.y.title());
    }

    /// Names of lines with a piece of each, from the top down.
    pub(crate) fn names(&self, svg: &mut Svg, names: &[(String, String)]) {
        for (index, (class, name)) in names.iter().enumerate() {
            let (x, y) = (self.right() + 14.0, self.top + 8.0 + index as f64 * NAME_HEIGHT);
            svg.line((x, y), (x + 24.0, y), class);
            svg.words((x + 30.0, y + 4.0), "name", &words::shortened(name, NAME_LENGTH_MAX));
        }
    }

    /// Says why a plot is empty.
    pub(crate) fn say(&self, svg: &mut Svg, words: &str) {
        let middle = (f64::midpoint(self.left(), self.right()), f64::midpoint(self.top, self.bottom));
        svg.words(middle, "title middle", words);
    }
}

fn svg_words(svg: &mut Svg, at: Point, class: &str, words: &str) {
    if !words.is_empty() {
        svg.words(at, class, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_inside_the_frame() {
        let frame = Frame::new(Axis::up_to("s", 10.0), Axis::linear("n", 100.0), 200.0, 30.0);
        assert_eq!(frame.at((0.0, 0.0)), (frame.left(), frame.bottom));
        assert_eq!(frame.at((1e9, 1e9)), (frame.right(), frame.top));
        let mut svg = Svg::new("", frame.height());
        frame.draw(&mut svg);
        frame.names(&mut svg, &[("line".to_owned(), "a < b".to_owned())]);
        let text = svg.finish();
        assert!(text.contains(">100</text>") && text.contains("a &lt; b") && !text.contains("=\"-"));
    }
}
