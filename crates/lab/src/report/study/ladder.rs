//! The tail at each rate of a ladder of rates: where a server begins to bend.
//!
//! A ladder has the same load on all rungs. Mixes at rates of their own are none: a line through them would say
//! nothing.

use super::super::figures::Figure;
use super::super::plot::{Axis, Frame, Svg};
use super::super::summary::Summary;
use super::input::{Input, Run};
use crate::manifest::Pace;
use crate::study::is_same_load;

const HEIGHT: f64 = 260.0;

/// A kind of line: its class, beside that of its server, and its figure in microseconds.
type Line = (&'static str, fn(&Summary) -> u64);

const LINES: [Line; 2] = [
    ("line", |summary| summary.all.response.p99().all_us),
    ("line high", |summary| summary.all.response.max.all_us),
];

/// The plot, if the parts are rungs: each at a rate of its own.
pub(super) fn figure(input: &Input<'_>) -> Option<Figure> {
    let most_due = rungs(input)?.into_iter().fold(0.0, f64::max);
    let some: Vec<&Run<'_>> = input.runs.iter().filter(|run| run.summary.all.count > 0).collect();
    let least = some.iter().map(|run| LINES[0].1(&run.summary)).min()?;
    let most = some.iter().map(|run| LINES[1].1(&run.summary)).max()?;
    let axes = (
        Axis::linear("operations/s that were due", most_due),
        Axis::log_us("response time", least as f64, most as f64),
    );
    let frame = Frame::new(axes.0, axes.1, HEIGHT, 0.0);
    let title = "The tail at each rate";
    let mut svg = Svg::new(title, frame.height());
    frame.draw(&mut svg);
    for server_index in 0..input.servers.len() {
        let own: Vec<&Run<'_>> =
            some.iter().copied().filter(|run| run.server_index == server_index).collect();
        LINES.iter().for_each(|line| draw(&own, line, &frame, &mut svg));
    }
    frame.names(&mut svg, &input.server_names());
    let caption =
        "The 99th percentile of all kept repetitions of a part; dashed: the longest of all.".to_owned();
    Some(Figure { title: title.to_owned(), caption, svg: svg.finish() })
}

fn draw(runs: &[&Run<'_>], (stroke, figure): &Line, frame: &Frame, svg: &mut Svg) {
    let Some(class) = runs.first().map(|run| format!("{stroke} {}", run.class())) else { return };
    let mut values: Vec<(f64, f64)> =
        runs.iter().filter_map(|run| Some((due(run)?, figure(&run.summary) as f64))).collect();
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let points: Vec<(f64, f64)> = values.into_iter().map(|value| frame.at(value)).collect();
    if points.len() > 1 {
        svg.polyline(&points, &class);
    }
    points.iter().for_each(|point| svg.polyline(&[*point], &class));
}

/// The rate of each part; none if one has none, two have the same, or they differ in anything else.
fn rungs(input: &Input<'_>) -> Option<Vec<f64>> {
    let mut plans = input.study.parts.iter().map(|(part, _)| &part.plan);
    let first = plans.next()?;
    if !plans.all(|plan| is_same_load(first, plan)) {
        return None;
    }
    let part_count = input.study.parts.len();
    let rate = |part_index: usize| input.runs_of(part_index).next().and_then(due);
    let mut rates: Vec<f64> = (0..part_count).map(rate).collect::<Option<_>>()?;
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    (part_count > 1 && rates.len() == part_count).then_some(rates)
}

fn due(run: &Run<'_>) -> Option<f64> {
    match run.results.manifest.plan.pace {
        Pace::Open { rate } => Some(rate),
        Pace::Closed { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{ladder, study};
    use super::*;

    #[test]
    fn parts_are_rungs_if_each_has_a_rate_of_its_own() {
        let svg = figure(&Input::of(&ladder())).unwrap().svg;
        // Two servers, each with a p99 and a longest at three rates.
        assert_eq!([svg.matches("<polyline").count(), svg.matches("<circle").count()], [4, 12]);
        assert!(figure(&Input::of(&study())).is_none());
        let mut mixes = ladder();
        mixes.parts[1].0.plan.workload = "ycsb-c".to_owned();
        assert!(figure(&Input::of(&mixes)).is_none(), "they are no rungs");
    }
}
