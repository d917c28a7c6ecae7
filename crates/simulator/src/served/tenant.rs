//! A node and its clients, over all the lives of the node.
//!
//! 1. The node starts on what the last life left. What was in doubt is decided by what it shows.
//! 2. Clients work side by side; the network breaks their connections now and then.
//! 3. Between two rounds of that, alone: a truncation or a change of the schema, by statements.
//! 4. The life ends as the seed says, in the midst of it or in order.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use protocol::{Query, QueryParameters, Request, Response, Text, Version};
use runtime::{Background, Failsafe, Io, Plants, SeededRandom, VirtualClock};
use server::{LocalServer, RequestWays, ServerError};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::client::{Client, PATIENCE, keys};
use super::connection::{Connection, PreparedIds, parameters};
use super::expiry::WallClock;
use super::flaky_disk::{Failures, FlakyDisk};
use super::fuse::Fuse;
use super::model::Model;
use super::plan::{Ending, Plan};
use super::rivals::Rival;
use super::shown::{Shown, rows_of};
use super::spoiler::Spoiled;
use super::statement::Read;
use super::tables::Table;
use super::{World, clients_address, node_address};
use crate::Fate;
use crate::dice::Dice;
use crate::scenario::Violation;
use crate::score::Score;
use crate::ways::Way;

const CLIENT_COUNT: usize = 3;
/// Those who count together; each has what a client of the same number has prepared.
const RIVAL_COUNT: usize = 3;
const PORT: u16 = 9042;
/// Rounds of a life, if it lasts.
const ROUND_COUNT: u64 = 3;
/// What the wall clocks show at the start, about.
const START_MICROS: i64 = runtime::ManualClock::DEFAULT_START_MICROS;

pub(crate) struct Tenant {
    pub(super) world: Rc<World>,
    pub(super) node: usize,
    pub(super) model: Rc<RefCell<Model>>,
    timestamp: Rc<RefCell<i64>>,
    /// What rivals know of what they count.
    score: Rc<RefCell<Score>>,
    /// A table whose truncation was sent and not answered, or that it was dropped.
    pub(super) truncating: RefCell<Option<Table>>,
    /// Columns that the narrow table was given, and one that it may have been given.
    pub(super) columns: RefCell<(Vec<String>, Option<String>)>,
    has_schema: RefCell<bool>,
    /// What the wall clock shows, if it goes on from life to life.
    clock: Cell<Option<WallClock>>,
    /// What the disk gives wrongly.
    pub(super) spoiled: Spoiled,
    /// What may end this life.
    pub(super) fuse: RefCell<Option<Rc<Fuse>>>,
    /// What it does not read.
    pub(super) failures: Failures,
    /// What each client has prepared.
    prepared: [PreparedIds; CLIENT_COUNT],
    /// A table that was dropped, or may be, and is to be made again.
    pub(super) remaking: RefCell<Option<Table>>,
}

/// A node that serves.
struct Serving {
    /// Whether it could stop in order.
    ended: oneshot::Receiver<Result<(), ServerError>>,
    ways: Arc<[Arc<RequestWays>]>,
}

/// How a life was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// It ended in order.
    Whole,
    Cut,
}

impl Tenant {
    pub(crate) fn new(world: Rc<World>, node: usize) -> Tenant {
        Tenant {
            world,
            node,
            model: Rc::default(),
            timestamp: Rc::default(),
            score: Rc::default(),
            truncating: RefCell::default(),
            columns: RefCell::default(),
            has_schema: RefCell::default(),
            clock: Cell::default(),
            spoiled: Spoiled::default(),
            fuse: RefCell::default(),
            failures: Failures::default(),
            prepared: Default::default(),
            remaking: RefCell::default(),
        }
    }

    /// All lives.
    pub(crate) async fn live(&self) -> Result<(), Violation> {
        let dice = self.dice(0, 0);
        // The others' clocks are set at each start, forth or back: what ends is not for them.
        if !dice.one_in(4) {
            self.clock.set(Some(WallClock::shows(START_MICROS)));
        }
        for life in 1..=dice.between(2, 5) {
            let plan = Plan::roll(&self.dice(life, 1));
            self.note(format_args!(
                "life {life}: {} shards, {:?}, {:?}",
                plan.shard_count, plan.sync, plan.ending
            ));
            self.live_once(life, &plan).await?;
        }
        Ok(())
    }

    async fn live_once(&self, life: u64, plan: &Plan) -> Result<(), Violation> {
        let hosts = &self.world.hosts;
        let disk = hosts.disk(self.node);
        if let Ending::Of(Fate::PowerCutAfterChanges(count)) = plan.ending {
            disk.faults().power_off_after(count);
        }
        let fuse = Rc::new(Fuse::of(plan.ending, Rc::clone(&self.world), self.node));
        *self.fuse.borrow_mut() = Some(Rc::clone(&fuse));
        let (stop, told_to_stop) = oneshot::channel();
        let failsafe = Failsafe::default();
        let started = self.start(life, plan, failsafe.clone(), told_to_stop);
        let born = Instant::now();
        let ways = RefCell::new(None);
        let living = async {
            match started.await {
                Ok(Ok(serving)) => {
                    *ways.borrow_mut() = Some(serving.ways);
                    self.serve(life, plan, &fuse).await?;
                    _ = stop.send(plan.flush_at_stop);
                    match serving.ended.await {
                        Ok(Ok(())) => Ok(Life::Whole),
                        Ok(Err(error)) if !disk.faults().is_off() => {
                            Err(self.wrong(format!("it does not stop: {error}")))
                        }
                        Ok(Err(_)) | Err(_) => Ok(Life::Cut),
                    }
                }
                Ok(Err(error)) if !disk.faults().is_off() => {
                    Err(self.wrong(format!("it does not start: {error}")))
                }
                // Its life was over before it began.
                Ok(Err(_)) | Err(_) => Ok(Life::Cut),
            }
        };
        let lived = match plan.ending {
            Ending::Of(Fate::KillAfter(time) | Fate::PowerCutAfter(time)) => {
                tokio::time::timeout(time, living).await.unwrap_or(Ok(Life::Cut))
            }
            Ending::Of(Fate::LiveOn | Fate::PowerCutAfterChanges(_)) | Ending::InBurst { .. } => living.await,
        };
        hosts.kill(self.node).await;
        // What the network was about to heal.
        let (node, clients) = (node_address(self.node), clients_address(self.node));
        self.world.network.heal(node, clients);
        self.world.network.heal(clients, node);
        failsafe.check().map_err(|broken| self.wrong(broken))?;
        let lived = lived?;
        self.note(format_args!("life {life} ended after {:?}: {lived:?}", born.elapsed()));
        if let Some(ways) = ways.take() {
            self.world.ways.add_requests(&ways);
        }
        self.end(plan, lived);
        Ok(())
    }

    /// What is left of a life.
    fn end(&self, plan: &Plan, lived: Life) {
        let hosts = &self.world.hosts;
        let disk = hosts.disk(self.node);
        if lived == Life::Cut {
            self.world.ways.add(Way::Crash, 1);
            if let Some(time) = plan.promise_takes() {
                let died = hosts.died(self.node);
                let since = died.checked_sub(time).unwrap_or(died);
                let lost = self.model.borrow_mut().doubt_since(since);
                self.score.borrow_mut().doubt_since(since);
                self.world.ways.add(Way::MayBeLost, lost);
            }
        }
        self.spoiled.mend(&disk);
        self.failures.clear();
        let left = match plan.ending.is_power_cut() {
            false => disk.kill(),
            true => disk.crash(self.dice(*self.timestamp.borrow() as u64, 2).between(0, u64::MAX - 1)),
        };
        hosts.put_disk(self.node, left);
    }

    /// Starts the node; gives a word when it serves.
    fn start(
        &self,
        life: u64,
        plan: &Plan,
        failsafe: Failsafe,
        told_to_stop: oneshot::Receiver<bool>,
    ) -> oneshot::Receiver<Result<Serving, ServerError>> {
        let dice = self.dice(life, 3);
        let seed = || dice.between(0, u64::MAX - 1);
        let seeds = [(); 3].map(|()| seed());
        let address = SocketAddr::new(node_address(self.node), PORT);
        let (disk, network) = (self.world.hosts.disk(self.node), self.world.network.host(address.ip()));
        let disk = FlakyDisk { disk, failures: self.failures.clone() };
        let (options, delay_max) = (plan.options(address), plan.io_delay_max);
        let clock = self.start_clock(plan);
        let (report, started) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let visits = self.world.ways.clone();
        let plants = Plants::default();
        self.world.plant.into_iter().for_each(|plant| plants.plant(plant));
        self.world.hosts.start(self.node, async move {
            let runtime = runtime::Runtime {
                disk: Arc::new(disk),
                network,
                clock: Arc::new(clock),
                random: Arc::new(SeededRandom::new(seeds[0])),
                background: Background::seeded_tasks(seeds[1], Duration::from_millis(200)),
                io: Io::seeded(seeds[2], delay_max),
                failsafe,
                plants,
            };
            match LocalServer::start(&runtime, options).await {
                Err(error) => _ = report.send(Err(error)),
                Ok(server) => {
                    _ = report.send(Ok(Serving { ended, ways: Arc::clone(server.ways()) }));
                    let Ok(flush_first) = told_to_stop.await else { return std::future::pending().await };
                    visits.add_visits(server.shards()).await;
                    _ = end.send(server.stop(flush_first).await);
                }
            }
        });
        started
    }

    /// The node's wall clock in a life that begins now.
    fn start_clock(&self, plan: &Plan) -> VirtualClock {
        let Some(before) = self.clock.get() else {
            return VirtualClock::new(START_MICROS + plan.clock_skew_micros);
        };
        let rest_micros = i64::try_from(plan.rest.as_micros()).expect("some days");
        let clock = WallClock::shows(before.micros() + rest_micros);
        self.clock.set(Some(clock));
        self.model.borrow_mut().start_clock(clock);
        VirtualClock::new(clock.micros())
    }

    /// Steps 1 to 3.
    async fn serve(&self, life: u64, plan: &Plan, fuse: &Rc<Fuse>) -> Result<(), Violation> {
        if !*self.has_schema.borrow() || self.remaking.borrow().is_some() {
            if !self.make_schema().await? {
                return Ok(());
            }
            *self.has_schema.borrow_mut() = true;
        }
        if !self.decide().await? {
            return Ok(());
        }
        for round in 0..ROUND_COUNT {
            let dice = self.dice(life, 10 + round);
            let clients = (0..CLIENT_COUNT).map(|number| self.client(life, round, number, plan, fuse));
            let clients: Vec<_> = clients.collect();
            let working = clients.iter().map(|client| client.work(dice.between(2, 12)));
            let working = futures_util::future::join_all(working);
            let spoiling = self.dice(life, 40 + round);
            let spoiling = async {
                if plan.spoils_reads {
                    self.spoil(&spoiling).await;
                }
            };
            let rivals: Vec<_> =
                (0..RIVAL_COUNT).map(|number| self.rival(life, round, number, plan, fuse)).collect();
            let rivalling = rivals.iter().map(|rival| rival.work(dice.between(1, 6)));
            let rivalling = futures_util::future::join_all(rivalling);
            let managing = self.dice(life, 50 + round);
            let managing = self.manage(&managing, plan.spoils_reads);
            let (done, rivalled, managed, (), ()) =
                tokio::join!(working, rivalling, managing, self.disturb(&dice), spoiling);
            done.into_iter().chain(rivalled).collect::<Result<(), _>>()?;
            managed?;
            self.failures.clear();
            self.between_rounds(&dice).await?;
            if !self.world.hosts.is_alive(self.node) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn client(&self, life: u64, round: u64, number: usize, plan: &Plan, fuse: &Rc<Fuse>) -> Client {
        Client {
            world: Rc::clone(&self.world),
            node: self.node,
            number,
            model: Rc::clone(&self.model),
            dice: self.dice(life, 100 + 10 * round + number as u64),
            address: SocketAddr::new(node_address(self.node), PORT),
            timestamp: Rc::clone(&self.timestamp),
            reads_may_fail: plan.spoils_reads,
            prepared: Rc::clone(&self.prepared[number]),
            fuse: Rc::clone(fuse),
        }
    }

    /// One of those that count together. What they prepare they know each by itself.
    fn rival(&self, life: u64, round: u64, number: usize, plan: &Plan, fuse: &Rc<Fuse>) -> Rival {
        let client = self.client(life, round, number, plan, fuse);
        let dice = self.dice(life, 200 + 10 * round + number as u64);
        Rival { client: Client { dice, ..client }, score: Rc::clone(&self.score) }
    }

    /// The network breaks connections, or is silent for a while.
    async fn disturb(&self, dice: &Dice) {
        let (node, clients) = (node_address(self.node), clients_address(self.node));
        for _ in 0..dice.below(4) {
            tokio::time::sleep(Duration::from_millis(dice.between(1, 1_000))).await;
            let (from, to) = if dice.one_in(2) { (node, clients) } else { (clients, node) };
            match dice.below(3) {
                0 => self.world.network.reset(from, to),
                _ => {
                    self.world.network.cut(from, to);
                    tokio::time::sleep(Duration::from_millis(dice.between(1, 3_000))).await;
                    self.world.network.heal(from, to);
                }
            }
        }
    }

    /// Step 1: what was in doubt is there or not. False if the node died meanwhile.
    async fn decide(&self) -> Result<bool, Violation> {
        if !self.decide_columns().await? {
            return Ok(false);
        }
        self.check_columns().await?;
        let mut decided = Shown::default();
        let look = self.model.borrow().look();
        let all_keys: Vec<i32> = (0..CLIENT_COUNT).flat_map(keys).collect();
        for table in Table::ALL {
            let read = Read::all(table, all_keys.clone());
            let Some(rows) = self.read_all(&read).await? else { return Ok(false) };
            let check = || {
                let (mut shown, model) = (Shown::default(), self.model.borrow());
                shown.take(&read, &rows)?;
                shown.check(&read, &model, model.received(look)).map(|()| shown)
            };
            let may_be_empty = *self.truncating.borrow() == Some(table);
            let checked = match check() {
                Err(_) if may_be_empty => {
                    self.model.borrow_mut().empty(table);
                    check()
                }
                checked => {
                    if may_be_empty {
                        self.model.borrow_mut().set_apart(table);
                    }
                    checked
                }
            };
            let mut shown = checked.map_err(|what| self.wrong(format!("after a start, {table}: {what}")))?;
            decided.registers.append(&mut shown.registers);
        }
        *self.truncating.borrow_mut() = None;
        *self.remaking.borrow_mut() = None;
        let look = self.model.borrow().received(look);
        let outcome = self.model.borrow_mut().decide(&decided.registers, look);
        outcome.map_err(|what| self.wrong(format!("after a start: {what}")))?;
        Ok(true)
    }

    async fn read_all(&self, read: &Read) -> Result<Option<Vec<super::shown::Row>>, Violation> {
        let (mut rows, mut paging_state) = (Vec::new(), None);
        loop {
            let asked = QueryParameters { page_size: Some(50), paging_state, ..parameters() };
            match self.ask_with(&read.text, asked).await? {
                None => return Ok(None),
                Some(Response::Rows(page)) => {
                    let page_rows = rows_of(&page, read);
                    rows.extend(page_rows.map_err(|what| self.wrong(what))?);
                    match page.paging_state {
                        None => return Ok(Some(rows)),
                        state => paging_state = state,
                    }
                }
                Some(other) => return Err(self.wrong(format!("{}: {other:?}", read.text))),
            }
        }
    }

    pub(super) async fn ask(&self, statement: &str) -> Result<Option<Response>, Violation> {
        self.ask_with(statement, parameters()).await
    }

    /// The answer to a statement on a connection of its own; `None` if the node died.
    async fn ask_with(&self, text: &str, parameters: QueryParameters) -> Result<Option<Response>, Violation> {
        let network = self.world.network.host(clients_address(self.node));
        let address = SocketAddr::new(node_address(self.node), PORT);
        let asking = async {
            let mut connection =
                Connection::open(&network, address, Version::V5, PreparedIds::default()).await?;
            connection.call(Request::Query(Query { query: Text::from(text), parameters })).await
        };
        match tokio::time::timeout(PATIENCE, asking).await {
            // The last words of a node whose disk has no power.
            Ok(Ok(Response::Error(_))) if !self.world.hosts.is_alive(self.node) => Ok(None),
            Ok(Ok(response)) => Ok(Some(response)),
            _ if !self.world.hosts.is_alive(self.node) => Ok(None),
            Ok(Err(error)) => Err(self.wrong(format!("{text}: {error}"))),
            Err(_) => Err(self.wrong(format!("{text}: no answer within {PATIENCE:?}"))),
        }
    }

    pub(super) fn wrong(&self, what: impl std::fmt::Display) -> Violation {
        Violation::new(format!("node {}: {what}", self.node))
    }

    pub(super) fn note(&self, line: impl std::fmt::Display) {
        self.world.note(format_args!("node {}: {line}", self.node));
    }

    fn dice(&self, life: u64, actor: u64) -> Dice {
        Dice::new(self.world.seed, life, 4_000 + 1_000 * self.node as u64 + actor)
    }
}
