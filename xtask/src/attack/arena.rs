//! One node, its bystander, and those who attack it for a while.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::bystander::{Bystander, Waits};
use super::scenarios::Scenario;
use crate::crash::Dice;
use crate::measure::{high_water_bytes, labelled_metrics, size_bytes};
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::report::Failure;

/// An attacker that was sent away comes back after this.
const COMES_BACK_AFTER: Duration = Duration::from_millis(20);
/// What is wrong is told so many times.
const WRONG_MAX: usize = 5;

/// Where an attack takes place.
pub(super) struct Arena {
    node: Mutex<Node>,
    pub(super) address: String,
    pub(super) management_port: u16,
    pub(super) memory_bytes: u64,
    options: NodeOptions,
    /// Was the node told to end, or killed? Then it need not answer any more.
    is_ending: AtomicBool,
    is_over: AtomicBool,
    attack_count: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) memory_bytes: u64,
    pub(super) resident_bytes: u64,
    pub(super) waits: Waits,
    pub(super) turn_ms: f64,
    pub(super) queued_ms: f64,
    pub(super) stop_seconds: f64,
    pub(super) attack_count: u64,
    pub(super) wrong: Vec<String>,
    /// What the node's log says of turns that were long.
    pub(super) long_turns: Vec<String>,
}

impl Arena {
    /// Starts a node and fills it with what the scenario is about.
    pub(super) fn start(scenario: &Scenario, memory: &str, shards: &str) -> Result<Arena, Failure> {
        let data = fresh_folder("attack")?.join("data");
        let mut words = vec!["--memory", memory, "--shards", shards];
        words.extend(scenario.words);
        let options = NodeOptions::new(data, &words);
        let node = Node::start(&options)?;
        let arena = Arena {
            address: node.address(),
            management_port: node.management_port,
            memory_bytes: size_bytes(memory)?,
            node: Mutex::new(node),
            options,
            is_ending: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            attack_count: AtomicU64::new(0),
            wrong: Mutex::default(),
        };
        (scenario.prepare)(&arena)?;
        Ok(arena)
    }

    /// Is it time to go home?
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Where it speaks CQL.
    pub(super) fn port(&self) -> u16 {
        self.node().port
    }

    /// The node's process.
    pub(super) fn process_id(&self) -> u32 {
        self.node().process_id()
    }

    fn node(&self) -> MutexGuard<'_, Node> {
        self.node.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut bystander = Bystander::open(&self.address)?;
        let figures = std::thread::scope(|scope| {
            for worker in 0..scenario.worker_count {
                let mut dice = Dice(seed.wrapping_add(worker));
                let arena = &self;
                scope.spawn(move || arena.attack(scenario, &mut dice));
            }
            let asked = bystander.ask_for(time);
            let figures = self.figures();
            self.is_ending.store(true, Ordering::SeqCst);
            let stopped = self.end(seed);
            self.is_over.store(true, Ordering::Relaxed);
            asked.and(figures).and_then(|figures| Ok((figures, stopped?)))
        });
        let ((resident_bytes, turn_ms, queued_ms), stop_seconds) = figures?;
        let mut wrong = self.wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
        let log = std::fs::read(self.options.data.with_extension("log"))?;
        let log = String::from_utf8_lossy(&log);
        let lines_with = |words| log.lines().filter(move |line| line.contains(words)).map(str::to_owned);
        wrong.extend(lines_with("panicked at").take(1));
        let long_turns = lines_with("a turn kept its shard").collect();
        // The files are what it left; another node serves them.
        drop(self.node);
        let again = Node::start(&NodeOptions { port: 0, ..self.options })?;
        wrong.extend(bystander.missing(&again.address())?);
        again.stop()?;
        Ok(Outcome {
            memory_bytes: self.memory_bytes,
            resident_bytes,
            waits: bystander.waits(),
            turn_ms,
            queued_ms,
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

    /// Resident memory at its most, the longest own and queued turn in milliseconds.
    fn figures(&self) -> Result<(u64, f64, f64), Failure> {
        let resident_bytes = high_water_bytes(self.process_id())?;
        let metrics = self.node().metrics()?;
        let longest = |name: &str| {
            let seconds = labelled_metrics(&metrics, &format!("peristyle_shard_turn_longest_{name}_seconds"));
            1000.0 * seconds.into_iter().fold(0.0, f64::max)
        };
        Ok((resident_bytes, longest("own"), longest("queued")))
    }

    /// Ends the node while it is attacked: by SIGTERM, within the time that is returned, or by SIGKILL.
    fn end(&self, seed: u64) -> Result<f64, Failure> {
        let began = Instant::now();
        let is_killed = seed.is_multiple_of(2);
        self.node().end(if is_killed { "KILL" } else { "TERM" })?;
        Ok(if is_killed { 0.0 } else { began.elapsed().as_secs_f64() })
    }
}
