//! A ring of whole nodes that serve clients: three to five servers in one data centre or in two, each with its own
//! tasks, disk, clock and random numbers, which found the ring themselves and keep it.
//!
//! ```text
//!  127.0.1.n  clients, operators ── frames ──► 127.0.0.n  nodes ◄── messages ──► nodes
//!                     │                           killed, without power, cut off, slow, with wrong clocks,
//!                     │                           on other ports, without their disk
//!                     ▼
//!              models: what a read may show (`model.rs`), which schema there may be (`definitions.rs`)
//! ```
//!
//! 1. The nodes found the ring and join it, under faults. Then faults end, and all must be members.
//! 2. Clients and operators work through any node, while there are faults, with a pause now and then.
//! 3. In some seeds a node stays away, and the other faults end: logged batches are whole or absent without it.
//! 4. The faults end. Within a bound all nodes serve and agree on members and schema; all that was acknowledged is
//!    there, and every node shows the same, from all replicas and from one.
//!
//! | a reader asks | file |
//! |---|---|
//! | what does a seed decide? | `plan.rs` |
//! | who works, and for how long? | `cast.rs` |
//! | how does a node live? | `node.rs`, `../turmoil.rs` |
//! | which nodes are elsewhere, or have lost their disk? | `places.rs` |
//! | what do clients do? | `client.rs`, `statement.rs`, `table.rs`, `level.rs`, `visitor.rs` |
//! | what do they write that only the nodes bring to each other? | `once.rs` |
//! | who counts together, by conditions and in counters? | `rivals.rs` |
//! | what may they see? | `model.rs`, `expiry.rs` |
//! | what is done to the schema? | `operator.rs`, `definitions.rs` |
//! | what must be in the end? | `settle.rs` |
//! | what does a fault cost clients? | `failover/` |

#[cfg(test)]
mod batches_tests;
mod cast;
mod client;
mod definitions;
mod expiry;
mod failover;
mod level;
mod model;
mod node;
mod once;
mod operator;
mod places;
mod plan;
mod rivals;
mod settle;
#[cfg(test)]
mod settled_tests;
mod statement;
#[cfg(test)]
mod stop_tests;
mod table;
#[cfg(test)]
mod three;
mod visitor;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use cluster::membership::Known;
use coordinator::replicas::Marks;
use runtime::{Failsafe, Plant};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::dice::Dice;
use crate::panics;
use crate::scenario::{Outcome, Violation};
use crate::score::Score;
use crate::stage::{Stage, in_paused_time};
use crate::turmoil::{Acts, Turmoil};
use crate::ways::{Way, Ways};
use cast::{CLIENT_COUNT, Cast, FIRST_RIVAL, OPERATOR_COUNT};
use client::Client;
use definitions::Definitions;
use operator::Operator;
use places::Places;
use plan::Plan;
use rivals::Rival;

pub use failover::simulate_failover;

/// Where nodes serve clients.
const PORT: u16 = 9042;
/// Faults without a pause: a storm.
const FAULTS_AT_ONCE: u64 = 8;
/// Enough is done after so many storms, however bad those are.
const STORM_COUNT_MAX: u64 = 40;

/// By then a node has settled a write, if it lives: the longest timeout of one, and time on a disk that is about to
/// lose its power.
const SETTLED_AFTER: Duration = Duration::from_secs(10);

/// Tells how many logged batches are not finished, and how many were written again for others, whenever it is asked.
type BatchCounts = Box<dyn Fn() -> (usize, u64)>;

/// Tells how many there are whenever it is asked.
type CountOf = Box<dyn Fn() -> usize>;

/// What all parts of a run share.
pub(crate) struct World {
    pub(crate) stage: Stage,
    pub(crate) plan: Plan,
    /// A fault that is planted in every node.
    pub(crate) plant: Option<Plant>,
    pub(crate) ways: Ways,
    /// What nodes that serve know of the ring.
    pub(crate) lives: RefCell<Vec<Option<Known>>>,
    /// What each of them knows of logged batches.
    pub(crate) batches: RefCell<Vec<Option<BatchCounts>>>,
    /// How many reads of each of them have found that a replica lacked something.
    mismatched: RefCell<Vec<Option<CountOf>>>,
    /// What each of them knows that others have missed.
    pub(crate) marks: RefCell<Vec<Option<Marks>>>,
    /// How long each disk may take for an access.
    disk_delays: RefCell<Vec<Duration>>,
    /// Nodes that were killed, and when.
    killed: RefCell<Vec<(usize, Instant)>>,
    /// Nodes that have lost their disks and so do not know what others had missed, and when.
    disks_lost: RefCell<Vec<(usize, Instant)>>,
    pub(crate) failsafes: Vec<Failsafe>,
    pub(crate) places: Places,
    pub(crate) definitions: RefCell<Definitions>,
    /// Tables that operators have begun to empty, have emptied, or must not empty any more, by what stands for them in
    /// the definitions.
    pub(crate) emptied: RefCell<BTreeSet<String>>,
    /// And whether the row that was written behind that is acknowledged.
    pub(crate) emptied_for_sure: RefCell<BTreeMap<String, bool>>,
    /// A table that is there for a while, for whoever writes to it.
    pub(crate) passing: RefCell<Option<String>>,
    /// Are the tables of clients there?
    pub(crate) has_tables: Cell<bool>,
    /// Does a node stay away, while the others must serve?
    pub(crate) is_one_away: Cell<bool>,
    /// Are faults over?
    pub(crate) is_settled: Cell<bool>,
    violation: RefCell<Option<Violation>>,
    violated: Notify,
}

impl World {
    fn new(seed: u64, plan: Plan, plant: Option<Plant>) -> World {
        let count = plan.nodes.len();
        World {
            stage: Stage::new(seed, count, plan.network),
            plan,
            plant,
            ways: Ways::default(),
            lives: RefCell::new(vec![None; count]),
            batches: RefCell::new((0..count).map(|_| None).collect()),
            mismatched: RefCell::new((0..count).map(|_| None).collect()),
            marks: RefCell::new(vec![None; count]),
            disk_delays: RefCell::new(vec![Duration::ZERO; count]),
            killed: RefCell::default(),
            disks_lost: RefCell::default(),
            failsafes: (0..count).map(|_| Failsafe::default()).collect(),
            places: Places::new(count),
            definitions: RefCell::default(),
            emptied: RefCell::default(),
            emptied_for_sure: RefCell::default(),
            passing: RefCell::default(),
            has_tables: Cell::default(),
            is_one_away: Cell::default(),
            is_settled: Cell::default(),
            violation: RefCell::default(),
            violated: Notify::new(),
        }
    }

    pub(crate) fn node_count(&self) -> usize {
        self.plan.nodes.len()
    }

    /// How long the slowest disk may take for an access.
    fn slowest_disk(&self) -> Duration {
        self.disk_delays.borrow().iter().copied().max().unwrap_or_default()
    }

    /// Nodes that serve.
    pub(crate) fn serving(&self) -> Vec<usize> {
        let lives = self.lives.borrow();
        (0..lives.len()).filter(|node| lives[*node].is_some() && self.stage.hosts.is_alive(*node)).collect()
    }

    /// Has a node lost its disk since then? It does not know any more what others have missed of that.
    pub(crate) fn has_forgotten(&self, node: usize, sent: Instant) -> bool {
        self.disks_lost.borrow().iter().any(|(who, when)| *who == node && *when >= sent)
    }

    /// Was a node killed before it must have settled what it was sent then?
    pub(crate) fn was_killed_soon(&self, node: usize, sent: Instant) -> bool {
        self.killed
            .borrow()
            .iter()
            .any(|(who, when)| *who == node && (sent..sent + SETTLED_AFTER).contains(when))
    }

    /// How many reads have found so far that a replica lacked something.
    pub(crate) fn mismatched_count(&self) -> usize {
        self.mismatched.borrow().iter().flatten().map(|count| count()).sum()
    }

    /// Counts what a node has brought to others that had missed it.
    fn count_handed(&self, marks: &Marks) {
        self.ways.add(Way::SentFromLog, marks.handoff().sent_count());
        self.ways.add(Way::MendedPartition, marks.handoff().mended_count());
    }

    /// A node has ended that may have written logged batches of others.
    fn count_replayed(&self, node: usize) {
        if let Some(counts) = self.batches.borrow_mut()[node].take() {
            self.ways.add(Way::ReplayedBatch, counts().1);
        }
    }

    /// No node is asked any more.
    fn forget_lives(&self) {
        self.lives.borrow_mut().iter_mut().for_each(|life| *life = None);
        (0..self.node_count()).for_each(|node| self.count_replayed(node));
        self.mismatched.borrow_mut().iter_mut().for_each(|count| *count = None);
        self.marks.take().iter().flatten().for_each(|marks| self.count_handed(marks));
    }

    /// Has enough been done, for long enough?
    fn is_enough(&self) -> bool {
        let Cast { operation_count_min, time_min, .. } = self.plan.cast;
        self.stage.operation_count() >= operation_count_min && self.stage.begun.elapsed() >= time_min
    }

    /// A node did what it must not.
    pub(crate) fn wrong(&self, what: String) {
        self.violation.borrow_mut().get_or_insert(Violation::new(what));
        self.violated.notify_one();
    }
}

/// Runs one seed, with a fault planted in every node or without, and tells what happened in it.
pub fn simulate_ring(seed: u64, plant: Option<Plant>) -> (Outcome, Ways) {
    simulate_with(seed, plant, |_| Cast::ALL)
}

/// The same, of rivals alone: changes with a condition and counters, thick and fast.
pub fn simulate_rivals(seed: u64, plant: Option<Plant>) -> (Outcome, Ways) {
    simulate_with(seed, plant, Cast::of_rivals)
}

fn simulate_with(seed: u64, plant: Option<Plant>, cast: impl Fn(&Dice) -> Cast) -> (Outcome, Ways) {
    panics::watch();
    in_paused_time(async {
        let dice = Dice::new(seed, 0, 8_000);
        let plan = Plan::roll(&dice, cast(&dice));
        let world = Rc::new(World::new(seed, plan, plant));
        let playing = async {
            tokio::select! {
                biased;
                () = world.violated.notified() => Err(world.violation.borrow().clone().expect("it was noted")),
                done = run(&world, &dice) => done,
            }
        };
        let outcome = world.stage.hosts.run_beside(playing).await;
        world.forget_lives();
        // What a node did after it broke a promise says less than the promise.
        let outcome = keeps_promises(&world).and(outcome);
        (world.stage.close(outcome), world.ways.clone())
    })
}

/// Has no node broken a promise of its own code?
fn keeps_promises(world: &World) -> Result<(), Violation> {
    if let Some(panicked) = panics::first() {
        return Err(Violation::new(panicked));
    }
    let check = |(node, failsafe): (usize, &Failsafe)| {
        failsafe.check().map_err(|broken| Violation::new(format!("node {node}: {broken}")))
    };
    world.failsafes.iter().enumerate().try_for_each(check)
}

async fn run(world: &Rc<World>, dice: &Dice) -> Result<(), Violation> {
    let start = |node, incarnation| {
        world.befall(node, incarnation);
        world.stage.hosts.start(node, node::live(Rc::clone(world), node, incarnation));
    };
    let dies = |node: usize| {
        world.lives.borrow_mut()[node] = None;
        world.count_replayed(node);
        world.mismatched.borrow_mut()[node] = None;
        if let Some(marks) = world.marks.borrow_mut()[node].take() {
            world.count_handed(&marks);
        }
        world.killed.borrow_mut().push((node, Instant::now()));
        world.ways.add(Way::Crash, 1);
    };
    let note = |line: std::fmt::Arguments<'_>| world.stage.note(line);
    let places = (&world.stage.hosts, &world.stage.network);
    let count = |fault| world.stage.faults.count(fault);
    let acts = Acts { note: &note, start: &start, dies: &dies, count: &count };
    let mut turmoil = Turmoil::begin(world.node_count(), dice, places, acts);
    turmoil.rage(world.plan.founding_fault_count).await;
    world.ways.add(Way::FoundingFault, world.plan.founding_fault_count);
    turmoil.calm();
    let all_serve = timeout(settle::BOUND, settle::all_serve(world)).await;
    all_serve
        .map_err(|_| Violation::new(format!("not all come into the ring: {}", settle::standing(world))))?;
    let Cast { has_all, rival_count, storm_count: storm_count_min, .. } = world.plan.cast;
    let (client_count, operator_count) = if has_all { (CLIENT_COUNT, OPERATOR_COUNT) } else { (0, 1) };
    let mut clients: Vec<Client> = (0..client_count).map(|number| Client::new(world, number)).collect();
    let operators = (0..operator_count).map(|number| Operator::new(world, CLIENT_COUNT + number));
    let working = futures_util::future::try_join_all(clients.iter_mut().map(Client::work));
    let operating = futures_util::future::try_join_all(operators.map(Operator::work));
    let score: Rc<RefCell<Score>> = Rc::default();
    let rivals = (0..rival_count).map(|number| Rival::new(world, FIRST_RIVAL + number, &score));
    let rivalling = futures_util::future::try_join_all(rivals.map(Rival::work));
    let faults = async {
        let mut storm_count = 0;
        while storm_count < storm_count_min || !world.is_enough() {
            turmoil.rage(FAULTS_AT_ONCE).await;
            turmoil.calm();
            sleep(Duration::from_millis(dice.between(0, 8_000))).await;
            storm_count += 1;
            if storm_count == STORM_COUNT_MAX {
                let count = world.stage.operation_count();
                return Err(Violation::new(format!(
                    "{count} statements after {:?}",
                    world.stage.begun.elapsed()
                )));
            }
        }
        let mut away = None;
        if dice.one_in(2) {
            turmoil.rage(FAULTS_AT_ONCE).await;
            // Who gets its rows needs all others.
            away = Some(dice.below(world.node_count())).filter(|_| world.is_at_rest());
        }
        world.is_one_away.set(away.is_some());
        match away {
            Some(node) => turmoil.settle_without(node).await,
            None => turmoil.settle().await,
        }
        world.is_settled.set(true);
        Ok(away)
    };
    let (_, _, _, away) = futures_util::future::try_join4(working, operating, rivalling, faults).await?;
    world.stage.note(format_args!("rivals came to {}", score.borrow().words()));
    if let Some(away) = away {
        settle::check_batches_without(world, &mut clients, away).await?;
        world.is_one_away.set(false);
        turmoil.settle().await;
        world.ways.add(Way::StayedAway, 1);
    }
    settle::settle(world, &mut clients).await?;
    settle::check_counters(world, &mut score.take()).await
}
