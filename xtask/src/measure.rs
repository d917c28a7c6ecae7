//! What the measuring commands share: bars, medians, sizes, a Cassandra.
//!
//! A figure is held against two bars. The *floor* fails the run: below it something is broken. The
//! *aim* is what we promise ourselves; a machine that others use at the same time misses it by chance,
//! so missing it is printed and does not fail.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::kernel::{high_water_bytes, rss_bytes};
use crate::peers::{output, script, succeed};
use crate::report::{Failure, Tally, complain};
use crate::wire::{Answer, Connection, Request};

const RSS_SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// What is promised of a figure that depends on the machine and its load: it is told, nothing fails.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aim {
    /// More is better.
    AtLeast(f64),
    /// Less is better.
    AtMost(f64),
}

impl Aim {
    /// `aim 12x met`.
    pub(crate) fn words(self, figure: f64, unit: &str) -> String {
        let (aim, is_met) = match self {
            Aim::AtLeast(aim) => (aim, figure >= aim),
            Aim::AtMost(aim) => (aim, figure <= aim),
        };
        format!("aim {aim}{unit} {}", if is_met { "met" } else { "not met" })
    }
}

/// What a figure is held against; more is better. For commands that are benchmarks and no part of CI.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bars {
    /// Less fails the run.
    pub(crate) floor: f64,
    /// What is promised; `None` where nothing is.
    pub(crate) aim: Option<f64>,
}

impl Bars {
    /// `aim 12x met`, and whether the run goes on.
    pub(crate) fn judge(self, figure: f64, unit: &str) -> (String, Tally) {
        let tally = if figure >= self.floor { Tally::PASS } else { Tally::FAIL };
        let below = if tally.failed > 0 { format!(", BELOW {}{unit}", self.floor) } else { String::new() };
        let words = match self.aim {
            None => format!("no aim{below}"),
            Some(aim) => format!("{}{below}", Aim::AtLeast(aim).words(figure, unit)),
        };
        (words, tally)
    }
}

/// The same for memory, where less is better: above the ceiling the run fails.
pub(crate) struct Ceiling {
    /// More fails the run.
    pub(crate) most: f64,
    /// What is promised.
    pub(crate) aim: f64,
}

impl Ceiling {
    /// `aim 50 MiB met`, and whether the run goes on.
    pub(crate) fn judge(&self, figure: f64, unit: &str) -> (String, Tally) {
        let tally = if figure <= self.most { Tally::PASS } else { Tally::FAIL };
        let above = if tally.failed > 0 { format!(", ABOVE {} {unit}", self.most) } else { String::new() };
        (Aim::AtMost(self.aim).words(figure, &format!(" {unit}")) + &above, tally)
    }
}

/// The middle one, or between the two that are; NaN of none.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match (figures.get(middle), figures.get(middle.wrapping_sub(1))) {
        (Some(high), Some(low)) if figures.len().is_multiple_of(2) => f64::midpoint(*low, *high),
        (Some(high), _) => *high,
        (None, _) => f64::NAN,
    }
}

/// `512MiB` as a number.
pub(crate) fn size_bytes(text: &str) -> Result<u64, Failure> {
    let wrong = || Failure::new(format!("'{text}' is no size in KiB, MiB or GiB"));
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let told = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (number, unit) = told.ok_or_else(wrong)?;
    Ok(number.parse::<u32>().map_err(|_| wrong()).map(u64::from)? << unit)
}

/// The most resident memory that a process ever had, in bytes; it may not be more than the `--memory` that the process
/// was given, as in `64MiB`.
pub(crate) fn high_water_within(process_id: u32, memory: &str) -> Result<u64, Failure> {
    let bytes = high_water_bytes(process_id)?;
    if bytes > size_bytes(memory)? {
        return Err(Failure::new(format!("{:.1} MiB resident with --memory {memory}", mebibytes(bytes))));
    }
    Ok(bytes)
}

/// The values of a metric with labels, one for each of its lines.
pub(crate) fn labelled_metrics(metrics: &str, name: &str) -> Vec<f64> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix('{')?.split_once("} ")?.1.parse().ok();
    metrics.lines().filter_map(value).collect()
}

/// Bytes as mebibytes, for printing.
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Watches the resident memory of a process until it is dropped.
pub(crate) struct RssWatch {
    most: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RssWatch {
    /// Samples twenty times a second.
    pub(crate) fn of(process_id: u32) -> RssWatch {
        let (most, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (sampled, ended) = (most.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                // A process that is gone keeps the most that was seen.
                sampled.fetch_max(rss_bytes(process_id).unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(RSS_SAMPLE_EVERY);
            }
        });
        RssWatch { most, stop, thread: Some(thread) }
    }

    /// The most that was seen so far.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

impl Drop for RssWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, the figures before stand.
            let _ = thread.join();
        }
    }
}

/// A Cassandra of the given profile in a folder of its own; stopped when dropped.
pub(crate) struct Cassandra {
    folder: PathBuf,
    pub(crate) port: u16,
    pub(crate) process_id: u32,
}

/// Apart from the oracle's ports, so that both can run.
const CASSANDRA_PORT: u16 = 19162;
const CASSANDRA_JMX_PORT: &str = "17219";

impl Cassandra {
    /// Starts it with `periodic` sync and waits until it answers.
    pub(crate) fn start(folder: &Path, profile: &str, heap: &str) -> Result<Cassandra, Failure> {
        let port = CASSANDRA_PORT.to_string();
        let ports = ["--port", &port, "--storage-port", "17020", "--jmx-port", CASSANDRA_JMX_PORT];
        let mut start = script("cassandra");
        start.args(["start", "--heap", heap, "--fast", "--sync", "periodic", "--profile", profile]);
        succeed(start.args(ports).arg("--dir").arg(folder))?;
        let process_id = std::fs::read_to_string(folder.join("pid"))?.trim().parse()?;
        Ok(Cassandra { folder: folder.to_owned(), port: CASSANDRA_PORT, process_id })
    }

    /// `127.0.0.1:PORT`, as a client wants it.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `nodetool WORDS…` against it.
    pub(crate) fn nodetool(&self, words: &[&str]) -> Result<String, Failure> {
        output(script("cassandra").args(["nodetool", "--jmx-port", CASSANDRA_JMX_PORT]).args(words))
    }
}

impl Drop for Cassandra {
    fn drop(&mut self) {
        let stopped = succeed(script("cassandra").args(["stop", "--dir"]).arg(&self.folder));
        if let Err(failure) = stopped {
            complain!("Cassandra in {} was not stopped: {failure}", self.folder.display());
        }
    }
}

/// Runs statements one after the other; the first that fails ends it.
pub(crate) fn statements(address: &str, texts: &[String]) -> Result<(), Failure> {
    let mut connection = Connection::open(address, 4)?;
    for text in texts {
        let answer = connection.query(text, &Request::default())?.answer;
        if let Answer::Error { .. } = answer {
            return Err(Failure::new(format!("{text}: {answer:?}")));
        }
    }
    Ok(())
}

/// A keyspace on one node.
pub(crate) fn keyspace(name: &str) -> String {
    replicated_keyspace(name, 1)
}

/// A keyspace with so many replicas of each row.
pub(crate) fn replicated_keyspace(name: &str, replicas: u64) -> String {
    let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}");
    format!("CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {replication}")
}

/// A number of a JSON object, NaN when it has none.
pub(crate) fn number(object: &Value, name: &str) -> f64 {
    object.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle_or_between_the_two_that_are() {
        assert_eq!([median([3.0, 1.0, 2.0]), median([4.0, 1.0, 2.0, 3.0]), median([7.0])], [2.0, 2.5, 7.0]);
        assert!(median([]).is_nan());
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(size_bytes("512MiB").unwrap(), 536_870_912);
        assert!(size_bytes("many").is_err());
    }

    #[test]
    fn a_figure_below_the_aim_is_said_and_only_one_below_the_floor_fails() {
        let bars = Bars { floor: 4.0, aim: Some(12.0) };
        assert_eq!(bars.judge(12.5, "x"), ("aim 12x met".to_owned(), Tally::PASS));
        assert_eq!(bars.judge(5.0, "x"), ("aim 12x not met".to_owned(), Tally::PASS));
        assert_eq!(bars.judge(3.9, "x"), ("aim 12x not met, BELOW 4x".to_owned(), Tally::FAIL));
        assert_eq!(bars.judge(f64::NAN, "x").1, Tally::FAIL);
    }

    #[test]
    fn a_figure_above_the_ceiling_fails() {
        let ceiling = Ceiling { most: 500.0, aim: 50.0 };
        assert_eq!(ceiling.judge(50.0, "MiB"), ("aim 50 MiB met".to_owned(), Tally::PASS));
        assert_eq!(ceiling.judge(51.0, "MiB"), ("aim 50 MiB not met".to_owned(), Tally::PASS));
        assert_eq!(ceiling.judge(f64::NAN, "MiB").1, Tally::FAIL);
    }

    #[test]
    fn the_median_of_three_is_the_middle_one() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert!(median([]).is_nan());
    }
}
