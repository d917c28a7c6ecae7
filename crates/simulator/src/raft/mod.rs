//! Nodes that agree: three to five voters of an `Agreement` of `cluster`, clients, an operator and a gremlin.
//!
//! ```text
//!   gremlin    cuts of one and both ways, resets, kills, power cuts at the n-th change of a disk or of all nodes at
//!              once, disks that fail
//!   operator   learners, voters, removals, leadership handed over, without thinking
//!   clients    commands and reads through any node
//! ```
//!
//! What must hold: every node applies the same history (a running hash, compared at each index); a command that was
//! acknowledged stays where it was, one that is told not to be done is never applied, and none is applied twice; a read
//! shows what its client was told before; no node fails to open its log. After the faults all members come together
//! within a bound.

mod checker;
mod clients;
mod gremlin;
mod life;
mod operator;
mod register;
mod settle;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use cluster::raft::{Agreement, Timing};
use runtime::MemoryNetwork;
use runtime::network::memory::MemoryNetworkOptions;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout};

use crate::Events;
use crate::dice::Dice;
use crate::faults::Scale;
use crate::scenario::{Outcome, Violation};
use crate::served::Hosts;
use crate::stage::in_paused_time;
use checker::Checker;
use register::Register;

/// Nodes of a run, members or not.
pub(crate) const NODE_COUNT: usize = 5;
const CLIENT_COUNT: u64 = 8;

/// What one seed decided for the whole run.
struct Plan {
    timing: Timing,
    snapshot_entry_count: u64,
    /// Voters at the beginning.
    voter_count: usize,
    /// Does the operator do anything? Where five voters stay five, other mistakes show.
    has_operator: bool,
    io_delay_max: Duration,
}

impl Plan {
    fn roll(dice: &Dice) -> Plan {
        // Quick ones for many elections, and those that nodes have.
        let quick = Timing {
            heartbeat: Duration::from_millis(100),
            election_min: Duration::from_millis(300),
            election_max: Duration::from_millis(600),
            patience: Duration::from_secs(1),
        };
        let has_operator = !dice.one_in(3);
        Plan {
            timing: if dice.one_in(4) { Timing::default() } else { quick },
            snapshot_entry_count: *dice.pick(&[20, 60, 10_000]),
            voter_count: if has_operator { 3 + dice.below(3) } else { NODE_COUNT },
            has_operator,
            io_delay_max: Duration::from_micros(*dice.pick(&[100, 4_000, 40_000])),
        }
    }
}

/// What all parts of a run share.
struct World {
    seed: u64,
    plan: Plan,
    hosts: Hosts,
    network: MemoryNetwork,
    checker: RefCell<Checker>,
    events: RefCell<Events>,
    begun: Instant,
    /// How to reach each node; `None` while it does not run.
    lives: RefCell<[Option<Inbox>; NODE_COUNT]>,
    incarnations: RefCell<[u64; NODE_COUNT]>,
    /// Have the faults ended?
    is_calm: Cell<bool>,
}

type Node = Agreement<Register>;
type Inbox = mpsc::UnboundedSender<Box<dyn FnOnce(Node) -> Pin<Box<dyn Future<Output = ()>>>>>;

impl World {
    fn note(&self, line: impl std::fmt::Display) {
        let micros = self.begun.elapsed().as_micros();
        self.events.borrow_mut().add(format_args!("{micros} {line}"));
    }

    fn dice(&self, actor: u64) -> Dice {
        Dice::new(self.seed, 0, 6_000 + actor)
    }

    /// Has a node do something, as a task of its own; `None` when it is dead, or dies meanwhile.
    async fn on<T: 'static, F>(&self, node: usize, act: impl FnOnce(Node) -> F + 'static) -> Option<T>
    where
        F: Future<Output = T> + 'static,
    {
        let inbox = self.lives.borrow()[node].clone()?;
        let (told, answer) = oneshot::channel();
        let job = move |agreement: Node| -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(async move { _ = told.send(act(agreement).await) })
        };
        inbox.send(Box::new(job)).ok()?;
        drop(inbox);
        answer.await.ok()
    }
}

/// Runs one seed.
pub fn simulate_raft(seed: u64) -> Outcome {
    in_paused_time(async {
        let dice = Dice::new(seed, 0, 6_000);
        let options = MemoryNetworkOptions {
            latency_max: Duration::from_micros(*dice.pick(&[200, 5_000, 60_000])),
            ..MemoryNetworkOptions::default()
        };
        let world = Rc::new(World {
            seed,
            plan: Plan::roll(&dice),
            hosts: Hosts::new(NODE_COUNT),
            network: MemoryNetwork::new(seed, options),
            checker: RefCell::default(),
            events: RefCell::default(),
            begun: Instant::now(),
            lives: RefCell::default(),
            incarnations: RefCell::default(),
            is_calm: Cell::new(false),
        });
        let outcome = world.hosts.run_beside(run(&world)).await;
        world.lives.borrow_mut().iter_mut().for_each(|life| *life = None);
        world.hosts.clear();
        let violation = world.checker.borrow().violation().or(outcome.err());
        let events = world.events.borrow().clone();
        Outcome { seed, violation, events, scale: Scale::default() }
    })
}

async fn run(world: &Rc<World>) -> Result<(), Violation> {
    (0..NODE_COUNT).for_each(|node| life::start(world, node));
    timeout(settle::BOUND, operator::found(world))
        .await
        .map_err(|_| Violation::new("the first voters do not come together"))?;
    let mut tasks: Vec<_> =
        (1..=CLIENT_COUNT).map(|client| spawn_local(clients::work(Rc::clone(world), client))).collect();
    if world.plan.has_operator {
        tasks.push(spawn_local(operator::work(Rc::clone(world))));
    }
    gremlin::work(world).await;
    gremlin::end_all(world);
    for task in tasks {
        task.await.map_err(|error| Violation::new(format!("a client or the operator: {error}")))?;
    }
    settle::settle(world).await
}
