//! Claims on partitions: changes with a condition of one partition are made one after the other.
//!
//! Such a change reads rows, decides, and writes. Between its read and its write no other condition on that partition
//! may be decided. So it claims the partition first; who comes meanwhile waits in the order of coming.
//!
//! ```text
//!   one       claim ─► read ─► decide ─► log and memtable ─┐ ······ on the disk ─► its client is told
//!   another           waits                          claim └► read ─► decide ─► …
//! ```
//!
//! A claim ends when the write stands in the log and the memtable; the wait for the disk is no part of it. The next one
//! reads what may not be on the disk yet, and so whatever it tells its client waits for the disk, too
//! ([`claimed_settled`]). Changes of one partition that come together so share one sync.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use commitlog::LogPosition;
use rows::{Mutation, PartitionKey};
use runtime::Plant;
use schema::TableId;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Settles, Shard, Unit, Wait, outdated};
use crate::StorageError;

/// So many partitions are remembered before those are looked for that nobody claims any more.
const PARTITIONS_MIN: usize = 64;

/// A partition that can be claimed: whoever claims or waits holds it in memory.
pub(crate) type Claimable = Arc<Mutex<()>>;

/// A partition of a table.
type Place = (TableId, PartitionKey);

/// The claims on partitions of a shard.
#[derive(Default)]
pub(crate) struct Claims {
    partitions: Partitions,
    /// Where the log has the last write that was made under a claim.
    last_write: Cell<Option<LogPosition>>,
}

/// Partitions that somebody claims.
#[derive(Default)]
struct Partitions {
    claimed: RefCell<BTreeMap<Place, Weak<Mutex<()>>>>,
    /// When there are so many, those that nobody claims are forgotten.
    sweep_at: Cell<usize>,
}

/// A claim on a partition, until it is dropped; on whatever thread.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Claim {
    _held: OwnedMutexGuard<()>,
}

impl Partitions {
    /// The partition, to be claimed by [`claim`].
    fn get(&self, table: TableId, key: &PartitionKey) -> Claimable {
        let mut partitions = self.claimed.borrow_mut();
        if let Some(claimable) = partitions.get(&(table, key.clone())).and_then(Weak::upgrade) {
            return claimable;
        }
        if partitions.len() >= self.sweep_at.get().max(PARTITIONS_MIN) {
            partitions.retain(|_, claimable| claimable.strong_count() > 0);
            self.sweep_at.set(2 * partitions.len());
        }
        let claimable = Claimable::default();
        partitions.insert((table, key.clone()), Arc::downgrade(&claimable));
        claimable
    }
}

/// Claims a partition as soon as nobody else does.
pub(crate) async fn claim(claimable: Claimable) -> Claim {
    Claim { _held: claimable.lock_owned().await }
}

/// A partition of a shard, to be claimed by [`claim`].
pub(crate) fn claimable(shard: &Shard, table: TableId, key: &PartitionKey) -> Claimable {
    match shard.shared.runtime.plants.has(Plant::ClaimIgnored) {
        true => Claimable::default(),
        false => shard.claims.partitions.get(table, key),
    }
}

/// Writes mutations of a claimed partition, as one record. The claim ends when they stand in the log and the memtable.
/// Returns when they are durable as `wait` says. Of what was planned on an epoch of the schema nothing is written when
/// its table was emptied since.
///
/// # Errors
/// As [`Shard::write`], and [`table::TableError::Outdated`].
///
/// # Cancel safety
/// As [`Shard::write`].
pub(crate) async fn write_claimed(
    shard: &Rc<Shard>,
    planned_on: Option<u64>,
    mutations: &[Mutation],
    settles: Settles,
    claim: Claim,
    wait: Wait,
) -> Result<(), StorageError> {
    let _under_way = shard.writes.begin();
    shard.shared.room.wait(&shard.shared, &shard.tables).await?;
    let is_outdated = |mutation: &Mutation| outdated(shard, mutation.table, planned_on?);
    if let Some(error) = mutations.iter().find_map(is_outdated) {
        return Err(error);
    }
    let begun = shard.begin_write(mutations, Unit::All, wait);
    if begun.position.is_some() {
        // No test can break it without another log.
        let rises = shard.claims.last_write.get() < begun.position;
        assert!(rises, "writes under claims stand in the log in order");
        shard.claims.last_write.set(begun.position);
    }
    if begun.taken.contains(0) {
        shard.unsettled.take_in(settles, &mutations[0].key);
    }
    drop(claim);
    let is_early = shard.shared.runtime.plants.has(Plant::ConditionalUnsynced);
    shard.finish_write(begun, if is_early { Wait::Never } else { wait }).await.of_all()
}

/// Returns when everything that was written under a claim so far is on the disk: what has read it may be told.
///
/// # Errors
/// The log failed.
pub(crate) async fn claimed_settled(shard: &Shard) -> Result<(), StorageError> {
    let is_early = shard.shared.runtime.plants.has(Plant::UnsyncedReadTold);
    match shard.claims.last_write.get().filter(|_| !is_early) {
        Some(position) => Ok(shard.shared.log.on_disk(position).await?),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn key(number: u8) -> PartitionKey {
        PartitionKey::new(vec![number].into())
    }

    const TABLE: TableId = TableId(Uuid::from_u128(1));

    #[tokio::test]
    async fn one_partition_is_claimed_by_one_after_the_other_in_the_order_of_coming() {
        let partitions = Partitions::default();
        let first = claim(partitions.get(TABLE, &key(1))).await;
        let order = Rc::new(RefCell::new(Vec::new()));
        let waiting = |number: u8| {
            let (claimable, order) = (partitions.get(TABLE, &key(1)), Rc::clone(&order));
            async move {
                let _claim = claim(claimable).await;
                order.borrow_mut().push(number);
            }
        };
        let all = futures_util::future::join3(waiting(1), waiting(2), waiting(3));
        let other = async {
            drop(claim(partitions.get(TABLE, &key(2))).await);
            assert!(order.borrow().is_empty(), "another partition waits for nobody");
            drop(first);
        };
        futures_util::future::join(all, other).await;
        assert_eq!(*order.borrow(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_place_to_the_next() {
        let partitions = Partitions::default();
        let first = claim(partitions.get(TABLE, &key(1))).await;
        let mut impatient = Box::pin(claim(partitions.get(TABLE, &key(1))));
        assert!(futures_util::poll!(&mut impatient).is_pending());
        drop(impatient);
        drop(first);
        drop(claim(partitions.get(TABLE, &key(1))).await);
    }

    #[tokio::test]
    async fn partitions_that_nobody_claims_are_forgotten() {
        let partitions = Partitions::default();
        let held = claim(partitions.get(TABLE, &key(0))).await;
        for number in 0..10_000u16 {
            let key = PartitionKey::new(number.to_be_bytes().to_vec().into());
            drop(claim(partitions.get(TABLE, &key)).await);
        }
        let claimed = partitions.claimed.borrow();
        assert!(claimed.len() <= PARTITIONS_MIN + 1, "{} partitions", claimed.len());
        assert!(claimed.contains_key(&(TABLE, key(0))));
        drop(held);
    }
}
