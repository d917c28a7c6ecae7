//! `cargo xtask crash`: real processes, real files, SIGKILL.
//!
//! Each round starts `target/release/peristyle` on the data of the round before, reads everything
//! back and compares it with what was acknowledged, then loads it from many connections and kills it at a
//! random moment. Twelve workers insert, overwrite, delete and write logged batches over several
//! partitions. Beside them
//!
//! - an operator makes and drops keyspaces, tables, columns and types, changes tables to other compaction
//!   strategies, compressors (`chunk_length_in_kb: 'auto'` among them), flush periods and prefetches, and
//!   truncates: small tables often, those of the workers now and then;
//! - flushes and compactions go on: by the flush periods, by strategies with low thresholds, and by
//!   `nodetool` at a moment of its own.
//!
//! What is checked, by `--sync`:
//!
//! - `group`, `batch`: every acknowledged write is there. A write that was in flight may be there or not.
//! - `periodic`: every write acknowledged longer than the period before the last acknowledgement is there,
//!   and what is there of later ones are states the key really had.
//! - always: every acknowledged change of the schema is there, whole; what is dropped stays dropped, what is
//!   made anew is empty, and so is a column that is added again.
//! - always: nothing comes back that was acknowledged before a truncation that was. A truncation or a drop
//!   that was in flight has emptied everything it was to empty, or nothing.
//! - always: no row is torn (its columns are of one write), logged batches are whole or absent (but for
//!   those that met a truncation), and the server starts again and does not end by itself.
//!
//! What is not checked: power cuts (the kernel keeps what was written; the simulator's disk forgets),
//! damaged files, and more than one node. The seed fixes what is written and when the kill comes,
//! not how threads interleave: a failure repeats with some luck, not for certain.

mod inspect;
mod ledger;
mod operator;
mod worker;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::arguments::Arguments;
use crate::measure::{high_water_within, mebibytes};
use crate::node::{Node, NodeOptions, binary, fresh_folder};
use crate::report::{Failure, Tally, complain};
use ledger::Ledger;
use operator::Operator;
use worker::Workload;

/// `commitlog_sync_period` of the rounds (by default it is 10 s), and what a machine may add whose cores and
/// disk are others' too: half a period by design, and however long the shard's thread gets no core.
const PERIOD: Duration = Duration::from_millis(200);
const PERIOD_SLACK: Duration = Duration::from_millis(800);
/// Of the findings of one round so many are printed.
const FINDINGS_SHOWN_MAX: usize = 10;

/// What a run is made of.
struct Options {
    rounds: u64,
    sync: String,
    seed: u64,
    /// `vary`: another number each start; or a list (`1,2,3,2`), one after the other.
    shards: Option<String>,
    /// What a node may have in memory, and is judged by.
    memory: String,
    start_count: Cell<usize>,
    keep: bool,
}

/// A small random sequence that a seed repeats (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` up to, not including, `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low).max(1)
    }

    fn milliseconds(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }
}

/// Runs the rounds; stops at the first that finds something, and keeps its files.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    let options = read_options(arguments)?;
    binary()?;
    let shards = options.shards.as_ref().map(|shards| format!(" --shards {shards}")).unwrap_or_default();
    let repeat = format!(
        "cargo xtask crash --rounds {} --sync {} --seed {} --memory {}{shards}",
        options.rounds, options.sync, options.seed, options.memory
    );
    println!("--- crash: seed {}; to repeat: {repeat}", options.seed);
    let folder = fresh_folder(&format!("crash-{}-{}", options.sync, options.seed))?;
    let mut ledger = Ledger::default();
    let mut dice = Dice(options.seed);
    let mut tally = Tally::default();
    for round in 1..=options.rounds {
        match run_round(round, &options, &folder, &mut ledger, &mut dice) {
            Ok(()) => tally += Tally::PASS,
            Err(failure) => {
                tally += Tally::FAIL;
                complain!("round {round}: {failure}");
                complain!("the files are kept in {}; to repeat: {repeat}", folder.display());
                return Ok(tally);
            }
        }
    }
    match last_look(&options, &folder, &mut ledger) {
        Ok(()) => tally += Tally::PASS,
        Err(failure) => {
            tally += Tally::FAIL;
            complain!("last look: {failure}; the files are kept in {}", folder.display());
            return Ok(tally);
        }
    }
    if !options.keep {
        std::fs::remove_dir_all(&folder)?;
    }
    println!(
        "{} rounds with sync {}, seed {}; to repeat: {repeat}",
        options.rounds, options.sync, options.seed
    );
    Ok(tally)
}

fn read_options(arguments: &Arguments) -> Result<Options, Failure> {
    arguments.only(&["rounds", "sync", "seed", "shards", "memory", "keep"])?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let options = Options {
        rounds: arguments.value("rounds", 10)?,
        sync: arguments.value("sync", "group".to_owned())?,
        seed: arguments.value("seed", u64::from(now.subsec_nanos()) ^ now.as_secs())?,
        shards: arguments.text("shards").map(str::to_owned),
        memory: arguments.value("memory", "128MiB".to_owned())?,
        start_count: Cell::new(0),
        keep: arguments.flag("keep"),
    };
    match options.sync.as_str() {
        "group" | "periodic" | "batch" => Ok(options),
        other => Err(Failure::new(format!("--sync takes group, periodic or batch, not '{other}'"))),
    }
}

/// Start, check, load, kill.
fn run_round(
    round: u64,
    options: &Options,
    folder: &Path,
    ledger: &mut Ledger,
    dice: &mut Dice,
) -> Result<(), Failure> {
    let (node, start_time) = start(options, folder, dice)?;
    let checked = check(&node, ledger)?;
    let workload = Workload { address: node.address(), seed: dice.next(), versions_from: ledger.versions() };
    let operator = Operator::new(ledger, dice.next());
    let load_time = dice.milliseconds(200, 1_500);
    let upkeep = (dice.between(0, 2) == 0)
        .then(|| (dice.milliseconds(50, 200 + load_time.as_millis() as u64), dice.next()));
    let workers = workload.start(operator);
    let mut helper = None;
    let began = Instant::now();
    if let Some((after, kind)) = upkeep {
        std::thread::sleep(after.min(load_time));
        helper = Some(start_upkeep(&node, kind)?);
    }
    std::thread::sleep(load_time.saturating_sub(began.elapsed()));
    let resident_bytes = high_water_within(node.process_id(), &options.memory)?;
    let killed_at = Instant::now();
    // Dropping a node kills it with SIGKILL.
    drop(node);
    if let Some(mut helper) = helper {
        let _ = helper.wait();
    }
    let reports = workers.join()?;
    let (mut acknowledged, mut errors, mut error_example) = (0, 0, None);
    let (mut change_count, mut emptied_count, mut last_acknowledged) = (0, 0, None);
    for report in reports {
        if report.ended_at + Duration::from_millis(100) < killed_at {
            return Err(Failure::new(format!("a connection ended before the kill: {}", report.ending)));
        }
        acknowledged += report.acknowledged;
        errors += report.errors;
        error_example = error_example.or(report.error_example);
        // Only the operator, who is the last, changes the schema.
        change_count = report.writes.iter().filter(|write| write.key.is_schema()).count();
        emptied_count = report.emptied.len();
        let of_rows = report.writes.iter().filter(|write| !write.key.is_schema());
        last_acknowledged = last_acknowledged.max(of_rows.filter_map(|write| write.acknowledged).max());
        ledger.add(report.writes, report.emptied);
    }
    let durable_before = match options.sync.as_str() {
        // A disk that stalls stops the acknowledgements after a while, so they are what is counted from.
        "periodic" => last_acknowledged.and_then(|last| last.checked_sub(PERIOD + PERIOD_SLACK)),
        _ => Some(killed_at + PERIOD),
    };
    ledger.settle(durable_before);
    let flushed = if upkeep.is_some() { ", with upkeep" } else { "" };
    println!(
        "round {round}: started in {start_time:.0?}, {checked} keys as they should be; killed after {load_time:.1?} \
         and {acknowledged} acknowledged writes, {change_count} changes of the schema, {emptied_count} times \
         something was emptied{flushed}; at most {:.0} MiB resident",
        mebibytes(resident_bytes)
    );
    match error_example {
        Some(example) => Err(Failure::new(format!("{errors} statements were refused: {example}"))),
        None => Ok(()),
    }
}

/// After the last kill, the last check.
fn last_look(options: &Options, folder: &Path, ledger: &mut Ledger) -> Result<(), Failure> {
    let (node, _) = start(options, folder, &mut Dice(options.seed))?;
    let checked = check(&node, ledger)?;
    println!("last look: {checked} keys as they should be");
    node.stop()
}

fn start(options: &Options, folder: &Path, dice: &mut Dice) -> Result<(Node, Duration), Failure> {
    let mut words =
        ["--memory", &options.memory, "--commitlog-sync", &options.sync].map(str::to_owned).to_vec();
    if options.sync == "periodic" {
        words.extend(["--commitlog-sync-period".to_owned(), format!("{}ms", PERIOD.as_millis())]);
    }
    // A snapshot is made of what is emptied and dropped: another way to go, and more files.
    if dice.between(0, 4) != 0 {
        words.extend(["--auto-snapshot".to_owned(), "false".to_owned()]);
    }
    match options.shards.as_deref() {
        Some("vary") => words.extend(["--shards".to_owned(), dice.between(1, 4).to_string()]),
        Some(list) => {
            let counts: Vec<&str> = list.split(',').collect();
            let turn = options.start_count.replace(options.start_count.get() + 1);
            words.extend(["--shards".to_owned(), counts[turn % counts.len()].to_owned()]);
        }
        None => {}
    }
    let data: PathBuf = folder.join("data");
    let began = Instant::now();
    let node = Node::start(&NodeOptions { data, port: 0, words })?;
    Ok((node, began.elapsed()))
}

/// Compares everything that is there with what may be there.
fn check(node: &Node, ledger: &mut Ledger) -> Result<usize, Failure> {
    let findings = inspect::compare(&node.address(), ledger)?;
    if findings.is_empty() {
        return Ok(ledger.key_count());
    }
    for finding in findings.iter().take(FINDINGS_SHOWN_MAX) {
        complain!("{finding}");
    }
    Err(Failure::new(format!("{} keys are not as they should be", findings.len())))
}

/// A flush or a compaction that the kill may hit.
fn start_upkeep(node: &Node, kind: u64) -> Result<Child, Failure> {
    let act = if kind.is_multiple_of(3) { "compact" } else { "flush" };
    let mut command = Command::new(binary()?);
    command.args(["nodetool", "--management", &format!("127.0.0.1:{}", node.management_port), act, "crash"]);
    Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}
