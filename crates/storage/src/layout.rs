//! The data directory (table files may lie in others, `crate::directories`):
//! what lies where, and the facts of the node that outlive it.
//!
//! ```text
//!   node.json                          host id, sharding rule, generation of the manifests
//!   lock                               held while a node runs here
//!   schema.log                         the metadata log
//!   commitlog/commitlog-<stream>-<id>.log      (.spare: to be written again)
//!   commitlog/commitlog-<stream>.roster        which of these there must be
//!   manifest/<generation>/shard-<n>.log        (.json: an earlier version's, to be carried over)
//!   truncating.json                    the table that is being emptied, while it is (`crate::shard`, truncation)
//!   history/shard-<n>.json             which compactions have ended (the crate `table`)
//!   hot/shard-<n>.json                 which chunks its cache held (`crate::shard`, prefetch)
//!   data/                              table files, where no other directories are named (the same)
//! ```

use std::path::{Path, PathBuf};

use manifest::state_file::{read_state, write_state};
use ring::Sharding;
use runtime::{Disk, Random};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{StorageError, StorageOptions, TableDirectories};

/// Paths below a data directory.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
    tables: TableDirectories,
}

/// What the node is, kept in `node.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// Identity of the node in a ring.
    pub host_id: Uuid,
    /// Which shard owns which token.
    pub sharding: Sharding,
    /// Which manifests are in force.
    pub generation: u64,
}

impl NodeFacts {
    /// The highest bits that the directory's sharding rule leaves out; a new rule keeps to it.
    pub fn sharding_ignore_msb(&self) -> u8 {
        self.sharding.ignore_msb()
    }
}

impl Layout {
    /// Of that directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Layout::with_tables(root.into(), &[])
    }

    /// Of a node with these options.
    pub fn of_options(options: &StorageOptions) -> Self {
        Layout::with_tables(options.directory.clone(), &options.data_directories)
    }

    fn with_tables(root: PathBuf, named: &[PathBuf]) -> Self {
        Layout { tables: TableDirectories::new(named, root.join("data")), root }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The log of agreement of a ring.
    pub fn agreement(&self) -> PathBuf {
        self.root.join("ring")
    }

    /// The metadata log.
    pub fn schema_log(&self) -> PathBuf {
        self.root.join("schema.log")
    }

    /// Where the commit log's segments lie.
    pub fn commitlog(&self) -> PathBuf {
        self.root.join("commitlog")
    }

    /// Where table files lie.
    pub fn tables(&self) -> &TableDirectories {
        &self.tables
    }

    /// The manifests of a generation.
    pub fn manifests(&self, generation: u64) -> PathBuf {
        self.root.join("manifest").join(generation.to_string())
    }

    /// A shard's manifest.
    pub fn manifest(&self, generation: u64, shard: usize) -> PathBuf {
        self.manifests(generation).join(format!("shard-{shard}.log"))
    }

    /// What a shard's cache held for good, for the next start.
    pub(crate) fn hot(&self, shard: usize) -> PathBuf {
        self.root.join("hot").join(format!("shard-{shard}.json"))
    }

    /// Which compactions of a shard have ended.
    pub(crate) fn compaction_history(&self, shard: usize) -> PathBuf {
        self.root.join("history").join(format!("shard-{shard}.json"))
    }

    /// Which table is being emptied.
    pub(crate) fn truncating(&self) -> PathBuf {
        self.root.join("truncating.json")
    }

    fn node(&self) -> PathBuf {
        self.root.join("node.json")
    }

    /// Reads what the node is; `None` in an empty directory.
    ///
    /// # Errors
    /// When the file is there but not to be read.
    pub fn read_facts(&self, disk: &dyn Disk) -> Result<Option<NodeFacts>, StorageError> {
        Ok(read_state(disk, &self.node())?)
    }

    /// Writes what the node is.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn write_facts(&self, disk: &dyn Disk, facts: &NodeFacts) -> Result<(), StorageError> {
        Ok(write_state(disk, &self.node(), facts)?)
    }

    /// The facts of a new node.
    pub fn new_facts(random: &dyn Random, sharding: Sharding) -> NodeFacts {
        NodeFacts { host_id: random.uuid_v4(), sharding, generation: 1 }
    }
}
