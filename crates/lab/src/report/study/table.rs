//! The table of a study, as cells: a row for each part and server. Columns of which nothing is known are left out.

use super::super::summary::{Figures, Summary};
use super::super::words;
use crate::comparison::ratio;
use crate::figures::{COST, estimate};
use crate::results::{Repetition, Results};
use crate::study::{Price, Study};

/// Of what is nothing, or not known.
const NOTHING: &str = "–";

/// One row: the part, the server, and its figures in the order of [`Table::head`].
#[derive(Debug)]
pub(super) struct Row {
    pub(super) part: String,
    pub(super) server: String,
    pub(super) cells: Vec<String>,
    /// It has failures or wrong answers.
    pub(super) is_bad: bool,
}

/// All rows.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// What a row is made of.
struct Source<'a> {
    results: &'a Results,
    first: &'a Results,
    figures: Figures,
    summary: Summary,
    price: Option<&'a Price>,
}

/// A column: its name, and its cell in a row; none where nothing is known.
type Column = (String, Box<dyn Fn(&Source<'_>) -> Option<String>>);

impl Table {
    pub(super) fn of(study: &Study) -> Table {
        let columns = columns(study);
        let mut rows: Vec<(Row, Vec<Option<String>>)> = Vec::new();
        for (part, comparison) in &study.parts {
            let Some((_, first)) = comparison.results().next() else { continue };
            for (server, results) in comparison.results() {
                let summary = Summary::of(results);
                let figures = summary.all.clone();
                let source = Source { results, first, figures, summary, price: study.subject.price.as_ref() };
                let cells = columns.iter().map(|(_, cell)| cell(&source)).collect();
                let (part, server, is_bad) = (part.name.clone(), server.to_owned(), source.is_bad());
                rows.push((Row { part, server, cells: Vec::new(), is_bad }, cells));
            }
        }
        let is_known = |column: &usize| rows.iter().any(|(_, cells)| cells[*column].is_some());
        let known: Vec<usize> = (0..columns.len()).filter(is_known).collect();
        let head = known.iter().map(|column| columns[*column].0.clone()).collect();
        let cell = |cells: &[Option<String>], column: usize| {
            cells[column].clone().unwrap_or_else(|| NOTHING.to_owned())
        };
        let rows = rows
            .into_iter()
            .map(|(row, cells)| Row {
                cells: known.iter().map(|column| cell(&cells, *column)).collect(),
                ..row
            })
            .collect();
        Table { head, rows }
    }
}

fn columns(study: &Study) -> Vec<Column> {
    let mut columns: Vec<Column> = vec![
        ("operations/s".to_owned(), Box::new(|row| Some(row.rate()))),
        ("to the first".to_owned(), Box::new(|row| row.rate_ratio())),
        ("p50".to_owned(), Box::new(|row| row.time(row.figures.response.spreads[0].all_us))),
        ("p95".to_owned(), Box::new(|row| row.time(row.figures.response.latencies.quantile_us(0.95)))),
        ("p99".to_owned(), Box::new(|row| row.time(row.figures.response.p99().all_us))),
        ("p99.9".to_owned(), Box::new(|row| row.time(row.figures.response.latencies.quantile_us(0.999)))),
        ("max".to_owned(), Box::new(|row| row.time(row.figures.response.max.all_us))),
        ("failed".to_owned(), Box::new(|row| Some(words::count(row.failed_count())))),
        ("counters".to_owned(), Box::new(|row| row.counters())),
        ("CPU, µs/op".to_owned(), Box::new(|row| row.summary.cost.server_cpu_us.map(words::figure))),
        ("to the first".to_owned(), Box::new(|row| row.cost_ratio())),
        ("memory".to_owned(), Box::new(|row| row.summary.cost.server_resident_bytes.map(words::bytes))),
        ("disk read/op".to_owned(), Box::new(|row| row.disk_read())),
        ("read/answered".to_owned(), Box::new(|row| row.amplification())),
        ("$/million".to_owned(), Box::new(|row| row.price())),
    ];
    for cache in caches(study) {
        columns.push((format!("{cache} hits"), Box::new(move |row| row.hits(&cache))));
    }
    columns
}

/// Names of the caches of all servers.
fn caches(study: &Study) -> Vec<String> {
    let results = study.parts.iter().flat_map(|(_, comparison)| comparison.results());
    let kept = results.flat_map(|(_, results)| results.kept());
    let mut names: Vec<String> = kept.flat_map(|repetition| repetition.caches.keys().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

impl Source<'_> {
    fn rate(&self) -> String {
        let margin = self.figures.rate.margin.map(|margin| format!(" ± {}", words::figure(margin)));
        format!("{}{}", words::figure(self.figures.rate.mean), margin.unwrap_or_default())
    }

    fn time(&self, us: u64) -> Option<String> {
        (self.figures.count > 0).then(|| words::time(us))
    }

    /// Is there something that a reader must not overlook?
    fn is_bad(&self) -> bool {
        self.failed_count() > 0 || self.summary.audit.is_some_and(|audit| audit.fault().is_some())
    }

    fn failed_count(&self) -> u64 {
        self.figures.error_count + self.figures.wrong_count + self.summary.endless_count
    }

    /// Whether counters are what was acknowledged, or by how much they are not.
    fn counters(&self) -> Option<String> {
        let audit = self.summary.audit?;
        let (least, most) = audit.range();
        Some(match audit.counted {
            counted if counted < least => format!("{} lost", words::count(least.abs_diff(counted))),
            counted if counted > most => format!("{} too many", words::count(most.abs_diff(counted))),
            _ => "exact".to_owned(),
        })
    }

    fn is_first(&self) -> bool {
        std::ptr::eq(self.results, self.first)
    }

    fn rate_ratio(&self) -> Option<String> {
        let first = estimate(self.first, |repetition| Some(repetition.rate()))?;
        ratio(&self.figures.rate, &first).filter(|_| !self.is_first()).map(|ratio| ratio.to_string())
    }

    fn cost_ratio(&self) -> Option<String> {
        let (own, first) = (estimate(self.results, COST.1)?, estimate(self.first, COST.1)?);
        ratio(&own, &first).filter(|_| !self.is_first()).map(|ratio| ratio.to_string())
    }

    /// A sum over the repetitions of which it is known, with the operations that went well in these.
    fn sum(&self, of: impl Fn(&Repetition) -> Option<u64>) -> Option<(u64, u64)> {
        let known = self.results.kept().filter_map(|one| Some((of(one)?, one.total().response.count())));
        known.reduce(|one, other| (one.0 + other.0, one.1 + other.1)).filter(|(_, count)| *count > 0)
    }

    fn disk_read(&self) -> Option<String> {
        let (bytes, count) = self.sum(|one| Some(one.server_disk_bytes?.0))?;
        (bytes > 0).then(|| words::bytes(bytes / count))
    }

    fn amplification(&self) -> Option<String> {
        let (read, _) = self.sum(|one| Some(one.server_disk_bytes?.0))?;
        let (answered, _) = self.sum(|one| one.server_disk_bytes.map(|_| one.received_bytes))?;
        (answered > 0 && read > 0).then(|| words::figure(read as f64 / answered as f64))
    }

    fn price(&self) -> Option<String> {
        let rate = self.figures.rate.mean;
        let dollars = self.price?.dollars_per_hour / 3600.0 / rate * 1e6;
        (rate > 0.0).then(|| format!("{dollars:.4}"))
    }

    fn hits(&self, cache: &str) -> Option<String> {
        let of = |one: &Repetition| one.caches.get(cache).copied();
        let (hits, _) = self.sum(|one| Some(of(one)?.0))?;
        let (requests, _) = self.sum(|one| Some(of(one)?.1))?;
        (requests > 0).then(|| words::percent(hits as f64 / requests as f64))
    }
}
