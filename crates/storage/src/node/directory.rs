//! A node's data directory: whose it is, locked, and begun if it is new.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compaction::CompactionControl;
use manifest::{Manifest, ManifestState};
use ring::Sharding;
use rows::CounterId;
use runtime::{DirectoryLock, Runtime};
use schema::Schema;
use table::{DiskFailurePolicy, FaultKind, FileRegistry, Health, TableError};

use super::Recovered;
use crate::layout::NodeFacts;
use crate::recovery::Recovery;
use crate::shard::ShardContext;
use crate::{Layout, StorageError, StorageOptions};

/// A data directory, locked by this process.
pub struct Directory {
    runtime: Runtime,
    options: Arc<StorageOptions>,
    layout: Layout,
    facts: NodeFacts,
    locks: Vec<DirectoryLock>,
    /// Directories of table files that can not be used, and why.
    failed: Vec<(PathBuf, TableError)>,
}

impl Directory {
    /// Locks a data directory, makes it if need be, and reads what node it belongs to. Blocks.
    ///
    /// # Errors
    /// Another process has it, the disk fails, or `node.json` is damaged.
    pub fn open(runtime: &Runtime, options: StorageOptions) -> Result<Directory, StorageError> {
        let layout = Layout::of_options(&options);
        let fail = |act| move |source| TableError::Disk { act, source };
        runtime.disk.create_dir_all(layout.root()).map_err(fail("create data directory"))?;
        let lock = take_directory(runtime, layout.root())?;
        let sharding = Sharding::new(options.shard_count, Sharding::IGNORE_MSB)
            .map_err(|error| TableError::Directory { path: layout.root().into(), what: error.to_string() })?;
        // What a killed process wrote last may be in the cache alone; from here on it is relied on.
        runtime.disk.sync_dir(layout.root()).map_err(fail("sync data directory"))?;
        let facts = match layout.read_facts(&*runtime.disk)? {
            Some(facts) => facts,
            None => begin(runtime, &layout, sharding)?,
        };
        let (mut locks, mut failed) = (vec![lock], Vec::new());
        for path in layout.tables().written() {
            if *path == layout.tables().own() {
                runtime.disk.create_dir_all(path).map_err(fail("create table directory"))?;
                continue;
            }
            match crate::directories::take(runtime, path, facts.host_id) {
                Ok(lock) => locks.push(lock),
                Err(error)
                    if options.disk_failure_policy == DiskFailurePolicy::BestEffort
                        && FaultKind::of(&error).is_some() =>
                {
                    failed.push((path.clone(), error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let (shard_count, directory_count) =
            (usize::from(options.shard_count), layout.tables().written().len());
        if shard_count < directory_count {
            tracing::warn!(
                shard_count,
                directory_count,
                "some data directories are not used: each shard writes to one"
            );
        }
        Ok(Directory { runtime: runtime.clone(), options: Arc::new(options), layout, facts, locks, failed })
    }

    /// Paths in it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What node it belongs to.
    pub fn facts(&self) -> &NodeFacts {
        &self.facts
    }

    /// Opens table files and replays the commit log. Blocks.
    ///
    /// # Errors
    /// The log or a manifest is damaged, or the disk fails. Damaged table files are no error here:
    /// reads that need them are refused.
    pub fn recover(self, schema: &Schema) -> Result<Recovered, StorageError> {
        let sharding =
            Sharding::new(self.options.shard_count, self.facts.sharding_ignore_msb()).map_err(|error| {
                TableError::Directory { path: self.layout.root().into(), what: error.to_string() }
            })?;
        let compaction = CompactionControl::new(
            self.options.concurrent_compactors,
            self.options.compaction_bytes_per_second,
        );
        let health = Health::new(
            self.options.disk_failure_policy,
            self.options.commit_failure_policy,
            self.layout.tables().written().to_vec(),
            Arc::clone(&self.runtime.clock),
        );
        for (path, error) in &self.failed {
            health.note_lost(path, error);
        }
        let context = ShardContext {
            health: Arc::new(health),
            compaction,
            sharding,
            runtime: self.runtime,
            options: self.options,
            layout: self.layout,
            counter_id: CounterId(*self.facts.host_id.as_bytes()),
            registry: Arc::new(FileRegistry::default()),
            node_timestamps: Arc::default(),
        };
        context.registry.set_incremental_backups(context.options.incremental_backups);
        let (facts, seeds) = Recovery { context: &context, schema, facts: self.facts }.run()?;
        Ok(Recovered { context, facts, seeds, locks: self.locks })
    }
}

/// Locks a directory for this process.
pub(crate) fn take_directory(runtime: &Runtime, path: &Path) -> Result<DirectoryLock, TableError> {
    runtime.disk.lock_dir(path).map_err(|source| match source.kind() {
        ErrorKind::WouldBlock => {
            TableError::Directory { path: path.into(), what: format!("another process uses it ({source})") }
        }
        _ => TableError::Disk { act: "lock data directory", source },
    })
}

/// Locks a node's directory without starting it.
///
/// # Errors
/// A node runs there, or the disk fails.
pub fn lock_directory(runtime: &Runtime, path: &Path) -> Result<DirectoryLock, StorageError> {
    Ok(take_directory(runtime, path)?)
}

/// Begins a node in an empty directory. `node.json` comes last: where it is, everything is that a start
/// relies on; where it is not but anything else is, it was lost, and beginning anew would lose the rest.
fn begin(runtime: &Runtime, layout: &Layout, sharding: Sharding) -> Result<NodeFacts, StorageError> {
    for path in [layout.tables().own().to_owned(), layout.commitlog(), layout.schema_log()] {
        let is_there = runtime.disk.exists(&path);
        if is_there.map_err(|source| TableError::Disk { act: "look for earlier data", source })? {
            let what = format!("node.json is missing, but there is {}", path.display());
            return Err(TableError::Directory { path: layout.root().into(), what }.into());
        }
    }
    check_nothing_foreign(runtime, layout)?;
    let facts = Layout::new_facts(&*runtime.random, sharding);
    let create = |source| TableError::Disk { act: "create manifest directory", source };
    runtime.disk.create_dir_all(&layout.manifests(facts.generation)).map_err(create)?;
    for shard in 0..sharding.shard_count() {
        let path = layout.manifest(facts.generation, shard);
        Manifest::create(Arc::clone(&runtime.disk), path, ManifestState::default())?;
    }
    layout.write_facts(&*runtime.disk, &facts)?;
    Ok(facts)
}

/// Refuses to begin a node among somebody else's files: a home directory named by mistake, another program's data.
/// What a beginning that was cut off leaves is ours, and so are directories of table files below.
fn check_nothing_foreign(runtime: &Runtime, layout: &Layout) -> Result<(), StorageError> {
    const OURS: [&str; 5] = ["LOCK", "lost+found", "manifest", "node.json", "node.json.tmp"];
    let list = |source| TableError::Disk { act: "list data directory", source };
    for entry in runtime.disk.list(layout.root()).map_err(list)? {
        let path = layout.root().join(&entry.name);
        let holds_data = layout.tables().written().iter().any(|directory| directory.starts_with(&path));
        if !OURS.contains(&entry.name.as_str()) && !holds_data {
            let what = format!(
                "it is no node's and not empty: there is {}; a new node begins in an empty one",
                entry.name
            );
            return Err(TableError::Directory { path: layout.root().into(), what }.into());
        }
    }
    Ok(())
}
