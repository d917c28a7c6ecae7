//! A client: bursts of requests for its own keys through any node, every answer held against the model.

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use protocol::{
    Batch, BatchKind, BatchQuery, BatchStatement, Consistency, ErrorKind, ErrorResponse, Execute, Query,
    QueryParameters, Request, Response, Text, WriteType,
};
use tokio::time::{Instant, sleep, timeout};

use super::World;
use super::expiry::Expiry;
use super::level::At;
use super::model::{Effect, Model};
use super::once::{Batched, Once};
use super::statement::{Change, Read, Seen};
use super::table::{Place, Table};
use super::visitor::{PATIENCE, Visitor};
use crate::dice::Dice;
use crate::peers::identity::address;
use crate::scenario::Violation;
use crate::served::{Connection, Ended, packed, spelled};
use crate::ways::Way;

/// Keys of each client in each table.
const KEYS_PER_CLIENT: i32 = 3;
/// The stream of such a write, beside those of a burst.
const ONCE_STREAM: i16 = 7;
/// That of a batch of such writes.
const BATCHED_STREAM: i16 = 8;
/// Between two bursts.
const PAUSE_MAX_MICROS: u64 = 200_000;
/// How long what does not live for ever lives at most.
const SECONDS_TO_LIVE_MAX: u64 = 12;
/// Pages after which a read is taken to go round in circles.
const PAGES_MAX: usize = 1_000;

pub(crate) struct Client {
    pub(super) world: Rc<World>,
    number: u8,
    pub(super) visitor: Visitor,
    pub(super) model: Model,
    /// Of what it writes, the last one.
    last: i64,
    /// Rows that it has written once.
    pub(super) once: Once,
    /// The same by logged batches.
    pub(super) batched: Batched,
    /// Which node has given the timestamp of a write to the table where nodes do.
    pub(super) stamped_by: BTreeMap<i64, usize>,
    /// The node that it asks, and the data centre of that.
    node: usize,
    center: usize,
    /// How many disks were lost before what it has asked was sent.
    loss_count: u64,
}

/// What waits for its answer.
enum Asked {
    /// With how it ends, if it is to live so many seconds only.
    Write { number: i64, effects: Vec<Effect>, at: At, lives: Option<(u32, Expiry)> },
    Read {
        read: Read,
        at: At,
        page_size: Option<i32>,
        form: Form,
        seen: Seen,
        page_count: usize,
        asked: Instant,
    },
}

/// How a statement is sent.
#[derive(Clone)]
pub(super) enum Form {
    Prepared(Bytes),
    /// Its text, values beside it.
    Bound(Text),
    /// Its text, values in it.
    Spelled(Text),
}

impl Form {
    pub(super) fn request(self, parameters: QueryParameters, values: protocol::Values) -> Request {
        match self {
            Form::Prepared(id) => {
                let parameters = QueryParameters { values, ..parameters };
                Request::Execute(Execute { id, result_metadata_id: None, parameters })
            }
            Form::Bound(query) => {
                Request::Query(Query { query, parameters: QueryParameters { values, ..parameters } })
            }
            Form::Spelled(query) => Request::Query(Query { query, parameters }),
        }
    }
}

pub(super) async fn form(
    dice: &Dice,
    connection: &mut Connection,
    text: &str,
    values: &[crate::served::Bound],
) -> io::Result<Form> {
    match dice.one_in(4) {
        true => Ok(Form::Spelled(spelled(text, values))),
        false => form_beside(dice, connection, text).await,
    }
}

/// One with its values beside it.
pub(super) async fn form_beside(dice: &Dice, connection: &mut Connection, text: &str) -> io::Result<Form> {
    match dice.one_in(3) {
        true => Ok(Form::Bound(Text::from(text))),
        false => Ok(Form::Prepared(connection.prepare(text).await?)),
    }
}

fn wrong(what: impl Into<String>) -> Ended {
    Ended::Violation(Violation::new(what))
}

impl Client {
    pub(crate) fn new(world: &Rc<World>, number: u8) -> Client {
        let visitor = Visitor::new(world, number);
        let model = Model::new(world.plan.factors);
        let world = Rc::clone(world);
        Client {
            world,
            number,
            visitor,
            model,
            last: 0,
            once: Once::of(number),
            batched: Batched::of(number),
            stamped_by: BTreeMap::new(),
            node: 0,
            center: 0,
            loss_count: 0,
        }
    }

    /// What was sent before a disk was lost may have been on that one alone, also when it is acknowledged behind that.
    pub(super) fn heed_losses(&mut self) {
        if self.world.places.loss_count() != self.loss_count {
            self.model.lose_what_one_had();
        }
    }

    /// The keys that are nobody else's.
    pub(super) fn keys(&self) -> Vec<i32> {
        let first = i32::from(self.number) * KEYS_PER_CLIENT;
        (first..first + KEYS_PER_CLIENT).collect()
    }

    /// Works while there are faults.
    pub(crate) async fn work(&mut self) -> Result<(), Violation> {
        while !self.world.is_settled.get() {
            sleep(Duration::from_micros(self.visitor.dice.between(1, PAUSE_MAX_MICROS))).await;
            if !self.world.has_tables.get() {
                continue;
            }
            match timeout(PATIENCE, self.burst())
                .await
                .unwrap_or(Err(Ended::Broken(io::ErrorKind::TimedOut.into())))
            {
                Ok(()) => {}
                Err(Ended::Violation(violation)) => return Err(violation),
                Err(Ended::Broken(error)) => {
                    self.world.ways.add(Way::BrokenConnection, 1);
                    self.note(format_args!("broken: {error}"));
                }
            }
        }
        Ok(())
    }

    /// Sends some requests together and waits for all answers.
    async fn burst(&mut self) -> Result<(), Ended> {
        let (node, mut connection) = self.visitor.enter().await?;
        (self.node, self.center) = (node, self.world.plan.center_of(node));
        self.heed_losses();
        self.loss_count = self.world.places.loss_count();
        let mut asked = self.put_burst(node, &mut connection).await?;
        let sent = Instant::now();
        self.note(format_args!("{} requests to {node}", asked.len()));
        connection.send(*self.visitor.dice.pick(&[100, usize::MAX, usize::MAX])).await?;
        if self.visitor.dice.one_in(40) {
            self.world.stage.network.reset(self.visitor.address, address(node));
        }
        while !asked.is_empty() {
            let (stream, response) = connection.receive().await?;
            let Some(one) = asked.remove(&stream) else {
                return Err(wrong(format!("an answer where nothing was asked: {response:?}")));
            };
            let is_last_word = matches!(&response, Response::Error(error) if error.kind == ErrorKind::Server);
            if is_last_word && self.world.stage.hosts.has_died_since(node, sent) {
                // What is under way is in doubt.
                return Err(Ended::Broken(io::ErrorKind::ConnectionAborted.into()));
            }
            match self.take(&mut connection, stream, one, response).await? {
                Some(again) => _ = asked.insert(stream, again),
                None => self.world.stage.count_operation(),
            }
        }
        if !self.visitor.dice.one_in(6) {
            self.visitor.keep(node, connection);
        }
        Ok(())
    }

    /// No two requests of a burst are for the same partition.
    async fn put_burst(
        &mut self,
        node: usize,
        connection: &mut Connection,
    ) -> Result<BTreeMap<i16, Asked>, Ended> {
        let mut asked = BTreeMap::new();
        if self.visitor.dice.one_in(6) {
            let table = *self.visitor.dice.pick(&Table::WORKED_ON);
            let several: Vec<i32> = self.keys().into_iter().filter(|_| self.visitor.dice.one_in(2)).collect();
            let read = match several.is_empty() || self.visitor.dice.one_in(2) {
                true => Read::whole(table, self.keys()),
                false => Read::partitions(table, &several),
            };
            let read = match self.visitor.dice.one_in(3) {
                true => read.limited(self.visitor.dice.between(1, 3) as usize),
                false => read,
            };
            self.world.ways.add(Way::Range, u64::from(read.values.is_empty()));
            asked.insert(0, self.put_read(connection, 0, read).await?);
            return Ok(asked);
        }
        let mut partitions: Vec<(Table, i32)> = Table::WORKED_ON
            .into_iter()
            .flat_map(|table| self.keys().into_iter().map(move |key| (table, key)))
            .collect();
        if self.visitor.dice.one_in(2) {
            asked.insert(0, self.put_batch(connection, 0, &mut partitions).await?);
        }
        if self.visitor.dice.one_in(2) {
            let number = next_number(&mut self.last);
            let key = self.once.next_key(node);
            let change = Change::once(Table::Once, key, number);
            asked.insert(ONCE_STREAM, self.put_change(connection, ONCE_STREAM, change, number).await?);
        }
        if self.visitor.dice.one_in(2) {
            asked.insert(BATCHED_STREAM, self.put_batched(connection).await?);
        }
        for stream in 1..=*self.visitor.dice.pick(&[1, 1, 2, 6]) {
            let partition = partitions.remove(self.visitor.dice.below(partitions.len()));
            let one = match self.visitor.dice.one_in(2) {
                true => self.put_write(connection, stream, partition).await?,
                false => {
                    let read = Read::roll(&self.visitor.dice, partition);
                    self.put_read(connection, stream, read).await?
                }
            };
            asked.insert(stream, one);
        }
        Ok(asked)
    }

    async fn put_write(
        &mut self,
        connection: &mut Connection,
        stream: i16,
        partition: (Table, i32),
    ) -> Result<Asked, Ended> {
        let number = next_number(&mut self.last);
        let mut change = Change::roll(&self.visitor.dice, partition, number);
        if self.world.plan.do_rows_expire() && self.visitor.dice.one_in(6) {
            change = change.living(self.visitor.dice.between(1, SECONDS_TO_LIVE_MAX) as u32);
        }
        self.put_change(connection, stream, change, number).await
    }

    async fn put_change(
        &mut self,
        connection: &mut Connection,
        stream: i16,
        change: Change,
        number: i64,
    ) -> Result<Asked, Ended> {
        let at = roll_level(self);
        self.world.ways.add(Way::Deletion, u64::from(change.is_deletion()));
        let is_stamped = change.effects.iter().any(|(place, _)| place.table == Table::Stamped);
        let timestamp = (!is_stamped).then_some(number);
        let (in_text, beside) =
            if self.visitor.dice.one_in(3) { (timestamp, None) } else { (None, timestamp) };
        let form = form(&self.visitor.dice, connection, &change.text(in_text), &change.values).await?;
        let parameters = QueryParameters { timestamp: beside, ..QueryParameters::at(at.level) };
        connection.put(stream, form.request(parameters, packed(&change.values)));
        if is_stamped {
            self.stamped_by.insert(number, self.node);
        }
        let spread = self.world.plan.clock_spread();
        let lives = change.time_to_live.map(|seconds| (seconds, Expiry::of_sent(seconds, spread)));
        self.world.ways.add(Way::TimeToLive, u64::from(lives.is_some()));
        self.model.send(number, &change.effects, lives.map(|(_, expiry)| expiry));
        Ok(Asked::Write { number, effects: change.effects, at, lives })
    }

    async fn put_batch(
        &mut self,
        connection: &mut Connection,
        stream: i16,
        partitions: &mut Vec<(Table, i32)>,
    ) -> Result<Asked, Ended> {
        let (number, is_logged) = (next_number(&mut self.last), self.visitor.dice.one_in(2));
        let mut changes = Vec::new();
        for _ in 0..self.visitor.dice.between(1, 4) {
            let index = self.visitor.dice.below(partitions.len());
            if partitions[index].0 == Table::Stamped {
                continue;
            }
            changes.push(Change::roll(&self.visitor.dice, partitions.remove(index), number));
        }
        self.put_batch_of(connection, stream, (number, is_logged), changes).await
    }

    /// A logged batch of rows that are written once, now and then with one of a table that may be dropped meanwhile.
    async fn put_batched(&mut self, connection: &mut Connection) -> Result<Asked, Ended> {
        let number = next_number(&mut self.last);
        let mut changes: Vec<Change> = (0..self.visitor.dice.between(2, 4))
            .map(|_| Change::once(Table::Batched, self.batched.next_key(), number))
            .collect();
        let passing = self.world.passing.borrow().clone();
        if let Some(table) = passing.filter(|_| self.visitor.dice.one_in(2)) {
            changes.push(Change::passing(&table, self.number.into()));
        }
        self.put_batch_of(connection, BATCHED_STREAM, (number, true), changes).await
    }

    async fn put_batch_of(
        &mut self,
        connection: &mut Connection,
        stream: i16,
        (number, is_logged): (i64, bool),
        changes: Vec<Change>,
    ) -> Result<Asked, Ended> {
        let at = roll_level(self);
        let (mut statements, mut effects) = (Vec::new(), Vec::new());
        for change in changes {
            // A table that may be gone is not prepared for.
            let query = match !change.effects.is_empty() && self.visitor.dice.one_in(2) {
                true => BatchQuery::Prepared(connection.prepare(&change.text(None)).await?),
                false => BatchQuery::Text(Text::from(change.text(None).as_str())),
            };
            statements.push(BatchStatement { query, values: packed(&change.values) });
            effects.extend(change.effects);
        }
        let kind = if is_logged { BatchKind::Logged } else { BatchKind::Unlogged };
        let parameters = QueryParameters { timestamp: Some(number), ..QueryParameters::at(at.level) };
        connection.put(stream, Request::Batch(Batch { kind, statements, parameters }));
        match is_logged {
            true => {
                let factors = self.world.plan.factors;
                self.model.send_logged(number, &effects, |table| at.reach(factors.of(table)));
            }
            false => self.model.send(number, &effects, None),
        }
        self.world.ways.add(if is_logged { Way::LoggedBatch } else { Way::UnloggedBatch }, 1);
        Ok(Asked::Write { number, effects, at, lives: None })
    }

    async fn put_read(&self, connection: &mut Connection, stream: i16, read: Read) -> Result<Asked, Ended> {
        let at = roll_level(self);
        let page_size = *self.visitor.dice.pick(&[None, None, Some(1), Some(3), Some(5_000)]);
        let form = form(&self.visitor.dice, connection, &read.text, &read.values).await?;
        let parameters = QueryParameters { page_size, ..QueryParameters::at(at.level) };
        connection.put(stream, form.clone().request(parameters, packed(&read.values)));
        let (seen, asked) = (Seen::default(), Instant::now());
        Ok(Asked::Read { read, at, page_size, form, seen, page_count: 0, asked })
    }

    /// Takes an answer; gives what was asked on.
    async fn take(
        &mut self,
        connection: &mut Connection,
        stream: i16,
        asked: Asked,
        response: Response,
    ) -> Result<Option<Asked>, Ended> {
        self.heed_losses();
        match (asked, response) {
            (Asked::Write { number, effects, at, lives }, Response::Void) => {
                let factors = self.world.plan.factors;
                let reach = |table| at.reach(factors.of(table));
                let is_beyond = |place: &Place| !reach(place.table).is_within(factors.of(place.table));
                if let Some((place, _)) = effects.iter().find(|(place, _)| is_beyond(place)) {
                    return Err(wrong(format!("{place:?} was written at {at:?}")));
                }
                self.note(format_args!("write {number} at {at:?} of {effects:?}"));
                self.world.ways.add(Way::EachQuorum, u64::from(at.level == Consistency::EachQuorum));
                if let Some((seconds, expiry)) = lives {
                    let expiry = expiry.answered(seconds, self.world.plan.clock_spread());
                    self.model.began(number, &effects, expiry);
                }
                self.model.acknowledge(number, &effects, reach);
                self.heed_losses();
                Ok(None)
            }
            (
                Asked::Read { read, at, page_size, form, mut seen, page_count, asked },
                Response::Rows(page),
            ) => {
                read.take(&page, &mut seen).map_err(|what| read_wrong(self.number, &read, what))?;
                if let Some(state) = page.paging_state {
                    if page_count == PAGES_MAX {
                        return Err(read_wrong(self.number, &read, "it never ends"));
                    }
                    self.world.ways.add(Way::Page, 1);
                    let parameters = QueryParameters {
                        page_size,
                        paging_state: Some(state),
                        ..QueryParameters::at(at.level)
                    };
                    connection.put(stream, form.clone().request(parameters, packed(&read.values)));
                    connection.send(usize::MAX).await?;
                    let page_count = page_count + 1;
                    return Ok(Some(Asked::Read { read, at, page_size, form, seen, page_count, asked }));
                }
                let seen = self.shown(&read, seen, at, asked)?;
                self.note(format_args!("{} {:?} at {at:?}: {seen}", read.text, read.values));
                self.world.ways.add(Way::EachQuorum, u64::from(at.level == Consistency::EachQuorum));
                Ok(None)
            }
            (asked, Response::Error(error)) => self.refused(connection, asked, &error).map(|()| None),
            (_, response) => Err(wrong(format!("the answer is {response:?}"))),
        }
    }

    /// Holds what a read has shown against the model.
    pub(super) fn shown(
        &mut self,
        read: &Read,
        mut seen: Seen,
        at: At,
        asked: Instant,
    ) -> Result<Seen, Ended> {
        read.finish(&mut seen);
        let factors = self.world.plan.factors.of(read.table);
        let reach = at.reach(factors);
        if !reach.is_within(factors) {
            return Err(read_wrong(self.number, read, format!("it was answered at {at:?}")));
        }
        for (place, value) in seen.list() {
            let shown = self.model.show(*place, *value, reach, asked);
            shown.map_err(|violation| {
                read_wrong(self.number, read, format!("at {at:?}: {violation}; {seen}"))
            })?;
        }
        Ok(seen)
    }

    fn refused(&mut self, connection: &Connection, asked: Asked, error: &ErrorResponse) -> Result<(), Ended> {
        self.note(format_args!("{}: {:?} {}", asked.words(), error.kind, error.message));
        let nothing_was_done = match &error.kind {
            ErrorKind::Unprepared { .. } => {
                self.world.ways.add(Way::Unprepared, 1);
                connection.forget_prepared();
                true
            }
            ErrorKind::Unavailable { .. } => {
                self.world.ways.add(Way::Unavailable, 1);
                true
            }
            ErrorKind::Overloaded => true,
            // A node that has started a moment ago may be behind.
            ErrorKind::Invalid if is_of_schema(&error.message) => true,
            ErrorKind::WriteTimeout { write_type: WriteType::BatchLog, .. } => {
                self.world.ways.add(Way::TooFew, 1);
                if let Asked::Write { number, .. } = &asked {
                    self.model.record_by_one(*number);
                }
                false
            }
            ErrorKind::WriteTimeout { .. }
            | ErrorKind::ReadTimeout { .. }
            | ErrorKind::WriteFailure { .. }
            | ErrorKind::ReadFailure { .. } => {
                self.world.ways.add(Way::TooFew, 1);
                false
            }
            kind => return Err(wrong(format!("{} fails: {kind:?} {}", asked.words(), error.message))),
        };
        if let (Asked::Write { number, effects, .. }, true) = (asked, nothing_was_done) {
            self.model.refuse(number, &effects);
        }
        Ok(())
    }

    fn note(&self, line: impl std::fmt::Display) {
        self.world.stage.note(format_args!("client {}: {line}", self.number));
    }
}

fn roll_level(client: &Client) -> At {
    At { level: *client.visitor.dice.pick(client.world.plan.factors.levels()), center: client.center }
}

fn next_number(last: &mut i64) -> i64 {
    *last += 1;
    *last
}

/// What a client of that number has read is not what it may have.
fn read_wrong(client: u8, read: &Read, what: impl std::fmt::Display) -> Ended {
    wrong(format!("client {client}: {} {:?}: {what}", read.text, read.values))
}

/// Is this the answer of a node that has not heard of a table yet?
pub(super) fn is_of_schema(message: &str) -> bool {
    ["does not exist", "unconfigured table", "no such table"].iter().any(|words| message.contains(words))
}

impl Asked {
    fn words(&self) -> String {
        match self {
            Asked::Write { number, effects, at, .. } => format!("write {number} at {at:?} of {effects:?}"),
            Asked::Read { read, at, .. } => format!("{} {:?} at {at:?}", read.text, read.values),
        }
    }
}
