//! A client: bursts of requests on one connection, every answer held against the model.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use protocol::{
    Batch, BatchKind, BatchQuery, BatchStatement, ErrorKind, Execute, Query, QueryParameters, Request,
    Response, Text, Version,
};

use runtime::Network;

use tokio::time::Instant;

use super::connection::{Connection, PreparedIds, parameters};
use super::fuse::Fuse;
use super::model::{Look, Model, Unit};
use super::shown::{Shown, rows_of};
use super::statement::{Read, Write, packed, spelled};
use super::tables::Table;
use super::{World, clients_address};
use crate::dice::Dice;
use crate::scenario::Violation;
use crate::ways::Way;

/// Keys of each client in each table.
const KEYS_PER_CLIENT: i32 = 4;
/// No burst takes longer while the node lives.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// Streams from here on ask the same by the other way.
const MIRRORED: i16 = 1_000;
/// No mode of syncing takes longer to keep what was acknowledged.
pub(crate) const PROMISE_TAKES_MAX: Duration = Duration::from_secs(11);
/// Pages after which a read is taken to go round in circles.
const PAGES_MAX: usize = 1_000;

pub(crate) struct Client {
    pub(crate) world: Rc<World>,
    pub(crate) node: usize,
    pub(crate) number: usize,
    pub(crate) model: Rc<RefCell<Model>>,
    pub(crate) dice: Dice,
    /// The node's.
    pub(crate) address: SocketAddr,
    /// Of what it writes, the next one.
    pub(crate) timestamp: Rc<RefCell<i64>>,
    /// Does the disk fail now and then?
    pub(crate) reads_may_fail: bool,
    pub(crate) prepared: PreparedIds,
    /// Burns with each burst.
    pub(crate) fuse: Rc<Fuse>,
}

/// How a client's work was ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The connection broke; what was under way is in doubt.
    Broken(io::Error),
    /// The node was wrong.
    Violation(Violation),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Ended::Broken(error)
    }
}

fn wrong(what: impl Into<String>) -> Ended {
    Ended::Violation(Violation::new(what))
}

/// What waits for its answer.
enum Asked {
    Write(Vec<Unit>),
    Read { read: Read, look: Look, shown: Box<Shown>, request: ReadRequest, page_count: usize },
}

/// How a read is asked for, and asked on.
#[derive(Clone)]
struct ReadRequest {
    form: Form,
    page_size: Option<i32>,
}

/// How a statement is sent.
#[derive(Clone)]
enum Form {
    Prepared(bytes::Bytes),
    /// Its text, values beside it.
    Bound(String),
    /// Its text, values in it.
    Spelled(Text),
}

impl Client {
    pub(crate) fn keys(&self) -> Vec<i32> {
        keys(self.number)
    }

    /// Some bursts of work on connections that may break.
    pub(crate) async fn work(&self, burst_count: u64) -> Result<(), Violation> {
        let network = self.world.network.host(clients_address(self.node));
        let mut connection = None;
        for _ in 0..burst_count {
            let version = *self.dice.pick(&[Version::V4, Version::V5]);
            let ended = match connection.take() {
                Some(open) => self.in_time(self.burst(open)).await,
                None => self.in_time(self.first_burst(&network, version)).await,
            };
            match ended {
                Ok(open) => connection = (!self.dice.one_in(12)).then_some(open),
                Err(Ended::Violation(violation)) => return Err(violation),
                Err(Ended::Broken(error)) => {
                    self.note(format_args!("broken: {error}"));
                    self.world.ways.add(Way::BrokenConnection, 1);
                    if !self.world.hosts.is_alive(self.node) {
                        return Ok(());
                    }
                    tokio::time::sleep(Duration::from_millis(self.dice.between(1, 500))).await;
                }
            }
            if self.dice.one_in(3) {
                tokio::time::sleep(Duration::from_millis(self.dice.between(1, 2_000))).await;
            }
        }
        Ok(())
    }

    async fn first_burst(&self, network: &Network, version: Version) -> Result<Connection, Ended> {
        let prepared = Rc::clone(&self.prepared);
        self.burst(Connection::open(network, self.address, version, prepared).await?).await
    }

    /// Sends some requests together and waits for all answers.
    async fn burst(&self, mut connection: Connection) -> Result<Connection, Ended> {
        let mut asked = BTreeMap::new();
        let count = *self.dice.pick(&[1, 1, 3, 8, 20, 40]);
        // Some want to change much at once.
        let batch_share = *self.dice.pick(&[1, 1, 6]);
        for stream in 0..count {
            let one = match self.dice.below(10 + batch_share) {
                0..4 => self.put_write(&mut connection, stream).await?,
                10.. => self.put_batch(&mut connection, stream).await?,
                _ => self.put_read(&mut connection, stream).await?,
            };
            asked.insert(stream, one);
        }
        let piece_bytes = *self.dice.pick(&[7, 100, 5_000, usize::MAX, usize::MAX]);
        connection.send(piece_bytes).await?;
        self.fuse.burn_for_client();
        self.note(format_args!("{count} requests"));
        while !asked.is_empty() {
            let (stream, response) = connection.receive().await?;
            let Some(one) = asked.remove(&stream) else {
                return Err(wrong(format!(
                    "an answer on stream {stream}, where nothing was asked: {response:?}"
                )));
            };
            if let Some(again) = self.take(&mut connection, stream, one, response).await? {
                asked.insert(stream, again);
            }
        }
        let since = Instant::now().checked_sub(PROMISE_TAKES_MAX).unwrap_or_else(Instant::now);
        self.model.borrow_mut().forget_old(&self.keys(), since);
        if self.dice.one_in(3) {
            self.mirror(&mut connection).await?;
        }
        Ok(connection)
    }

    /// Reads rows of which all is known by the plain way and by the full way, together: both show the same.
    async fn mirror(&self, connection: &mut Connection) -> Result<(), Ended> {
        let is_settled = |key: &i32| self.model.borrow().is_settled(Table::Narrow, *key);
        let keys: Vec<i32> = self.keys().into_iter().filter(is_settled).collect();
        let look = self.model.borrow().look();
        for (index, key) in keys.iter().enumerate() {
            let (read, stream) = (Read::narrow(*key), index as i16);
            let id = connection.prepare(&read.text).await?;
            let short = ReadRequest { form: Form::Prepared(id), page_size: None };
            let full =
                ReadRequest { form: Form::Spelled(spelled(&read.text, &read.values)), page_size: None };
            connection.put(stream, short.next(&read, None));
            connection.put(MIRRORED + stream, full.next(&read, None));
        }
        connection.send(usize::MAX).await?;
        let (mut shown, mut is_known) = (BTreeMap::new(), true);
        for _ in 0..2 * keys.len() {
            let (stream, response) = connection.receive().await?;
            match response {
                Response::Rows(page) => _ = shown.insert(stream, page.cells),
                Response::Error(error) if matches!(error.kind, ErrorKind::Unprepared { .. }) => {
                    is_known = false
                }
                // A node that is busy or ends says so.
                _ => return Err(Ended::Broken(io::ErrorKind::ConnectionAborted.into())),
            }
        }
        if !is_known {
            self.forget_prepared(connection);
            return Ok(());
        }
        let model = self.model.borrow();
        let look = model.received(look);
        let differs = |index: &usize| {
            model.is_lasting(Table::Narrow, keys[*index], look)
                && shown.get(&(*index as i16)) != shown.get(&(MIRRORED + *index as i16))
        };
        match (0..keys.len()).find(differs) {
            None => Ok(()),
            Some(index) => {
                Err(wrong(format!("key {}: the plain way and the full way differ: {shown:?}", keys[index])))
            }
        }
    }

    /// Waits, but not for ever: a node that lives answers.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = Result<T, Ended>>) -> Result<T, Ended> {
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(done) => done,
            Err(_) if self.world.hosts.is_alive(self.node) => Err(wrong(format!(
                "client {} of node {}: no answer within {PATIENCE:?}",
                self.number, self.node
            ))),
            Err(_) => Err(Ended::Broken(io::ErrorKind::TimedOut.into())),
        }
    }

    async fn put_write(&self, connection: &mut Connection, stream: i16) -> Result<Asked, Ended> {
        let timestamp = self.next_timestamp();
        let write = self.roll_write(*self.dice.pick(&self.keys()), timestamp);
        let request = match self.dice.below(4) {
            0 => {
                let text = spelled(&write.text(Some(timestamp)), &write.values);
                Request::Query(Query { query: text, parameters: parameters() })
            }
            1 => {
                let query = Text::from(write.text(None).as_str());
                let parameters = self.bound(&write, timestamp);
                Request::Query(Query { query, parameters })
            }
            _ => {
                let id = connection.prepare(&write.text(None)).await?;
                let parameters = self.bound(&write, timestamp);
                Request::Execute(Execute { id, result_metadata_id: None, parameters })
            }
        };
        connection.put(stream, request);
        Ok(Asked::Write(vec![self.model.borrow_mut().begin(write.effects(), timestamp)]))
    }

    fn roll_write(&self, key: i32, timestamp: i64) -> Write {
        let write = Write::roll(&self.dice, key, timestamp, self.model.borrow().has_clock());
        self.world.ways.add(Way::TimeToLive, u64::from(write.ttl.is_some()));
        write
    }

    fn bound(&self, write: &Write, timestamp: i64) -> QueryParameters {
        QueryParameters { values: packed(&write.values), timestamp: Some(timestamp), ..parameters() }
    }

    async fn put_batch(&self, connection: &mut Connection, stream: i16) -> Result<Asked, Ended> {
        let (timestamp, is_logged) = (self.next_timestamp(), !self.dice.one_in(3));
        // A key once: of two statements about one cell at one time the greater value would win.
        let keys: Vec<i32> = self.keys().into_iter().filter(|_| self.dice.one_in(2)).collect();
        let writes: Vec<_> = keys.iter().map(|key| self.roll_write(*key, timestamp)).collect();
        let mut statements = Vec::new();
        for write in &writes {
            let query = match self.dice.one_in(2) {
                true => BatchQuery::Prepared(connection.prepare(&write.text(None)).await?),
                false => BatchQuery::Text(Text::from(write.text(None).as_str())),
            };
            statements.push(BatchStatement { query, values: packed(&write.values) });
        }
        let kind = if is_logged { BatchKind::Logged } else { BatchKind::Unlogged };
        let parameters = QueryParameters { timestamp: Some(timestamp), ..parameters() };
        connection.put(stream, Request::Batch(Batch { kind, statements, parameters }));
        let mut model = self.model.borrow_mut();
        if is_logged {
            self.world.ways.add(Way::LoggedBatch, 1);
            let effects = writes.iter().flat_map(Write::effects).collect();
            return Ok(Asked::Write(vec![model.begin(effects, timestamp)]));
        }
        let units = writes.iter().map(|write| model.begin(write.effects(), timestamp)).collect();
        Ok(Asked::Write(units))
    }

    async fn put_read(&self, connection: &mut Connection, stream: i16) -> Result<Asked, Ended> {
        let read = Read::roll(&self.dice, &self.keys());
        let form = match self.dice.below(4) {
            0 => Form::Spelled(spelled(&read.text, &read.values)),
            1 => Form::Bound(read.text.clone()),
            _ => Form::Prepared(connection.prepare(&read.text).await?),
        };
        let page_size = *self.dice.pick(&[None, None, Some(1), Some(7), Some(5_000)]);
        let request = ReadRequest { form, page_size };
        connection.put(stream, request.next(&read, None));
        let look = self.model.borrow().look();
        Ok(Asked::Read { read, look, shown: Box::default(), request, page_count: 0 })
    }

    /// Takes an answer; gives what was asked on.
    async fn take(
        &self,
        connection: &mut Connection,
        stream: i16,
        asked: Asked,
        response: Response,
    ) -> Result<Option<Asked>, Ended> {
        match (asked, response) {
            (Asked::Write(units), Response::Void) => {
                let mut model = self.model.borrow_mut();
                units.into_iter().for_each(|unit| model.acknowledge(unit));
                Ok(None)
            }
            (Asked::Read { read, look, mut shown, request, page_count }, Response::Rows(page)) => {
                let told = |what: String| self.read_wrong(&read, what);
                let rows = rows_of(&page, &read).map_err(told)?;
                shown.take(&read, &rows).map_err(told)?;
                if let Some(state) = page.paging_state {
                    if page_count == PAGES_MAX {
                        return Err(told("it never ends".to_owned()));
                    }
                    self.world.ways.add(Way::Page, 1);
                    connection.put(stream, request.next(&read, Some(state)));
                    connection.send(usize::MAX).await?;
                    return Ok(Some(Asked::Read { read, look, shown, request, page_count: page_count + 1 }));
                }
                let model = self.model.borrow();
                shown.check(&read, &model, model.received(look)).map_err(told)?;
                self.world.ways.add(Way::Metadata, shown.ending_count());
                Ok(None)
            }
            (asked, Response::Error(error)) => {
                if let ErrorKind::Unprepared { .. } = error.kind {
                    self.forget_prepared(connection);
                    // Surely nothing of it was done.
                    if let Asked::Write(units) = asked {
                        self.model.borrow_mut().withdraw(&units);
                    }
                    return Ok(None);
                }
                let is_read = matches!(asked, Asked::Read { .. });
                if is_read && self.reads_may_fail && matches!(error.kind, ErrorKind::ReadFailure { .. }) {
                    self.world.ways.add(Way::RefusedRead, 1);
                    return Ok(None);
                }
                let is_write = matches!(asked, Asked::Write(_));
                if is_write && self.reads_may_fail && matches!(error.kind, ErrorKind::WriteTimeout { .. }) {
                    // There is no room, and no memtable can be written out. It may happen yet.
                    return Ok(None);
                }
                // A page that comes with a state of before a start, or a node that is told to stop.
                self.note(format_args!("refused: {:?} {}", error.kind, error.message));
                match error.kind {
                    ErrorKind::Overloaded | ErrorKind::IsBootstrapping => Ok(None),
                    _ if !self.world.hosts.is_alive(self.node) => Ok(None),
                    kind => Err(wrong(format!("{} fails: {kind:?} {}", asked.words(), error.message))),
                }
            }
            (asked, response) => Err(wrong(format!("{} is answered {response:?}", asked.words()))),
        }
    }

    fn forget_prepared(&self, connection: &Connection) {
        self.world.ways.add(Way::Unprepared, 1);
        connection.forget_prepared();
    }

    fn read_wrong(&self, read: &Read, what: String) -> Ended {
        wrong(format!(
            "client {} of node {}: {} {:?}: {what}",
            self.number, self.node, read.text, read.values
        ))
    }

    fn next_timestamp(&self) -> i64 {
        let mut timestamp = self.timestamp.borrow_mut();
        *timestamp += 1;
        *timestamp
    }

    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        self.world.note(format_args!("node {}, client {}: {line}", self.node, self.number));
    }
}

/// The keys of a client, which are nobody else's.
pub(crate) fn keys(client: usize) -> Vec<i32> {
    let first = client as i32 * KEYS_PER_CLIENT;
    (first..first + KEYS_PER_CLIENT).collect()
}

impl Asked {
    fn words(&self) -> String {
        match self {
            Asked::Write(units) => format!("a write ({units:?})"),
            Asked::Read { read, .. } => format!("{} {:?}", read.text, read.values),
        }
    }
}

impl ReadRequest {
    /// The request for the next page.
    fn next(&self, read: &Read, paging_state: Option<bytes::Bytes>) -> Request {
        let plain = QueryParameters { page_size: self.page_size, paging_state, ..parameters() };
        let with_values = |plain| QueryParameters { values: packed(&read.values), ..plain };
        match &self.form {
            Form::Prepared(id) => Request::Execute(Execute {
                id: id.clone(),
                result_metadata_id: None,
                parameters: with_values(plain),
            }),
            Form::Bound(text) => {
                Request::Query(Query { query: Text::from(text.as_str()), parameters: with_values(plain) })
            }
            Form::Spelled(text) => Request::Query(Query { query: text.clone(), parameters: plain }),
        }
    }
}
