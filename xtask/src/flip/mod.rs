//! `cargo xtask flip`: a byte changes on the disk; who notices?
//!
//! A data directory is made once by a node that is killed: compressed and uncompressed tables,
//! partitions with a row index, statics, collections, tombstones, files of two flushes and log
//! segments that nobody ended. Then, for each position, one byte of one file is changed, a node is
//! started on a copy, and everything is asked by scan, by key and by slice. Kinds of files take turns;
//! file, offset and change are drawn.
//!
//! ```text
//!   start     the node does not start and names the file, and the offset where the file has records
//!   read      reads that need the file are refused, naming file and offset; all others are right
//!   log       all answers are right, and the node's log names file and offset
//!   nothing   all answers are right, and the byte counts for nothing: the reason is printed
//!   WRONG     a wrong or missing row, an error that names no place, a panic, a hang, or silence
//! ```
//!
//! What is not checked: two changes at once, files that are cut short or gone, and damage that comes
//! while the node runs (the kernel's cache would hide it).

mod files;
mod fill;
mod judge;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::arguments::Arguments;
use crate::crash::Dice;
use crate::node::{Node, NodeOptions, binary, fresh_folder};
use crate::report::{Failure, Tally, complain};
use files::{Flip, Snapshot};
use judge::{Outcome, Reply};

/// Two shards, whatever the machine: so that there are two streams, two manifests.
const SERVE_WORDS: [&str; 4] = ["--shards", "2", "--memory", "64MiB"];
/// A port may be taken between being found free and being used.
const TRIES: usize = 3;
const PROGRESS_EVERY: u64 = 100;

/// What all workers share.
struct Bench<'a> {
    snapshot: &'a Snapshot,
    questions: &'a [String],
    known: &'a [Reply],
    seed: u64,
}

/// How often each outcome was met.
type Table = BTreeMap<String, [u64; 5]>;

/// Runs all positions, or one of them.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["positions", "seed", "only", "jobs", "folder", "keep"])?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed: u64 = arguments.value("seed", u64::from(now.subsec_nanos()))?;
    let mut positions = 0..arguments.value("positions", 200u64)?;
    if arguments.flag("only") {
        let only = arguments.value("only", 0u64)?;
        positions = only..only + 1;
    }
    let jobs: u64 = arguments.value("jobs", 2u64)?.max(1);
    binary()?;
    println!(
        "--- flip: seed {seed}; to repeat: cargo xtask flip --positions {} --seed {seed}",
        positions.end
    );
    let folder = match arguments.text("folder") {
        Some(parent) => Path::new(parent).join(format!("flip-{seed}")),
        None => fresh_folder(&format!("flip-{seed}"))?,
    };
    fill::fill(&options(&folder.join("filled")))?;
    let snapshot = Snapshot::take(&folder.join("filled"))?;
    let questions = fill::questions();
    let known = learn(&folder, &snapshot, &questions)?;
    let bench = Bench { snapshot: &snapshot, questions: &questions, known: &known, seed };
    let tally = run_positions(&bench, positions, jobs, &folder)?;
    if tally.failed == 0 && !arguments.flag("keep") {
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(tally)
}

fn options(data: &Path) -> NodeOptions {
    NodeOptions::new(data.to_owned(), &SERVE_WORDS)
}

/// What the unchanged directory answers, asked twice: the second start must answer as the first did.
fn learn(folder: &Path, snapshot: &Snapshot, questions: &[String]) -> Result<Vec<Reply>, Failure> {
    let options = options(&folder.join("known"));
    snapshot.restore(&options.data)?;
    let known = judge::ask(&Node::start(&options)?, questions)?;
    let again = judge::ask(&Node::start(&options)?, questions)?;
    let mut row_count = 0;
    for ((question, reply), again) in questions.iter().zip(&known).zip(&again) {
        match reply {
            Reply::Rows(rows) if reply == again => row_count += rows.len(),
            _ => return Err(Failure::new(format!("{question}: {reply:?} and then {again:?}"))),
        }
    }
    println!(
        "    {} questions, {row_count} rows, kinds of files: {}",
        questions.len(),
        snapshot.kinds().join(", ")
    );
    fill::check_known(questions, &known)?;
    Ok(known)
}

fn run_positions(
    bench: &Bench<'_>,
    positions: std::ops::Range<u64>,
    jobs: u64,
    folder: &Path,
) -> Result<Tally, Failure> {
    let kinds = bench.snapshot.kinds();
    let next = AtomicU64::new(positions.start);
    let (table, reasons) = (Mutex::new(Table::new()), Mutex::new(BTreeMap::<String, u64>::new()));
    let began = Instant::now();
    let work = |job: u64| -> Result<(), Failure> {
        let data = folder.join(format!("job-{job}"));
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            if position >= positions.end {
                return Ok(());
            }
            let mut dice = Dice(bench.seed ^ (position << 32));
            let kind = &kinds[(position % kinds.len() as u64) as usize];
            let flip = bench.snapshot.draw(kind, &mut dice)?;
            let outcome = try_position(bench, &flip, &data)?;
            if let Outcome::Wrong(what) = &outcome {
                complain!(
                    "position {position}: {} at byte {} of {}, ^ {:#04x}: {what}",
                    flip.path.display(),
                    flip.offset,
                    flip.kind,
                    flip.mask
                );
                println!("    to repeat: cargo xtask flip --seed {} --only {position} --keep", bench.seed);
            }
            count(&outcome, &flip, &table, &reasons);
            if (position + 1).is_multiple_of(PROGRESS_EVERY) {
                println!("    {} positions after {:.0?}", position + 1, began.elapsed());
            }
        }
    };
    std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..jobs).map(|job| scope.spawn(move || work(job))).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| Failure::new("a worker panicked"))?)
    })?;
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    let reasons = reasons.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(print(&table, &reasons))
}

/// Copies, changes, starts, asks.
fn try_position(bench: &Bench<'_>, flip: &Flip, data: &Path) -> Result<Outcome, Failure> {
    for _ in 0..TRIES {
        bench.snapshot.restore(data)?;
        flip.apply(bench.snapshot, data)?;
        match judge::judge(&options(data), flip, bench.questions, bench.known) {
            // Another process took the port, or both ports are the same one.
            Outcome::Wrong(what)
                if what.contains("is in use by another process")
                    || what.contains("peristyle: configuration:") => {}
            outcome => return Ok(outcome),
        }
    }
    Err(Failure::new("no port is free for long enough"))
}

fn count(outcome: &Outcome, flip: &Flip, table: &Mutex<Table>, reasons: &Mutex<BTreeMap<String, u64>>) {
    let column = match outcome {
        Outcome::Start => 0,
        Outcome::Read => 1,
        Outcome::Log => 2,
        Outcome::Nothing(_) => 3,
        Outcome::Wrong(_) => 4,
    };
    table.lock().unwrap_or_else(PoisonError::into_inner).entry(flip.kind.clone()).or_default()[column] += 1;
    if let Outcome::Nothing(reason) = outcome {
        let line = format!("{}: {reason}", flip.kind);
        *reasons.lock().unwrap_or_else(PoisonError::into_inner).entry(line).or_default() += 1;
    }
}

fn print(table: &Table, reasons: &BTreeMap<String, u64>) -> Tally {
    println!("\n{:<22} {:>7} {:>7} {:>7} {:>7} {:>7}", "", "start", "read", "log", "nothing", "WRONG");
    let mut sum = [0; 5];
    for (kind, counts) in table {
        print_row(kind, counts);
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    print_row("all", &sum);
    reasons.iter().for_each(|(reason, count)| println!("nothing: {count} times {reason}"));
    Tally { passed: sum[..4].iter().sum(), failed: sum[4] }
}

fn print_row(name: &str, [start, read, log, nothing, wrong]: &[u64; 5]) {
    println!("{name:<22} {start:>7} {read:>7} {log:>7} {nothing:>7} {wrong:>7}");
}
