//! Plots as SVG: lines over one axis, drawn plainly enough to be read in a page of the docs.
//!
//! ```text
//!   title
//!   |   \__  a line for each series, its name at its end
//!   |______\__
//!     0   1x   2x   4x
//! ```

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const TICKS: u32 = 5;
const COLOURS: &[&str] = &["#1b6ca8", "#c8553d", "#6a8d3a", "#8a5aa8", "#777777"];

/// One line.
pub(crate) struct Series {
    pub(crate) name: String,
    /// From left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A whole plot.
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    pub(crate) series: Vec<Series>,
}

impl Plot {
    /// The text of an SVG file.
    pub(crate) fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x_most = nice(points().map(|point| point.0).fold(0.0, f64::max));
        let y_most = nice(points().map(|point| point.1).fold(0.0, f64::max));
        let place = |(x, y): (f64, f64)| {
            let across = LEFT + x / x_most * (WIDTH - LEFT - RIGHT);
            (across, HEIGHT - BOTTOM - y / y_most * (HEIGHT - TOP - BOTTOM))
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        text(&mut svg, (LEFT, 22.0), "start", "#000", &self.title);
        text(&mut svg, (LEFT, HEIGHT - 10.0), "start", "#000", &self.x_title);
        text(&mut svg, (6.0, TOP - 8.0), "start", "#000", &self.y_title);
        for tick in 0..=TICKS {
            let share = f64::from(tick) / f64::from(TICKS);
            let (left, y) = place((0.0, share * y_most));
            line(&mut svg, (left, y), (WIDTH - RIGHT, y), "#ddd");
            text(&mut svg, (left - 6.0, y + 4.0), "end", "#333", &short(share * y_most));
            let (x, bottom) = place((share * x_most, 0.0));
            line(&mut svg, (x, bottom), (x, bottom + 5.0), "#333");
            text(&mut svg, (x, bottom + 18.0), "middle", "#333", &short(share * x_most));
        }
        let mut names = Vec::new();
        for (series, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            let placed: Vec<(f64, f64)> = series.points.iter().map(|point| place(*point)).collect();
            let words: Vec<String> = placed.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                words.join(" ")
            );
            for (x, y) in &placed {
                let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
            }
            names.extend(placed.last().map(|(_, y)| (*y, &series.name, *colour)));
        }
        // Names stand at their line's end, pushed down where two would cover each other.
        names.sort_by(|left, right| left.0.total_cmp(&right.0));
        let mut free_from = 0.0f64;
        for (y, name, colour) in names {
            let y = y.max(free_from);
            text(&mut svg, (WIDTH - RIGHT + 8.0, y + 4.0), "start", colour, name);
            free_from = y + 15.0;
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, colour: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>"
    );
}

/// The next number above that divides well.
fn nice(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(most.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * power).find(|step| *step >= most).unwrap_or(most)
}

fn short(figure: f64) -> String {
    match figure {
        _ if figure >= 1e6 => format!("{:.1}M", figure / 1e6),
        _ if figure >= 1e4 => format!("{:.0}k", figure / 1e3),
        _ if figure >= 1e3 => format!("{:.1}k", figure / 1e3),
        _ if figure == 0.0 || figure >= 10.0 => format!("{figure:.0}"),
        _ => format!("{figure:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_a_line_and_a_name_for_each_series_inside_its_frame() {
        let series = |name: &str, points: &[(f64, f64)]| Series { name: name.into(), points: points.into() };
        let plot = Plot {
            title: "a < b".into(),
            x_title: "x".into(),
            y_title: "y".into(),
            series: vec![series("one", &[(0.0, 0.0), (4.0, 97.0)]), series("two", &[(4.0, 96.0)])],
        };
        let svg = plot.svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains(">one<") && svg.contains(">two<") && svg.contains("a &lt; b"));
        assert!(!svg.contains("NaN") && !svg.contains("\"-"));
        assert_eq!(nice(97.0), 100.0);
    }
}
