//! Counting: what a mutation adds to counters becomes part of what this node has counted of them.
//!
//! ```text
//!   increments ─► claim of the partition ─► what the node has counted so far ─► its shares ─► log and memtable
//! ```
//!
//! The partition is claimed, as for a change with a condition: else two that read one share would both add to it, and
//! one of them be lost.

use std::rc::Rc;
use std::sync::Arc;

use ::read::{PartitionRows, ReadCommand};
use rows::{Clustering, ClusteringComparator, CounterId, Increments, Mutation, PartitionKey, Row, counted};
use schema::Table;

use super::claims::{claim, claimable, write_claimed};
use super::{Settles, Shard, Wait};
use crate::StorageError;

/// Counts what a mutation adds, and writes it. Returns what was written, once it is durable as `wait` says: that may be
/// written again, here and elsewhere, and counts once. Of what was planned on an epoch of the schema nothing is counted
/// when its table was emptied since.
///
/// # Errors
/// Nothing was counted when the table is gone, or what was counted before can not be read. Otherwise as
/// [`Shard::write`], and [`table::TableError::Outdated`].
///
/// # Cancel safety
/// Dropped, it may be counted or not.
pub(crate) async fn count(
    shard: &Rc<Shard>,
    planned_on: Option<u64>,
    mutation: &Mutation,
    wait: Wait,
) -> Result<Mutation, StorageError> {
    let claim = claim(claimable(shard, mutation.table, &mutation.key)).await;
    let table = shard.readable_table(mutation.table)?.table();
    let held = Held::read(shard, &table, &mutation.key, &Increments::of(mutation)).await?;
    // Above what it has given before its clock was set back, or before its disk was put back.
    let latest = held.latest_of(shard.counter_id).map_or(i64::MIN, |latest| latest.saturating_add(1));
    let place = (shard.counter_id, shard.timestamps().next_after_all().max(latest));
    let counted = counted(mutation, &table, place, |clustering| held.row(clustering));
    write_claimed(shard, planned_on, std::slice::from_ref(&counted), Settles::Nothing, claim, wait).await?;
    Ok(counted)
}

/// Rows as they are before something is counted in them.
struct Held {
    comparator: ClusteringComparator,
    pages: Vec<PartitionRows>,
}

impl Held {
    async fn read(
        shard: &Shard,
        table: &Arc<Table>,
        key: &PartitionKey,
        increments: &Increments,
    ) -> Result<Held, StorageError> {
        let comparator = ClusteringComparator::new(table.clustering_types().clone());
        let mut held = Held { comparator, pages: Vec::new() };
        if increments.is_empty() {
            return Ok(held);
        }
        let now = shard.now_seconds();
        let mut command = ReadCommand::of_increments(Arc::clone(table), key.clone(), increments, now);
        loop {
            let page = shard.read(&command).await?;
            held.pages.extend(page.partitions);
            if page.next.is_none() {
                return Ok(held);
            }
            command.resume = page.next;
        }
    }

    /// The time of the last share that a node has in any of these, in µs.
    fn latest_of(&self, id: CounterId) -> Option<i64> {
        id.latest_in(self.pages.iter().flat_map(|page| page.static_row.iter().chain(&*page.rows)))
    }

    /// The row of that clustering, or the static one.
    fn row(&self, clustering: Option<&Clustering>) -> Option<&Row> {
        let Some(clustering) = clustering else {
            return self.pages.iter().find_map(|page| page.static_row.as_ref());
        };
        let order =
            |row: &Row| self.comparator.compare_encoded(row.encoded_clustering(), clustering.as_encoded());
        self.pages.iter().find_map(|page| page.rows.get(page.rows.binary_search_by(order).ok()?))
    }
}
