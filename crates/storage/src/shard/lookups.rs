//! Reading rows by their keys without waiting: what applications ask for most.
//!
//! A row of which nothing was deleted and nothing expires is shown where it lies, each value in the newest of its
//! versions; else these are merged as for every read. When it can not be told at once, because a chunk is not in
//! memory or there is more than a row, it is not shown, and it is for [`Shard::read`]: that can wait, goes on with
//! searches in files that lacked a chunk, and knows what to say of errors and of many tombstones.

use std::ops::ControlFlow;
use std::sync::Arc;

use memtable::KEYS_TOGETHER;
use read::{live_rows, plain_row_hash};
use rows::{PartitionKey, Row, RowInPlace, ValuesInPlace};
use runtime::Plant;
use schema::Table;
use smallvec::SmallVec;

use super::{Shard, unsettled};

/// Lookups of the only rows that partitions can have.
#[derive(Clone, Copy, Debug)]
pub struct Lookups<'a> {
    /// The table as the statement saw it, without clustering columns.
    pub table: &'a Arc<Table>,
    /// Whose rows: up to [`crate::KEYS_TOGETHER`] keys of one shard.
    pub keys: &'a [&'a PartitionKey],
    /// The moment that decides what has expired, seconds since 1970.
    pub now: u32,
}

/// The same, to be sent to the shard that owns the keys.
#[derive(Clone, Debug)]
pub struct LookupsSent {
    /// As [`Lookups::table`].
    pub table: Arc<Table>,
    /// As [`Lookups::keys`].
    pub keys: Vec<PartitionKey>,
    /// As [`Lookups::now`].
    pub now: u32,
}

/// A row by which replicas are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct HashedRow {
    /// If there is one.
    pub row: Option<Row>,
    /// [`plain_row_hash`]; 0 is that of no row.
    pub hash: u128,
}

impl LookupsSent {
    /// The rows, each with its hash, by the index of its key. None of one of which that can not be told at once, or
    /// [may not be written](super::unsettled) yet, or of which something was deleted or expires: what is left to see of
    /// it says too little.
    pub(crate) fn look_up_hashed(&self, shard: &Shard) -> Vec<Option<HashedRow>> {
        let mut hashed = vec![None; self.keys.len()];
        let table = &self.table;
        assert!(table.clustering_types().is_empty(), "a partition has one row");
        self.keys.iter().for_each(|key| shard.shared.hold_to_owned(key));
        if !table.dropped_columns().is_empty() {
            return hashed;
        }
        let Ok(store) = shard.readable_table(table.id()) else { return hashed };
        let keys: SmallVec<[&PartitionKey; KEYS_TOGETHER]> = self.keys.iter().collect();
        let sample = store.metrics().begin_reads(keys.len(), &*shard.shared.runtime.clock);
        store.look_up(&shard.shared.cache, &keys, |index, found| {
            let versions = found.into_versions().filter(|versions| !versions.has_large());
            let Some(versions) = versions.filter(|versions| versions.deletion.is_live()) else {
                return ControlFlow::Continue(());
            };
            let is_absent = versions.rows.is_empty();
            let row = store.merge(versions).filter(Row::is_plain);
            if row.is_none() && !is_absent {
                return ControlFlow::Continue(());
            }
            let is_unsettled = unsettled(shard).may_have(table.id(), &self.keys[index]);
            if is_unsettled && !shard.shared.runtime.plants.has(Plant::AcceptedUnheeded) {
                return ControlFlow::Continue(());
            }
            let hash = row.as_ref().map_or(0, plain_row_hash);
            hashed[index] = Some(HashedRow { row, hash });
            ControlFlow::Continue(())
        });
        sample.end(hashed.iter().flatten().count() as u64);
        hashed
    }

    /// [`Shard::look_up`] of them, on the shard that they were sent to.
    pub(crate) fn look_up(
        &self,
        shard: &Shard,
        show: impl FnMut(usize, Option<RowInPlace<'_>>) -> ControlFlow<()>,
    ) {
        let keys: SmallVec<[&PartitionKey; KEYS_TOGETHER]> = self.keys.iter().collect();
        shard.look_up(Lookups { table: &self.table, keys: &keys, now: self.now }, show);
    }
}

impl Shard {
    /// Shows the live row of each partition, by the index of its key, or that there is none, until it is
    /// told to stop; those of which that can not be told at once are passed over. How many were shown?
    pub(crate) fn look_up(
        &self,
        lookups: Lookups<'_>,
        mut show: impl FnMut(usize, Option<RowInPlace<'_>>) -> ControlFlow<()>,
    ) -> u64 {
        assert!(lookups.table.clustering_types().is_empty(), "a partition has one row");
        lookups.keys.iter().for_each(|key| self.shared.hold_to_owned(key));
        if !lookups.table.dropped_columns().is_empty() {
            return 0;
        }
        let Ok(store) = self.readable_table(lookups.table.id()) else { return 0 };
        let clock = &*self.shared.runtime.clock;
        let sample = store.metrics().begin_reads(lookups.keys.len(), clock);
        let now = clock.elapsed_roughly();
        let mut shown_count = 0;
        store.look_up(&self.shared.cache, lookups.keys, |index, found| {
            let (mut tombstone_count, mut values) = (0, ValuesInPlace::new());
            let merged;
            let row = match found.in_place(&mut values) {
                Some(RowInPlace::Encoded(row)) if row.is_empty() => None,
                Some(row) => Some(row),
                None => {
                    // Large ones are for another thread.
                    let versions = found.into_versions().filter(|versions| !versions.has_large());
                    let Some(versions) = versions else { return ControlFlow::Continue(()) };
                    let live = live_rows(lookups.now, lookups.table);
                    merged = store.merge(versions).and_then(|row| live.filter(row, &mut tombstone_count));
                    merged.as_ref().map(RowInPlace::Encoded)
                }
            };
            if self.options.tombstones.are_passed(tombstone_count, lookups.table) {
                return ControlFlow::Continue(());
            }
            store.metrics().note_slice(now, u64::from(row.is_some()), tombstone_count);
            shown_count += 1;
            show(index, row)
        });
        sample.end(shown_count);
        shown_count
    }

    /// [`Shard::look_up`] for a visitor.
    pub(crate) fn visiting_look_up(
        &self,
        lookups: Lookups<'_>,
        show: impl FnMut(usize, Option<RowInPlace<'_>>) -> ControlFlow<()>,
    ) {
        let shown_count = self.look_up(lookups, show);
        self.visits.add(shown_count);
    }
}
