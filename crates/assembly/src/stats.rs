//! What all shards together know of the node's tables.

use std::collections::BTreeMap;

use storage::{CacheStats, Shard, Shards, StorageError, TableStats};

/// What all shards together know.
#[derive(Clone, Debug, Default)]
pub struct NodeStats {
    /// By keyspace and table.
    pub tables: BTreeMap<(String, String), TableStats>,
    /// The chunk caches as one.
    pub cache: CacheStats,
    /// Bytes in memtables.
    pub memtable_bytes: u64,
}

impl NodeStats {
    /// Asks every shard.
    ///
    /// # Errors
    /// A shard is too busy to answer, or gone.
    pub async fn collect(shards: &Shards) -> Result<NodeStats, StorageError> {
        let mut all = NodeStats::default();
        for shard in 0..shards.count() {
            all.add(shards.on(shard, |shard| async move { NodeStats::of(&shard) }).await?);
        }
        Ok(all)
    }

    fn of(shard: &Shard) -> NodeStats {
        let schema = shard.schema();
        let tables = schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values());
        // A table that the shard does not have was dropped a moment ago.
        let tables = tables.filter_map(|table| {
            let name = (table.keyspace().to_owned(), table.name().to_owned());
            Some((name, shard.table(table.id()).ok()?.stats()))
        });
        let memory = shard.memory();
        NodeStats {
            tables: tables.collect(),
            cache: memory.cache,
            memtable_bytes: memory.memtable_bytes as u64,
        }
    }

    fn add(&mut self, other: NodeStats) {
        for (name, stats) in other.tables {
            self.tables.entry(name).or_default().add(&stats);
        }
        self.cache.add(&other.cache);
        self.memtable_bytes += other.memtable_bytes;
    }

    /// Bytes of live table files.
    pub fn load_bytes(&self) -> u64 {
        self.tables.values().map(|stats| stats.space_used_live).sum()
    }

    /// The same before compression.
    pub fn uncompressed_load_bytes(&self) -> u64 {
        let of = |stats: &TableStats| {
            (stats.space_used_live + stats.uncompressed_bytes).saturating_sub(stats.compressed_bytes)
        };
        self.tables.values().map(of).sum()
    }
}
