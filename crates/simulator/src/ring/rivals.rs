//! Rivals: clients that count together through any node, by changes with a condition and in counters
//! ([`crate::score`]).

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use protocol::{Consistency, ErrorKind, QueryParameters, Response};
use tokio::time::{Instant, sleep, timeout};

use super::World;
use super::client::{form, is_of_schema};
use super::visitor::{PATIENCE, Visitor};
use crate::scenario::Violation;
use crate::score::{Asked, Kind, Score};
use crate::served::{Connection, Ended, packed};

/// Where their tables are.
pub(crate) const KEYSPACE: &str = "several";

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
    score: Rc<RefCell<Score>>,
}

impl Rival {
    pub(crate) fn new(world: &Rc<World>, number: u8, score: &Rc<RefCell<Score>>) -> Rival {
        let visitor = Visitor::new(world, number);
        Rival { world: Rc::clone(world), number, visitor, score: Rc::clone(score) }
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
            let asked = self.score.borrow_mut().roll(&self.visitor.dice);
            let level = self.put(&mut connection, stream, &asked).await?;
            waiting.push((asked, level));
        }
        self.note(format_args!("{waiting:?} to {node}"));
        connection.send(usize::MAX).await?;
        for _ in 0..count {
            let (stream, response) = connection.receive().await?;
            let (asked, level) = &waiting[stream as usize];
            let is_last_word = matches!(&response, Response::Error(error) if error.kind == ErrorKind::Server);
            if is_last_word && self.world.stage.hosts.has_died_since(node, sent) {
                return Err(Ended::Broken(io::ErrorKind::ConnectionAborted.into()));
            }
            self.take(&connection, (asked, *level), response)?;
            self.world.stage.count_operation();
        }
        if !self.visitor.dice.one_in(3) {
            self.visitor.keep(node, connection);
        }
        Ok(())
    }

    /// Asks, and tells the level at which.
    async fn put(
        &self,
        connection: &mut Connection,
        stream: i16,
        asked: &Asked,
    ) -> Result<Consistency, Ended> {
        let (text, values) = asked.statement(KEYSPACE);
        let form = form(&self.visitor.dice, connection, &text, &values).await?;
        let pick = |levels: &[Consistency]| *self.visitor.dice.pick(levels);
        let level = match asked.kind() {
            Kind::Serial => Consistency::Serial,
            Kind::Conditional => pick(&[Consistency::One, Consistency::Quorum, Consistency::Any]),
            Kind::Addition => pick(&[Consistency::One, Consistency::Quorum, Consistency::All]),
            Kind::Value => Consistency::Quorum,
        };
        connection.put(stream, form.request(QueryParameters::at(level), packed(&values)));
        Ok(level)
    }

    fn take(
        &self,
        connection: &Connection,
        (asked, level): (&Asked, Consistency),
        response: Response,
    ) -> Result<(), Ended> {
        let mut score = self.score.borrow_mut();
        match response {
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
                    score.take_undone(asked);
                }
                Ok(())
            }
            answer => {
                let taken = score.take(asked, &answer, level != Consistency::One);
                let way = taken.map_err(|what| self.wrong(format!("{asked:?}: {what}")))?;
                self.note(format_args!("{asked:?}: {way:?}"));
                self.world.ways.add(way, 1);
                Ok(())
            }
        }
    }

    fn note(&self, line: impl std::fmt::Display) {
        self.world.stage.note(format_args!("rival {}: {line}", self.number));
    }

    fn wrong(&self, what: String) -> Ended {
        Ended::Violation(Violation::new(format!("rival {}: {what}", self.number)))
    }
}
