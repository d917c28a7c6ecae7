//! A client of a ring: a connection to each node, and the next node where drivers take the next one.
//!
//! A driver hides which node a request was lost on. Here it is known: a request goes to one node, and to the next one
//! only when nothing of it was done: nobody takes the connection, or the node says that it can not serve it. Whatever
//! else goes wrong loses the request on the node that had it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::super::Host;
use crate::report::Failure;
use crate::wire::answer::Rows;
use crate::wire::{Answer, BoundValue, Connection, Request};

/// How long an answer is waited for; longer than a node waits for its replicas.
const PATIENCE: Duration = Duration::from_secs(6);
/// So long a node is not asked that nobody could connect to, or that did not answer.
const REST: Duration = Duration::from_millis(500);
/// How long a node may take to take a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);
const UNPREPARED: u32 = 0x2500;
/// `Unavailable`, `Overloaded`, `Is_bootstrapping`: nothing was done, so another node may be asked.
const NOTHING_DONE: [u32; 3] = [0x1000, 0x1001, 0x1002];

/// A request that was not answered as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ring) struct Lost {
    /// The node that had it; `None` when all refused it.
    pub(in crate::ring) node: Option<usize>,
    /// Milliseconds since 1970.
    pub(in crate::ring) sent_ms: u64,
    pub(in crate::ring) ended_ms: u64,
    pub(in crate::ring) what: String,
}

/// What is asked.
#[derive(Debug, Default)]
pub(in crate::ring) struct Asked {
    /// By its index.
    pub(in crate::ring) statement: usize,
    pub(in crate::ring) values: Vec<Vec<u8>>,
    pub(in crate::ring) timestamp: Option<i64>,
    /// That of the client, if it is not given.
    pub(in crate::ring) consistency: Option<u16>,
    /// The id of the operation: `docs/operation-ids.md`.
    pub(in crate::ring) operation: Option<[u8; 16]>,
}

/// See the head of the file.
pub(in crate::ring) struct Client {
    nodes: Vec<Node>,
    statements: Vec<String>,
    consistency: u16,
    asked_count: usize,
    /// How often the next node was asked.
    pub(in crate::ring) moved_count: u64,
}

struct Node {
    number: usize,
    address: String,
    open: Option<Open>,
    rests_until: Option<Instant>,
}

struct Open {
    connection: Connection,
    ids: Vec<Vec<u8>>,
}

/// What a node made of a request.
enum Outcome {
    Done(Answer),
    /// Nothing was done.
    Refused(String),
    /// Who knows.
    Lost(String),
}

impl Client {
    /// Of these nodes, which are asked in turn, beginning with the one at `first`.
    pub(in crate::ring) fn new(
        hosts: &[Host],
        statements: Vec<String>,
        consistency: u16,
        first: usize,
    ) -> Client {
        let node = |host: &Host| Node {
            number: host.number,
            address: host.cql.clone(),
            open: None,
            rests_until: None,
        };
        let nodes = hosts.iter().map(node).collect();
        Client { nodes, statements, consistency, asked_count: first, moved_count: 0 }
    }

    /// Executes a statement by its index.
    pub(in crate::ring) fn execute(
        &mut self,
        statement: usize,
        values: Vec<Vec<u8>>,
        timestamp: Option<i64>,
    ) -> Result<Answer, Lost> {
        self.ask(Asked { statement, values, timestamp, ..Asked::default() })
    }

    /// Executes what is asked.
    pub(in crate::ring) fn ask(&mut self, asked: Asked) -> Result<Answer, Lost> {
        let Asked { statement, values, timestamp, consistency, operation } = asked;
        let values = values.into_iter().map(|bytes| (None, BoundValue::Bytes(bytes))).collect();
        let consistency = consistency.unwrap_or(self.consistency);
        let request = Request { values, timestamp, consistency, operation, ..Request::default() };
        let began_ms = now_ms();
        let mut refusals = Vec::new();
        self.asked_count += 1;
        for turn in 0..self.nodes.len() {
            let index = (self.asked_count + turn) % self.nodes.len();
            let node = &mut self.nodes[index];
            let sent_ms = now_ms();
            match node.ask(&self.statements, statement, &request) {
                Outcome::Done(answer) => return Ok(answer),
                Outcome::Refused(why) => {
                    self.moved_count += 1;
                    refusals.push(format!("node {}: {why}", node.number));
                }
                Outcome::Lost(what) => {
                    return Err(Lost { node: Some(node.number), sent_ms, ended_ms: now_ms(), what });
                }
            }
        }
        Err(Lost { node: None, sent_ms: began_ms, ended_ms: now_ms(), what: refusals.join("; ") })
    }
}

impl Node {
    fn ask(&mut self, statements: &[String], statement: usize, request: &Request) -> Outcome {
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return Outcome::Refused("it did not answer just now".to_owned());
        }
        // A driver notices that a connection was closed, and does not send on it.
        if self.open.as_ref().is_some_and(|open| open.connection.is_closed()) {
            self.open = None;
        }
        if self.open.is_none() {
            match Open::to(&self.address, statements) {
                Ok(open) => self.open = Some(open),
                Err(why) => return self.refused(why),
            }
        }
        let Some(open) = &mut self.open else { return self.refused("not connected".to_owned()) };
        match open.execute(statements, statement, request) {
            Ok(Answer::Error { code, message, .. }) if NOTHING_DONE.contains(&code) => {
                Outcome::Refused(message)
            }
            Ok(Answer::Error { code, message, detail }) => {
                Outcome::Lost(format!("{code:#06x} {message} {detail}"))
            }
            Ok(answer) => Outcome::Done(answer),
            Err(failure) => {
                self.open = None;
                self.rests_until = Some(Instant::now() + REST);
                Outcome::Lost(failure.to_string())
            }
        }
    }

    fn refused(&mut self, why: String) -> Outcome {
        self.rests_until = Some(Instant::now() + REST);
        Outcome::Refused(why)
    }
}

impl Open {
    fn to(address: &str, statements: &[String]) -> Result<Open, String> {
        let open = || -> Result<Open, Failure> {
            let connection = Connection::open_within(address, 4, CONNECT_PATIENCE)?;
            let mut open = Open { connection, ids: Vec::new() };
            for text in statements {
                let id = open.prepare(text)?;
                open.ids.push(id);
            }
            open.connection.set_patience(PATIENCE)?;
            Ok(open)
        };
        open().map_err(|failure| failure.to_string())
    }

    fn prepare(&mut self, text: &str) -> Result<Vec<u8>, Failure> {
        match self.connection.prepare(text, None)?.answer {
            Answer::Prepared(prepared) => Ok(prepared.id),
            other => Err(Failure::new(format!("{text}: {other:?}"))),
        }
    }

    fn execute(
        &mut self,
        statements: &[String],
        statement: usize,
        request: &Request,
    ) -> Result<Answer, Failure> {
        match self.connection.execute(&self.ids[statement], &[], request)?.answer {
            Answer::Error { code: UNPREPARED, .. } => {
                self.ids[statement] = self.prepare(&statements[statement])?;
                Ok(self.connection.execute(&self.ids[statement], &[], request)?.answer)
            }
            answer => Ok(answer),
        }
    }
}

/// The rows of an answer, none of another one.
pub(in crate::ring) fn rows(answer: Answer) -> Option<Rows> {
    if let Answer::Rows(rows) = answer { Some(rows) } else { None }
}

/// Milliseconds since 1970, as YCSB tells them too.
pub(in crate::ring) fn now_ms() -> u64 {
    now_us() / 1000
}

/// Microseconds since 1970.
pub(in crate::ring) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
