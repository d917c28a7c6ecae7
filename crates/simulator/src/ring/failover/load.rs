//! Reads and writes that come at a rate, whatever becomes of those before, and what became of each.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use protocol::{Consistency, Execute, QueryParameters, Request, Response, Values, Version};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::World;
use super::super::visitor::Visitor;
use crate::dice::Dice;
use crate::scenario::Violation;
use crate::served::{Bound, Connection, PreparedIds, packed};

/// Rows that are read and written.
pub(super) const KEY_COUNT: usize = 2_000;
const TABLES: [&str; 2] = [
    "CREATE KEYSPACE load WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
    "CREATE TABLE load.rows (k int PRIMARY KEY, v int, t text)",
];
const READ: &str = "SELECT v, t FROM load.rows WHERE k = ?";
const WRITE: &str = "INSERT INTO load.rows (k, v, t) VALUES (?, ?, 'a hundred bytes of which each is carried, \
                     logged and kept by three nodes of a ring that is under load')";
/// A driver tries again to reach a node.
const RECONNECT_AFTER: Duration = Duration::from_millis(200);
/// Streams of a connection.
const STREAM_COUNT: usize = 20_000;
/// What is due is sent so often.
const TICK: Duration = Duration::from_millis(1);

/// A request, and what became of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) sent: Instant,
    pub(super) node: usize,
    pub(super) is_read: bool,
    /// When it was answered, and whether with what was asked for; `None` if it was not.
    pub(super) answered: Option<(Instant, bool)>,
}

/// What is sent to nodes, and what was.
pub(super) struct Load {
    drivers: Vec<Rc<Driver>>,
    records: Rc<RefCell<Vec<Record>>>,
    dice: Dice,
    next: Cell<usize>,
}

/// The connection to one node.
#[derive(Default)]
struct Driver {
    is_open: Cell<bool>,
    /// What is to be sent, by its place among the records.
    due: RefCell<VecDeque<(usize, Execution)>>,
    is_due: Notify,
    /// How many wait for their answers.
    in_flight: Cell<usize>,
}

struct Execution {
    text: &'static str,
    values: Values,
}

impl Load {
    /// Makes the table, and connects to all nodes.
    pub(super) async fn begin(world: &Rc<World>) -> Result<Rc<Load>, Violation> {
        let visitor = Visitor::new(world, 100);
        for statement in TABLES {
            match visitor.ask(0, statement, Consistency::One).await {
                Ok(Response::SchemaChange(_)) => {}
                other => return Err(Violation::new(format!("{statement}: {other:?}"))),
            }
        }
        let drivers: Vec<Rc<Driver>> = (0..world.node_count()).map(|_| Rc::default()).collect();
        let records = Rc::<RefCell<Vec<Record>>>::default();
        for (node, driver) in drivers.iter().enumerate() {
            let (world, driver, records) = (Rc::clone(world), Rc::clone(driver), Rc::clone(&records));
            let drive = async move { driver.drive(&world, node, &records).await };
            runtime::spawn_local("driver", Box::pin(drive));
        }
        let (dice, next) = (Dice::new(world.stage.seed, 0, 8_500), Cell::default());
        let load = Rc::new(Load { drivers, records, dice, next });
        while !load.drivers.iter().all(|driver| driver.is_open.get()) {
            sleep(TICK).await;
        }
        Ok(load)
    }

    /// Sends so many requests a second until then.
    pub(super) async fn offer(&self, rate: f64, until: Instant) {
        let begun = Instant::now();
        let mut sent_count = 0.0;
        while Instant::now() < until {
            sleep_until(Instant::now() + TICK).await;
            while sent_count < begun.elapsed().as_secs_f64() * rate {
                self.send();
                sent_count += 1.0;
            }
        }
    }

    /// Has so many requests under way until then; how many were answered in a second.
    pub(super) async fn press(&self, in_flight: usize, until: Instant) -> f64 {
        let begun = Instant::now();
        while Instant::now() < until {
            let under_way: usize = self.drivers.iter().map(|driver| driver.in_flight.get()).sum();
            (under_way..in_flight).for_each(|_| self.send());
            sleep(TICK).await;
        }
        let records = self.records.borrow();
        let is_in = |record: &&Record| record.answered.is_some_and(|(when, _)| when >= begun && when < until);
        records.iter().filter(is_in).count() as f64 / begun.elapsed().as_secs_f64()
    }

    /// Waits until nothing is under way.
    pub(super) async fn drain(&self) {
        while self.drivers.iter().any(|driver| driver.in_flight.get() > 0) {
            sleep(TICK).await;
        }
    }

    /// All that was sent since then.
    pub(super) fn since(&self, when: Instant) -> Vec<Record> {
        self.records.borrow().iter().filter(|record| record.sent >= when).copied().collect()
    }

    /// Sends one request to the next node that a connection is open to.
    fn send(&self) {
        let turns = (0..self.drivers.len()).map(|turn| (self.next.get() + turn) % self.drivers.len());
        let Some(node) = turns.into_iter().find(|node| self.drivers[*node].is_open.get()) else { return };
        self.next.set(node + 1);
        let is_read = self.dice.one_in(2);
        let index = self.records.borrow().len();
        let key = Bound::Int(self.dice.below(KEY_COUNT) as i32);
        let execution = match is_read {
            true => Execution { text: READ, values: packed(&[key]) },
            false => Execution { text: WRITE, values: packed(&[key, Bound::Int(index as i32)]) },
        };
        self.records.borrow_mut().push(Record { sent: Instant::now(), node, is_read, answered: None });
        let driver = &self.drivers[node];
        driver.in_flight.set(driver.in_flight.get() + 1);
        driver.due.borrow_mut().push_back((index, execution));
        driver.is_due.notify_one();
    }
}

impl Driver {
    /// Keeps a connection to the node, for ever.
    async fn drive(&self, world: &World, node: usize, records: &RefCell<Vec<Record>>) {
        let network = world.stage.network.host(IpAddr::V4(Ipv4Addr::new(127, 0, 2, 1)));
        loop {
            let prepared = PreparedIds::default();
            let connected = Connection::open(&network, world.places.cql(node), Version::V4, prepared).await;
            if let Ok(connection) = connected {
                // Why it broke makes no difference.
                _ = self.carry(connection, records).await;
            }
            self.is_open.set(false);
            self.in_flight.set(0);
            self.due.borrow_mut().clear();
            sleep(RECONNECT_AFTER).await;
        }
    }

    /// Carries requests and answers until the connection breaks.
    async fn carry(&self, mut connection: Connection, records: &RefCell<Vec<Record>>) -> io::Result<()> {
        let mut ids = BTreeMap::<&str, Bytes>::new();
        for text in [READ, WRITE] {
            ids.insert(text, connection.prepare(text).await?);
        }
        self.is_open.set(true);
        let mut asked: BTreeMap<i16, usize> = BTreeMap::new();
        let mut sent_count = 0;
        loop {
            let answer = tokio::select! {
                biased;
                () = self.is_due.notified() => None,
                answer = connection.receive() => Some(answer?),
            };
            if let Some((stream, response)) = answer {
                let Some(index) = asked.remove(&stream) else { continue };
                let is_good = matches!(response, Response::Void | Response::Rows(_));
                records.borrow_mut()[index].answered = Some((Instant::now(), is_good));
                self.in_flight.set(self.in_flight.get() - 1);
                continue;
            }
            for (index, Execution { text, values }) in self.due.take() {
                let stream = (sent_count % STREAM_COUNT) as i16;
                sent_count += 1;
                asked.insert(stream, index);
                let parameters = QueryParameters { values, ..QueryParameters::at(Consistency::Quorum) };
                let id = ids[text].clone();
                let execute = Execute { id, result_metadata_id: None, parameters };
                connection.put(stream, Request::Execute(execute));
            }
            connection.send(usize::MAX).await?;
        }
    }
}
