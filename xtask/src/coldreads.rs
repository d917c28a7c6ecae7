//! `cargo xtask coldreads`: single rows at random from data far larger than memory.
//!
//! For each chunk length a node is loaded, flushed and compacted. Then, in turns, the server is read by
//! `peristyle bench run` (see [`Load`]), which looks at each value, and, by a plain io_uring program that shares no
//! code with it (`raw_reads` of `runtime`), the same Data file: reads of the same size, as many in flight. The server
//! ought to reach nine tenths of what the plain program does, and a row that is missing or wrong fails the run. All
//! files are deleted at the end.
//!
//! `--short` asks only whether all of it works: little is loaded, and no rate is judged. It has 96 MiB, since a node of
//! 64 may be left without a cache: then each row costs reads of the index, too.
//!
//! With `auto` the node chooses: the table is read for a while, then compacted again, which is when it has its say.

use std::path::{Path, PathBuf};

use crate::arguments::Arguments;
use crate::lab::{Load, Measured, Pace};
use crate::node::{Node, NodeOptions, fresh_folder, metric};
use crate::process::cargo;
use crate::report::{Failure, Tally};

/// The share of the plain program's rate that the server ought to reach.
const RATIO_MIN: f64 = 0.9;
/// Reads of the disk for a row, at most.
const CHUNKS_PER_ROW_MAX: f64 = 2.0;
const BLOCK_BYTES: f64 = 512.0;
/// What an answer has beside the value: the key, and the lengths of both.
const BESIDE_VALUE_BYTES: u64 = 8 + 2 * 4;
const KEYSPACE: &str = "cold";
/// The word that leaves the chunk length to the node.
const AUTO: &str = "auto";

struct Plan {
    rows: u64,
    row_bytes: u64,
    memory: String,
    access: String,
    connections: u64,
    window: u64,
    seconds: u64,
    turns: u64,
    /// Is no rate held against another?
    is_short: bool,
}

/// What one chunk length gave: medians over the turns.
struct Found {
    /// As it was asked for, and what came of `auto`.
    chunk: String,
    server_per_second: f64,
    server_p99_us: f64,
    raw_per_second: f64,
    raw_p99_us: f64,
    ratio: f64,
    reads_per_row: f64,
    bytes_per_byte: f64,
    hit_ratio: f64,
}

/// Runs it for each of `--chunks 4,16,64,256,auto` (default 16; `auto` when it is short).
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[
        "chunks",
        "rows",
        "row-bytes",
        "memory",
        "access",
        "connections",
        "window",
        "seconds",
        "turns",
        "short",
    ])?;
    let is_short = arguments.flag("short");
    let pick = |long: u64, brief: u64| if is_short { brief } else { long };
    let plan = Plan {
        rows: arguments.value("rows", pick(2_000_000, 300_000))?,
        row_bytes: arguments.value("row-bytes", 1000)?,
        memory: arguments.text("memory").unwrap_or(if is_short { "96MiB" } else { "256MiB" }).to_owned(),
        access: arguments.text("access").unwrap_or("auto").to_owned(),
        connections: arguments.value("connections", 4)?,
        window: arguments.value("window", 16)?,
        seconds: arguments.value("seconds", pick(8, 1))?,
        turns: arguments.value("turns", pick(3, 1))?,
        is_short,
    };
    let chunks = arguments.list("chunks");
    let chunks = if chunks.is_empty() { vec![if is_short { AUTO } else { "16" }.to_owned()] } else { chunks };
    let mut build = cargo();
    build.args(["build", "--release", "-p", "peristyle-runtime", "--example", "raw_reads"]);
    crate::peers::succeed(&mut build)?;
    let mut all = Vec::new();
    for chunk in &chunks {
        if chunk != AUTO && chunk.parse::<u32>().is_err() {
            return Err(Failure::new(format!("'{chunk}' is no number and not {AUTO}")));
        }
        all.push(measure(&plan, chunk)?);
    }
    Ok(report(&plan, &all))
}

fn report(plan: &Plan, all: &[Found]) -> Tally {
    println!(
        "\n{} rows of {} bytes, memory {}, disk_access {}, {} reads in flight, medians of {} turns",
        plan.rows,
        plan.row_bytes,
        plan.memory,
        plan.access,
        plan.connections * plan.window,
        plan.turns
    );
    println!(
        "| chunk_length_in_kb | reads/s | p99 ms | plain io_uring reads/s | p99 ms | ratio | disk reads per row | bytes read per byte returned | hit ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut tally = Tally::default();
    for found in all {
        println!(
            "| {} | {:.0} | {:.1} | {:.0} | {:.1} | {:.2} | {:.2} | {:.1} | {:.3} |",
            found.chunk,
            found.server_per_second,
            found.server_p99_us / 1000.0,
            found.raw_per_second,
            found.raw_p99_us / 1000.0,
            found.ratio,
            found.reads_per_row,
            found.bytes_per_byte,
            found.hit_ratio,
        );
        // A row lies in one chunk or in two.
        let is_well = match plan.is_short {
            true => found.reads_per_row > 0.0 && found.reads_per_row <= CHUNKS_PER_ROW_MAX,
            false => found.ratio >= RATIO_MIN,
        };
        tally += if is_well { Tally::PASS } else { Tally::FAIL };
    }
    tally
}

fn measure(plan: &Plan, chunk: &str) -> Result<Found, Failure> {
    let folder = fresh_folder("coldreads")?;
    let mut words = vec!["--memory", &plan.memory, "--disk-access", &plan.access];
    words.extend(["--compaction-throughput", "0", "--commitlog-sync", "periodic"]);
    let node = Node::start(&NodeOptions::new(folder.join("data"), &words))?;
    let load = load(plan, &node, chunk);
    let result = fill(plan, &node, chunk, &load).and_then(|()| turns(plan, &node, chunk, &load));
    drop(node);
    std::fs::remove_dir_all(&folder)?;
    result
}

/// So many reads under way on so many connections, of rows that are written first.
fn load(plan: &Plan, node: &Node, chunk: &str) -> Load {
    Load::new("cold", &node.address(), Pace::InFlight(plan.connections * plan.window))
        .set("chunk", chunk)
        .set("row-bytes", plan.row_bytes)
        .with("keyspace", KEYSPACE)
        .with("rows", plan.rows)
        .with("connections", plan.connections)
        .with("seconds", plan.seconds)
        .with("warmup", 0)
}

fn fill(plan: &Plan, node: &Node, chunk: &str, load: &Load) -> Result<(), Failure> {
    println!("chunks of {chunk} KiB: {} rows of {} bytes", plan.rows, plan.row_bytes);
    let filled = load.clone().fill()?;
    println!("  load     {:.0} rows in {:.1} s", filled.count(), filled.seconds());
    node.nodetool(&["flush"])?;
    node.nodetool(&["compact", KEYSPACE, "rows"])?;
    if chunk == AUTO {
        // What it reads is what it chooses from.
        read(load, 0)?;
        node.nodetool(&["compact", KEYSPACE, "rows"])?;
    }
    Ok(())
}

/// The lines of `tablestats` about a chunk length that the node chose.
fn explained(node: &Node) -> Result<Vec<String>, Failure> {
    let text = node.nodetool(&["tablestats", "cold.rows"])?;
    let lines = text.lines().filter(|line| line.contains("Chunk length"));
    Ok(lines.map(|line| line.trim().to_owned()).collect())
}

fn turns(plan: &Plan, node: &Node, chunk: &str, load: &Load) -> Result<Found, Failure> {
    let data = largest_data_file(&node.data)?;
    // Until the index is in memory; what is measured comes after.
    read(load, 1)?;
    let (mut server, mut raw) = (Vec::new(), Vec::new());
    let before = Counters::of(node)?;
    let row_bytes = (plan.row_bytes + BESIDE_VALUE_BYTES) as f64;
    let (mut ops, mut read_bytes) = (0.0, 0.0);
    for turn in 0..plan.turns {
        let counters = Counters::of(node)?;
        let found = read(load, turn + 2)?;
        let after = Counters::of(node)?;
        ops += found.count();
        server.push((found.rate(), found.service_ms("p99_us") * 1e3));
        let bytes_per_read = (after.bytes - counters.bytes) / (after.reads - counters.reads).max(1.0);
        read_bytes = (bytes_per_read / BLOCK_BYTES).ceil() * BLOCK_BYTES;
        let depth = (plan.connections * plan.window).to_string();
        let words = [
            data.to_string_lossy().into_owned(),
            format!("{read_bytes:.0}"),
            depth,
            plan.seconds.to_string(),
            (turn + 77).to_string(),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let found = program("raw_reads", &words)?;
        println!("  raw      {found}");
        raw.push((figure(&found, "per_second")?, figure(&found, "p99_us")?));
    }
    let after = Counters::of(node)?;
    let (server, raw) = (median(server), median(raw));
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    println!("  {read_bytes:.0} bytes a read, {}", after.text);
    let explained = explained(node)?;
    explained.iter().for_each(|line| println!("  {line}"));
    let chosen = explained.first().and_then(|line| line.split_once(": "));
    let chunk = chosen.map_or_else(|| chunk.to_owned(), |(_, chosen)| format!("{chunk} ({chosen})"));
    Ok(Found {
        chunk,
        server_per_second: server.0,
        server_p99_us: server.1,
        raw_per_second: raw.0,
        raw_p99_us: raw.1,
        ratio: server.0 / raw.0,
        reads_per_row: (after.reads - before.reads) / ops,
        bytes_per_byte: (after.bytes - before.bytes) / (ops * row_bytes),
        hit_ratio: hits / (hits + misses).max(1.0),
    })
}

/// Reads other rows for each seed.
fn read(load: &Load, seed: u64) -> Result<Measured, Failure> {
    let found = load.clone().has_rows().with("seed", seed).run()?;
    let p99_ms = found.service_ms("p99_us");
    println!("  server   {:.0} rows, {:.0} a second, p99 {p99_ms:.1} ms", found.count(), found.rate());
    match found.failed() {
        0 => Ok(found),
        failed => Err(Failure::new(format!("{failed} reads failed: {}", found.faults()))),
    }
}

/// Runs an example of `runtime`, which is built, and gives its last line.
fn program(name: &str, words: &[&str]) -> Result<String, Failure> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "-p", "peristyle-runtime", "--example", name, "--"]);
    let text = crate::peers::output(command.args(words))?;
    Ok(text.lines().last().unwrap_or_default().to_owned())
}

/// A `name=number` of a line.
fn figure(line: &str, name: &str) -> Result<f64, Failure> {
    let found = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = found.and_then(|number| number.parse().ok());
    number.ok_or_else(|| Failure::new(format!("no {name} in '{line}'")))
}

fn median(mut turns: Vec<(f64, f64)>) -> (f64, f64) {
    turns.sort_by(|left, right| left.0.total_cmp(&right.0));
    turns.get(turns.len() / 2).copied().unwrap_or_default()
}

fn largest_data_file(folder: &Path) -> Result<PathBuf, Failure> {
    let mut largest: Option<(u64, PathBuf)> = None;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
            if metadata.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with("-Data.db")
                && largest.as_ref().is_none_or(|(bytes, _)| *bytes < metadata.len())
            {
                largest = Some((metadata.len(), path));
            }
        }
    }
    largest.map(|(_, path)| path).ok_or_else(|| Failure::new("the node has no Data file"))
}

/// What the node's metrics say.
struct Counters {
    reads: f64,
    bytes: f64,
    hits: f64,
    misses: f64,
    text: String,
}

impl Counters {
    fn of(node: &Node) -> Result<Counters, Failure> {
        let metrics = node.metrics()?;
        let metric = |name: &str| metric(&metrics, name);
        let mebibytes = |name: &str| metric(name).map(|bytes| bytes / f64::from(1 << 20));
        let text = format!(
            "cache {:.1} of {:.1} MiB, index pages {:.1}, pinned beside it {:.1}, resident {:.1}",
            mebibytes("peristyle_cache_used_bytes")?,
            mebibytes("peristyle_cache_capacity_bytes")?,
            mebibytes("peristyle_cache_index_bytes")?,
            mebibytes("peristyle_cache_pinned_bytes")?,
            mebibytes("process_resident_memory_bytes")?,
        );
        Ok(Counters {
            reads: metric("peristyle_disk_reads_total")?,
            bytes: metric("peristyle_disk_read_bytes_total")?,
            hits: metric("peristyle_table_cache_hits_total{keyspace=\"cold\",table=\"rows\"}")?,
            misses: metric("peristyle_table_cache_misses_total{keyspace=\"cold\",table=\"rows\"}")?,
            text,
        })
    }
}
