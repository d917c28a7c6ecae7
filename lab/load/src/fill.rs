//! `load fill`: makes the table of a statement and writes its rows, many in flight on one connection each.
//!
//! Words: `hosts=127.0.0.1` (with commas), `replicas=1`, `consistency=ONE`, `port`, `statement`, `rows`,
//! `keyspace=limits`, `with=` (table options), `connections=2`, `window=128`, `writes=` (more than the rows: the
//! rest go to rows at random, which are then overwritten), `table=yes|no` (whether it is made), `server=PID,PID` (whose
//! CPU time is taken). A write that fails (a server that is not warm times out) is sent again; more than one in ten and
//! the load fails. Prints writes, seconds, errors, CPU time and latencies, which run from a write's first sending.
//!
//! Hosts have the rows in turn, whether they are replicas of them or not.

use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::frame::{self, ERROR};
use crate::histogram::Histogram;
use crate::keys::Random;
use crate::link::{Link, Talk};
use crate::process::cpu_seconds;
use crate::statement::{Kind, Requests, letters, level_named};
use crate::words::Words;
use crate::{Outcome, drive};

/// Of the writes, so many may fail and be sent again.
const ERRORS_SHARE: u64 = 10;
/// Nodes of a ring are asked so often, and so long, whether all know the table.
const AGREEMENT_POLL: Duration = Duration::from_millis(100);
const AGREEMENT_MAX: Duration = Duration::from_secs(30);

/// Fills the table.
pub(crate) fn run(words: &Words) -> Outcome<()> {
    let kind = Kind::named(words.text("statement", "read"))?.filling();
    let (port, rows) = (words.number("port", 9042)?, words.number("rows", 100_000u64)?);
    let writes = words.number("writes", rows)?;
    let (keyspace, hosts) = (words.text("keyspace", "limits"), words.list("hosts", "127.0.0.1"));
    if words.text("table", "yes") == "yes" {
        let replicas = words.number("replicas", 1u32)?;
        make_table(&mut Talk::open(hosts[0], port)?, kind, (keyspace, replicas), words.text("with", ""))?;
        wait_for_agreement(&hosts, port)?;
    }
    let connections = words.number("connections", 2usize)?;
    let window = words.number("window", 128u16)?;
    let (talks, ids) = drive::connect(&hosts, port, connections, &kind.texts(keyspace))?;
    let links: Vec<Link> = talks.into_iter().map(Talk::into_link).collect::<Outcome<_>>()?;
    let server = words.text("server", "");
    let (begun, before) = (Instant::now(), cpu_seconds(server));
    let level = level_named(words.text("consistency", "ONE"))?;
    let requests = Requests::new(kind, &ids, rows, 5, &letters()).at(level);
    let (errors, latencies) = write_all(links, window, rows, writes, requests)?;
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds(server) - before);
    println!(
        "{{\"writes\":{writes},\"seconds\":{seconds:.3},\"errors\":{errors},\"server_cpu_s\":{cpu:.2},{}}}",
        latencies.json()
    );
    Ok(())
}

/// Keyspace and table, unless they are there.
fn make_table(talk: &mut Talk, kind: Kind, (keyspace, replicas): (&str, u32), with: &str) -> Outcome<()> {
    let replication = format!("{{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}");
    talk.query(&format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}"))?;
    let (table, definition) = kind.table();
    let with = if with.is_empty() { String::new() } else { format!(" WITH {with}") };
    talk.query(&format!("CREATE TABLE IF NOT EXISTS {keyspace}.{table} ({definition}){with}"))
}

/// A table is made on one node of a ring; the others learn of it a moment later.
fn wait_for_agreement(hosts: &[&str], port: u16) -> Outcome<()> {
    let mut talks = hosts.iter().map(|host| Talk::open(host, port)).collect::<Outcome<Vec<_>>>()?;
    let begun = Instant::now();
    loop {
        let versions = talks.iter_mut().map(|talk| talk.column("SELECT schema_version FROM system.local"));
        let versions = versions.collect::<Outcome<Vec<_>>>()?;
        if versions.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(());
        }
        if begun.elapsed() > AGREEMENT_MAX {
            return Err("the nodes do not agree on a schema".into());
        }
        std::thread::sleep(AGREEMENT_POLL);
    }
}

fn write_all(
    mut links: Vec<Link>,
    window: u16,
    rows: u64,
    writes: u64,
    mut requests: Requests,
) -> Outcome<(u64, Histogram)> {
    let (started, mut latencies) = (Instant::now(), Histogram::new());
    let mut poll = Poll::new()?;
    let mut random = Random::new(11);
    let (mut next, mut answered, mut errors) = (0u64, 0u64, 0u64);
    let mut row_of = |index: u64| if index < rows { index } else { random.below(rows) };
    // What is in flight, to be sent again when it fails, and since when, in microseconds.
    let mut in_flight: Vec<Vec<(u64, u32)>> =
        links.iter().map(|_| vec![(0, 0); usize::from(window)]).collect();
    for (index, link) in links.iter_mut().enumerate() {
        drive::register(&poll, link, index)?;
        for stream in 0..window {
            if next < writes {
                let row = row_of(next);
                in_flight[index][usize::from(stream)] = (row, started.elapsed().as_micros() as u32);
                requests.put(&mut link.out, stream, row);
                next += 1;
            }
        }
        link.send();
    }
    let (mut events, mut scratch) = (Events::with_capacity(256), Vec::new());
    while answered < writes {
        poll.poll(&mut events, None)?;
        let now_us = started.elapsed().as_micros() as u32;
        for event in &events {
            let Token(index) = event.token();
            let link = &mut links[index];
            let rows_in_flight = &mut in_flight[index];
            link.receive(&mut scratch, |frame, out| {
                let write = rows_in_flight.get_mut(usize::from(frame.stream));
                let (row, begun_us) = write.ok_or("an answer to a stream that was never used")?;
                if frame.opcode == ERROR {
                    if errors == 0 {
                        eprintln!("first error: {:?}", frame::error_of(frame.body));
                    }
                    errors += 1;
                    if errors > writes / ERRORS_SHARE {
                        return Err(format!("{errors} of {answered} writes failed").into());
                    }
                    requests.put(out, frame.stream, *row);
                    return Ok(());
                }
                answered += 1;
                latencies.record(u64::from(now_us.wrapping_sub(*begun_us)));
                if next < writes {
                    (*row, *begun_us) = (row_of(next), now_us);
                    requests.put(out, frame.stream, *row);
                    next += 1;
                }
                Ok(())
            })?;
            link.send();
            if link.is_closed {
                return Err(format!("the server closed a connection after {answered} writes").into());
            }
        }
    }
    Ok((errors, latencies))
}
