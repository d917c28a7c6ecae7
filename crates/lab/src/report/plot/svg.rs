//! SVG as text. A number that is none is written as 0, so that a drawing can always be read.

use std::fmt::Write;

use super::{Point, WIDTH};

/// A drawing that grows.
pub(crate) struct Svg {
    text: String,
}

impl Svg {
    /// An empty one with a name, for those who can not see it.
    pub(crate) fn new(name: &str, height: f64) -> Svg {
        let (name, width, height) = (escaped(name), number(WIDTH), number(height));
        Svg { text: format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{name}\">\n") }
    }

    /// A straight line.
    pub(crate) fn line(&mut self, from: Point, to: Point, class: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        self.add(format_args!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"));
    }

    /// A line through points; one point alone is a dot.
    pub(crate) fn polyline(&mut self, points: &[Point], class: &str) {
        match points {
            [] => {}
            [(x, y)] => {
                let [x, y] = [*x, *y].map(number);
                self.add(format_args!("<circle class=\"dot {class}\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>"));
            }
            _ => {
                let words: Vec<String> =
                    points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
                self.add(format_args!("<polyline class=\"{class}\" points=\"{}\"/>", words.join(" ")));
            }
        }
    }

    /// A rectangle between two corners, with words that show when it is pointed at.
    pub(crate) fn rect(&mut self, from: Point, to: Point, class: &str, words: &str) {
        let [x, y] = [from.0.min(to.0), from.1.min(to.1)].map(number);
        let [width, height] = [(to.0 - from.0).abs(), (to.1 - from.1).abs()].map(number);
        let place = format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"");
        match words {
            "" => self.add(format_args!("<rect class=\"{class}\" {place}/>")),
            _ => self.add(format_args!(
                "<rect class=\"{class}\" {place}><title>{}</title></rect>",
                escaped(words)
            )),
        }
    }

    /// Many rectangles of one class, which takes a tenth of the text that as many `rect`s would.
    pub(crate) fn cells(&mut self, cells: &[(Point, Point)], class: &str) {
        if cells.is_empty() {
            return;
        }
        let mut data = String::new();
        for (from, to) in cells {
            let [x, y] = [from.0, from.1].map(number);
            let [width, height, back] = [to.0 - from.0, to.1 - from.1, from.0 - to.0].map(number);
            let _ = write!(data, "M{x} {y}h{width}v{height}h{back}z");
        }
        self.add(format_args!("<path class=\"{class}\" d=\"{data}\"/>"));
    }

    /// Words; a class of `end` or `middle` says where the point is.
    pub(crate) fn words(&mut self, at: Point, class: &str, words: &str) {
        let [x, y] = [at.0, at.1].map(number);
        self.add(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(words)));
    }

    /// The whole text.
    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    fn add(&mut self, shape: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{shape}");
    }
}

/// With one digit behind the point at most.
fn number(number: f64) -> String {
    let rounded = (number * 10.0).round() / 10.0;
    match rounded.is_finite() && rounded != 0.0 {
        true => format!("{rounded}"),
        false => "0".to_owned(),
    }
}

/// As text or a value of an attribute in HTML and SVG, whatever it is.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(letter),
            _ if letter.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_can_not_leave_its_place() {
        assert_eq!(
            escaped("<a href=\"x\" & 'y'>\0"),
            "&lt;a href=&quot;x&quot; &amp; &#39;y&#39;&gt;\u{fffd}"
        );
        let mut svg = Svg::new("a \"b\"", 10.0);
        svg.words((1.0, 2.0), "tick", "</text><script>");
        let text = svg.finish();
        assert!(text.contains("aria-label=\"a &quot;b&quot;\"") && !text.contains("<script>"));
    }

    #[test]
    fn a_number_can_always_be_read() {
        assert_eq!([f64::NAN, f64::INFINITY, -0.01, 2.0, 5.67].map(number), ["0", "0", "0", "2", "5.7"]);
    }

    #[test]
    fn one_point_is_a_dot_and_none_is_nothing() {
        let mut svg = Svg::new("", 10.0);
        svg.polyline(&[], "line");
        svg.polyline(&[(1.0, 1.0)], "line");
        svg.cells(&[((0.0, 1.0), (2.0, 4.0))], "heat");
        let text = svg.finish();
        assert!(
            !text.contains("polyline") && text.contains("<circle") && text.contains("d=\"M0 1h2v3h-2z\"")
        );
    }
}
