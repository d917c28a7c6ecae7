//! A shard's part in an import, beside that of the table; the whole is in `crate::import`.

use std::path::{Component as PathPart, Path, PathBuf};
use std::sync::Arc;

use schema::TableId;
use sstable::{Component, Descriptor, TableFile};
use table::{Shared, TableError};
use upkeep::{Brought, list_source};

use super::Shard;
use crate::StorageError;
use crate::import::journal::{self, Journal};

/// The files of a directory that is not one of live files.
pub(crate) async fn list(shard: &Shard, directory: PathBuf) -> Result<Vec<Descriptor>, StorageError> {
    let (disk, data) = (Arc::clone(&shard.shared.runtime.disk), shard.layout.tables().all());
    let list = move || {
        // The node's own directory may be named from where it was started, or through a link.
        let whole = |path: &Path| disk.canonical(path).unwrap_or_else(|_| path.to_owned());
        if data.iter().any(|data| is_live(&whole(data), &whole(&directory))) {
            let what = "live files of this node are in it; files placed there become part of their table with refresh";
            return Err(TableError::Directory { path: directory, what: what.into() });
        }
        Ok(list_source(&*disk, &directory)?)
    };
    Ok(shard.shared.runtime.io.run(list).await?)
}

/// Those that have all their components.
pub(crate) async fn still_there(
    shared: &Shared,
    sources: Vec<Descriptor>,
) -> Result<Vec<Descriptor>, StorageError> {
    let disk = Arc::clone(&shared.runtime.disk);
    let look = move || {
        let is_there = |source: &Descriptor| disk.exists(&source.path(Component::Toc)).unwrap_or(false);
        sources.into_iter().filter(is_there).collect()
    };
    Ok(shared.runtime.io.run(look).await)
}

/// Writes the journal of an import that has brought files, which are let go of when that fails.
pub(crate) async fn begin(
    shard: &Shard,
    table: TableId,
    brought: Vec<Brought>,
) -> Result<(PathBuf, Vec<Brought>), StorageError> {
    let runtime = &shard.shared.runtime;
    let files = brought.iter().map(|brought| brought.file.descriptor().id).collect();
    let (id, journal) = (runtime.random.uuid_v4(), Journal { table, files });
    let (disk, layout) = (Arc::clone(&runtime.disk), shard.layout.clone());
    match runtime.io.run(move || journal::begin(&*disk, &layout, id, &journal)).await {
        Ok(journal) => Ok((journal, brought)),
        Err(error) => {
            release(&shard.shared, brought).await;
            Err(error)
        }
    }
}

/// Ends an import: from here on a start keeps what is listed. Deletes the sources that are moved.
pub(crate) async fn end(
    shared: &Shared,
    journal: PathBuf,
    brought: Vec<Brought>,
    sources: Vec<Descriptor>,
) -> Result<(), StorageError> {
    let disk = Arc::clone(&shared.runtime.disk);
    let ended = shared.runtime.io.run(move || journal::end(&*disk, &journal)).await;
    release(shared, brought).await;
    ended?;
    let disk = Arc::clone(&shared.runtime.disk);
    let delete = move || {
        for source in &sources {
            if let Err(error) = sstable::delete_table_file(&*disk, source) {
                tracing::warn!(path = %source.path(Component::Data).display(), %error, "an imported file was not deleted where it came from");
            }
        }
    };
    shared.runtime.io.run(delete).await;
    Ok(())
}

/// Lets go of files held for an import: those that no shard lists are deleted.
async fn release(shared: &Shared, brought: Vec<Brought>) {
    let files: Vec<Arc<TableFile>> = brought.into_iter().map(|brought| brought.file).collect();
    shared.release_files(&files).await;
}

/// Is a directory below that of all tables, and none of the copies kept there?
fn is_live(data: &Path, directory: &Path) -> bool {
    let is_copy = |part: PathPart<'_>| matches!(part, PathPart::Normal(name) if name == "snapshots" || name == "backups");
    directory.strip_prefix(data).is_ok_and(|below| !below.components().any(is_copy))
}
