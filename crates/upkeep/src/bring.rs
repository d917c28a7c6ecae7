//! Checks the files of an import and brings them into the table's directory, on a background thread.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use ring::Sharding;
use rows::{RingRange, Slices, Step, UnfilteredCursor};
use runtime::{Disk, Runtime};
use schema::Table;
use sstable::{Descriptor, DirectChunks, StatisticsChange, TableFile, change_statistics, check_fits};

use crate::UpkeepError;
use crate::adopt::{Bring, adopt};

/// How files are imported; the defaults are Cassandra's.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportOptions {
    /// Leave the source files where they are, and share nothing with them.
    pub copy_data: bool,
    /// Keep the level of the leveled compaction strategy.
    pub keep_level: bool,
    /// Keep the state of repair.
    pub keep_repaired: bool,
    /// Do not read the files through before taking them; that they fit the table is always checked.
    pub skip_verify: bool,
}

/// A file under its new id.
#[derive(Clone, Debug)]
pub struct Brought {
    /// The file.
    pub file: Arc<TableFile>,
    /// Shards that own a partition of it; `None` when nobody looked.
    pub shards: Option<BTreeSet<usize>>,
}

/// What to bring, and where.
pub struct BringJob {
    /// The disk, and where ids come from.
    pub runtime: Runtime,
    /// Where files of the table lie.
    pub directory: PathBuf,
    /// The table.
    pub table: Arc<Table>,
    /// The files.
    pub sources: Vec<Descriptor>,
    /// How.
    pub options: ImportOptions,
    /// How tokens are shared out.
    pub sharding: Sharding,
}

impl BringJob {
    /// Checks all files, then brings them. Blocks.
    ///
    /// # Errors
    /// One does not fit or is damaged, or the disk fails: nothing is left of any of them.
    pub fn run(self) -> Result<Vec<Brought>, UpkeepError> {
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
        // The sources may go for them. No test can break it without another loop.
        assert_eq!(brought.len(), self.sources.len(), "all files are brought, or none");
        Ok(brought)
    }

    fn disk(&self) -> &dyn Disk {
        &*self.runtime.disk
    }

    fn open(&self, descriptor: &Descriptor) -> Result<Arc<TableFile>, UpkeepError> {
        Ok(TableFile::open(Arc::clone(&self.runtime.disk), descriptor.clone(), &self.table)?)
    }

    /// Gives the shards that own partitions of it.
    fn check(&self, source: &Descriptor) -> Result<Option<BTreeSet<usize>>, UpkeepError> {
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

    fn bring(&self, source: &Descriptor) -> Result<Arc<TableFile>, UpkeepError> {
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
                .map_err(UpkeepError::from)
                .and_then(|()| self.open(&target)),
        };
        opened.inspect_err(|_| _ = sstable::delete_table_file(self.disk(), &target))
    }
}

impl ImportOptions {
    fn bring(self) -> Bring {
        if self.copy_data { Bring::Copy } else { Bring::Link }
    }
}
