//! What reports of a study are made of: each server in each part, its figures added up once.

use std::collections::BTreeSet;

use super::super::summary::Summary;
use crate::figures::{Figure, estimate};
use crate::report::Estimate;
use crate::results::Results;
use crate::study::{Part, Study};

/// Colours that the page's style sheet has; a study of more servers uses one twice.
const COLOUR_COUNT: usize = 6;

/// All of a study.
pub(super) struct Input<'a> {
    pub(super) study: &'a Study,
    /// Names of all servers, each once, in their order.
    pub(super) servers: Vec<&'a str>,
    /// Part by part, and in each in the order of its servers.
    pub(super) runs: Vec<Run<'a>>,
}

/// One server in one part.
pub(super) struct Run<'a> {
    /// By its place in the study.
    pub(super) part_index: usize,
    pub(super) part: &'a Part,
    /// By its place among all servers.
    pub(super) server_index: usize,
    pub(super) server: &'a str,
    pub(super) results: &'a Results,
    /// What the first server did in this part.
    first: &'a Results,
    pub(super) summary: Summary,
}

impl<'a> Input<'a> {
    pub(super) fn of(study: &'a Study) -> Input<'a> {
        let (mut servers, mut runs) = (Vec::new(), Vec::new());
        for (part_index, (part, comparison)) in study.parts.iter().enumerate() {
            let Some((_, first)) = comparison.results().next() else { continue };
            for (server, results) in comparison.results() {
                let known = servers.iter().position(|known| *known == server);
                let server_index = known.unwrap_or(servers.len());
                if known.is_none() {
                    servers.push(server);
                }
                let summary = Summary::of(results);
                runs.push(Run { part_index, part, server_index, server, results, first, summary });
            }
        }
        Input { study, servers, runs }
    }

    /// What all servers did in a part.
    pub(super) fn runs_of(&self, part_index: usize) -> impl Iterator<Item = &Run<'a>> {
        self.runs.iter().filter(move |run| run.part_index == part_index)
    }

    /// Names of the caches of all servers, each once. Repetitions that are dropped have them too.
    pub(super) fn caches(&self) -> Vec<String> {
        let repetitions = self.runs.iter().flat_map(|run| &run.results.repetitions);
        let names: BTreeSet<&String> = repetitions.flat_map(|one| one.caches.keys()).collect();
        names.into_iter().cloned().collect()
    }

    /// Classes and names of the servers' colours, for the margin of a plot.
    pub(super) fn server_names(&self) -> Vec<(String, String)> {
        let name = |(index, name): (usize, &&str)| (format!("line {}", class_of(index)), (*name).to_owned());
        self.servers.iter().enumerate().map(name).collect()
    }
}

impl Run<'_> {
    /// The class that gives its server a colour.
    pub(super) fn class(&self) -> String {
        class_of(self.server_index)
    }

    /// Is it what others are held against?
    pub(super) fn is_first(&self) -> bool {
        std::ptr::eq(self.results, self.first)
    }

    /// A figure of it, and the same of the first server; none of the first one itself.
    pub(super) fn beside_first(&self, figure: Figure) -> Option<(Estimate, Estimate)> {
        if self.is_first() {
            return None;
        }
        estimate(self.results, figure).zip(estimate(self.first, figure))
    }

    /// Errors, wrong answers, and operations without an end.
    pub(super) fn failed_count(&self) -> u64 {
        let Summary { all, endless_count, .. } = &self.summary;
        all.error_count + all.wrong_count + endless_count
    }
}

fn class_of(server_index: usize) -> String {
    format!("kind{}", server_index % COLOUR_COUNT)
}
