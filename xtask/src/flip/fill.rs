//! The data directory whose bytes are changed: every kind of file, every kind of row.

use std::time::Duration;

use crate::node::{Node, NodeOptions};
use crate::report::Failure;
use crate::wire::{Answer, Connection, Request};

/// Tables with rows of every kind; `COMPRESSION` is replaced.
const TABLES: &[(&str, &str)] = &[("lz4", "{'class': 'LZ4Compressor'}"), ("plain", "{'enabled': 'false'}")];

const WIDE_PARTITIONS: u32 = 4;
const WIDE_ROWS: u32 = 220;
const NARROW_PARTITIONS: u32 = 600;
const MIXED_PARTITIONS: u32 = 24;
/// Longer than the log waits before it writes down that the last group was durable.
const SETTLE: Duration = Duration::from_millis(300);

/// The keyspaces whose tables are filled.
pub(super) const KEYSPACES: [&str; 2] = ["flip_lz4", "flip_plain"];

/// What is asked of a node: everything by scan, by key and by slice.
pub(super) fn questions() -> Vec<String> {
    let mut questions: Vec<String> = ["keyspaces", "tables", "columns"]
        .iter()
        .flat_map(|table| {
            KEYSPACES.map(|keyspace| {
                format!("SELECT * FROM system_schema.{table} WHERE keyspace_name = '{keyspace}'")
            })
        })
        .collect();
    for keyspace in KEYSPACES {
        for table in ["wide", "narrow", "mixed", "logged"] {
            questions.push(format!("SELECT * FROM {keyspace}.{table}"));
        }
        for part in 0..=WIDE_PARTITIONS {
            let from = format!("FROM {keyspace}.wide WHERE part = {part}");
            questions.push(format!("SELECT * {from}"));
            for row in [0, 117, WIDE_ROWS] {
                questions.push(format!("SELECT * {from} AND row = {row}"));
            }
            questions.push(format!("SELECT row, text {from} AND row > 95 AND row <= 130"));
            questions.push(format!("SELECT row, text {from} AND row < 150 ORDER BY row DESC LIMIT 20"));
        }
        let keys = (0..NARROW_PARTITIONS + 20).step_by(7).map(|key| format!("'key-{key}'"));
        let keys: Vec<String> = keys.collect();
        questions.push(format!("SELECT * FROM {keyspace}.narrow WHERE id IN ({})", keys.join(", ")));
        for key in keys.iter().step_by(9) {
            questions.push(format!("SELECT * FROM {keyspace}.narrow WHERE id = {key}"));
        }
        for key in (0..=MIXED_PARTITIONS).step_by(4) {
            questions.push(format!("SELECT * FROM {keyspace}.mixed WHERE id = {key}"));
            questions.push(format!("SELECT * FROM {keyspace}.mixed WHERE id = {key} AND at > 2 AND at < 7"));
        }
    }
    questions
}

/// Fills a directory over two runs, both ended by SIGKILL: files of two flushes, a log segment that
/// the second start ended, and one that was being written.
pub(super) fn fill(options: &NodeOptions) -> Result<(), Failure> {
    let node = Node::start(options)?;
    let mut connection = Connection::open(&node.address(), 5)?;
    for (suffix, compression) in TABLES {
        let keyspace = format!("flip_{suffix}");
        create(&mut connection, &keyspace, compression)?;
        wide(&mut connection, &keyspace)?;
        narrow(&mut connection, &keyspace, 0..NARROW_PARTITIONS / 2)?;
        mixed(&mut connection, &keyspace)?;
    }
    flush(&node)?;
    for keyspace in KEYSPACES {
        narrow(&mut connection, keyspace, NARROW_PARTITIONS / 2..NARROW_PARTITIONS)?;
        overwrite(&mut connection, keyspace)?;
    }
    flush(&node)?;
    for keyspace in KEYSPACES {
        logged(&mut connection, keyspace, 0..40)?;
    }
    kill(node);
    let node = Node::start(options)?;
    let mut connection = Connection::open(&node.address(), 5)?;
    for keyspace in KEYSPACES {
        logged(&mut connection, keyspace, 40..80)?;
    }
    kill(node);
    Ok(())
}

fn kill(node: Node) {
    std::thread::sleep(SETTLE);
    // Dropping a node kills it with SIGKILL.
    drop(node);
}

fn flush(node: &Node) -> Result<(), Failure> {
    KEYSPACES.iter().try_for_each(|keyspace| node.nodetool(&["flush", keyspace]).map(drop))
}

fn create(connection: &mut Connection, keyspace: &str, compression: &str) -> Result<(), Failure> {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    run(connection, &format!("CREATE KEYSPACE {keyspace} WITH replication = {replication}"))?;
    let tables = [
        "wide (part int, row int, note text static, text text, PRIMARY KEY (part, row))",
        "narrow (id text PRIMARY KEY, number bigint, text text)",
        "mixed (id int, at int, note text static, tags set<text>, list list<int>, map map<text, int>, \
         pair frozen<tuple<int, text>>, PRIMARY KEY (id, at))",
        "logged (id int PRIMARY KEY, text text, tags set<text>)",
    ];
    for table in tables {
        run(connection, &format!("CREATE TABLE {keyspace}.{table} WITH compression = {compression}"))?;
    }
    Ok(())
}

/// Partitions of many blocks, so that they have a row index.
fn wide(connection: &mut Connection, keyspace: &str) -> Result<(), Failure> {
    for part in 0..WIDE_PARTITIONS {
        let mut statements =
            vec![format!("INSERT INTO {keyspace}.wide (part, note, row) VALUES ({part}, 'note {part}', -1)")];
        for row in 0..WIDE_ROWS {
            // Not the same letters over and over: a chunk must not shrink to nothing.
            let text: String = (0..16u32)
                .map(|word| format!("{:08x}", (row * 131 + part * 7 + word).wrapping_mul(2_654_435_761)))
                .collect();
            statements.push(format!(
                "INSERT INTO {keyspace}.wide (part, row, text) VALUES ({part}, {row}, '{text}')"
            ));
        }
        batches(connection, &statements)?;
    }
    Ok(())
}

fn narrow(connection: &mut Connection, keyspace: &str, keys: std::ops::Range<u32>) -> Result<(), Failure> {
    let insert = |key| {
        format!("INSERT INTO {keyspace}.narrow (id, number, text) VALUES ('key-{key}', {key}, 'of {key}')")
    };
    batches(connection, &keys.map(insert).collect::<Vec<_>>())
}

/// Statics, collections, a lifetime of years, and tombstones of every kind.
fn mixed(connection: &mut Connection, keyspace: &str) -> Result<(), Failure> {
    let mut statements = Vec::new();
    for id in 0..MIXED_PARTITIONS {
        statements.push(format!("INSERT INTO {keyspace}.mixed (id, at, note) VALUES ({id}, 0, 'n{id}')"));
        for at in 1..10 {
            statements.push(format!(
                "INSERT INTO {keyspace}.mixed (id, at, tags, list, map, pair) VALUES ({id}, {at}, \
                 {{'a{at}', 'b{id}'}}, [{id}, {at}], {{'k': {id}, 'l': {at}}}, ({at}, 'p')) USING TTL 300000000"
            ));
        }
    }
    batches(connection, &statements)
}

fn overwrite(connection: &mut Connection, keyspace: &str) -> Result<(), Failure> {
    let mut statements = Vec::new();
    for id in (0..MIXED_PARTITIONS).step_by(3) {
        let of = format!("WHERE id = {id}");
        statements.extend([
            format!("DELETE FROM {keyspace}.mixed {of} AND at > 3 AND at <= 5"),
            format!("DELETE FROM {keyspace}.mixed {of} AND at = 8"),
            format!("DELETE tags['a2'], map['k'] FROM {keyspace}.mixed {of} AND at = 2"),
            format!("DELETE pair FROM {keyspace}.mixed {of} AND at = 1"),
            format!(
                "UPDATE {keyspace}.mixed SET tags = tags + {{'later'}}, list = list + [7] {of} AND at = 6"
            ),
        ]);
    }
    statements.push(format!("DELETE FROM {keyspace}.mixed WHERE id = 4"));
    for row in (0..WIDE_ROWS).step_by(5) {
        statements.push(format!("DELETE FROM {keyspace}.wide WHERE part = 1 AND row = {row}"));
        statements
            .push(format!("UPDATE {keyspace}.wide SET text = 'new {row}' WHERE part = 2 AND row = {row}"));
    }
    batches(connection, &statements)
}

/// Only in the log, some of it over rows that are in files.
fn logged(connection: &mut Connection, keyspace: &str, keys: std::ops::Range<u32>) -> Result<(), Failure> {
    for key in keys {
        run(
            connection,
            &format!(
                "INSERT INTO {keyspace}.logged (id, text, tags) VALUES ({key}, 'in the log {key}', {{'t'}})"
            ),
        )?;
        run(connection, &format!("DELETE FROM {keyspace}.narrow WHERE id = 'key-{}'", key * 5))?;
    }
    Ok(())
}

fn batches(connection: &mut Connection, statements: &[String]) -> Result<(), Failure> {
    statements.chunks(40).try_for_each(|statements| {
        run(connection, &format!("BEGIN UNLOGGED BATCH {}; APPLY BATCH", statements.join("; ")))
    })
}

fn run(connection: &mut Connection, statement: &str) -> Result<(), Failure> {
    match connection.query(statement, &Request::default())?.answer {
        Answer::Error { message, .. } => Err(Failure::new(format!("{statement:.200}: {message}"))),
        _ => Ok(()),
    }
}

/// How many rows the scans must give: what was written less what was deleted.
pub(super) fn check_known(questions: &[String], known: &[super::judge::Reply]) -> Result<(), Failure> {
    let deleted_narrow = (0..80).filter(|key| key * 5 < NARROW_PARTITIONS).count();
    let overwritten = MIXED_PARTITIONS.div_ceil(3) as usize;
    let expected = [
        ("wide", (WIDE_PARTITIONS * (WIDE_ROWS + 1) - WIDE_ROWS.div_ceil(5)) as usize),
        ("narrow", NARROW_PARTITIONS as usize - deleted_narrow),
        // Three rows of each overwritten partition, and the partition 4 as a whole.
        ("mixed", (MIXED_PARTITIONS as usize - 1) * 10 - 3 * overwritten),
        ("logged", 80),
    ];
    for keyspace in KEYSPACES {
        for (table, count) in expected {
            let scan = format!("SELECT * FROM {keyspace}.{table}");
            let reply = questions.iter().position(|question| *question == scan).map(|index| &known[index]);
            match reply {
                Some(super::judge::Reply::Rows(rows)) if rows.len() == count => {}
                Some(super::judge::Reply::Rows(rows)) => {
                    return Err(Failure::new(format!("{scan}: {} rows, not {count}", rows.len())));
                }
                other => return Err(Failure::new(format!("{scan}: {other:?}"))),
            }
        }
    }
    Ok(())
}
