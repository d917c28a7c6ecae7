//! Nodes that keep rows together: three to five with disks of their own, three replicas, clients at several levels.
//!
//! Each client owns keys and writes growing numbers to them, one request after the other; it asks any node that lives.
//! What a read may show follows from what was acknowledged where the levels meet (`model.rs`). Nodes are killed, lose
//! their power and what they had not synced, and links are cut; afterwards all faults end, and every key is read from
//! all replicas.

mod client;
mod model;
mod node;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use runtime::MemoryNetwork;
use runtime::network::memory::MemoryNetworkOptions;

use crate::Events;
use crate::dice::Dice;
use crate::faults::Scale;
use crate::scenario::{Outcome, Violation};
use crate::served::Hosts;
use crate::stage::in_paused_time;
use crate::turmoil::{Acts, Turmoil};
use client::{CLIENT_COUNT, Client};
use node::{Life, Members};

/// Faults of a run.
const FAULT_COUNT: u64 = 60;

/// What all parts of a run share.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) members: Members,
    pub(crate) hosts: Hosts,
    pub(crate) network: MemoryNetwork,
    pub(crate) events: RefCell<Events>,
    /// The lives of nodes that serve.
    pub(crate) lives: RefCell<Vec<Option<Rc<Life>>>>,
    /// Are faults over?
    pub(crate) is_settled: RefCell<bool>,
}

impl World {
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        self.events.borrow_mut().add(line);
    }
}

/// Runs one seed.
pub fn simulate_replicated(seed: u64) -> Outcome {
    let dice = Dice::new(seed, 0, 6_000);
    let options = MemoryNetworkOptions {
        latency_max: Duration::from_micros(dice.between(50, 5_000)),
        ..MemoryNetworkOptions::default()
    };
    let members = Members::roll(&dice);
    let world = Rc::new(World {
        seed,
        hosts: Hosts::new(members.count()),
        network: MemoryNetwork::new(seed, options),
        events: RefCell::default(),
        lives: RefCell::new(vec![None; members.count()]),
        members,
        is_settled: RefCell::default(),
    });
    let outcome = in_paused_time(world.hosts.run_beside(run(&world, &dice)));
    world.lives.borrow_mut().clear();
    world.hosts.clear();
    let events = world.events.borrow().clone();
    Outcome { seed, violation: outcome.err(), events, scale: Scale::default() }
}

async fn run(world: &Rc<World>, dice: &Dice) -> Result<(), Violation> {
    let start = |node, incarnation| world.hosts.start(node, node::live(Rc::clone(world), node, incarnation));
    let dies = |node: usize| world.lives.borrow_mut()[node] = None;
    let note = |line: std::fmt::Arguments<'_>| world.note(line);
    let places = (&world.hosts, &world.network);
    let acts = Acts { note: &note, start: &start, dies: &dies, count: &|_| () };
    let mut turmoil = Turmoil::begin(world.members.count(), dice, places, acts);
    let clients: Vec<Client> =
        (0..CLIENT_COUNT).map(|number| Client::new(Rc::clone(world), number)).collect();
    let work = futures_util::future::join_all(clients.into_iter().map(Client::work));
    let faults = async {
        turmoil.rage(FAULT_COUNT).await;
        turmoil.settle().await;
        *world.is_settled.borrow_mut() = true;
    };
    let (done, ()) = futures_util::future::join(work, faults).await;
    done.into_iter().collect()
}
