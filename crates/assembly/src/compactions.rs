//! What all shards together know of their compactions.

use storage::{ActiveCompaction, CompactionRecord, CompactionTotals, Shards, StorageError};

/// What all shards together know of their compactions.
#[derive(Clone, Debug, Default)]
pub struct NodeCompactions {
    /// Those that go on.
    pub active: Vec<ActiveCompaction>,
    /// Those that ended, the latest first.
    pub history: Vec<CompactionRecord>,
    /// Sums.
    pub totals: CompactionTotals,
}

impl NodeCompactions {
    /// Asks every shard.
    ///
    /// # Errors
    /// A shard is too busy to answer, or gone.
    pub async fn collect(shards: &Shards) -> Result<NodeCompactions, StorageError> {
        let mut all = NodeCompactions::default();
        for shard in 0..shards.count() {
            let of = shards.on(shard, |shard| async move {
                (shard.compactor().active(), shard.compactor().history(), shard.compactor().totals())
            });
            let (active, history, totals) = of.await?;
            all.active.extend(active);
            all.history.extend(history);
            all.totals.add(&totals);
        }
        all.history.sort_by_key(|record| std::cmp::Reverse((record.finished_ms, record.id)));
        Ok(all)
    }
}
