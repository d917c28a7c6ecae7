//! Rivals: clients that count up rows which are nobody's own through any node, by changes with a condition
//! ([`crate::ledger`]).

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use protocol::{Consistency, ErrorKind, QueryParameters, Response};
use tokio::time::{Instant, sleep, timeout};

use super::World;
use super::client::{form, is_of_schema};
use super::visitor::{PATIENCE, Visitor};
use crate::ledger::{Asked, Ledger, What};
use crate::scenario::Violation;
use crate::served::{Connection, Ended, packed};

/// The table of the rows, and how it is made.
const TABLE: &str = "several.counts";
pub(crate) const DEFINITION: &str = "CREATE TABLE IF NOT EXISTS several.counts (k int PRIMARY KEY, n int)";

/// Between two bursts.
const PAUSE_MAX_MICROS: u64 = 2_000_000;
/// Requests that are under way together.
const TOGETHER_MAX: u64 = 3;
/// In the end a row is shown after so many tries.
const TRIES_MAX: usize = 20;

pub(crate) struct Rival {
    world: Rc<World>,
    number: u8,
    visitor: Visitor,
    ledger: Rc<RefCell<Ledger>>,
}

impl Rival {
    pub(crate) fn new(world: &Rc<World>, number: u8, ledger: &Rc<RefCell<Ledger>>) -> Rival {
        let visitor = Visitor::new(world, number);
        Rival { world: Rc::clone(world), number, visitor, ledger: Rc::clone(ledger) }
    }

    /// Works while there are faults.
    pub(crate) async fn work(mut self) -> Result<(), Violation> {
        while !self.world.is_settled.get() {
            sleep(Duration::from_micros(self.visitor.dice.between(1, PAUSE_MAX_MICROS))).await;
            if self.world.has_tables.get() {
                self.one_burst().await?;
            }
        }
        // Now nothing stands in the way.
        for _ in 0..TRIES_MAX {
            self.one_burst().await?;
        }
        Ok(())
    }

    async fn one_burst(&mut self) -> Result<(), Violation> {
        let ended = timeout(PATIENCE, self.burst()).await;
        match ended.unwrap_or(Err(Ended::Broken(io::ErrorKind::TimedOut.into()))) {
            Ok(()) => Ok(()),
            Err(Ended::Violation(violation)) => Err(violation),
            Err(Ended::Broken(error)) => {
                self.note(format_args!("broken: {error}"));
                Ok(())
            }
        }
    }

    async fn burst(&mut self) -> Result<(), Ended> {
        let (node, mut connection) = self.visitor.enter().await?;
        let count = self.visitor.dice.between(1, TOGETHER_MAX + 1);
        let (mut waiting, sent) = (Vec::new(), Instant::now());
        for stream in 0..count as i16 {
            let asked = self.ledger.borrow_mut().roll(&self.visitor.dice);
            self.put(&mut connection, stream, &asked).await?;
            waiting.push(asked);
        }
        self.note(format_args!("{waiting:?} to {node}"));
        connection.send(usize::MAX).await?;
        for _ in 0..count {
            let (stream, response) = connection.receive().await?;
            let asked = waiting[stream as usize];
            let is_last_word = matches!(&response, Response::Error(error) if error.kind == ErrorKind::Server);
            if is_last_word && self.world.stage.hosts.has_died_since(node, sent) {
                return Err(Ended::Broken(io::ErrorKind::ConnectionAborted.into()));
            }
            self.take(&connection, &asked, response)?;
            self.world.stage.count_operation();
        }
        if !self.visitor.dice.one_in(3) {
            self.visitor.keep(node, connection);
        }
        Ok(())
    }

    async fn put(&self, connection: &mut Connection, stream: i16, asked: &Asked) -> Result<(), Ended> {
        let (text, values) = asked.statement(TABLE);
        let form = form(&self.visitor.dice, connection, &text, &values).await?;
        let level = match asked.what {
            What::Show => Consistency::Serial,
            _ => *self.visitor.dice.pick(&[Consistency::One, Consistency::Quorum, Consistency::Any]),
        };
        connection.put(stream, form.request(QueryParameters::at(level), packed(&values)));
        Ok(())
    }

    fn take(&self, connection: &Connection, asked: &Asked, response: Response) -> Result<(), Ended> {
        let mut ledger = self.ledger.borrow_mut();
        match response {
            Response::Rows(rows) => {
                let taken = ledger.take_rows(asked, &rows);
                let told = taken.map_err(|what| self.wrong(format!("{asked:?}: {what}")))?;
                self.note(format_args!("{asked:?}: {told:?}"));
                self.world.ways.add(told.way(), 1);
                Ok(())
            }
            Response::Error(error) => {
                self.note(format_args!("{asked:?}: {:?} {}", error.kind, error.message));
                let nothing_was_done = match error.kind {
                    ErrorKind::Unprepared { .. } => {
                        connection.forget_prepared();
                        true
                    }
                    // It says that nothing was done.
                    ErrorKind::Overloaded
                    | ErrorKind::IsBootstrapping
                    | ErrorKind::Unavailable { .. }
                    | ErrorKind::WriteTimeout { contentions: Some(_), .. } => true,
                    // A node that has started a moment ago may be behind.
                    ErrorKind::Invalid if is_of_schema(&error.message) => true,
                    // Before version 5 this is how it is told that nobody knows, too.
                    ErrorKind::WriteTimeout { contentions: None, .. }
                    | ErrorKind::CasWriteUnknown { .. }
                    | ErrorKind::ReadTimeout { .. }
                    | ErrorKind::ReadFailure { .. }
                    | ErrorKind::WriteFailure { .. }
                    | ErrorKind::Server => false,
                    kind => return Err(self.wrong(format!("{asked:?} fails: {kind:?} {}", error.message))),
                };
                if nothing_was_done {
                    ledger.take_undone(asked);
                }
                Ok(())
            }
            other => Err(self.wrong(format!("{asked:?} is answered {other:?}"))),
        }
    }

    fn note(&self, line: impl std::fmt::Display) {
        self.world.stage.note(format_args!("rival {}: {line}", self.number));
    }

    fn wrong(&self, what: String) -> Ended {
        Ended::Violation(Violation::new(format!("rival {}: {what}", self.number)))
    }
}
