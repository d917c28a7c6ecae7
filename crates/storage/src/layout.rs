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
//!   history/shard-<n>.json             which compactions have ended (`crate::shard`, compact/history)
//!   hot/shard-<n>.json                 which chunks its cache held (`crate::shard`, prefetch)
//!   data/<keyspace>/<table>-<table id>/da-<file id>-bti-<component>
//!                                     /snapshots/… /backups/… /quarantine/…
//! ```

use std::path::{Path, PathBuf};

use manifest::state_file::{read_state, write_state};
use ring::Sharding;
use runtime::{Disk, Random};
use schema::Table;
use serde::{Deserialize, Serialize};
use sstable::{Component, Descriptor, SstableError};
use uuid::Uuid;

use crate::directories::distinct;
use crate::{StorageError, StorageOptions};

/// Paths below a data directory.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
    /// Where new table files go. Never empty.
    data: Vec<PathBuf>,
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
        let root = root.into();
        Layout { data: vec![root.join("data")], root }
    }

    /// Of a node with these options.
    pub fn of_options(options: &StorageOptions) -> Self {
        let (layout, data) = (Layout::new(&options.directory), &options.data_directories);
        if data.is_empty() { layout } else { Layout { data: distinct(data), ..layout } }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The metadata log.
    pub fn schema_log(&self) -> PathBuf {
        self.root.join("schema.log")
    }

    /// Where the commit log's segments lie.
    pub fn commitlog(&self) -> PathBuf {
        self.root.join("commitlog")
    }

    /// Where new table files go; by default `data` alone.
    pub fn data_directories(&self) -> &[PathBuf] {
        &self.data
    }

    /// Where table files may lie: also in `data`, when others were named later.
    pub(crate) fn all_data_directories(&self) -> Vec<PathBuf> {
        let mut all = self.data.clone();
        all.push(self.own_data());
        distinct(&all)
    }

    /// The directory of table files that lies in the node's own.
    pub(crate) fn own_data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// Where a table's files lie in the first of the directories.
    pub fn table(&self, table: &Table) -> PathBuf {
        Layout::table_in(&self.data[0], table)
    }

    /// Where a table's files may lie.
    pub(crate) fn tables(&self, table: &Table) -> Vec<PathBuf> {
        self.all_data_directories().iter().map(|data| Layout::table_in(data, table)).collect()
    }

    /// Where a table file lies; where it would in the first directory, when it is in none.
    ///
    /// # Errors
    /// A directory can not be looked into and no other has it, or it is of a version that is not read.
    pub(crate) fn locate(
        &self,
        disk: &dyn Disk,
        table: &Table,
        id: Uuid,
    ) -> Result<Descriptor, SstableError> {
        let mut failure = None;
        for directory in self.tables(table) {
            match Descriptor::locate(disk, &directory, id) {
                Ok(found) => {
                    let is_there = |component| disk.exists(&found.path(component));
                    if is_there(Component::Toc)? || is_there(Component::Data)? {
                        return Ok(found);
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or_else(|| Ok(Descriptor::new(self.table(table), id)), Err)
    }

    /// Where a table's files lie in a directory, as in Cassandra: the id without dashes after the name.
    pub(crate) fn table_in(data: &Path, table: &Table) -> PathBuf {
        data.join(table.keyspace()).join(format!("{}-{}", table.name(), table.id().0.simple()))
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
