//! `load fill`: makes the table of a statement and writes its rows, many in flight on one connection each.
//!
//! Words: `port`, `statement`, `rows`, `keyspace=limits`, `with=` (table options), `connections=2`,
//! `window=128`, `writes=` (more than the rows: the rest go to rows at random, which are then overwritten),
//! `table=yes|no` (whether it is made). Prints `{"writes":N,"seconds":S,"errors":N}`.

use std::time::Instant;

use mio::{Events, Poll, Token};

use crate::frame::{self, ERROR};
use crate::keys::Random;
use crate::link::{Link, Talk};
use crate::statement::{Kind, Requests, letters};
use crate::words::Words;
use crate::{Outcome, drive};

/// Fills the table.
pub(crate) fn run(words: &Words) -> Outcome<()> {
    let kind = Kind::named(words.text("statement", "read"))?.filling();
    let (port, rows) = (words.number("port", 9042)?, words.number("rows", 100_000u64)?);
    let writes = words.number("writes", rows)?;
    let keyspace = words.text("keyspace", "limits");
    if words.text("table", "yes") == "yes" {
        make_table(&mut Talk::open(port)?, kind, keyspace, words.text("with", ""))?;
    }
    let connections = words.number("connections", 2usize)?;
    let window = words.number("window", 128u16)?;
    let (talks, ids) = drive::connect(port, connections, &kind.texts(keyspace))?;
    let links: Vec<Link> = talks.into_iter().map(Talk::into_link).collect::<Outcome<_>>()?;
    let begun = Instant::now();
    let requests = Requests::new(kind, &ids, rows, 5, &letters());
    let errors = write_all(links, window, rows, writes, requests)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{{\"writes\":{writes},\"seconds\":{seconds:.3},\"errors\":{errors}}}");
    if errors == 0 { Ok(()) } else { Err(format!("{errors} writes failed").into()) }
}

/// Keyspace and table, unless they are there.
fn make_table(talk: &mut Talk, kind: Kind, keyspace: &str, with: &str) -> Outcome<()> {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    talk.query(&format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}"))?;
    let (table, definition) = kind.table();
    let with = if with.is_empty() { String::new() } else { format!(" WITH {with}") };
    talk.query(&format!("CREATE TABLE IF NOT EXISTS {keyspace}.{table} ({definition}){with}"))
}

fn write_all(
    mut links: Vec<Link>,
    window: u16,
    rows: u64,
    writes: u64,
    mut requests: Requests,
) -> Outcome<u64> {
    let mut poll = Poll::new()?;
    let mut random = Random::new(11);
    let (mut next, mut answered, mut errors) = (0u64, 0u64, 0u64);
    let mut row_of = |index: u64| if index < rows { index } else { random.below(rows) };
    for (index, link) in links.iter_mut().enumerate() {
        drive::register(&poll, link, index)?;
        for stream in 0..window {
            if next < writes {
                requests.put(&mut link.out, stream, row_of(next));
                next += 1;
            }
        }
        link.send();
    }
    let (mut events, mut scratch) = (Events::with_capacity(256), Vec::new());
    while answered < writes {
        poll.poll(&mut events, None)?;
        for event in &events {
            let Token(index) = event.token();
            let link = &mut links[index];
            link.receive(&mut scratch, |frame, out| {
                answered += 1;
                if frame.opcode == ERROR {
                    if errors == 0 {
                        eprintln!("first error: {:?}", frame::error_of(frame.body));
                    }
                    errors += 1;
                }
                if next < writes {
                    requests.put(out, frame.stream, row_of(next));
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
    Ok(errors)
}
