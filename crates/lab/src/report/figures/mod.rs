//! The plots of a run. Each is a [`Figure`]: a title, a sentence that says how to read it, a drawing.

mod bars;
pub(super) mod curve;
mod heat;
mod latency;
pub(super) mod marks;
mod rate;

use super::summary::Summary;
use super::timeline::Timeline;
use crate::manifest::Pace;
use crate::results::Results;

/// Colours that the page's style sheet has for kinds; a workload with more of them uses one twice.
const KIND_COLOUR_COUNT: usize = 6;

/// One plot.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) title: String,
    /// What is to be seen, and how it is meant.
    pub(super) caption: String,
    pub(super) svg: String,
}

/// What plots are made of.
struct Input<'a> {
    results: &'a Results,
    summary: &'a Summary,
    timeline: Timeline,
}

/// All plots that a run has something for.
pub(super) fn figures(results: &Results, summary: &Summary) -> Vec<Figure> {
    let input = Input { results, summary, timeline: Timeline::of(results) };
    let mut figures = vec![rate::figure(&input)];
    figures.extend(latency::figures(&input));
    figures.push(curve::figure(&input));
    figures.extend(heat::figures(&input));
    figures.extend(bars::figure(&input));
    figures
}

impl Input<'_> {
    /// In a closed loop both times of an operation are the same.
    fn is_closed(&self) -> bool {
        matches!(self.results.manifest.plan.pace, Pace::Closed { .. })
    }

    /// What a time of a plot is.
    fn time_title(&self) -> String {
        "measured time of all repetitions, s".to_owned()
    }

    /// How long a slot is.
    fn slot_words(&self) -> String {
        match self.timeline.slot_seconds {
            1 => "in each second".to_owned(),
            seconds => format!("in each {seconds} seconds"),
        }
    }

    /// How the repetitions stand in a plot over time.
    fn repetition_words(&self) -> &'static str {
        match (self.timeline.spans.len() > 1, self.summary.dropped_count > 0) {
            (true, true) => " Repetitions stand one behind the other; those that are shaded were dropped.",
            (true, false) => " Repetitions stand one behind the other.",
            (false, _) => "",
        }
    }

    /// Kinds of which something went well, by place.
    fn kinds(&self) -> impl Iterator<Item = (usize, &str)> {
        let has_any = |index: &usize| self.timeline.slots().any(|slot| slot.kinds[*index].count > 0);
        let all = self.timeline.kinds.iter().map(String::as_str).enumerate();
        all.filter(move |(index, _)| has_any(index))
    }

    /// The least median and the most of all response times, for plots that are to be compared.
    fn response_range(&self) -> (f64, f64) {
        let responses = || self.timeline.slots().flat_map(super::timeline::Slot::responses);
        let least = responses().map(|response| response.p50_us).min().unwrap_or(1);
        let most = responses().map(|response| response.max_us).max().unwrap_or(1);
        (least as f64, most as f64)
    }
}

/// The class that gives a kind its colour.
fn kind_class(index: usize) -> String {
    format!("kind{}", index % KIND_COLOUR_COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::{empty, example, flat};

    fn titles(results: &Results) -> Vec<String> {
        figures(results, &Summary::of(results)).into_iter().map(|figure| figure.title).collect()
    }

    #[test]
    fn a_run_has_the_plots_that_it_has_something_for() {
        let of_example = titles(&example());
        assert_eq!(of_example.len(), 7, "{of_example:?}");
        assert_eq!(titles(&flat(&[(10, 100)])).len(), 4);
        assert_eq!(titles(&empty()).len(), 2);
    }

    #[test]
    fn no_plot_has_a_number_that_is_none() {
        for results in [example(), empty(), flat(&[(1, 1)]), flat(&[(1, u64::MAX), (0, 0)]), flat(&[])] {
            for figure in figures(&results, &Summary::of(&results)) {
                let Figure { title, svg, .. } = figure;
                assert!(
                    !svg.contains("NaN") && !svg.contains("inf") && !svg.contains("=\"-"),
                    "{title}: {svg}"
                );
                assert_eq!(svg.matches("<svg").count(), 1);
            }
        }
    }
}
