//! `cargo xtask wide`: one partition far larger than memory, and slices of it.
//!
//! A partition of `--gigabytes` (10) is written in rows of 10 KB, flushed and compacted into one file. Then slices
//! at places all along it are read forward and backward, and all of it page by page in either order. What is
//! checked: every row is there, in order and with its bytes; a slice finds its place by the row index, so that no
//! more is read from the disk than some chunks; and the server holds no more than its budget, give or take a
//! quarter, while it does.

use std::time::Instant;

use crate::arguments::Arguments;
use crate::measure::{RssWatch, keyspace, mebibytes, statements};
use crate::node::{Node, NodeOptions, fresh_folder, metric};
use crate::report::{Failure, Tally, complain};
use crate::wire::answer::Rows;
use crate::wire::{Answer, BoundValue, Connection, Request};

const ROW_BYTES: usize = 10_000;
const MEMORY: &str = "256MiB";
const MEMORY_BYTES: u64 = 256 << 20;
const WRITERS: u64 = 4;
/// Slices at so many places, and at the end.
const PLACES: u64 = 24;
const SLICE_ROWS: u64 = 10;
/// What a slice may read of the disk: its rows, a few chunks around them, and pages of the index.
const SLICE_BYTES_MAX: f64 = 512.0 * 1024.0;
const PAGE_ROWS: i32 = 200;
const SHORT_BYTES: u64 = 400 << 20;

const COLUMNS: &str = "at, v FROM wide.rows WHERE p = 1";

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["gigabytes", "short"])?;
    let bytes = match arguments.flag("short") {
        true => SHORT_BYTES,
        false => arguments.value::<u64>("gigabytes", 10)? << 30,
    };
    let rows = bytes / ROW_BYTES as u64;
    let folder = fresh_folder("wide")?;
    let words = ["--memory", MEMORY, "--compaction-throughput", "0", "--commitlog-sync", "periodic"];
    let options = NodeOptions::new(folder.join("data"), &words);
    let node = Node::start(&options)?;
    let watch = RssWatch::of(node.process_id());
    let outcome = fill(&node, rows).and_then(|()| read(&node, rows));
    let most = watch.most_bytes();
    drop(node);
    std::fs::remove_dir_all(&folder)?;
    let mut tally = outcome?;
    println!("resident at most {:.0} MiB of {MEMORY}", mebibytes(most));
    check(&mut tally, most <= MEMORY_BYTES + MEMORY_BYTES / 4, || "more memory than the budget".to_owned());
    Ok(tally)
}

fn check(tally: &mut Tally, is_well: bool, what: impl FnOnce() -> String) {
    if is_well {
        tally.passed += 1;
    } else {
        complain!("{}", what());
        tally.failed += 1;
    }
}

/// Bytes that do not compress, known by the row's place.
fn value_of(at: u64) -> Vec<u8> {
    let mut state = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..ROW_BYTES / 8).flat_map(|_| next()).collect()
}

fn fill(node: &Node, rows: u64) -> Result<(), Failure> {
    let table = "CREATE TABLE wide.rows (p int, at bigint, v blob, PRIMARY KEY (p, at))".to_owned();
    statements(&node.address(), &[keyspace("wide"), table])?;
    let started = Instant::now();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(node, (writer..rows).step_by(WRITERS as usize))))
            .collect();
        writers.into_iter().try_for_each(|writer| match writer.join() {
            Ok(written) => written,
            Err(_) => Err(Failure::new("a writer panicked")),
        })
    })?;
    println!("{rows} rows of {ROW_BYTES} bytes written in {:.0} s", started.elapsed().as_secs_f64());
    let started = Instant::now();
    node.nodetool(&["flush"])?;
    node.nodetool(&["compact", "wide", "rows"])?;
    println!("compacted in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn write(node: &Node, rows: impl Iterator<Item = u64>) -> Result<(), Failure> {
    let mut connection = Connection::open(&node.address(), 5)?;
    let text = "INSERT INTO wide.rows (p, at, v) VALUES (1, ?, ?)";
    let Answer::Prepared(prepared) = connection.prepare(text, None)?.answer else {
        return Err(Failure::new("not prepared"));
    };
    for at in rows {
        let values = [at.to_be_bytes().to_vec(), value_of(at)].map(|value| (None, BoundValue::Bytes(value)));
        let request = Request { values: values.into(), ..Request::default() };
        match connection.execute(&prepared.id, &prepared.result_id, &request)?.answer {
            Answer::Void => {}
            other => return Err(Failure::new(format!("row {at}: {other:?}"))),
        }
    }
    Ok(())
}

fn read(node: &Node, rows: u64) -> Result<Tally, Failure> {
    let mut connection = Connection::open(&node.address(), 5)?;
    let mut tally = Tally::default();
    let (mut read_bytes, mut slices) = (0.0, 0.0);
    for place in 0..=PLACES {
        let at = (rows - SLICE_ROWS) * place / PLACES;
        let forward = format!("SELECT {COLUMNS} AND at >= {at} LIMIT {SLICE_ROWS}");
        let backward =
            format!("SELECT {COLUMNS} AND at < {} ORDER BY at DESC LIMIT {SLICE_ROWS}", at + SLICE_ROWS);
        for (text, is_reversed) in [(forward, false), (backward, true)] {
            let before = disk_read_bytes(node)?;
            let found = select(&mut connection, &text, None)?;
            let spent = disk_read_bytes(node)? - before;
            let mut expected: Vec<u64> = (at..at + SLICE_ROWS).collect();
            if is_reversed {
                expected.reverse();
            }
            check(&mut tally, are(&found, &expected), || format!("other rows: {text}"));
            check(&mut tally, spent <= SLICE_BYTES_MAX, || format!("{spent} bytes read: {text}"));
            read_bytes += spent;
            slices += 1.0;
        }
    }
    println!(
        "{slices} slices of {SLICE_ROWS} rows: {:.0} bytes read of the disk by each",
        read_bytes / slices
    );
    for order in ["ASC", "DESC"] {
        let started = Instant::now();
        let is_whole = walk(&mut connection, rows, order)?;
        check(&mut tally, is_whole, || format!("a walk {order} gave other rows"));
        println!("all of it {order}, page by page, in {:.0} s", started.elapsed().as_secs_f64());
    }
    Ok(tally)
}

/// Reads all rows in an order; are they what was written?
fn walk(connection: &mut Connection, rows: u64, order: &str) -> Result<bool, Failure> {
    let text = format!("SELECT {COLUMNS} ORDER BY at {order}");
    let (mut next, mut paging_state) = (0, None);
    loop {
        let page = select(connection, &text, Some(paging_state.take()))?;
        let count = page.rows.len() as u64;
        let place = |index: u64| if order == "DESC" { rows - 1 - index } else { index };
        let expected: Vec<u64> = (next..(next + count).min(rows)).map(place).collect();
        next += count;
        if !are(&page, &expected) {
            return Ok(false);
        }
        match page.metadata.paging_state {
            None => return Ok(next == rows),
            state => paging_state = state,
        }
    }
}

fn are(found: &Rows, expected: &[u64]) -> bool {
    let is = |(row, at): (&Vec<Option<Vec<u8>>>, &u64)| {
        let [Some(place), Some(value)] = row.as_slice() else { return false };
        place[..] == at.to_be_bytes() && *value == value_of(*at)
    };
    found.rows.len() == expected.len() && found.rows.iter().zip(expected).all(is)
}

/// Rows of a statement; of the page behind a place where there are pages.
fn select(
    connection: &mut Connection,
    text: &str,
    page_behind: Option<Option<Vec<u8>>>,
) -> Result<Rows, Failure> {
    let page_size = page_behind.is_some().then_some(PAGE_ROWS);
    let request = Request { page_size, paging_state: page_behind.flatten(), ..Request::default() };
    match connection.query(text, &request)?.answer {
        Answer::Rows(rows) => Ok(rows),
        other => Err(Failure::new(format!("{text}: {other:?}"))),
    }
}

fn disk_read_bytes(node: &Node) -> Result<f64, Failure> {
    metric(&node.metrics()?, "peristyle_disk_read_bytes_total")
}
