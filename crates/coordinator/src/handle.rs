//! The handle a shard's sessions hold.

use std::cell::OnceCell;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cluster::MetadataLog;
use messaging::{Handed, PATIENCE_MAX};
use read::TombstoneThresholds;
use runtime::{Io, Plant, Runtime};
use schema::{Schema, Table, TableId};
use storage::{Health, Layout, ShardHandle, unsettled};
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use crate::batch_keeper::BatchKeeper;
use crate::conditional::{Decider, Deciders, decide_all, settle_accepted};
use crate::count_groups::CountGroups;
use crate::kept_batches::KeptBatches;
use crate::replicas::{AgreementCounts, ReadRepairs, ReplicaService, Replicas, RingSeat};
use crate::under_way::BatchesUnderWay;
use crate::{Owners, TimeoutKind};

/// What the coordinators of all shards of a node share; asked for schema changes, truncations and logged batches only.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) metadata: Arc<tokio::sync::Mutex<MetadataLog>>,
    /// Held by the truncation that goes on.
    pub(crate) truncation: Arc<tokio::sync::Mutex<()>>,
    pub(crate) batches: Arc<BatchesUnderWay>,
    pub(crate) kept_batches: Arc<KeptBatches>,
    pub(crate) deciders: Deciders,
    pub(crate) agreement_counts: Arc<AgreementCounts>,
    /// One of each shard with a seat in a ring.
    read_repairs: Arc<Mutex<Vec<Arc<ReadRepairs>>>>,
}

impl Node {
    /// A node with that metadata log.
    pub fn new(metadata: MetadataLog) -> Self {
        Node {
            metadata: Arc::new(tokio::sync::Mutex::new(metadata)),
            truncation: Arc::default(),
            batches: Arc::default(),
            kept_batches: Arc::default(),
            deciders: Deciders::default(),
            agreement_counts: Arc::default(),
            read_repairs: Arc::default(),
        }
    }

    /// Counts of reads that compared the answers of several replicas, one of each shard.
    pub fn read_repairs(&self) -> Vec<Arc<ReadRepairs>> {
        self.read_repairs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often and how fast replicas have agreed on conditional changes that this node proposed.
    pub fn agreement_counts(&self) -> &AgreementCounts {
        &self.agreement_counts
    }

    /// How many logged batches failed after they were recorded or may have been: they are tried again until they are
    /// whole or gone.
    pub fn unfinished_batch_count(&self) -> usize {
        self.batches.unfinished_count()
    }

    /// How many logged batches it keeps in a ring: for other nodes, and of an earlier run. They are written again when
    /// nobody lets them go.
    pub fn kept_batch_count(&self) -> usize {
        self.kept_batches.count()
    }

    /// How many of those were written again so far.
    pub fn replayed_batch_count(&self) -> u64 {
        self.kept_batches.replayed_count()
    }
}

/// Carries reads and writes. Belongs to one shard; clone it freely there.
#[derive(Clone)]
pub struct Coordinator {
    pub(crate) node: Node,
    shard: ShardHandle,
    /// `None` on a node that takes no part in a ring.
    ring: Option<Rc<RingSeat>>,
    /// Who decides about statements that others have sent, once that is known.
    pub(crate) decider: Rc<OnceCell<Weak<dyn Decider>>>,
    /// Increments that wait for others of their partition.
    pub(crate) count_groups: Rc<CountGroups>,
}

impl Coordinator {
    /// The coordinator of that shard, on a node that is alone.
    pub fn new(node: Node, shard: ShardHandle) -> Self {
        Coordinator { node, shard, ring: None, decider: Rc::default(), count_groups: Rc::default() }
    }

    /// The coordinator of a shard with a seat in a ring, which answers on the connections that are handed to it.
    pub fn in_ring(
        node: Node,
        shard: ShardHandle,
        seat: Rc<RingSeat>,
        handed: UnboundedReceiver<Handed>,
    ) -> Self {
        // Before anybody reads here.
        unsettled(shard.local()).note_unknown();
        let counts = Arc::clone(seat.read_repairs());
        node.read_repairs.lock().unwrap_or_else(PoisonError::into_inner).push(counts);
        let keeper = BatchKeeper::new(node.clone(), shard.clone(), Arc::clone(seat.timeouts()));
        seat.answer(handed, ReplicaService::of_seat(&seat, keeper, node.deciders.clone()));
        let to_decide = node.deciders.open(shard.local().index());
        let ring = Some(Rc::clone(&seat));
        let coordinator = Coordinator { ring, ..Coordinator::new(node, shard) };
        seat.decide(decide_all(coordinator.clone(), to_decide));
        seat.settle_accepted(settle_accepted(coordinator.clone()));
        coordinator
    }

    /// The shard's seat in the ring, if the node is in one.
    #[inline]
    pub(crate) fn seat(&self) -> Option<&Rc<RingSeat>> {
        self.ring.as_ref()
    }

    /// The way to the replicas of a table, when it is on the ring and the ring has other nodes.
    pub(crate) fn replicas_of(&self, table: TableId) -> Option<Rc<Replicas>> {
        let replicas = self.ring.as_ref()?.replicas()?;
        replicas.has(table).then_some(replicas)
    }

    /// The way to all shards, for work that is not a read or a write. It is for this crate alone: nobody above comes to
    /// a shard but by what the coordinator does.
    #[inline]
    pub(crate) fn shard(&self) -> &ShardHandle {
        &self.shard
    }

    /// How long other nodes are waited for by a request that has all of its time.
    pub(crate) fn patience(&self, kind: TimeoutKind) -> Duration {
        patience_within(self.ring.as_ref().map_or(PATIENCE_MAX, |seat| seat.timeouts().get(kind)))
    }

    /// How the node's disks are, and what that asks of it.
    pub fn health(&self) -> &Health {
        self.shard.shards().health()
    }

    /// Where the node's files are.
    pub fn layout(&self) -> &Layout {
        self.shard.local().layout()
    }

    /// How many tombstones a read of the table may come upon.
    pub fn tombstone_thresholds(&self, table: &Table) -> TombstoneThresholds {
        self.shard.local().tombstone_thresholds(table)
    }

    /// Threads for work that would keep this shard.
    pub fn io(&self) -> &Io {
        &self.runtime().io
    }

    /// What the node runs on.
    pub fn runtime(&self) -> &Runtime {
        self.shard.local().runtime()
    }

    /// Was that fault planted in the node? See [`runtime::Plants`].
    pub fn has_planted(&self, plant: Plant) -> bool {
        self.runtime().plants.has(plant)
    }

    /// The schema now in force on this shard.
    pub fn schema(&self) -> Arc<Schema> {
        self.shard.local().schema()
    }

    /// A timestamp in µs that no other write of this node has or had, later than all before.
    pub fn next_timestamp(&self) -> i64 {
        self.shard.local().timestamps().next()
    }

    /// Seconds since 1970.
    pub fn now_seconds(&self) -> u32 {
        self.shard.local().now_seconds()
    }

    /// Milliseconds since 1970.
    pub fn now_millis(&self) -> i64 {
        self.runtime().clock.now_millis()
    }

    /// A version 1 UUID, unique on this node.
    pub fn time_uuid(&self) -> Uuid {
        let runtime = self.runtime();
        runtime.random.uuid_v1(&*runtime.clock)
    }

    /// Is a plan that was made at that epoch of the schema still up to date on this shard?
    #[inline]
    pub fn is_current(&self, epoch: u64) -> bool {
        epoch == self.shard.local().with_schema(Schema::epoch)
    }

    /// The shards as owners of keys.
    #[inline]
    pub fn owners(&self) -> Owners<'_> {
        Owners(self.shard.shards())
    }
}

/// So long before a request's time is over its replicas are waited for no more: how many have answered says more than
/// that time is over.
const FIRST_WORD: Duration = Duration::from_millis(10);

/// How long other nodes are waited for by a request that has that much time left.
pub(crate) fn patience_within(time: Duration) -> Duration {
    // A limit beyond what can be counted is none; no message waits for longer than that.
    let time = time.min(PATIENCE_MAX);
    time - FIRST_WORD.min(time / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_waited_for_a_little_shorter_than_a_request_has_time() {
        let millis = Duration::from_millis;
        for (time, patience) in [(5_000, 4_990), (100, 90), (50, 45), (0, 0)] {
            assert_eq!(patience_within(millis(time)), millis(patience));
        }
        assert!(patience_within(Duration::MAX) < PATIENCE_MAX);
    }
}
