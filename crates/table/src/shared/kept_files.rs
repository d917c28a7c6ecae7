//! What becomes of table files that come and go: the cache's part of them, and when they are deleted.

use std::sync::Arc;

use cache::Reservation;
use runtime::Plant;
use schema::Table;
use sstable::{Descriptor, TableFile};
use uuid::Uuid;

use super::Shared;
use crate::TableError;

/// An index is no larger than one in so many bytes of Data, mostly, and this.
const INDEX_PART: usize = 16;
const INDEX_BYTES_MIN: usize = 64 << 10;
/// Chunks that come into the cache or go, before others on the shard have their turn: a merge brings ten thousands.
const CHUNKS_PER_TURN: usize = 512;

impl Shared {
    /// Keeps memory of the cache back for a file of so many uncompressed bytes and its index.
    pub(crate) fn spare_for(&self, data_bytes: usize) -> Reservation {
        self.cache.reserve(data_bytes.saturating_add(data_bytes / INDEX_PART).saturating_add(INDEX_BYTES_MIN))
    }

    /// Lets the cache have what new files hold of themselves, in place of what was kept back for them.
    pub(crate) async fn cache_written(&self, spare: Reservation, files: &[Arc<TableFile>]) {
        drop(spare);
        for (count, (id, chunk)) in files.iter().flat_map(|file| file.take_kept()).enumerate() {
            self.cache.insert_if_free(id, chunk);
            if count % CHUNKS_PER_TURN == CHUNKS_PER_TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Deletes files that no manifest of this shard names any more; those that other shards still
    /// use stay. A file that can not be deleted is left for the next start to sweep up.
    pub(crate) async fn delete_files(&self, files: &[Arc<TableFile>]) {
        let numbers: Vec<u64> = files.iter().map(|file| file.number()).collect();
        for chunks in self.cache.chunks_of(&numbers).chunks(CHUNKS_PER_TURN) {
            self.cache.remove(chunks);
            tokio::task::yield_now().await;
        }
        // And what a late reader has brought in meanwhile.
        self.cache.forget(&numbers);
        if self.runtime.plants.has(Plant::FileDeletedEarly) {
            let tables = self.tables().map_or_else(Vec::new, |tables| tables.all());
            let named: Vec<_> = tables.iter().flat_map(|store| store.files().all().to_vec()).collect();
            return self.release_files(&named).await;
        }
        self.release_files(files).await;
    }

    /// Lets go of files that were held; those that nobody lists or holds any more are deleted.
    pub async fn release_files(&self, files: &[Arc<TableFile>]) {
        let is_unused = |file: &&Arc<TableFile>| self.registry.release(file.descriptor().id);
        let unused: Vec<_> = files.iter().filter(is_unused).collect();
        let tables = self.tables();
        let is_named = |file: &&Arc<TableFile>| tables.as_ref().is_some_and(|tables| tables.have(file));
        assert!(!unused.iter().any(is_named), "a file that is deleted is no table's");
        let unused: Vec<Descriptor> = unused.into_iter().map(|file| file.descriptor().clone()).collect();
        let disk = Arc::clone(&self.runtime.disk);
        self.runtime
            .io
            .run(move || {
                for descriptor in &unused {
                    if let Err(error) = sstable::delete_table_file(&*disk, descriptor) {
                        tracing::warn!(id = %descriptor.id, %error, "an unused table file was not deleted");
                    }
                }
            })
            .await;
    }

    /// Where a file of a table lies that could not be opened.
    pub(crate) async fn locate(&self, table: Arc<Table>, id: Uuid) -> Result<Descriptor, TableError> {
        let (disk, directories) = (Arc::clone(&self.runtime.disk), self.directories.clone());
        Ok(self.runtime.io.run(move || directories.locate(&*disk, &table, id)).await?)
    }

    /// Lets go of such a file; one that nobody lists or holds any more is deleted.
    pub(crate) async fn release_unopened(&self, descriptor: Descriptor) -> Result<(), TableError> {
        if self.registry.release(descriptor.id) {
            let disk = Arc::clone(&self.runtime.disk);
            self.runtime.io.run(move || sstable::delete_table_file(&*disk, &descriptor)).await?;
        }
        Ok(())
    }
}
