//! Nodes that talk: five machines, connections of `messaging` between all of them, cuts, resets and kills.
//!
//! Each asks the others, with numbers that are used once, and keeps a ledger of what it was told. What a request may
//! have done must agree with that:
//!
//! ```text
//!   answered                   it came once, and the answer is its own
//!   nothing was sent           it came to nobody
//!   declined, broken, given up it came once or not at all
//! ```
//!
//! After the faults comes a phase without any: all must then be able to ask all others.

pub(crate) mod identity;
mod ledger;
mod talker;

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
use ledger::{Ledger, Told};
use talker::{Life, live};

/// Nodes of a run.
pub(crate) const NODE_COUNT: usize = 5;
/// Faults of a run.
const FAULT_COUNT: u64 = 60;

/// One in ten is declined, and some wait for a millisecond only: so many in a row go unanswered by a broken node alone.
const TRIES_MAX: usize = 30;

/// What all parts of a run share.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) hosts: Hosts,
    pub(crate) network: MemoryNetwork,
    pub(crate) ledger: RefCell<Ledger>,
    pub(crate) events: RefCell<Events>,
    /// The life that each node lives, as it can be asked from outside; `None` while it is dead.
    pub(crate) lives: RefCell<[Option<Rc<Life>>; NODE_COUNT]>,
}

impl World {
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        self.events.borrow_mut().add(line);
    }
}

/// Runs one seed.
pub fn simulate_peers(seed: u64) -> Outcome {
    let dice = Dice::new(seed, 0, 4_000);
    let options = MemoryNetworkOptions {
        latency_max: Duration::from_micros(dice.between(50, 5_000)),
        window_bytes: *dice.pick(&[2_000, 20_000, 256 << 10]),
        ..MemoryNetworkOptions::default()
    };
    let world = Rc::new(World {
        seed,
        hosts: Hosts::new(NODE_COUNT),
        network: MemoryNetwork::new(seed, options),
        ledger: RefCell::default(),
        events: RefCell::default(),
        lives: RefCell::default(),
    });
    let outcome = in_paused_time(world.hosts.run_beside(run(&world, &dice)));
    world.lives.borrow_mut().iter_mut().for_each(|life| *life = None);
    world.hosts.clear();
    let violation = outcome.and_then(|()| world.ledger.borrow().check()).err();
    let events = world.events.borrow().clone();
    Outcome { seed, violation, events, scale: Scale::default() }
}

async fn run(world: &Rc<World>, dice: &Dice) -> Result<(), Violation> {
    let start = |node, incarnation| world.hosts.start(node, live(Rc::clone(world), node, incarnation));
    let dies = |node: usize| world.lives.borrow_mut()[node] = None;
    let note = |line: std::fmt::Arguments<'_>| world.note(line);
    let places = (&world.hosts, &world.network);
    let acts = Acts { note: &note, start: &start, dies: &dies, count: &|_| () };
    let mut turmoil = Turmoil::begin(NODE_COUNT, dice, places, acts);
    turmoil.rage(FAULT_COUNT).await;
    turmoil.settle().await;
    all_can_talk(world).await
}

async fn all_can_talk(world: &Rc<World>) -> Result<(), Violation> {
    for one in 0..NODE_COUNT {
        let life = world.lives.borrow()[one].clone();
        let life = life.ok_or_else(|| Violation::new(format!("node {one} does not live")))?;
        for other in (0..NODE_COUNT).filter(|other| *other != one) {
            let mut told = Vec::new();
            while !told.last().is_some_and(|told| *told == Told::Answered) {
                if told.len() == TRIES_MAX {
                    return Err(Violation::new(format!("{one} can not ask {other}: {told:?}")));
                }
                told.push(life.ask(world, other).await);
            }
        }
    }
    Ok(())
}
