//! Tables of a study, as cells: a row for each part and server. Columns of which nothing is known are left out.

use super::super::words;
use super::input::{Input, Run};
use crate::comparison::ratio;
use crate::figures::{COST, FIGURES, Figure};
use crate::study::Price;

/// Of what is nothing, or not known.
const NOTHING: &str = "–";
/// Bytes of answers for each operation.
const ANSWERED: &str = "answered/op";

/// Columns, and the cells of each run in the order of [`Input::runs`].
#[derive(Debug)]
pub(super) struct Table {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    /// It is of failures or of wrong answers.
    pub(super) is_bad: bool,
}

/// What stands in a cell; none where nothing is known.
type Content = Box<dyn Fn(&Run<'_>) -> Option<Cell>>;

/// A column: its name and its cells.
struct Column(String, Content);

impl Table {
    /// What servers did.
    pub(super) fn of_deeds(input: &Input<'_>) -> Table {
        let mut columns = vec![
            Column::of("operations/s", |run| Some(rate(run))),
            Column::of("to the first", |run| to_first(run, FIGURES[0].1)),
        ];
        for (name, quantile) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)] {
            columns.push(Column::of(name, move |run| {
                time(run, run.summary.all.response.latencies.quantile_us(quantile))
            }));
        }
        columns.extend([
            Column::of("max", |run| time(run, run.summary.all.response.max.all_us)),
            Column::of("p99 to the first", |run| to_first(run, FIGURES[2].1)),
            Column::bad("errors", |run| Some(run.summary.all.error_count)),
            Column::bad("wrong", |run| Some(run.summary.all.wrong_count)),
            Column::bad("endless", |run| Some(run.summary.endless_count).filter(|count| *count > 0)),
            Column::of("asked again", |run| {
                Some(run.summary.asked_again_count).filter(|count| *count > 0).map(words::count)
            }),
            Column("counters".to_owned(), Box::new(counters)),
        ]);
        Table::of(input, &columns)
    }

    /// What it cost them; nothing when nobody counted what servers took.
    pub(super) fn of_cost(input: &Input<'_>) -> Table {
        let bytes = |each: f64| words::bytes(each.round() as u64);
        let mut columns = vec![
            Column::of("server CPU, µs/op", |run| run.summary.cost.server_cpu_us.map(words::figure)),
            Column::of("to the first", |run| to_first(run, COST.1)),
            Column::of("memory", |run| run.summary.cost.server_resident_bytes.map(words::bytes)),
            Column::of("disk read/op", move |run| some(run.summary.cost.disk_read_bytes).map(bytes)),
            Column::of(ANSWERED, move |run| run.summary.cost.received_bytes.map(bytes)),
            Column::of("read/answered", |run| some(run.summary.cost.read_amplification).map(words::figure)),
            Column::of("disk written/op", move |run| some(run.summary.cost.disk_written_bytes).map(bytes)),
        ];
        if let Some(price) = input.study.subject.price.clone() {
            columns.push(Column::of("$/million", move |run| dollars_per_million(run, &price)));
        }
        for cache in input.caches() {
            columns.push(Column::of(&format!("{cache} hits"), move |run| {
                run.summary.cost.hit_part(&cache).map(words::percent)
            }));
        }
        let table = Table::of(input, &columns);
        // How much they answered was counted here, and is no cost by itself.
        if table.head == [ANSWERED] { Table { head: Vec::new(), rows: Vec::new() } } else { table }
    }

    fn of(input: &Input<'_>, columns: &[Column]) -> Table {
        let is_known = |column: &&Column| input.runs.iter().any(|run| column.1(run).is_some());
        let known: Vec<&Column> = columns.iter().filter(is_known).collect();
        let cell = |run: &Run<'_>, column: &Column| {
            column.1(run).unwrap_or_else(|| Cell { text: NOTHING.to_owned(), is_bad: false })
        };
        Table {
            head: known.iter().map(|column| column.0.clone()).collect(),
            rows: input
                .runs
                .iter()
                .map(|run| known.iter().map(|column| cell(run, column)).collect())
                .collect(),
        }
    }
}

impl Column {
    fn of(name: &str, text: impl Fn(&Run<'_>) -> Option<String> + 'static) -> Column {
        Column(name.to_owned(), Box::new(move |run| Some(Cell { text: text(run)?, is_bad: false })))
    }

    /// A count that should be 0.
    fn bad(name: &str, count: impl Fn(&Run<'_>) -> Option<u64> + 'static) -> Column {
        let cell = move |count| Cell { text: words::count(count), is_bad: count > 0 };
        Column(name.to_owned(), Box::new(move |run| count(run).map(cell)))
    }
}

fn rate(run: &Run<'_>) -> String {
    let rate = &run.summary.all.rate;
    let margin = rate.margin.map(|margin| format!(" ± {}", words::figure(margin)));
    format!("{}{}", words::figure(rate.mean), margin.unwrap_or_default())
}

fn time(run: &Run<'_>, us: u64) -> Option<String> {
    (run.summary.all.count > 0).then(|| words::time(us))
}

fn to_first(run: &Run<'_>, figure: Figure) -> Option<String> {
    let (own, first) = run.beside_first(figure)?;
    ratio(&own, &first).map(|ratio| ratio.to_string())
}

/// Whether counters are what was acknowledged, or by how much they are not.
fn counters(run: &Run<'_>) -> Option<Cell> {
    let audit = run.summary.audit?;
    let (least, most) = audit.range();
    let text = match audit.counted {
        counted if counted < least => format!("{} lost", words::count(least.abs_diff(counted))),
        counted if counted > most => format!("{} too many", words::count(most.abs_diff(counted))),
        _ => "exact".to_owned(),
    };
    Some(Cell { text, is_bad: audit.fault().is_some() })
}

/// A column of zeros says nothing.
fn some(figure: Option<f64>) -> Option<f64> {
    figure.filter(|figure| *figure > 0.0)
}

fn dollars_per_million(run: &Run<'_>, price: &Price) -> Option<String> {
    let rate = run.summary.all.rate.mean;
    (rate > 0.0).then(|| format!("{:.4}", price.dollars_per_hour / 3600.0 / rate * 1e6))
}
