//! Rivals: clients that count together through any node, by changes with a condition and in counters
//! ([`crate::score`]).
//!
//! Some of what they ask has an id. When its answer does not come, or says that nobody knows, it is asked again,
//! through whichever node; or twice from the beginning, as drivers do that speculate. It must be done once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use protocol::{
    CellReader, Consistency, ErrorKind, ErrorResponse, QueryParameters, RequestEnvelope, Response,
};
use runtime::ManualClock;
use tokio::time::{Instant, sleep, timeout};
use types::uuid as time_uuid;

use super::World;
use super::cast::FIRST_RIVAL;
use super::client::{Form, form_beside, is_of_schema};
use super::visitor::{PATIENCE, Visitor};
use crate::scenario::Violation;
use crate::score::{Asked, Kind, Score};
use crate::served::{Connection, Ended, packed, spelled};
use crate::ways::Way;

/// Where their tables are.
pub(crate) const KEYSPACE: &str = "several";

/// Requests that are under way together.
const TOGETHER_MAX: u64 = 3;
/// In the end a row is shown after so many tries.
const TRIES_MAX: usize = 20;

/// So often a request with an id is sent again.
const REPEATS_MAX: u32 = 8;

pub(crate) struct Rival {
    world: Rc<World>,
    number: u8,
    /// Does it only look?
    is_watcher: bool,
    visitor: Visitor,
    score: Rc<RefCell<Score>>,
    /// What was asked in this burst and has no answer yet, by its stream.
    waiting: BTreeMap<i16, Request>,
    /// What has an id and is to be asked again.
    left: Vec<Request>,
}

/// What is asked, and how.
#[derive(Clone, Debug)]
struct Request {
    asked: Asked,
    level: Consistency,
    /// Do its values stand in its text?
    is_spelled: bool,
    id: Option<[u8; 16]>,
    /// How often it was sent before.
    repeats: u32,
    /// How it came out: the same for all that have its id.
    outcome: Rc<Cell<Option<Outcome>>>,
}

/// What was told for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Refused,
}

impl Rival {
    pub(crate) fn new(world: &Rc<World>, number: u8, score: &Rc<RefCell<Score>>) -> Rival {
        let visitor = Visitor::new(world, number);
        let is_watcher = world.plan.cast.has_watcher && number == FIRST_RIVAL;
        let (world, score) = (Rc::clone(world), Rc::clone(score));
        Rival { world, number, is_watcher, visitor, score, waiting: BTreeMap::new(), left: Vec::new() }
    }

    /// Works while there are faults.
    pub(crate) async fn work(mut self) -> Result<(), Violation> {
        let pause_max = self.world.plan.cast.rival_pause_max.as_micros() as u64;
        while !self.world.is_settled.get() {
            sleep(Duration::from_micros(self.visitor.dice.between(1, pause_max))).await;
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
        let unanswered: Vec<_> = std::mem::take(&mut self.waiting).into_values().collect();
        unanswered.into_iter().for_each(|request| self.leave(request));
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
        let sent = Instant::now();
        for _ in 0..count {
            let request = self.roll();
            let is_twice = request.id.is_some() && self.visitor.dice.one_in(6);
            if is_twice {
                self.put(&mut connection, request.clone()).await?;
            }
            self.put(&mut connection, request).await?;
        }
        self.note(format_args!("{:?} to {node}", self.waiting));
        connection.send(usize::MAX).await?;
        while !self.waiting.is_empty() {
            let (stream, response) = connection.receive().await?;
            let is_last_word = matches!(&response, Response::Error(error) if error.kind == ErrorKind::Server);
            if is_last_word && self.world.stage.hosts.has_died_since(node, sent) {
                return Err(Ended::Broken(io::ErrorKind::ConnectionAborted.into()));
            }
            let request = self.waiting.remove(&stream).expect("each is answered once");
            match response {
                Response::Error(error) => self.take_error(&connection, request, &error)?,
                answer => self.take(&request, &answer)?,
            }
            self.world.stage.count_operation();
        }
        if !self.visitor.dice.one_in(3) {
            self.visitor.keep(node, connection);
        }
        Ok(())
    }

    /// Something to ask: anew, or again.
    fn roll(&mut self) -> Request {
        let dice = &self.visitor.dice;
        if !self.left.is_empty() && !dice.one_in(3) {
            self.world.ways.add(Way::AskedAgain, 1);
            return self.left.swap_remove(dice.below(self.left.len()));
        }
        let mut score = self.score.borrow_mut();
        let asked = if self.is_watcher { score.look(dice) } else { score.roll(dice) };
        drop(score);
        let pick = |levels: &[Consistency]| *dice.pick(levels);
        let serial = self.serial();
        let (level, is_change) = match asked.kind() {
            // In one data centre any quorum shows what was told.
            Kind::Shown if self.world.plan.is_one_center() => (pick(&[serial, Consistency::Quorum]), false),
            Kind::Shown => (serial, false),
            Kind::Conditional => (pick(&[Consistency::One, Consistency::Quorum, Consistency::Any]), true),
            Kind::Addition => (pick(&[Consistency::One, Consistency::Quorum, Consistency::All]), true),
            Kind::Value => (Consistency::Quorum, false),
        };
        // Where clocks differ by hours, nobody can tell how old an id is.
        let has_id = is_change && self.world.plan.do_rows_expire() && dice.one_in(2);
        let id = has_id.then(|| self.new_id());
        Request { asked, level, is_spelled: dice.one_in(4), id, repeats: 0, outcome: Rc::default() }
    }

    /// The level at which they agree.
    fn serial(&self) -> Consistency {
        if self.world.plan.cast.is_local { Consistency::LocalSerial } else { Consistency::Serial }
    }

    fn new_id(&self) -> [u8; 16] {
        let elapsed = i64::try_from(self.world.stage.begun.elapsed().as_micros()).unwrap_or(i64::MAX);
        let micros = ManualClock::DEFAULT_START_MICROS + elapsed;
        let ticks = time_uuid::ticks_at_millis(0) + 10 * micros;
        time_uuid::from_ticks(ticks, self.visitor.dice.between(0, u64::MAX >> 1))
    }

    async fn put(&mut self, connection: &mut Connection, request: Request) -> Result<(), Ended> {
        let (text, values) = request.asked.statement(KEYSPACE);
        let form = match request.is_spelled {
            true => Form::Spelled(spelled(&text, &values)),
            false => form_beside(&self.visitor.dice, connection, &text).await?,
        };
        let serial_consistency = self.world.plan.cast.is_local.then_some(Consistency::LocalSerial);
        let parameters = QueryParameters { serial_consistency, ..QueryParameters::at(request.level) };
        let sent = form.request(parameters, packed(&values));
        let payload = |id: [u8; 16]| vec![("operation-id".to_owned(), Some(Bytes::copy_from_slice(&id)))];
        let custom_payload = request.id.map(payload);
        let stream = i16::try_from(self.waiting.len()).expect("a few");
        connection.put(stream, RequestEnvelope { custom_payload, ..sent.into() });
        self.waiting.insert(stream, request);
        Ok(())
    }

    /// Nobody knows what has come of it.
    fn leave(&mut self, mut request: Request) {
        request.repeats += 1;
        if request.id.is_some() && request.repeats <= REPEATS_MAX {
            self.left.push(request);
        }
    }

    fn take_error(
        &mut self,
        connection: &Connection,
        request: Request,
        error: &ErrorResponse,
    ) -> Result<(), Ended> {
        let asked = &request.asked;
        self.note(format_args!("{asked:?}: {:?} {}", error.kind, error.message));
        let nothing_was_done = match &error.kind {
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
            // It may have been done before, when it was not so old.
            ErrorKind::Invalid if error.message.contains("s ago by this node's clock") => false,
            // Before version 5 this is how it is told that nobody knows, too.
            ErrorKind::WriteTimeout { contentions: None, .. }
            | ErrorKind::CasWriteUnknown { .. }
            | ErrorKind::ReadTimeout { .. }
            | ErrorKind::ReadFailure { .. }
            | ErrorKind::WriteFailure { .. }
            | ErrorKind::Server => false,
            kind => return Err(self.wrong(format!("{asked:?} fails: {kind:?} {}", error.message))),
        };
        // What has an id may have been done before, or may be yet by its twin.
        match nothing_was_done && request.id.is_none() {
            true => self.score.borrow_mut().take_undone(asked),
            false => self.leave(request),
        }
        Ok(())
    }

    fn take(&mut self, request: &Request, answer: &Response) -> Result<(), Ended> {
        let Request { asked, level, outcome, .. } = request;
        let is_refused = |cell: &Bytes| cell[..] == [0];
        let is_done = match (asked.kind(), answer) {
            (Kind::Conditional, Response::Rows(rows)) => {
                !first_cell(rows).is_some_and(|cell| is_refused(&cell))
            }
            _ => true,
        };
        let told = if is_done { Outcome::Done } else { Outcome::Refused };
        match outcome.replace(Some(told)) {
            Some(before) if before == told => return Ok(()),
            Some(before) => {
                return Err(self.wrong(format!("{asked:?}: {told:?}, and {before:?} before")));
            }
            None => {}
        }
        let taken = self.score.borrow_mut().take(asked, answer, *level != Consistency::One);
        let way = taken.map_err(|what| self.wrong(format!("{asked:?}: {what}")))?;
        self.note(format_args!("{asked:?}: {way:?}"));
        self.world.ways.add(way, 1);
        Ok(())
    }

    fn note(&self, line: impl std::fmt::Display) {
        self.world.stage.note(format_args!("rival {}: {line}", self.number));
    }

    fn wrong(&self, what: String) -> Ended {
        Ended::Violation(Violation::new(format!("rival {}: {what}", self.number)))
    }
}

fn first_cell(rows: &protocol::Rows) -> Option<Bytes> {
    CellReader::new(rows.cells.clone()).next()?.ok()?
}
