//! Checks the files of an import and brings them into the table's directory, on a background thread.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use ring::Sharding;
use rows::{Slices, Step, UnfilteredCursor};
use runtime::{Disk, Runtime};
use schema::Table;
use sstable::{
    Descriptor, DirectChunks, RingRange, StatisticsChange, TableFile, adopt, change_statistics, check_fits,
};

use super::ImportOptions;
use crate::StorageError;

/// A file under its new id.
#[derive(Clone, Debug)]
pub(crate) struct Brought {
    pub(crate) file: Arc<TableFile>,
    /// Shards that own a partition of it; `None` when nobody looked.
    pub(crate) shards: Option<BTreeSet<usize>>,
}

/// What to bring, and where.
pub(crate) struct BringJob {
    pub(crate) runtime: Runtime,
    pub(crate) directory: PathBuf,
    pub(crate) table: Arc<Table>,
    pub(crate) sources: Vec<Descriptor>,
    pub(crate) options: ImportOptions,
    pub(crate) sharding: Sharding,
}

impl BringJob {
    /// Checks all files, then brings them. Blocks.
    ///
    /// # Errors
    /// One does not fit or is damaged, or the disk fails: nothing is left of any of them.
    pub(crate) fn run(self) -> Result<Vec<Brought>, StorageError> {
        let shards = self.sources.iter().map(|source| self.check(source)).collect::<Result<Vec<_>, _>>()?;
        let mut brought = Vec::new();
        for (source, shards) in self.sources.iter().zip(shards) {
            match self.bring(source) {
                Ok(file) => brought.push(Brought { file, shards }),
                Err(error) => {
                    for done in &brought {
                        // What stays is swept up at the next start.
                        _ = sstable::delete_table_file(self.disk(), done.file.descriptor());
                    }
                    return Err(error);
                }
            }
        }
        Ok(brought)
    }

    fn disk(&self) -> &dyn Disk {
        &*self.runtime.disk
    }

    fn open(&self, descriptor: &Descriptor) -> Result<Arc<TableFile>, StorageError> {
        Ok(TableFile::open(Arc::clone(&self.runtime.disk), descriptor.clone(), &self.table)?)
    }

    /// Gives the shards that own partitions of it.
    fn check(&self, source: &Descriptor) -> Result<Option<BTreeSet<usize>>, StorageError> {
        check_fits(self.disk(), source, &self.table)?;
        let file = self.open(source)?;
        if self.options.skip_verify {
            return Ok(None);
        }
        file.verify()?;
        let mut shards = BTreeSet::new();
        let mut cursor = file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::none());
        loop {
            match cursor.step()? {
                Step::Header(header) => _ = shards.insert(self.sharding.shard_of(header.key.token)),
                Step::End => return Ok(Some(shards)),
                Step::Item(_) | Step::Need(_) => {}
            }
        }
    }

    fn bring(&self, source: &Descriptor) -> Result<Arc<TableFile>, StorageError> {
        let id = self.runtime.random.uuid_v1(&*self.runtime.clock);
        let target = Descriptor::of_version(&self.directory, id, source.version);
        adopt(self.disk(), source, &target, self.options.bring())?;
        let change = StatisticsChange {
            level: (!self.options.keep_level).then_some(0),
            repaired_at: (!self.options.keep_repaired).then_some(0),
            pending_repair: (!self.options.keep_repaired).then_some(None),
        };
        let opened = match change == StatisticsChange::default() {
            true => self.open(&target),
            false => change_statistics(self.disk(), &target, change)
                .map_err(StorageError::from)
                .and_then(|()| self.open(&target)),
        };
        opened.inspect_err(|_| _ = sstable::delete_table_file(self.disk(), &target))
    }
}
