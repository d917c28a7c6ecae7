//! The plain way: rows read and written by their keys as plain calls, batch by batch.
//!
//! ```text
//!   plain_read ──► admitted? whose? ─► PlainRead ──► plain_reads ──┬─ done in place, by a call or a visit
//!   plain_write ─► admitted? whose? ─► PlainWrite ─► plain_writes ─┤
//!                                       several     batch by batch └─ left ─► remote_reads, remote_writes: a message
//! ```
//!
//! In a ring other replicas may have a say: what is compared with them, or written to them, is left at once, and goes
//! to them as one message each (`replicas/plain.rs`).
//!
//! Level and owner are asked for as on the full way (`admission.rs`, `owners.rs`), when a [`PlainRead`] or
//! [`PlainWrite`] is made: nobody can have one that was not admitted. What is not done here is for
//! [`Coordinator::read`] and [`Coordinator::write`], which know what to say of it.

use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use rows::{Mutation, PartitionKey, RowInPlace};
use schema::Table;
use smallvec::SmallVec;
use stdx::index_set::IndexSet;
use storage::{KEYS_TOGETHER, Lookups, LookupsSent, Outcomes, Unit};

use crate::admission::Admitted;
use crate::owners::{Batches, batches};
use crate::replicas::Replicas;
use crate::replicas::partners::Partners;
use crate::replicas::plain::Common;
use crate::{Consistency, Coordinator, CoordinatorError, TimeoutKind};

/// What rows are read for: a statement of the floor above, about one row by its key.
pub trait RowQuery {
    /// What it takes to show its rows on any shard's thread.
    type View: Send + Sync + 'static;

    /// The table as the statement saw it, without clustering columns.
    fn table(&self) -> &Arc<Table>;

    /// What it takes to show its rows.
    fn view(&self) -> &Arc<Self::View>;

    /// Is the other one the same statement?
    fn is_same(&self, other: &Self) -> bool;
}

/// The row of a key, to be read: admitted, and on its way to the shard that has it.
#[derive(Clone, Debug)]
pub struct PlainRead<Q> {
    query: Q,
    key: PartitionKey,
    owner: usize,
    consistency: Consistency,
    admitted: Admitted,
    ring: Option<InRing>,
}

/// A row to be written: admitted, and on its way to the shard that is to have it.
#[derive(Clone, Debug)]
pub struct PlainWrite {
    mutation: Mutation,
    owner: usize,
    consistency: Consistency,
    admitted: Admitted,
    ring: Option<InRing>,
}

/// Other replicas have a say.
#[derive(Clone)]
struct InRing {
    replicas: Rc<Replicas>,
    partners: Rc<Partners>,
}

impl fmt::Debug for InRing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.partners.fmt(formatter)
    }
}

impl InRing {
    /// `None` when no other node has a say.
    fn of(replicas: Rc<Replicas>, partners: Rc<Partners>) -> Option<InRing> {
        (!partners.nodes.is_empty()).then_some(InRing { replicas, partners })
    }

    /// Do the same nodes have a say, seen at the same moment, and as many of them?
    fn is_same(one: &Option<InRing>, other: &Option<InRing>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                Rc::ptr_eq(&one.replicas, &other.replicas)
                    && (Rc::ptr_eq(&one.partners, &other.partners) || one.partners == other.partners)
            }
            _ => false,
        }
    }
}

/// How the writes of a batch have come out. Of those in neither set nothing was written.
#[derive(Debug, Default)]
pub struct PlainOutcomes {
    /// They are written.
    pub done: IndexSet,
    /// They may or may not survive.
    pub doubtful: IndexSet,
    /// Why the first that is not done is not.
    pub error: Option<CoordinatorError>,
}

impl From<Outcomes> for PlainOutcomes {
    fn from(outcomes: Outcomes) -> Self {
        let Outcomes { done, doubtful, error } = outcomes;
        PlainOutcomes { done, doubtful, error: error.map(CoordinatorError::from) }
    }
}

/// The row of a key where it lies, if there is a live one.
#[derive(Debug)]
pub struct ShownRow<'a, V> {
    /// The encoded key.
    pub key: &'a [u8],
    /// As it lies in memory.
    pub row: Option<RowInPlace<'a>>,
    /// [`RowQuery::view`].
    pub view: &'a V,
}

impl<Q: RowQuery> PlainRead<Q> {
    /// The level it was admitted at.
    pub fn consistency(&self) -> Consistency {
        self.consistency
    }

    /// Can both be read in one go? A batch has one level, which is told when it fails.
    fn goes_with(&self, other: &Self) -> bool {
        self.owner == other.owner
            && self.consistency == other.consistency
            && self.query.is_same(&other.query)
            && InRing::is_same(&self.ring, &other.ring)
    }
}

impl PlainWrite {
    /// The level it was admitted at.
    pub fn consistency(&self) -> Consistency {
        self.consistency
    }

    /// Can both be written in one go?
    fn goes_with(&self, other: &Self) -> bool {
        self.owner == other.owner
            && self.consistency == other.consistency
            && InRing::is_same(&self.ring, &other.ring)
    }
}

impl Coordinator {
    /// A read of the row of that key; `None` when the level is not admitted, or this node alone can not say.
    #[inline]
    pub fn plain_read<Q: RowQuery>(
        &self,
        query: Q,
        key: PartitionKey,
        consistency: Consistency,
    ) -> Option<PlainRead<Q>> {
        let table = query.table().id();
        let (admitted, ring) = match self.replicas_of(table) {
            None => (self.admit(table, consistency).ok()?, None),
            Some(replicas) => {
                let partners = replicas.partners_to_read(table, key.token, consistency)?;
                (Admitted::by_ring(), InRing::of(replicas, partners))
            }
        };
        let owner = self.owners().of(key.token);
        Some(PlainRead { query, key, owner, consistency, admitted, ring })
    }

    /// A write of one row; `None` when the level is not admitted, or this node alone can not say.
    #[inline]
    pub fn plain_write(&self, mutation: Mutation, consistency: Consistency) -> Option<PlainWrite> {
        let (table, token) = (mutation.table, mutation.key.token);
        let (admitted, ring) = match self.replicas_of(table) {
            None => (self.admit(table, consistency).ok()?, None),
            Some(replicas) => {
                let partners = replicas.partners_to_write(table, token, consistency)?;
                (Admitted::by_ring(), InRing::of(replicas, partners))
            }
        };
        let owner = self.owners().of(token);
        Some(PlainWrite { mutation, owner, consistency, admitted, ring })
    }

    /// Shows live rows that are in memory, each by the index of its read, or that there is none; in any order, until
    /// it is told to stop. Gives back those whose shard is at work: each batch is for [`Coordinator::remote_reads`].
    /// Others that are not shown are for [`Coordinator::read`].
    ///
    /// # Panics
    /// When there are more than [`KEYS_TOGETHER`].
    pub fn plain_reads<Q: RowQuery>(
        &self,
        reads: &[PlainRead<Q>],
        mut show: impl FnMut(usize, ShownRow<'_, Q::View>) -> ControlFlow<()> + Send,
    ) -> Batches {
        let now = self.now_seconds();
        let mut left = Batches::new();
        let mut is_stopped = false;
        for batch in batches(reads, PlainRead::goes_with) {
            if is_stopped {
                break;
            }
            let PlainRead { query, owner, admitted, ring, .. } = &reads[batch[0]];
            if ring.is_some() {
                left.push(batch.iter().copied().collect());
                continue;
            }
            let keys: SmallVec<[&PartitionKey; KEYS_TOGETHER]> =
                batch.iter().map(|index| &reads[*index].key).collect();
            let (keys, view): (&[&PartitionKey], &Q::View) = (&keys, query.view());
            let asked = Lookups { table: query.table(), keys, now };
            let is_asked = self.shards_for(*admitted).look_up(*owner, asked, |index, row| {
                let shown = show(batch[index], ShownRow { key: &keys[index].bytes, row, view });
                is_stopped |= shown.is_break();
                shown
            });
            if !is_asked {
                left.push(batch.iter().copied().collect());
            }
        }
        left
    }

    /// Shows the rows of a batch that [`Coordinator::plain_reads`] gave back on the thread of their shard, by their
    /// index in the batch. `show` puts what it sees into `seen`, which comes back.
    ///
    /// # Errors
    /// The shard is too busy, or gone: nothing was read.
    ///
    /// # Panics
    /// When they are none, or more than [`KEYS_TOGETHER`].
    pub async fn remote_reads<Q: RowQuery, T: Send + 'static>(
        &self,
        reads: Vec<PlainRead<Q>>,
        seen: T,
        mut show: impl FnMut(&mut T, usize, ShownRow<'_, Q::View>) -> ControlFlow<()> + Send + 'static,
    ) -> Result<T, CoordinatorError> {
        assert!((1..=KEYS_TOGETHER).contains(&reads.len()), "a batch");
        debug_assert!(reads.iter().all(|read| read.goes_with(&reads[0])), "one batch");
        let PlainRead { query, owner, admitted, ring, .. } = &reads[0];
        let (owner, admitted, ring) = (*owner, *admitted, ring.clone());
        let (view, table) = (Arc::clone(query.view()), Arc::clone(query.table()));
        let keys: Vec<PartitionKey> = reads.into_iter().map(|read| read.key).collect();
        let now = self.now_seconds();
        let asked = LookupsSent { table, keys, now };
        let shards = self.shards_for(admitted);
        let Some(ring) = ring else {
            let show = move |seen: &mut T, index: usize, key: &PartitionKey, row: Option<RowInPlace<'_>>| {
                show(seen, index, ShownRow { key: &key.bytes, row, view: &view })
            };
            return Ok(shards.send_lookups(owner, asked, seen, show).await?);
        };
        // What is not shown becomes a full read each, which asks somebody else and mends what differs.
        let (asked, patience) = (Arc::new(asked), self.patience(TimeoutKind::Read));
        let rows =
            ring.replicas.plain_rows(owner, Arc::clone(&asked), &ring.partners.nodes, patience).await?;
        let mut seen = seen;
        for (index, (key, common)) in asked.keys.iter().zip(&rows).enumerate() {
            let Common::Row(row) = common else { continue };
            let row = row.as_ref().filter(|row| !row.is_empty()).map(RowInPlace::Encoded);
            if show(&mut seen, index, ShownRow { key: &key.bytes, row, view: &view }).is_break() {
                break;
            }
        }
        Ok(seen)
    }

    /// Writes rows, each durable in the sense of the sync mode: gives those that are written. Of the others nothing
    /// was written: each batch is for [`Coordinator::remote_writes`].
    ///
    /// # Panics
    /// When there are more than [`KEYS_TOGETHER`].
    pub fn plain_writes(&self, writes: &[PlainWrite]) -> (IndexSet, Batches) {
        let (mut all_done, mut left) = (IndexSet::EMPTY, Batches::new());
        for batch in batches(writes, PlainWrite::goes_with) {
            let PlainWrite { owner, admitted, ring, .. } = &writes[batch[0]];
            if ring.is_some() {
                left.push(batch.iter().copied().collect());
                continue;
            }
            let mutations: SmallVec<[&Mutation; KEYS_TOGETHER]> =
                batch.iter().map(|index| &writes[*index].mutation).collect();
            let done = self.shards_for(*admitted).try_write_each(*owner, &mutations);
            done.iter().for_each(|index| all_done.insert(batch[index]));
            if done.len() < batch.len() {
                let not_done = (0..batch.len()).filter(|index| !done.contains(*index));
                left.push(not_done.map(|index| batch[index]).collect());
            }
        }
        (all_done, left)
    }

    /// Writes the rows of a batch that [`Coordinator::plain_writes`] gave back, and waits until they are durable in
    /// the sense of the sync mode. Those of which nothing was written are for [`Coordinator::write`].
    ///
    /// # Panics
    /// When they are none, or more than [`KEYS_TOGETHER`].
    pub async fn remote_writes(&self, writes: Vec<PlainWrite>) -> PlainOutcomes {
        assert!((1..=KEYS_TOGETHER).contains(&writes.len()), "a batch");
        debug_assert!(writes.iter().all(|write| write.goes_with(&writes[0])), "one batch");
        let PlainWrite { owner, admitted, consistency, ref ring, .. } = writes[0];
        let ring = ring.clone();
        let mutations = writes.into_iter().map(|write| write.mutation).collect();
        match ring {
            Some(ring) => {
                ring.replicas.write_each(mutations, consistency, self.patience(TimeoutKind::Write)).await
            }
            None => self.shards_for(admitted).write_units(owner, None, Unit::Each, mutations).await.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use futures_util::FutureExt;
    use ring::allocation::{Newcomer, found};
    use ring::{NodeIndex, Strategy};
    use rows::MutationBuilder;
    use runtime::{MemoryDisk, Runtime};
    use schema::{ColumnKind, Schema, TableBuilder, TableId};
    use storage::{Directory, LocalShards, StorageOptions};
    use types::CqlType;
    use uuid::Uuid;

    use super::*;
    use crate::replicas::requirement::Requirement;
    use crate::replicas::{Marks, RingView, Way};

    /// A statement of that number.
    #[derive(Clone, Debug)]
    struct Statement(u8, Arc<Table>);

    impl RowQuery for Statement {
        type View = ();

        fn table(&self) -> &Arc<Table> {
            &self.1
        }

        fn view(&self) -> &Arc<()> {
            unreachable!("nothing is shown")
        }

        fn is_same(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    /// `k.t (pk int PRIMARY KEY)`
    fn table() -> Arc<Table> {
        let table = TableBuilder::new(TableId(Uuid::from_u128(7)), "k", "t");
        let table = table.column("pk", ColumnKind::PartitionKey(0), CqlType::Int);
        Arc::new(table.build().expect("a sound table"))
    }

    /// The way to the replicas of a ring of one.
    fn replicas(shards: &LocalShards) -> Rc<Replicas> {
        let host_id = Uuid::from_u128(1);
        let newcomer = Newcomer { host_id, data_center: "dc1".into(), rack: "r1".into(), num_tokens: 1 };
        let topology = Arc::new(found(&[newcomer], 1).expect("a ring"));
        let here = topology.index_of(host_id).expect("it is in the ring");
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7000);
        let way = Way { address, remote: None, has_rows: true };
        let keyspaces = [("k".to_owned(), Strategy::Simple { factor: 1 })];
        let view = Rc::new(RingView::new(&topology, here, vec![way], keyspaces));
        Rc::new(Replicas::new(view, shards.handles()[0].clone(), Marks::new(1, Arc::default())))
    }

    /// Runs a story beside the shards of a node.
    fn run(story: impl FnOnce(&LocalShards)) {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        tokio::task::LocalSet::new().block_on(&tokio.expect("a runtime"), async {
            let (runtime, schema) =
                (Runtime::in_memory(Arc::new(MemoryDisk::new()), 1), Arc::new(Schema::default()));
            let directory =
                Directory::open(&runtime, StorageOptions::new("/node", 1, 32 << 20)).expect("opens");
            story(&directory.recover(&schema).expect("recovers").start_local(&schema).expect("starts"));
        });
    }

    /// Ways in which others can have a say, no two the same.
    fn rings(shards: &LocalShards) -> Vec<Option<InRing>> {
        let (one, other) = (replicas(shards), replicas(shards));
        let partners = |nodes: &[u16], count| {
            let nodes = nodes.iter().copied().map(NodeIndex).collect();
            Rc::new(Partners { nodes, requirement: Requirement::Anywhere(count) })
        };
        vec![
            InRing::of(Rc::clone(&one), partners(&[], 1)),
            InRing::of(Rc::clone(&one), partners(&[1], 1)),
            InRing::of(Rc::clone(&one), partners(&[1], 2)),
            InRing::of(Rc::clone(&one), partners(&[1, 2], 1)),
            InRing::of(one, partners(&[2, 3], 2)),
            InRing::of(other, partners(&[1], 1)),
        ]
    }

    /// Does each go with itself and with no other?
    #[track_caller]
    fn check_apart<T>(all: &[T], goes_with: impl Fn(&T, &T) -> bool) {
        for (index, one) in all.iter().enumerate() {
            for (other_index, other) in all.iter().enumerate() {
                assert_eq!(goes_with(one, other), index == other_index, "{index} and {other_index}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "each of a batch has its place in what a replica answers")]
    fn no_more_are_written_together_than_a_replica_can_tell_apart() {
        run(|shards| {
            let mutation = MutationBuilder::new(table().id(), PartitionKey::new(vec![0; 4].into())).finish();
            let (replicas, many) = (replicas(shards), vec![mutation; KEYS_TOGETHER + 1]);
            let written = replicas.write_each(many, Consistency::One, Duration::from_secs(1));
            _ = written.now_or_never();
        });
    }

    #[test]
    fn what_no_other_node_has_a_say_in_is_not_for_the_ring() {
        run(|shards| {
            let are_in_ring: Vec<bool> = rings(shards).iter().map(Option::is_some).collect();
            assert_eq!(are_in_ring, [false, true, true, true, true, true]);
        });
    }

    #[test]
    fn the_same_nodes_are_the_same_whoever_counted_them() {
        run(|shards| {
            let replicas = replicas(shards);
            let counted = || {
                let nodes = [NodeIndex(1)].into_iter().collect();
                let partners = Partners { nodes, requirement: Requirement::Anywhere(2) };
                InRing::of(Rc::clone(&replicas), Rc::new(partners))
            };
            assert!(InRing::is_same(&counted(), &counted()));
        });
    }

    #[test]
    fn reads_go_together_that_are_of_one_statement_level_shard_and_the_same_replicas() {
        run(|shards| {
            let (key, admitted) = (PartitionKey::new(vec![0; 4].into()), Admitted::by_ring());
            let read = |number, owner, consistency, ring| PlainRead {
                query: Statement(number, table()),
                key: key.clone(),
                owner,
                consistency,
                admitted,
                ring,
            };
            let mut reads: Vec<PlainRead<Statement>> =
                rings(shards).into_iter().map(|ring| read(1, 0, Consistency::One, ring)).collect();
            reads.push(read(2, 0, Consistency::One, None));
            reads.push(read(1, 1, Consistency::One, None));
            reads.push(read(1, 0, Consistency::Two, None));
            reads.push(read(2, 1, Consistency::Two, rings(shards).pop().flatten()));
            check_apart(&reads, PlainRead::goes_with);
        });
    }

    #[test]
    fn writes_go_together_that_are_of_one_level_shard_and_the_same_replicas() {
        run(|shards| {
            let (key, admitted) = (PartitionKey::new(vec![0; 4].into()), Admitted::by_ring());
            let mutation = rows::MutationBuilder::new(table().id(), key).finish();
            let write = |owner, consistency, ring| PlainWrite {
                mutation: mutation.clone(),
                owner,
                consistency,
                admitted,
                ring,
            };
            let mut writes: Vec<PlainWrite> =
                rings(shards).into_iter().map(|ring| write(0, Consistency::One, ring)).collect();
            writes.push(write(1, Consistency::One, None));
            writes.push(write(0, Consistency::Two, None));
            writes.push(write(1, Consistency::Two, rings(shards).pop().flatten()));
            check_apart(&writes, PlainWrite::goes_with);
        });
    }
}
