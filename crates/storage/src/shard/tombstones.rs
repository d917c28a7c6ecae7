//! How many tombstones reads may come upon here ([`read::TombstoneThresholds`]).

use read::TombstoneThresholds;
use schema::Table;

use super::Shard;

impl Shard {
    /// How many tombstones a read of the table may come upon.
    pub fn tombstone_thresholds(&self, table: &Table) -> TombstoneThresholds {
        self.options.tombstones.of_table(table)
    }

    /// Are they so many that the client is to hear of them, or that the read is to end?
    pub(super) fn is_to_be_told(&self, tombstone_count: u64, table: &Table) -> bool {
        let least = |thresholds: TombstoneThresholds| thresholds.warn.min(thresholds.failure);
        // The table is asked only when it matters.
        tombstone_count > least(self.options.tombstones)
            && tombstone_count > least(self.tombstone_thresholds(table))
    }
}
