//! The node that is attacked, its bystanders, and those who attack it for a while.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::bystander::{Bystander, Waits};
use super::place::{Figures, Place, Plan};
use super::scenarios::Scenario;
use crate::crash::Dice;
use crate::measure::{replicated_keyspace, size_bytes};
use crate::node::fresh_folder;
use crate::report::Failure;

/// An attacker that was sent away comes back after this.
const COMES_BACK_AFTER: Duration = Duration::from_millis(20);
/// What is wrong is told so many times.
const WRONG_MAX: usize = 5;
/// Who asks another node of a ring goes on for so long when the one that was attacked has ended.
const AFTER: Duration = Duration::from_secs(1);

/// Where an attack takes place.
pub(super) struct Arena {
    place: Mutex<Place>,
    /// Where the node that is attacked speaks CQL, and is managed.
    pub(super) address: String,
    pub(super) port: u16,
    pub(super) management_port: u16,
    pub(super) memory_bytes: u64,
    /// How many replicas its rows have.
    pub(super) replicas: u64,
    other_address: Option<String>,
    /// Was the node told to end, or killed? Then it need not answer any more.
    is_ending: AtomicBool,
    is_over: AtomicBool,
    attack_count: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

/// What a node came to, and how long who asked it waited.
pub(super) struct Effect {
    pub(super) figures: Figures,
    pub(super) waits: Waits,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) memory_bytes: u64,
    pub(super) attacked: Effect,
    /// The worst of the other nodes of a ring.
    pub(super) others: Option<Effect>,
    pub(super) stop_seconds: f64,
    pub(super) attack_count: u64,
    pub(super) wrong: Vec<String>,
    /// What the nodes' logs say of turns that were long.
    pub(super) long_turns: Vec<String>,
}

impl Arena {
    /// Starts what is attacked and fills it with what the scenario is about.
    pub(super) fn start(
        scenario: &Scenario,
        memory: &str,
        shards: &str,
        is_ring: bool,
    ) -> Result<Arena, Failure> {
        let has_secret = scenario.has_secret;
        let plan = Plan { memory, shards, words: scenario.words, is_ring, has_secret };
        let place = Place::start(&fresh_folder("attack")?, &plan)?;
        let arena = Arena {
            address: format!("127.0.0.1:{}", place.port()),
            port: place.port(),
            management_port: place.management_port(),
            memory_bytes: size_bytes(memory)?,
            replicas: place.replicas(),
            other_address: place.other_address(),
            place: Mutex::new(place),
            is_ending: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            attack_count: AtomicU64::new(0),
            wrong: Mutex::default(),
        };
        (scenario.prepare)(&arena)?;
        Ok(arena)
    }

    /// A statement that makes a keyspace with a replica of each row on each node.
    pub(super) fn keyspace(&self, name: &str) -> String {
        replicated_keyspace(name, self.replicas)
    }

    /// Is it time to go home?
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Must every request be answered?
    pub(super) fn is_served(&self) -> bool {
        !self.is_ending.load(Ordering::SeqCst)
    }

    /// Sleeps, but not longer than the attack.
    pub(super) fn sleep(&self, time: Duration) {
        let began = Instant::now();
        while !self.is_over() && began.elapsed() < time {
            std::thread::sleep(Duration::from_millis(10).min(time));
        }
    }

    /// Notes an answer that is wrong. What a node says that was told to end is not judged.
    pub(super) fn wrong(&self, what: String) {
        if !self.is_served() {
            return;
        }
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.len() < WRONG_MAX {
            wrong.push(what);
        }
    }

    /// Has the attack go on for a while, stops the node in the midst of it, and looks at what is left.
    pub(super) fn fight(self, scenario: &Scenario, time: Duration, seed: u64) -> Result<Outcome, Failure> {
        let mut bystander = Bystander::open(&self.address, "attacked", self.replicas)?;
        let other = self.other_address.as_ref();
        let mut other = other.map(|address| Bystander::open(address, "other", self.replicas)).transpose()?;
        let (figures, stop_seconds) = std::thread::scope(|scope| -> Result<_, Failure> {
            for worker in 0..scenario.worker_count {
                let mut dice = Dice(seed.wrapping_add(worker));
                let arena = &self;
                scope.spawn(move || arena.attack(scenario, &mut dice));
            }
            // A node of a ring is lost at the end of the attack, which who asks another one must not notice.
            let others = other.as_mut().map(|other| scope.spawn(move || other.ask_for(time + AFTER)));
            let asked = bystander.ask_for(time);
            let figures = self.place.lock().unwrap_or_else(PoisonError::into_inner).figures();
            self.is_ending.store(true, Ordering::SeqCst);
            let stopped = self.end(seed);
            let others = others.map_or(Ok(()), |others| {
                others.join().unwrap_or_else(|_| Err(Failure::new("the other bystander panicked")))
            });
            self.is_over.store(true, Ordering::Relaxed);
            asked.and(others).and(figures).and_then(|figures| Ok((figures, stopped?)))
        })?;
        let place = self.place.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut wrong = self.wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
        let log = place.log()?;
        let lines_with = |words| log.lines().filter(move |line| line.contains(words)).map(str::to_owned);
        wrong.extend(lines_with("panicked at").take(1));
        let long_turns = lines_with("a turn kept its shard").collect();
        // The files are what it left; they are served again.
        let (place, address) = place.serve_again()?;
        for bystander in std::iter::once(&bystander).chain(&other) {
            wrong.extend(bystander.missing(&address)?);
        }
        place.stop()?;
        let (attacked, worst) = attacked_and_worst_other(&figures);
        Ok(Outcome {
            memory_bytes: self.memory_bytes,
            attacked: Effect { figures: attacked, waits: bystander.waits() },
            others: other.map(|other| Effect { figures: worst, waits: other.waits() }),
            stop_seconds,
            attack_count: self.attack_count.into_inner(),
            wrong,
            long_turns,
        })
    }

    fn attack(&self, scenario: &Scenario, dice: &mut Dice) {
        while !self.is_over() {
            match (scenario.act)(self, dice) {
                Ok(count) => _ = self.attack_count.fetch_add(count, Ordering::Relaxed),
                // Sent away, or the node has ended: both are for others to judge.
                Err(_) => self.sleep(COMES_BACK_AFTER),
            }
        }
    }

    /// Ends the node while it is attacked: by SIGTERM, within the time that is returned, or by SIGKILL.
    fn end(&self, seed: u64) -> Result<f64, Failure> {
        let began = Instant::now();
        let is_killed = seed.is_multiple_of(2);
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.end(if is_killed { "KILL" } else { "TERM" })?;
        Ok(if is_killed { 0.0 } else { began.elapsed().as_secs_f64() })
    }
}

/// Of the first node, and of the others the largest figure of each kind.
fn attacked_and_worst_other(all: &[Figures]) -> (Figures, Figures) {
    let worst = |worst: Figures, other: &Figures| Figures {
        resident_bytes: worst.resident_bytes.max(other.resident_bytes),
        turn_ms: worst.turn_ms.max(other.turn_ms),
        queued_ms: worst.queued_ms.max(other.queued_ms),
    };
    let others = all.iter().skip(1).fold(Figures::default(), worst);
    (all.first().copied().unwrap_or_default(), others)
}
