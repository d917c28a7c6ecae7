//! `cargo xtask ring-ddl`: how long a change of the schema takes on three nodes, and many of them at once.
//!
//! 1. CREATE TABLE, one after the other, from one node after the other: with few tables, and with `--tables` there.
//! 2. `--changes` changes from all nodes at once: tables made, and dropped again, columns added to one table, types.
//!    Afterwards every node must show each of them that was acknowledged, and all the same `schema_version`.
//!
//! How long it takes is told beside the aim and fails nothing; a change that is refused, or lost, does.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Host, Ports, Ring};
use crate::arguments::Arguments;
use crate::measure::Aim;
use crate::node::fresh_folder;
use crate::report::{Failure, Tally, complain};
use crate::wire::answer::Rows;
use crate::wire::{Answer, Connection, Request};

/// No other judge has them.
const PORTS: Ports = Ports { cql: 19942, storage: 17900, management: 17999 };
/// Of CREATE TABLE, 99 of 100.
const AIM_MS: f64 = 20.0;
const CONNECTIONS_PER_NODE: usize = 8;
/// How long nodes may take to show what was acknowledged.
const AGREE_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);
const EXAMPLES: usize = 3;

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["tables", "count", "changes", "short", "out"])?;
    let short = arguments.flag("short");
    let table_count: usize = arguments.value("tables", if short { 200 } else { 10_000 })?;
    let count: usize = arguments.value("count", if short { 60 } else { 300 })?;
    let change_count: usize = arguments.value("changes", if short { 200 } else { 1_000 })?;
    let ring = Ring::start(&fresh_folder("ring-ddl")?.join("cluster"), PORTS, &["--shards", "1"])?;
    let hosts = ring.hosts();
    let mut schema = Schema { hosts: &hosts, acknowledged: BTreeSet::new() };
    schema.begin()?;
    let mut summary = Vec::new();
    summary.push(schema.one_after_the_other("few", count)?);
    let began = Instant::now();
    let filled: Vec<Change> =
        (0..table_count).map(|number| Change::table(format!("filled_{number}"))).collect();
    let fill_refused = schema.at_once(&filled)?;
    println!("{table_count} tables from all nodes at once in {:.1?}", began.elapsed());
    summary.push(schema.one_after_the_other("many", count)?);
    let began = Instant::now();
    let changes = changes(change_count, table_count);
    let refused = schema.at_once(&changes)?;
    let took = began.elapsed();
    println!("{change_count} changes from all nodes at once in {took:.1?}, {} refused", refused.len());

    let mut tally = Tally::default();
    let mut check = |holds: bool, complaint: &dyn Fn() -> String| {
        tally += if holds { Tally::PASS } else { Tally::FAIL };
        if !holds {
            complain!("ring-ddl: {}", complaint());
        }
    };
    for refused in [&fill_refused, &refused] {
        check(refused.is_empty(), &|| such("changes were refused", refused));
    }
    let agreed = schema.until_agreed()?;
    for (host, shown) in hosts.iter().zip(&agreed.shown) {
        let lost: Vec<&String> = schema.acknowledged.difference(shown).collect();
        let strange: Vec<&String> = shown.difference(&schema.acknowledged).collect();
        check(lost.is_empty(), &|| such(&format!("changes are not there on node {}", host.number), &lost));
        check(strange.is_empty(), &|| such(&format!("things too many on node {}", host.number), &strange));
    }
    check(agreed.versions.len() == 1, &|| format!("nodes have the schemas {:?}", agreed.versions));
    let summary = json!({
        "latency": summary,
        "tables": table_count,
        "changes_at_once": change_count,
        "changes_seconds": took.as_secs_f64(),
        "refused": fill_refused.len() + refused.len(),
        "agreed_after_ms": agreed.after.as_millis() as u64,
    });
    println!("summary {summary}");
    if let Some(path) = arguments.text("out") {
        std::fs::write(path, serde_json::to_string_pretty(&summary)?)?;
    }
    Ok(tally)
}

fn such(what: &str, all: &[impl std::fmt::Debug]) -> String {
    format!("{} {what}, such as {:?}", all.len(), &all[..all.len().min(EXAMPLES)])
}

/// A change of the schema: its statement, and what it makes or takes away, as [`shown_by`] names it.
struct Change {
    text: String,
    made: Option<String>,
    gone: Option<String>,
}

impl Change {
    fn table(name: String) -> Change {
        let text = format!("CREATE TABLE ddl.{name} (k int PRIMARY KEY, v text)");
        Change { text, made: Some(format!("table {name}")), gone: None }
    }
}

/// Of all kinds, none of which is in another's way; `filled_count` tables are there to be dropped.
fn changes(count: usize, filled_count: usize) -> Vec<Change> {
    let change = |number: usize| match number % 10 {
        0..4 => Change::table(format!("at_once_{number}")),
        4..8 => Change {
            text: format!("ALTER TABLE ddl.shared ADD c{number} int"),
            made: Some(format!("column c{number}")),
            gone: None,
        },
        8 => Change {
            text: format!("CREATE TYPE ddl.type_{number} (a int, b text)"),
            made: Some(format!("type type_{number}")),
            gone: None,
        },
        _ if number / 10 < filled_count => Change {
            text: format!("DROP TABLE ddl.filled_{}", number / 10),
            made: None,
            gone: Some(format!("table filled_{}", number / 10)),
        },
        _ => Change::table(format!("more_{number}")),
    };
    (0..count).map(change).collect()
}

/// The schema as it must be.
struct Schema<'a> {
    hosts: &'a [Host],
    /// What is there, as [`shown_by`] names it.
    acknowledged: BTreeSet<String>,
}

/// What all nodes show.
struct Agreed {
    shown: Vec<BTreeSet<String>>,
    versions: BTreeSet<Vec<u8>>,
    after: Duration,
}

impl Schema<'_> {
    fn begin(&mut self) -> Result<(), Failure> {
        let replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
        let mut connection = Connection::open(&self.hosts[0].cql, 4)?;
        done(&mut connection, &format!("CREATE KEYSPACE ddl WITH replication = {replication}"))?;
        done(&mut connection, "CREATE TABLE ddl.shared (k int PRIMARY KEY)")?;
        self.acknowledged.extend(["table shared", "column k"].map(str::to_owned));
        Ok(())
    }

    /// So many tables, each from the next node; how long each took.
    fn one_after_the_other(&mut self, name: &str, count: usize) -> Result<Value, Failure> {
        let connections = self.hosts.iter().map(|host| Connection::open(&host.cql, 4));
        let mut connections = connections.collect::<Result<Vec<_>, _>>()?;
        let mut times = Vec::new();
        let there = self.acknowledged.len();
        for number in 0..count {
            let change = Change::table(format!("{name}_{number}"));
            let index = number % connections.len();
            let asked = Instant::now();
            done(&mut connections[index], &change.text)?;
            times.push(asked.elapsed());
            self.acknowledged.extend(change.made);
        }
        times.sort_unstable();
        let ms = |part: usize| times[(count * part / 100).min(count - 1)].as_secs_f64() * 1000.0;
        let (p50, p99, worst) = (ms(50), ms(99), ms(100));
        let aim = Aim::AtMost(AIM_MS).words(p99, " ms");
        println!(
            "CREATE TABLE beside {there}: p50 {p50:.1} ms, p99 {p99:.1} ms ({aim}), worst {worst:.1} ms"
        );
        Ok(json!({ "there": there, "count": count, "p50_ms": p50, "p99_ms": p99, "worst_ms": worst }))
    }

    /// All of these from several connections to each node; those that were refused.
    fn at_once(&mut self, changes: &[Change]) -> Result<Vec<String>, Failure> {
        let (next, refused) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let acknowledged = Mutex::new(&mut self.acknowledged);
        let poisoned = "no thread panics while it notes an answer";
        let work = |host: &Host| -> Result<(), Failure> {
            let mut connection = Connection::open(&host.cql, 4)?;
            while let Some(change) = changes.get(next.fetch_add(1, Ordering::Relaxed)) {
                match done(&mut connection, &change.text) {
                    Ok(()) => {
                        let mut acknowledged = acknowledged.lock().expect(poisoned);
                        acknowledged.extend(change.made.clone());
                        change.gone.iter().for_each(|gone| _ = acknowledged.remove(gone));
                    }
                    Err(failure) => refused.lock().expect(poisoned).push(failure.to_string()),
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let hosts = self.hosts.iter().flat_map(|host| std::iter::repeat_n(host, CONNECTIONS_PER_NODE));
            let threads: Vec<_> = hosts.map(|host| scope.spawn(move || work(host))).collect();
            let mut ended = threads.into_iter().map(|thread| thread.join());
            ended.try_for_each(|ended| ended.unwrap_or_else(|_| Err(Failure::new("a client panicked"))))
        })?;
        Ok(refused.into_inner().expect(poisoned))
    }

    /// What nodes show once they show the same, or after a while.
    fn until_agreed(&self) -> Result<Agreed, Failure> {
        let began = Instant::now();
        loop {
            let shown = self.hosts.iter().map(shown_by).collect::<Result<Vec<_>, _>>()?;
            let mut versions = BTreeSet::new();
            for host in self.hosts {
                versions.extend(versions_by(host)?);
            }
            let after = began.elapsed();
            let is_agreed = versions.len() == 1 && shown.iter().all(|shown| *shown == self.acknowledged);
            if is_agreed || after > AGREE_MAX {
                return Ok(Agreed { shown, versions, after });
            }
            std::thread::sleep(POLL);
        }
    }
}

/// What a node shows of the keyspace: its tables and types, and the columns of the table that all change.
fn shown_by(host: &Host) -> Result<BTreeSet<String>, Failure> {
    let mut connection = Connection::open(&host.cql, 4)?;
    let mut shown = BTreeSet::new();
    for (word, text) in [
        ("table", "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ddl'"),
        ("type", "SELECT type_name FROM system_schema.types WHERE keyspace_name = 'ddl'"),
        (
            "column",
            "SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'ddl' AND table_name = 'shared'",
        ),
    ] {
        let names = first_column(rows(&mut connection, text)?);
        shown.extend(names.iter().map(|name| format!("{word} {}", String::from_utf8_lossy(name))));
    }
    Ok(shown)
}

/// The versions of the schema that a node has, and that it tells of others.
fn versions_by(host: &Host) -> Result<BTreeSet<Vec<u8>>, Failure> {
    let mut connection = Connection::open(&host.cql, 4)?;
    let own = rows(&mut connection, "SELECT schema_version FROM system.local")?;
    let others = rows(&mut connection, "SELECT schema_version FROM system.peers")?;
    Ok(first_column(own).into_iter().chain(first_column(others)).collect())
}

fn first_column(rows: Rows) -> Vec<Vec<u8>> {
    rows.rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
}

fn rows(connection: &mut Connection, text: &str) -> Result<Rows, Failure> {
    match connection.query(text, &Request::default())?.answer {
        Answer::Rows(rows) => Ok(rows),
        other => Err(Failure::new(format!("{text}: {other:?}"))),
    }
}

fn done(connection: &mut Connection, text: &str) -> Result<(), Failure> {
    match connection.query(text, &Request::default())?.answer {
        Answer::SchemaChange { .. } => Ok(()),
        other => Err(Failure::new(format!("{text}: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_of_all_kinds_and_only_tables_that_are_there_are_dropped() {
        let all = changes(1_000, 3);
        assert_eq!(all.iter().filter(|change| change.gone.is_some()).count(), 3);
        let made: BTreeSet<_> = all.iter().filter_map(|change| change.made.as_ref()).collect();
        assert_eq!(made.len(), 997, "each makes a thing of its own");
        for word in ["table", "column", "type"] {
            assert!(made.iter().any(|made| made.starts_with(word)), "{word}");
        }
    }
}
