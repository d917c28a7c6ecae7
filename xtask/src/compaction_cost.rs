//! `cargo xtask compaction-cost`: what each compaction strategy costs, beside Cassandra's.
//!
//! Per strategy and shape of rows, on a table of its own: rows are written and a half as many again
//! overwritten at random; flushes and compactions come to rest; then a tenth is overwritten once more, and all is
//! compacted into one while nothing else runs. Both systems are asked the same way, by `nodetool`:
//!
//! ```text
//!   flushed             = live + sum of (in - out) over the compaction history
//!   write amplification = (flushed + sum of out) / flushed
//!   space amplification = live at rest / live when all is one
//!   MB/s per core       = in / compression ratio / CPU seconds, of the last, major compaction
//! ```

use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::kernel::cpu_seconds;
use crate::lab::{Load, Mix, Pace};
use crate::measure::{Aim, Cassandra};
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers::install_cassandra;
use crate::report::{Failure, Tally, complain};

/// Short names and what `WITH compaction` says.
const STRATEGIES: &[(&str, &str)] = &[
    ("stcs", "SizeTieredCompactionStrategy"),
    ("lcs", "LeveledCompactionStrategy"),
    ("twcs", "TimeWindowCompactionStrategy"),
    ("ucs", "UnifiedCompactionStrategy"),
];
const KEYSPACE: &str = "cost";
/// Writes for each row in the first phase: the load, then overwrites at random.
const WRITES_PER_ROW: f64 = 1.5;
/// Overwrites come at this part of the load's rate, so that so many in so long are as many as are wanted.
const OVERWRITE_PACE: f64 = 0.5;
/// One row in so many is overwritten before the major compaction, so that there is something to merge.
const OVERWRITTEN: u64 = 10;
/// Aims of the major compaction, for each core: MB of uncompressed input, rows of 40 bytes.
const MEGABYTES: Aim = Aim::AtLeast(200.0);
const ROWS: Aim = Aim::AtLeast(1e6);
const REST_TIMEOUT: Duration = Duration::from_secs(1800);
const REST_POLL: Duration = Duration::from_millis(500);

/// A shape of rows: the workload that writes them, which is also its table's name, and the setting that overwrites.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    table: &'static str,
    mix: Mix,
    row_count: u64,
    aim: Aim,
}

impl Shape {
    /// The load of so many of its rows.
    fn load(&self, system: &System, class: &str, row_count: u64) -> Load {
        let load = Load::new(self.table, &system.address(), Pace::InFlight(1)).with("keyspace", KEYSPACE);
        let load = load.with("rows", row_count).with("warmup", 0).set("compaction", class);
        if self.mix.is_empty() { load } else { load.mix(self.mix).set("choice", "uniform") }
    }
}

/// A server of either kind.
enum System {
    Peristyle(Node),
    Cassandra(Cassandra),
}

impl System {
    fn address(&self) -> String {
        match self {
            System::Peristyle(node) => node.address(),
            System::Cassandra(node) => node.address(),
        }
    }

    fn process_id(&self) -> u32 {
        match self {
            System::Peristyle(node) => node.process_id(),
            System::Cassandra(node) => node.process_id,
        }
    }

    fn nodetool(&self, words: &[&str]) -> Result<String, Failure> {
        match self {
            System::Peristyle(node) => node.nodetool(words),
            System::Cassandra(node) => node.nodetool(words),
        }
    }
}

/// What `compactionhistory` says of one table, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct History {
    compactions: u64,
    bytes_in: f64,
    bytes_out: f64,
}

/// What one strategy cost with one shape of rows on one system.
struct Found {
    write_amplification: f64,
    space_amplification: f64,
    megabytes_per_core: f64,
    rows_per_core: f64,
    compactions: u64,
    load_seconds: f64,
}

/// Runs all strategies with both shapes on all systems.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[
        "gigabytes",
        "small-rows",
        "strategies",
        "shapes",
        "profiles",
        "memory",
        "heap",
        "short",
    ])?;
    let short = arguments.flag("short");
    let gigabytes: f64 = arguments.value("gigabytes", if short { 0.03 } else { 10.0 })?;
    let small_rows = arguments.value("small-rows", if short { 300_000 } else { 20_000_000 })?;
    let kilobyte_rows = (gigabytes * 1e6 / WRITES_PER_ROW) as u64;
    let (kilobyte, small): (Mix, Mix) = (&[("inserts", 1)], &[]);
    let shapes = [
        Shape { name: "1 KB", table: "rows", mix: kilobyte, row_count: kilobyte_rows, aim: MEGABYTES },
        Shape { name: "40 bytes", table: "wide", mix: small, row_count: small_rows, aim: ROWS },
    ];
    let or = |named: Vec<String>, default: &str| -> Vec<String> {
        if named.is_empty() { default.split(',').map(str::to_owned).collect() } else { named }
    };
    let strategies = or(arguments.list("strategies"), "stcs,lcs,twcs,ucs");
    let shapes: Vec<Shape> = [("1k", shapes[0]), ("40b", shapes[1])]
        .into_iter()
        .filter(|(name, _)| arguments.picks("shapes", name))
        .map(|(_, shape)| shape)
        .collect();
    let profiles = or(arguments.list("profiles"), if short { "none" } else { "latest" });
    let memory = arguments.text("memory").unwrap_or(if short { "64MiB" } else { "1GiB" });
    let heap = arguments.text("heap").unwrap_or("2G");
    println!(
        "{:<18} {:<5} {:<9} {:>7} {:>7} {:>10} {:>13} {:>12} {:>7}",
        "system", "", "rows", "write x", "space x", "MB/s/core", "rows/s/core", "compactions", "load s"
    );
    let mut tally = Tally::default();
    let words = ["--commitlog-sync", "periodic", "--compaction-throughput", "0", "--memory", memory];
    for strategy in &strategies {
        for shape in &shapes {
            let data = fresh_folder("compaction-cost")?.join("data");
            let node = Node::start(&NodeOptions::new(data, &words))?;
            let found = measure(&System::Peristyle(node), strategy, *shape)?;
            println!("{} {}", line("peristyle", strategy, shape, &found), aim_words(&found, shape));
            tally += Tally::PASS;
        }
    }
    for profile in profiles.iter().filter(|profile| *profile != "none") {
        install_cassandra()?;
        for strategy in &strategies {
            for shape in &shapes {
                let node = Cassandra::start(&fresh_folder("compaction-cost")?, profile, heap)?;
                node.nodetool(&["setcompactionthroughput", "0"])?;
                let found = measure(&System::Cassandra(node), strategy, *shape)?;
                println!("{}", line(&format!("cassandra {profile}"), strategy, shape, &found));
            }
        }
    }
    fresh_folder("compaction-cost")?;
    Ok(tally)
}

fn line(system: &str, strategy: &str, shape: &Shape, found: &Found) -> String {
    format!(
        "{system:<18} {strategy:<5} {:<9} {:>7.2} {:>7.2} {:>10.0} {:>13.0} {:>12} {:>7.0}",
        shape.name,
        found.write_amplification,
        found.space_amplification,
        found.megabytes_per_core,
        found.rows_per_core,
        found.compactions,
        found.load_seconds
    )
}

fn aim_words(found: &Found, shape: &Shape) -> String {
    match shape.table {
        "rows" => shape.aim.words(found.megabytes_per_core, " MB/s"),
        _ => shape.aim.words(found.rows_per_core, " rows/s"),
    }
}

fn measure(system: &System, strategy: &str, shape: Shape) -> Result<Found, Failure> {
    let class = STRATEGIES.iter().find(|(name, _)| *name == strategy).map(|(_, class)| *class);
    let class = class.ok_or_else(|| Failure::new(format!("there is no strategy '{strategy}'")))?;
    let begun = Instant::now();
    write(system, class, &shape)?;
    let load_seconds = begun.elapsed().as_secs_f64();
    system.nodetool(&["flush", KEYSPACE])?;
    let loaded = rest(system, &shape)?;
    let live = live_bytes(system, &shape)?;
    // A tenth once more: its rows lie in a file of their own, so the major compaction has work.
    shape.load(system, class, shape.row_count / OVERWRITTEN).fill()?;
    let cpu = cpu_seconds(system.process_id())?;
    system.nodetool(&["flush", KEYSPACE])?;
    system.nodetool(&["compact", KEYSPACE, shape.table])?;
    let all = rest(system, &shape)?;
    let cpu = cpu_seconds(system.process_id())? - cpu;
    let (whole, ratio) = (live_bytes(system, &shape)?, compression_ratio(system, &shape)?);
    let bytes_in = all.bytes_in - loaded.bytes_in;
    let flushed = live + loaded.bytes_in - loaded.bytes_out;
    Ok(Found {
        write_amplification: (flushed + loaded.bytes_out) / flushed,
        space_amplification: live / whole,
        megabytes_per_core: bytes_in / ratio / 1e6 / cpu,
        rows_per_core: bytes_in / whole * shape.row_count as f64 / cpu,
        compactions: loaded.compactions,
        load_seconds,
    })
}

/// Writes all rows, then half as many of them again, at random.
fn write(system: &System, class: &str, shape: &Shape) -> Result<(), Failure> {
    let load = shape.load(system, class, shape.row_count);
    let pace = OVERWRITE_PACE * load.clone().fill()?.rate();
    let overwrites = (WRITES_PER_ROW - 1.0) * shape.row_count as f64;
    let overwriting = load.has_rows().at(Pace::Rate(pace)).with("seconds", overwrites / pace);
    let overwritten = overwriting.run()?;
    if overwritten.failed() > 0 {
        complain!("{} of {overwrites:.0} overwrites failed: {}", overwritten.failed(), overwritten.faults());
    }
    Ok(())
}

/// Waits until no compaction is pending and the history stands still.
fn rest(system: &System, shape: &Shape) -> Result<History, Failure> {
    let begun = Instant::now();
    let mut before = None;
    loop {
        let pending = pending_tasks(&system.nodetool(&["compactionstats"])?)?;
        let now = history(&system.nodetool(&["compactionhistory"])?, shape.table);
        if pending == 0 && before == Some(now) {
            return Ok(now);
        }
        if begun.elapsed() > REST_TIMEOUT {
            return Err(Failure::new(format!("compactions do not come to rest: {pending} pending")));
        }
        before = Some(now);
        std::thread::sleep(REST_POLL);
    }
}

fn pending_tasks(text: &str) -> Result<u64, Failure> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("pending tasks"));
    let word = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    let count = word.and_then(|word| word.parse().ok());
    count.ok_or_else(|| Failure::new(format!("compactionstats says no pending tasks: {text}")))
}

/// Lines `id keyspace table compacted_at bytes_in bytes_out …`.
fn history(text: &str, table: &str) -> History {
    let mut all = History::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, keyspace, name, _, bytes_in, bytes_out, ..] = words.as_slice() else { continue };
        let (Ok(bytes_in), Ok(bytes_out)) = (bytes_in.parse::<f64>(), bytes_out.parse::<f64>()) else {
            continue;
        };
        if *keyspace == KEYSPACE && *name == table {
            all.compactions += 1;
            all.bytes_in += bytes_in;
            all.bytes_out += bytes_out;
        }
    }
    all
}

fn live_bytes(system: &System, shape: &Shape) -> Result<f64, Failure> {
    table_figure(system, shape, "Space used (live):")
}

fn compression_ratio(system: &System, shape: &Shape) -> Result<f64, Failure> {
    let ratio = table_figure(system, shape, "SSTable Compression Ratio:")?;
    Ok(if ratio > 0.0 { ratio } else { 1.0 })
}

fn table_figure(system: &System, shape: &Shape, name: &str) -> Result<f64, Failure> {
    let text = system.nodetool(&["tablestats", &format!("{KEYSPACE}.{}", shape.table)])?;
    let figure = text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().parse().ok());
    figure.ok_or_else(|| Failure::new(format!("tablestats has no '{name}': {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_of_a_table_is_summed_up() {
        let text = "Compaction History: \n\
            id keyspace_name columnfamily_name compacted_at bytes_in bytes_out rows_merged compaction_properties\n\
            a cost wide 2026-11-21T15:40:23.403 100 60 {2:24886} {compaction_type:Compaction}\n\
            b cost wide 2026-11-21T15:40:23.166 50 40 {2:25114} {compaction_type:Compaction}\n\
            c system local 2026-11-21T15:40:23.166 7 7 {1:1} {}\n";
        let all = history(text, "wide");
        assert_eq!(all, History { compactions: 2, bytes_in: 150.0, bytes_out: 100.0 });
    }

    #[test]
    fn pending_tasks_are_read_in_both_spellings() {
        assert_eq!(pending_tasks("concurrent compactors  2\npending tasks   3\n").unwrap(), 3);
        assert_eq!(pending_tasks("pending tasks: 0\n").unwrap(), 0);
        assert!(pending_tasks("nothing").is_err());
    }
}
