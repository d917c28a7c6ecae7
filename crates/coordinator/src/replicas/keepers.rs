//! Which other nodes keep a logged batch, how they are asked to, and how they are told to let it go.
//!
//! They are chosen as Cassandra does it (`ReplicaPlans.filterBatchlogEndpoints` of 5.0): two nodes that live, of this
//! node's data centre and other racks than its own, each of another one; where there are fewer racks, what there is.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use ::replica::{Answer, DROPPED_TOGETHER_MAX, Request};
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use messaging::PATIENCE_MAX;
use ring::NodeIndex;
use rows::Mutation;
use runtime::{Plant, Random};
use smallvec::SmallVec;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use super::write::said_of;
use super::{Missed, Replicas, RingSeat, misanswered};
use crate::TimeoutKind;

/// So many nodes have the record of a batch, where there are so many.
pub(crate) const RECORD_COUNT: usize = 2;

/// Batches that are whole within this time are let go together.
const LET_GO_EVERY: Duration = Duration::from_millis(50);

/// Nodes that are to keep a batch.
pub(crate) type Keepers = SmallVec<[NodeIndex; RECORD_COUNT]>;

/// What nodes have said that were asked to keep a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keeping {
    /// So many have it.
    pub(crate) kept: u32,
    /// So many do not have it, and never will.
    pub(crate) refused: u32,
    /// Of so many nobody knows.
    pub(crate) silent: u32,
}

impl Replicas {
    /// The epoch of the schema that all of this is planned on.
    pub(crate) fn planned_on(&self) -> u64 {
        self.schema_epoch
    }
}

/// Other nodes that a batch may be recorded on, [`RECORD_COUNT`] at most.
pub(crate) fn keepers_of(replicas: &Replicas) -> Keepers {
    if replicas.has_planted(Plant::BatchKeptNowhereElse) {
        return Keepers::new();
    }
    let (view, here) = (&replicas.view, replicas.view.here());
    let is_near = |node: NodeIndex| node != here && view.center_of(node) == view.center_of(here);
    let may_keep = |node: &NodeIndex| is_near(*node) && view.is_alive(*node) && !view.is_gone(*node);
    let candidates = view.nodes().filter(may_keep).map(|node| (node, view.rack_of(node))).collect();
    choose(candidates, view.rack_of(here), &*replicas.shard.local().runtime().random)
}

/// Asks nodes to keep a batch, which is planned on this epoch of the schema, until that moment. What they have said
/// so far is told to `heard`.
///
/// # Cancel safety
/// Dropped, they may keep it or not.
pub(crate) async fn keep_batch(
    replicas: &Replicas,
    keepers: &[NodeIndex],
    (id, mutations): (Uuid, &[Mutation]),
    deadline: Instant,
    heard: impl Fn(&Keeping),
) -> Keeping {
    let ask = |node: &NodeIndex| {
        let peer = replicas.view.peer(*node).expect("it is another node");
        // Its record says on what it is planned; keeping it waits for nothing.
        let answer = replicas.ask(peer, [], deadline, |out| Request::put_keep_batch(id, mutations, out));
        async move {
            let answer = timeout_at(deadline, answer).await;
            match answer.unwrap_or(Err(Missed::Silent { was_sent: true }))? {
                Answer::Written(written) => said_of(&Ok(written), 0),
                _ => Err(misanswered()),
            }
        }
    };
    let mut keeping = Keeping::default();
    let mut asked: FuturesUnordered<_> = keepers.iter().map(ask).collect();
    while let Some(said) = asked.next().await {
        match said {
            Ok(()) => keeping.kept += 1,
            Err(Missed::Silent { was_sent: true }) => keeping.silent += 1,
            Err(Missed::Silent { was_sent: false } | Missed::Failed(_)) => keeping.refused += 1,
        }
        heard(&keeping);
    }
    keeping
}

/// Who these are, whatever becomes of the ring.
pub(crate) fn hosts_of(replicas: &Replicas, keepers: &[NodeIndex]) -> SmallVec<[Uuid; RECORD_COUNT]> {
    keepers.iter().map(|node| replicas.view.host_of(*node)).collect()
}

/// Two of these nodes, or what there is.
fn choose(mut candidates: Vec<(NodeIndex, &str)>, own_rack: &str, random: &dyn Random) -> Keepers {
    if candidates.len() <= RECORD_COUNT {
        return candidates.into_iter().map(|(node, _)| node).collect();
    }
    let elsewhere = candidates.iter().filter(|(_, rack)| *rack != own_rack).count();
    if elsewhere >= RECORD_COUNT {
        candidates.retain(|(_, rack)| *rack != own_rack);
    }
    let mut racks: BTreeMap<&str, Vec<NodeIndex>> = BTreeMap::new();
    candidates.iter().for_each(|(node, rack)| racks.entry(rack).or_default().push(*node));
    let take = |nodes: &mut Vec<NodeIndex>| nodes.swap_remove(random.below(nodes.len() as u64) as usize);
    let mut racks: Vec<Vec<NodeIndex>> = racks.into_values().collect();
    if let [only] = &mut *racks {
        return (0..RECORD_COUNT).map(|_| take(only)).collect();
    }
    let mut chosen = Keepers::new();
    while chosen.len() < RECORD_COUNT {
        let rack = random.below(racks.len() as u64) as usize;
        chosen.push(take(&mut racks.swap_remove(rack)));
    }
    chosen
}

impl RingSeat {
    /// These nodes need not keep that batch any more. They are told in a moment; one that does not hear it writes the
    /// batch again, which changes nothing.
    pub(crate) fn let_batch_go(self: &Rc<Self>, hosts: &[Uuid], id: Uuid) {
        let is_first = {
            let mut let_go = self.let_go.borrow_mut();
            let is_first = let_go.is_empty();
            hosts.iter().for_each(|host| let_go.entry(*host).or_default().push(id));
            is_first
        };
        if is_first && !hosts.is_empty() {
            let seat = Rc::clone(self);
            runtime::spawn_local("batches let go", async move {
                sleep(LET_GO_EVERY).await;
                seat.tell_let_go().await;
            });
        }
    }

    async fn tell_let_go(&self) {
        let let_go = self.let_go.take();
        let Some(replicas) = self.replicas() else { return };
        let deadline = Instant::now() + self.timeouts().get(TimeoutKind::Write).min(PATIENCE_MAX);
        let mut told = Vec::new();
        for (host, ids) in &let_go {
            let node = replicas.view.index_of(*host);
            let Some(peer) = node.and_then(|node| replicas.view.peer(node)) else { continue };
            for ids in ids.chunks(DROPPED_TOGETHER_MAX) {
                told.push(replicas.ask(peer, [], deadline, |out| Request::put_drop_batches(ids, out)));
            }
        }
        // Who has not heard it tries for nothing; there is nothing else to be done.
        _ = join_all(told).await;
    }
}

#[cfg(test)]
mod tests {
    use runtime::SeededRandom;

    use super::*;

    /// Who is chosen from nodes in these racks by one in the first, in a thousand tries.
    fn chosen(racks: &[&str]) -> Vec<Vec<u16>> {
        let random = SeededRandom::new(1);
        let candidates = || racks.iter().zip(0..).map(|(rack, node)| (NodeIndex(node), *rack)).collect();
        let one = |_| {
            let mut nodes: Vec<u16> = choose(candidates(), "r1", &random).iter().map(|node| node.0).collect();
            nodes.sort_unstable();
            nodes
        };
        let mut all: Vec<Vec<u16>> = (0..1_000).map(one).collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn two_of_other_racks_are_chosen_or_what_there_is() {
        assert_eq!(chosen(&[]), [[0u16; 0]]);
        assert_eq!(chosen(&["r1"]), [[0]]);
        assert_eq!(chosen(&["r1", "r1"]), [[0, 1]]);
        assert_eq!(chosen(&["r1", "r2"]), [[0, 1]], "there are no others");
        assert_eq!(chosen(&["r1", "r1", "r1"]), [[0, 1], [0, 2], [1, 2]], "one rack is all there is");
        assert_eq!(chosen(&["r1", "r1", "r2"]), [[0, 2], [1, 2]], "one of each rack");
        assert_eq!(chosen(&["r1", "r2", "r2"]), [[1, 2]], "both of the other rack");
        assert_eq!(chosen(&["r1", "r2", "r3"]), [[1, 2]]);
        assert_eq!(chosen(&["r2", "r2", "r3"]), [[0, 2], [1, 2]]);
        assert_eq!(chosen(&["r1", "r2", "r3", "r4"]), [[1, 2], [1, 3], [2, 3]]);
    }
}
