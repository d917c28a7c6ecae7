//! One life of a node: its part of the agreement, and what it answers others.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use cluster::raft::{Agreement, AgreementOptions, Answers, OpenError};
use messaging::{accept, answer};
use runtime::{Background, Failsafe, Io, Network, Plants, Random, Runtime, SeededRandom, VirtualClock};
use tokio::sync::mpsc;
use tokio::task::spawn_local;

use super::register::Register;
use super::{Node, World};
use crate::dice::Dice;
use crate::peers::identity::{Me, address, host_id, listening};

/// Starts a node for the first time.
pub(super) fn start(world: &Rc<World>, node: usize) {
    let incarnation = {
        let incarnations = &mut *world.incarnations.borrow_mut();
        incarnations[node] += 1;
        incarnations[node]
    };
    world.note(format_args!("{node} starts, {incarnation}"));
    world.lives.borrow_mut()[node] = None;
    world.hosts.start(node, live(Rc::clone(world), node, incarnation));
}

/// Starts a node on what its last life has left: all of it, or what a power cut leaves.
pub(super) fn start_again(world: &Rc<World>, node: usize, dice: &Dice) {
    let disk = world.hosts.disk(node);
    let is_power_cut = disk.faults().is_off() || dice.one_in(2);
    world.note(format_args!("{node} has lost its power: {is_power_cut}"));
    let left = if is_power_cut { disk.crash(dice.between(0, u64::MAX - 1)) } else { disk.kill() };
    world.hosts.put_disk(node, left);
    start(world, node);
}

async fn live(world: Rc<World>, node: usize, incarnation: u64) {
    let seed = world.seed.wrapping_mul(131).wrapping_add(incarnation << 8 | node as u64);
    let random = Arc::new(SeededRandom::new(seed));
    let runtime = Runtime {
        disk: Arc::new(world.hosts.disk(node)),
        network: world.network.host(address(node)),
        clock: Arc::new(VirtualClock::new(0)),
        background: Background::inline(),
        io: Io::seeded(random.next_u64(), world.plan.io_delay_max),
        random,
        failsafe: Failsafe::default(),
        plants: Plants::default(),
    };
    let options = AgreementOptions {
        node: host_id(node),
        address: listening(node),
        directory: PathBuf::from("/agreement"),
        timing: world.plan.timing,
        snapshot_entry_count: world.plan.snapshot_entry_count,
    };
    let me: Rc<Me> = Rc::new(Me { node, incarnation, shard_count: 1 });
    let register = Register::new(Rc::clone(&world), node);
    let agreement = match Agreement::start(options, &runtime, me.clone(), register).await {
        Ok(agreement) => agreement,
        Err(error) => return did_not_open(&world, node, &error),
    };
    spawn_local(watch(Rc::clone(&world), node, agreement.clone()));
    spawn_local(listen(runtime.network, node, me, agreement.clone()));
    let (inbox, mut jobs) = mpsc::unbounded_channel();
    world.lives.borrow_mut()[node] = Some(inbox);
    while let Some(job) = jobs.recv().await {
        let job: Box<dyn FnOnce(Node) -> _> = job;
        spawn_local(job(agreement.clone()));
    }
}

/// A disk that fails is no news; one whose durable bytes are other ones was never seen.
fn did_not_open(world: &World, node: usize, error: &OpenError) {
    world.note(format_args!("{node} does not start: {error}"));
    if let OpenError::Damaged { .. } = error {
        world.checker.borrow_mut().wrong(format!("node {node} can not open its log: {error}"));
    }
    world.hosts.doom(node);
}

/// A node whose part of the agreement has ended ends.
async fn watch(world: Rc<World>, node: usize, agreement: Node) {
    let ended = agreement.run().await;
    world.note(format_args!("{node} ends: {ended:?}"));
    world.hosts.doom(node);
}

async fn listen(network: Network, node: usize, me: Rc<Me>, agreement: Node) {
    let listener = network.bind(listening(node), 1).expect("nobody else lives there").remove(0);
    let listener = listener.open().expect("it is in memory");
    let service = Rc::new(Answers::new(agreement));
    let random = SeededRandom::new(node as u64);
    while let Ok((stream, _)) = listener.accept().await {
        // A shake of hands that hangs keeps others for its patience at most; they try again.
        if let Ok(met) = accept(stream, &*me, &random).await {
            spawn_local(answer(met, me.clone(), service.clone()));
        }
    }
}
