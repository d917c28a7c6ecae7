//! Snapshots on the disk: second names for table files, in Cassandra's layout.
//!
//! ```text
//!   data/<keyspace>/<table>-<table id>/snapshots/<tag>/da-<file id>-bti-<component>
//!                                                     /manifest.json, schema.cql
//!                                     /backups/…       flushed files, while incremental backups are on
//! ```

use std::path::{Component, Path, PathBuf};

use runtime::{Disk, EntryKind};
use serde::{Deserialize, Serialize};
use types::calendar::Day;

use crate::UpkeepError;

/// What `manifest.json` says; Cassandra's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotManifest {
    files: Vec<String>,
    created_at: Option<String>,
    expires_at: Option<String>,
    ephemeral: bool,
}

/// What is known of a snapshot of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFacts {
    /// Its name.
    pub tag: String,
    /// Keyspace of the table.
    pub keyspace: String,
    /// Name of the table.
    pub table: String,
    /// Bytes that only the snapshot holds.
    pub true_bytes: u64,
    /// Bytes of all its files.
    pub disk_bytes: u64,
    /// When it was made, as `manifest.json` says it.
    pub created_at: Option<String>,
    /// When it may go.
    pub expires_at: Option<String>,
}

/// Which snapshots are deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClearFilter {
    /// Of that name; of any when there is none.
    pub tag: Option<String>,
    /// Of tables in these keyspaces; in all when there is none.
    pub keyspaces: Vec<String>,
}

impl SnapshotManifest {
    /// Of a snapshot of these files that is made now.
    pub fn new(files: Vec<String>, now_seconds: i64) -> Self {
        SnapshotManifest { files, created_at: Some(instant(now_seconds)), ..Self::default() }
    }
}

/// Where a table's snapshot of that name lies.
///
/// # Panics
/// When the name is not that of one directory: files of others would be written to, or deleted with a snapshot. Names
/// that clients give are checked before they come here.
pub fn snapshot_directory(table: &Path, tag: &str) -> PathBuf {
    let mut parts = Path::new(tag).components();
    let is_a_name =
        matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == tag);
    assert!(is_a_name, "a snapshot lies in one directory below its table's");
    table.join("snapshots").join(tag)
}

/// Writes `manifest.json`, with what it lists already, and `schema.cql`.
///
/// # Errors
/// The disk fails.
pub fn write_snapshot_manifest(
    disk: &dyn Disk,
    directory: &Path,
    mut manifest: SnapshotManifest,
    schema: Option<String>,
) -> Result<(), UpkeepError> {
    let fail = |source| UpkeepError::Disk { act: "write snapshot manifest", source };
    disk.create_dir_all(directory).map_err(fail)?;
    if let Some(other) = read_manifest(disk, directory)? {
        manifest.files.extend(other.files);
        manifest.created_at = other.created_at.or(manifest.created_at);
    }
    manifest.files.sort();
    manifest.files.dedup();
    let path = directory.join("manifest.json");
    let text = serde_json::to_string_pretty(&manifest)
        .map_err(|error| UpkeepError::Damaged { path: path.clone(), what: error.to_string() })?;
    disk.write_atomically(&path, text.as_bytes()).map_err(fail)?;
    match schema {
        Some(text) => disk.write_atomically(&directory.join("schema.cql"), text.as_bytes()).map_err(fail),
        None => Ok(()),
    }
}

fn read_manifest(disk: &dyn Disk, directory: &Path) -> Result<Option<SnapshotManifest>, UpkeepError> {
    let path = directory.join("manifest.json");
    let fail = |source| UpkeepError::Disk { act: "read snapshot manifest", source };
    if !disk.exists(&path).map_err(fail)? {
        return Ok(None);
    }
    // One that somebody changed is as good as none: the files count.
    Ok(serde_json::from_slice(&disk.read(&path).map_err(fail)?).ok())
}

/// All snapshots below the directories of table files. One whose files lie in several is one.
///
/// # Errors
/// The disk fails.
pub fn list_snapshots(disk: &dyn Disk, data: &[PathBuf]) -> Result<Vec<SnapshotFacts>, UpkeepError> {
    let mut found = Vec::new();
    let tables = data.iter().map(|data| tables(disk, data)).collect::<Result<Vec<_>, _>>()?;
    for (keyspace, directory, name) in tables.into_iter().flatten() {
        let live = sizes(disk, &directory)?;
        for tag in directories(disk, &directory.join("snapshots"))? {
            let path = snapshot_directory(&directory, &tag);
            let manifest = read_manifest(disk, &path)?.unwrap_or_default();
            let files = sizes(disk, &path)?;
            let is_own = |file: &&(String, u64)| !live.iter().any(|(name, _)| *name == file.0);
            found.push(SnapshotFacts {
                tag,
                keyspace: keyspace.clone(),
                table: name.clone(),
                true_bytes: files.iter().filter(is_own).map(|(_, bytes)| bytes).sum(),
                disk_bytes: files.iter().map(|(_, bytes)| bytes).sum(),
                created_at: manifest.created_at,
                expires_at: manifest.expires_at,
            });
        }
    }
    found.sort_by(|a, b| (&a.tag, &a.keyspace, &a.table).cmp(&(&b.tag, &b.keyspace, &b.table)));
    found.dedup_by(|next, first| {
        let are_one = (&next.tag, &next.keyspace, &next.table) == (&first.tag, &first.keyspace, &first.table);
        if are_one {
            first.true_bytes += next.true_bytes;
            first.disk_bytes += next.disk_bytes;
            first.created_at = first.created_at.take().or(next.created_at.take());
            first.expires_at = first.expires_at.take().or(next.expires_at.take());
        }
        are_one
    });
    Ok(found)
}

/// Deletes snapshots; gives how many.
///
/// # Errors
/// The disk fails.
pub fn clear_snapshots(disk: &dyn Disk, data: &Path, filter: &ClearFilter) -> Result<usize, UpkeepError> {
    let fail = |source| UpkeepError::Disk { act: "delete snapshot", source };
    let mut count = 0;
    for (keyspace, directory, _) in tables(disk, data)? {
        if !filter.keyspaces.is_empty() && !filter.keyspaces.contains(&keyspace) {
            continue;
        }
        let snapshots = directory.join("snapshots");
        for tag in directories(disk, &snapshots)? {
            if filter.tag.as_ref().is_none_or(|wanted| *wanted == tag) {
                disk.remove_dir_all(&snapshot_directory(&directory, &tag)).map_err(fail)?;
                count += 1;
            }
        }
    }
    Ok(count)
}

/// Keyspace, directory and name of each table that has a directory.
fn tables(disk: &dyn Disk, data: &Path) -> Result<Vec<(String, PathBuf, String)>, UpkeepError> {
    let mut found = Vec::new();
    for keyspace in directories(disk, data)? {
        for table in directories(disk, &data.join(&keyspace))? {
            let name = table.rsplit_once('-').map_or(table.as_str(), |(name, _)| name).to_owned();
            found.push((keyspace.clone(), data.join(&keyspace).join(&table), name));
        }
    }
    Ok(found)
}

fn directories(disk: &dyn Disk, path: &Path) -> Result<Vec<String>, UpkeepError> {
    let fail = |source| UpkeepError::Disk { act: "list snapshots", source };
    if !disk.exists(path).map_err(fail)? {
        return Ok(Vec::new());
    }
    let entries = disk.list(path).map_err(fail)?.into_iter();
    Ok(entries.filter(|entry| entry.kind == EntryKind::Directory).map(|entry| entry.name).collect())
}

fn sizes(disk: &dyn Disk, path: &Path) -> Result<Vec<(String, u64)>, UpkeepError> {
    let fail = |source| UpkeepError::Disk { act: "look at the files of a snapshot", source };
    let entries = disk.list(path).map_err(fail)?.into_iter();
    let files = entries.filter(|entry| entry.kind == EntryKind::File);
    Ok(files.map(|entry| (entry.name, entry.file_bytes)).collect())
}

/// `2024-01-01T00:00:00Z`.
fn instant(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let Day { year, month, day } = Day::from_epoch_days(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_dates() {
        assert_eq!(instant(0), "1970-01-01T00:00:00Z");
        assert_eq!(instant(1_709_210_096), "2024-02-29T12:34:56Z");
        assert_eq!(instant(-1), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn a_name_that_leads_out_of_the_snapshots_is_no_place_for_one() {
        for tag in ["", ".", "..", "../data", "/etc", "a/b", "a/", "a/.."] {
            let told = std::panic::catch_unwind(|| snapshot_directory(Path::new("/data/t"), tag));
            assert!(told.is_err(), "{tag:?}");
        }
        assert_eq!(snapshot_directory(Path::new("/t"), "a b"), Path::new("/t/snapshots/a b"));
    }
}
