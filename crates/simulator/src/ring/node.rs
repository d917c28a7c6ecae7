//! One life of a node: a whole server with its part in the ring.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use runtime::{Background, Io, ManualClock, Plant, Plants, Random, Runtime, SeededRandom, VirtualClock};
use server::LocalServer;
use tokio::time::sleep;

use super::World;
use super::plan::NodePlan;
use crate::dice::Dice;
use crate::faults::Fault;
use crate::peers::identity::address;

/// Between two tries of a node that is to take a place.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// How far somebody sets a clock between two lives.
pub(crate) const CLOCK_STEP_MAX: Duration = Duration::from_secs(2);
/// Each sync of a disk that takes so long is felt.
const SLOW: Duration = Duration::from_millis(20);

/// Lives until it is killed.
pub(crate) async fn live(world: Rc<World>, node: usize, incarnation: u64) {
    let runtime = runtime_of(&world, node, incarnation);
    let server = loop {
        match LocalServer::start(&runtime, world.plan.options(node, &world.places)).await {
            Ok(server) => break server,
            // Others have not noticed yet that it was lost, or somebody else is joining: whoever runs it tries again.
            Err(error) if may_pass(&error.to_string()) => {
                world.stage.note(format_args!("node {node} waits for its place: {error}"));
                sleep(RETRY_AFTER).await;
            }
            Err(error) => return wrong(&world, node, format_args!("does not start: {error}")),
        }
    };
    world.stage.note(format_args!("node {node} serves"));
    let known = server.ring().expect("it was told of a ring").clone();
    world.batches.borrow_mut()[node] = Some(Box::new(server.logged_batches()));
    world.mismatched.borrow_mut()[node] = Some(Box::new(server.mismatched_reads()));
    world.marks.borrow_mut()[node] = server.marks().cloned();
    world.lives.borrow_mut()[node] = Some(known.clone());
    let why = known.until_ended().await;
    wrong(&world, node, format_args!("leaves the ring: {why}"));
}

/// Why a place can not be taken yet, or nobody comes in.
fn may_pass(why: &str) -> bool {
    ["is alive, and keeps its place", "is getting its rows", "can not reach it at"]
        .iter()
        .any(|part| why.contains(part))
}

/// A node has ended: it may when its disk has no power.
fn wrong(world: &World, node: usize, what: std::fmt::Arguments<'_>) {
    if !world.stage.hosts.disk(node).faults().is_off() {
        world.wrong(format!("node {node} {what}"));
    }
}

pub(super) fn runtime_of(world: &World, node: usize, incarnation: u64) -> Runtime {
    let dice = Dice::new(world.stage.seed, incarnation, 8_100 + node as u64);
    let seed = world.stage.seed.wrapping_mul(31).wrapping_add(incarnation << 8 | node as u64);
    let random = Arc::new(SeededRandom::new(seed));
    let plants = Plants::default();
    let differing = world.plan.cast.do_deciders_differ.then_some(Plant::DecidersDiffer);
    world.plant.into_iter().chain(differing).for_each(|plant| plants.plant(plant));
    // Of a slow disk each sync is felt.
    let io_delay_max = Duration::from_micros(*dice.pick(&[100, 2_000, 2_000, 20_000, 150_000]));
    let io_delay_max = world.plan.sync_max.unwrap_or(io_delay_max);
    world.disk_delays.borrow_mut()[node] = io_delay_max;
    if io_delay_max >= SLOW {
        world.stage.faults.count(Fault::SlowDisk);
    }
    Runtime {
        disk: Arc::new(world.stage.hosts.disk(node)),
        network: world.stage.network.host(address(node)),
        clock: Arc::new(VirtualClock::drifting(
            wall_clock(world, node, &dice),
            world.plan.nodes[node].clock_drift,
        )),
        background: Background::seeded_tasks(random.next_u64(), Duration::from_millis(200)),
        io: Io::seeded(random.next_u64(), io_delay_max),
        random,
        failsafe: world.failsafes[node].clone(),
        plants,
    }
}

/// What the wall clock shows when a life begins: somebody has set it, once in a while.
fn wall_clock(world: &World, node: usize, dice: &Dice) -> i64 {
    let step_max = CLOCK_STEP_MAX.as_micros() as u64;
    let is_set = dice.one_in(5) && world.plan.sync_max.is_none();
    let step = match is_set {
        true => dice.between(0, 2 * step_max) as i64 - step_max as i64,
        false => 0,
    };
    if step != 0 {
        world.stage.faults.count(Fault::ClockStep);
    }
    world.clock_of(node) + step
}

impl World {
    /// What a node's wall clock shows, but for what somebody has set it by since it began to live.
    pub(crate) fn clock_of(&self, node: usize) -> i64 {
        let elapsed = i64::try_from(self.stage.begun.elapsed().as_micros()).expect("some minutes");
        let NodePlan { clock_offset_micros, clock_drift, .. } = self.plan.nodes[node];
        ManualClock::DEFAULT_START_MICROS + elapsed + elapsed / 1_000_000 * clock_drift + clock_offset_micros
    }
}
