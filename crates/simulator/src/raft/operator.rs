//! An operator who founds the ring, and then changes its members without thinking.

use std::rc::Rc;
use std::time::Duration;

use cluster::raft::AgreementError;
use tokio::time::sleep;

use super::{NODE_COUNT, World};
use crate::peers::identity::{host_id, listening};

/// An act of the operator.
#[derive(Clone, Copy, Debug)]
enum Act {
    AddLearner(usize),
    MakeVoter(usize),
    Remove(usize),
    HandOver(usize),
}

async fn act(world: &World, via: usize, act: Act) -> Option<Result<(), AgreementError>> {
    let told = world
        .on(via, async move |agreement| match act {
            Act::AddLearner(node) => agreement.add_learner(host_id(node), listening(node)).await,
            Act::MakeVoter(node) => agreement.make_voter(host_id(node)).await,
            Act::Remove(node) => agreement.remove(host_id(node)).await,
            Act::HandOver(node) => agreement.hand_over(host_id(node)).await,
        })
        .await;
    world.note(format_args!("{act:?} through {via}: {told:?}"));
    told
}

/// Founds an agreement of the first nodes.
pub(super) async fn found(world: &World) {
    while world.on(0, async |agreement| agreement.found().await).await.is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    for node in 1..world.plan.voter_count {
        while act(world, 0, Act::AddLearner(node)).await != Some(Ok(())) {}
        while act(world, 0, Act::MakeVoter(node)).await != Some(Ok(())) {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Works until the faults end.
pub(super) async fn work(world: Rc<World>) {
    let dice = world.dice(1);
    while !world.is_calm.get() {
        sleep(Duration::from_millis(dice.between(200, 1_700))).await;
        let node = dice.below(NODE_COUNT);
        let what = match dice.below(8) {
            0 | 1 => Act::AddLearner(node),
            2..=4 => Act::MakeVoter(node),
            5 => Act::Remove(node),
            _ => Act::HandOver(node),
        };
        act(&world, dice.below(NODE_COUNT), what).await;
    }
}
