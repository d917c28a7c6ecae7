//! Tables whose rows are made up when they are read: `system.local`, `system_schema`, …

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use read::PartitionRows;
use schema::{Keyspace, Replication, Table};

/// What must be waited for before a table can be made up.
pub type Gathering<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Which keyspaces and tables are made up. A statement sees these keyspaces beside those of the schema and can not
/// write to them. Statements are planned on several threads.
pub trait VirtualKeyspaces: Send + Sync {
    /// The keyspaces, with their tables. Looked up by every statement that names no other table,
    /// so it must be cheap.
    fn keyspaces(&self) -> &[Arc<Keyspace>];

    /// Are the rows of this table made up? Tables of the schema may be too (`system.local`), others
    /// of the same keyspace are stored (`system.batches`).
    fn makes_up(&self, keyspace: &str, table: &str) -> bool {
        self.keyspaces().iter().any(|known| known.name == keyspace && known.tables.contains_key(table))
    }

    /// Is the keyspace one of `system_views` and the like, which Cassandra calls virtual (and not
    /// merely a system keyspace that is stored)? DESCRIBE words the two differently, and filtering
    /// on them needs no permission.
    fn is_virtual(&self, keyspace: &str) -> bool {
        matches!(keyspace, "system_views" | "system_virtual_schema")
    }
}

/// What the server knows about itself, as tables.
pub trait VirtualTables {
    /// The keyspaces of these tables.
    fn keyspaces(&self) -> &Arc<dyn VirtualKeyspaces>;

    /// What must be waited for before [`VirtualTables::rows`] is asked for this table, if anything:
    /// some tables tell of all shards.
    fn gather<'a>(&'a self, table: &'a Table) -> Option<Gathering<'a>> {
        let _ = table;
        None
    }

    /// All rows of a table, as they are now; `None` when the table is not one of these. Partitions
    /// and rows in any order: the caller sorts. Static rows are not looked at unless given.
    fn rows(&self, table: &Table) -> Option<Vec<PartitionRows>>;

    /// Facts about all nodes: names, and where there are how many.
    fn cluster_facts(&self) -> ClusterFacts {
        ClusterFacts::default()
    }

    /// Addresses of the nodes that have each range of a keyspace with that replication, by the token it ends with: what
    /// `DESCRIBE CLUSTER` tells in a keyspace.
    fn range_ownership(&self, replication: &Replication) -> BTreeMap<String, Vec<String>> {
        let _ = replication;
        BTreeMap::new()
    }
}

/// What `DESCRIBE CLUSTER` tells, and what replication is checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Name of the cluster.
    pub cluster: String,
    /// `Murmur3Partitioner`.
    pub partitioner: String,
    /// Short class name of the snitch.
    pub snitch: String,
    /// How many nodes there are in which data centre: those that `NetworkTopologyStrategy` knows, and expands
    /// `replication_factor` to.
    pub data_centers: BTreeMap<String, usize>,
}

impl Default for ClusterFacts {
    fn default() -> Self {
        ClusterFacts {
            cluster: "Test Cluster".into(),
            partitioner: "Murmur3Partitioner".into(),
            snitch: "SimpleSnitch".into(),
            data_centers: [("datacenter1".into(), 1)].into(),
        }
    }
}

/// No virtual tables at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoVirtualTables;

impl VirtualKeyspaces for NoVirtualTables {
    fn keyspaces(&self) -> &[Arc<Keyspace>] {
        &[]
    }
}

impl VirtualTables for NoVirtualTables {
    fn keyspaces(&self) -> &Arc<dyn VirtualKeyspaces> {
        static NONE: LazyLock<Arc<dyn VirtualKeyspaces>> = LazyLock::new(|| Arc::new(NoVirtualTables));
        &NONE
    }

    fn rows(&self, _table: &Table) -> Option<Vec<PartitionRows>> {
        None
    }
}
