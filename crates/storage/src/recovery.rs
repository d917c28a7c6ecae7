//! From a data directory to shards: before the first request, on one thread.
//!
//! 1. The manifests say which files count; each is opened and verified as far as is cheap. Files
//!    that no manifest names are left-overs of a flush or a compaction that did not finish: deleted.
//! 2. The commit log is replayed: each mutation that no flush covers goes to the memtable of the
//!    shard that owns its token now, and memtables that outgrow their budget to files (`replay.rs`).
//! 3. Had the directory another sharding rule, everything replayed is flushed, new manifests are
//!    written beside the old ones, and `node.json` switches to them in one step. Then the log goes,
//!    and last the old manifests: while these are there, the log is known to hold nothing new. A file
//!    that holds tokens of several shards is listed by each of them; compaction splits it later.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use manifest::{Manifest, ManifestState, Scope, TableState};
use memtable::Memtable;
use ring::Sharding;
use runtime::{Disk, EntryKind};
use schema::{Schema, Table, TableId};
use sstable::{Component, Descriptor, TableFile};
use table::{Damaged, TableError, TableSeed};
use uuid::Uuid;

use crate::layout::NodeFacts;
use crate::replay::{ReplayedShard, Replaying, write_replayed};
use crate::shard::{ShardContext, ShardSeed};
use crate::{Layout, StorageError};

/// Everything a start needs to know of a data directory.
pub(crate) struct Recovery<'a> {
    pub(crate) context: &'a ShardContext,
    pub(crate) schema: &'a Schema,
    pub(crate) facts: NodeFacts,
}

impl Recovery<'_> {
    /// Brings the directory to the wanted sharding and gives each shard its seed.
    pub(crate) fn run(&self) -> Result<(NodeFacts, Vec<ShardSeed>), StorageError> {
        self.finish_resharding(self.facts.generation)?;
        let mut manifests = self.open_manifests(self.facts.sharding, self.facts.generation)?;
        manifests = crate::import::journal::take_back(self.disk(), self.layout(), manifests)?;
        self.sweep(&manifests)?;
        let keeps_rule = self.context.sharding == self.facts.sharding;
        let replaying = Replaying::new(self.context, self.schema, &mut manifests, keeps_rule);
        let (mut replayed, last_timestamp) = replaying.run()?;
        let mut facts = self.facts.clone();
        if !keeps_rule {
            (facts, manifests) = self.reshard(&manifests, &mut replayed, last_timestamp)?;
        }
        // Each goes on with its own; who has none would be left out. No test can break it without another recovery.
        assert_eq!(manifests.len(), replayed.len(), "every shard that was replayed has a manifest");
        let mut opened = HashMap::new();
        let mut seeds = Vec::with_capacity(manifests.len());
        for (manifest, replayed) in manifests.into_iter().zip(replayed) {
            let tables = self.table_seeds(&manifest, replayed.memtables, &mut opened)?;
            seeds.push(ShardSeed { manifest, tables, last_timestamp });
        }
        Ok((facts, seeds))
    }

    fn disk(&self) -> &Arc<dyn Disk> {
        &self.context.runtime.disk
    }

    fn layout(&self) -> &Layout {
        &self.context.layout
    }

    fn open_manifests(&self, sharding: Sharding, generation: u64) -> Result<Vec<Manifest>, StorageError> {
        let directory = self.layout().manifests(generation);
        // A killed process may have left the latest manifests in the cache alone. They must be durable
        // before anything is deleted that they do not name.
        self.disk()
            .sync_dir(&directory)
            .map_err(|source| TableError::Disk { act: "sync manifest directory", source })?;
        (0..sharding.shard_count())
            .map(|shard| {
                Ok(Manifest::open(Arc::clone(self.disk()), self.layout().manifest(generation, shard))?)
            })
            .collect()
    }

    /// Deletes table files that no manifest names, and those of tables that were dropped.
    fn sweep(&self, manifests: &[Manifest]) -> Result<(), StorageError> {
        let disk = &**self.disk();
        let tables = manifests.iter().flat_map(|manifest| &manifest.state().tables);
        let named: BTreeSet<Uuid> = tables
            .filter(|(id, _)| self.schema.table_by_id(**id).is_some())
            .flat_map(|(_, table)| &table.files)
            .copied()
            .collect();
        for data in self.layout().tables().all() {
            if let Err(error) = self.sweep_directory(disk, &data, &named) {
                self.context.health.note("start", &error);
                if !self.context.health.answers_from_the_rest() {
                    return Err(error.into());
                }
                tracing::error!(directory = %data.display(), %error, "left-overs are not swept up");
            }
        }
        Ok(())
    }

    fn sweep_directory(
        &self,
        disk: &dyn Disk,
        data: &Path,
        named: &BTreeSet<Uuid>,
    ) -> Result<(), TableError> {
        for keyspace in list(disk, data)? {
            for table in list(disk, &data.join(&keyspace))? {
                let directory = data.join(&keyspace).join(table);
                self.sweep_table(&directory, named)?;
            }
        }
        Ok(())
    }

    fn sweep_table(&self, directory: &Path, named: &BTreeSet<Uuid>) -> Result<(), TableError> {
        let names = list(&**self.disk(), directory)?;
        let parsed = names.iter().filter_map(|name| Descriptor::from_path(&directory.join(name)).ok());
        // In the order of their names, in which those of one file follow each other: what fails here must
        // do so again under the same seed.
        let mut files: Vec<(Descriptor, Vec<Component>)> = Vec::new();
        for (descriptor, component) in parsed {
            match files.last_mut() {
                Some((last, components)) if *last == descriptor => components.push(component),
                _ => files.push((descriptor, vec![component])),
            }
        }
        for (descriptor, components) in files {
            if named.contains(&descriptor.id) {
                continue;
            }
            let file = descriptor.file_name(Component::Data);
            // What we write has checksums before it has a list of components, and is no number.
            let is_finished =
                components.contains(&Component::Toc) && !components.contains(&Component::Checksums);
            if is_finished || sstable::number_of(descriptor.id).is_some() {
                tracing::warn!(
                    file,
                    "a table file was placed here that is not part of its table: see refresh"
                );
                continue;
            }
            tracing::info!(file, "deleting a table file that never became part of its table");
            sstable::delete_table_file(&**self.disk(), &descriptor)?;
        }
        Ok(())
    }

    /// Step 3: the directory changes to the wanted rule.
    fn reshard(
        &self,
        old: &[Manifest],
        replayed: &mut [ReplayedShard],
        last_timestamp: i64,
    ) -> Result<(NodeFacts, Vec<Manifest>), StorageError> {
        let facts = NodeFacts {
            sharding: self.context.sharding,
            generation: self.facts.generation + 1,
            ..self.facts.clone()
        };
        tracing::info!(
            from = old.len(),
            to = facts.sharding.shard_count(),
            "taking over a directory of another number of shards"
        );
        let directory = self.layout().manifests(facts.generation);
        let fail = |act| move |source| TableError::Disk { act, source };
        if self.disk().exists(&directory).map_err(fail("look for manifest directory"))? {
            // Of an earlier try that did not get as far as `node.json`.
            self.disk().remove_dir_all(&directory).map_err(fail("delete manifest directory"))?;
        }
        self.disk().create_dir_all(&directory).map_err(fail("create manifest directory"))?;
        let mut manifests = Vec::new();
        for (shard, replayed) in replayed.iter_mut().enumerate() {
            let mut state = self.inherited(old)?;
            state.last_timestamp = last_timestamp;
            for (id, files) in std::mem::take(&mut replayed.unnamed) {
                state.tables.entry(id).or_default().files.extend(files);
            }
            for (id, memtable) in std::mem::take(&mut replayed.memtables) {
                let file = write_replayed(self.context, self.schema, shard, id, &memtable)?;
                if file.is_some() {
                    state.tables.entry(id).or_default().files.extend(file);
                }
            }
            let path = self.layout().manifest(facts.generation, shard);
            manifests.push(Manifest::create(Arc::clone(self.disk()), path, state)?);
        }
        // From here on the log is not needed. No test can break it without another loop.
        assert_eq!(
            manifests.len(),
            facts.sharding.shard_count(),
            "what was replayed is named by new manifests"
        );
        self.layout().write_facts(&**self.disk(), &facts)?;
        self.finish_resharding(facts.generation)?;
        Ok((facts, manifests))
    }

    /// Removes what a change of the rule to this generation leaves: the log, all of whose writes are in
    /// files, and then the manifests of the generation before. Cut short, it is done again by the
    /// next start, before anything is written to a new log.
    fn finish_resharding(&self, generation: u64) -> Result<(), StorageError> {
        let old = self.layout().manifests(generation.saturating_sub(1));
        let fail = |source| TableError::Disk { act: "delete old manifests", source };
        if generation == 0 || !self.disk().exists(&old).map_err(fail)? {
            return Ok(());
        }
        self.remove_log()?;
        self.disk().remove_dir_all(&old).map_err(fail)?;
        // Durable before the new log gets its first record: it would be removed with the old one.
        Ok(old.parent().map_or(Ok(()), |parent| self.disk().sync_dir(parent).map_err(fail))?)
    }

    /// Every old file of every table, narrowed to the partitions of the shards that listed it; each
    /// new shard reads its own from it. Positions
    /// stay so that the segments of the new log come after those of the old one.
    fn inherited(&self, old: &[Manifest]) -> Result<ManifestState, StorageError> {
        let mut state = ManifestState::default();
        for manifest in old {
            for (id, table) in &manifest.state().tables {
                let inherited: &mut TableState = state.tables.entry(*id).or_default();
                inherited.files.extend(&table.files);
                inherited.flushed = inherited.flushed.max(table.flushed);
                inherited.scopes.extend(table.scopes.iter().map(|(file, scopes)| (*file, scopes.clone())));
            }
        }
        for (id, table) in &mut state.tables {
            for file in &table.files {
                let lists = |manifest: &Manifest| {
                    manifest.state().tables.get(id).is_some_and(|table| table.files.contains(file))
                };
                let shards: BTreeSet<usize> = (0..old.len()).filter(|shard| lists(&old[*shard])).collect();
                if shards.len() < old.len() {
                    let scope = Scope::Shards { sharding: self.facts.sharding, shards };
                    table.scopes.entry(*file).or_default().push(scope);
                }
            }
        }
        Ok(state)
    }

    /// All replayed writes are in files: no segment is needed any more.
    fn remove_log(&self) -> Result<(), StorageError> {
        let directory = self.layout().commitlog();
        let fail = |source| TableError::Disk { act: "delete old commit log segments", source };
        if !self.disk().exists(&directory).map_err(fail)? {
            return Ok(());
        }
        for name in list(&**self.disk(), &directory)? {
            self.disk().remove_file(&directory.join(name)).map_err(fail)?;
        }
        Ok(self.disk().sync_dir(&directory).map_err(fail)?)
    }

    fn table_seeds(
        &self,
        manifest: &Manifest,
        mut memtables: BTreeMap<TableId, Memtable>,
        opened: &mut HashMap<Uuid, Arc<TableFile>>,
    ) -> Result<HashMap<TableId, TableSeed>, StorageError> {
        let mut seeds = HashMap::new();
        for table in self.schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values()) {
            let memtable = memtables.remove(&table.id()).unwrap_or_else(|| Memtable::new(Arc::clone(table)));
            let mut seed = TableSeed::new(memtable);
            let state = manifest.state().tables.get(&table.id());
            for id in state.into_iter().flat_map(|state| &state.files) {
                match self.open_file(table, *id, opened) {
                    Ok(file) => {
                        if let Some(scopes) = state.and_then(|state| state.scopes.get(id)) {
                            seed.scopes.insert(*id, scopes.clone().into());
                        }
                        seed.files.push(file);
                    }
                    Err(error) => {
                        self.context.health.note("start", &error);
                        if self.context.health.refuses_damage_at_start() {
                            return Err(error.into());
                        }
                        tracing::error!(keyspace = table.keyspace(), table = table.name(), %error, "a table file can not be read");
                        seed.damage.push(Damaged { id: *id, reason: error.to_string() });
                    }
                }
                self.context.registry.retain(*id);
            }
            seeds.insert(table.id(), seed);
        }
        Ok(seeds)
    }

    fn open_file(
        &self,
        table: &Arc<Table>,
        id: Uuid,
        opened: &mut HashMap<Uuid, Arc<TableFile>>,
    ) -> Result<Arc<TableFile>, TableError> {
        if let Some(file) = opened.get(&id) {
            return Ok(Arc::clone(file));
        }
        let descriptor = self.layout().tables().locate(&**self.disk(), table, id)?;
        let file = TableFile::open(Arc::clone(self.disk()), descriptor, table)?;
        opened.insert(id, Arc::clone(&file));
        Ok(file)
    }
}

/// Names in a directory, sorted; none when there is no directory.
fn list(disk: &dyn Disk, directory: &Path) -> Result<Vec<String>, TableError> {
    let fail = |source| TableError::Disk { act: "list directory", source };
    if !disk.exists(directory).map_err(fail)? {
        return Ok(Vec::new());
    }
    if disk.metadata(directory).map_err(fail)?.is_some_and(|entry| entry.kind != EntryKind::Directory) {
        return Ok(Vec::new());
    }
    let mut names: Vec<String> =
        disk.list(directory).map_err(fail)?.into_iter().map(|entry| entry.name).collect();
    names.sort();
    Ok(names)
}
