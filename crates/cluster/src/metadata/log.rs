//! The metadata log of one node: `schema.log`, one line per entry, and `schema.head`.
//!
//! ```text
//!   schema.log    <crc32 of the rest, 8 hex digits> {"epoch":7,"change":{…}}\n
//!                 <crc32 of the rest, 8 hex digits> {"members":{"cluster_id":…,"epoch":3,…}}\n
//!   schema.head   {"epoch":7,"bytes":1234}     rewritten after each synced append
//! ```
//!
//! The head tells a torn append from damage: bytes it covers were durable, so a line there that
//! does not check is damage and stops the node; a bad line behind it was never acknowledged and is
//! cut off.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtime::{Disk, DiskFile, OpenMode};
use schema::{Schema, SchemaError, Transformation};
use serde::{Deserialize, Serialize};
use storage::state_file::{read_state, write_state};

use super::{Entry, Metadata};

/// The log, opened for appending. One per node.
#[derive(Debug)]
pub struct MetadataLog {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    head_path: PathBuf,
    bytes: u64,
    metadata: Metadata,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Head {
    epoch: u64,
    bytes: u64,
}

/// Why the log can not be read or a change not be taken.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum MetadataError {
    #[error("metadata log {path} is damaged at byte {offset}: {what}", path = .path.display())]
    Damaged { path: PathBuf, offset: u64, what: String },
    #[error("the schema moved on from epoch {based_on} to {current}")]
    Moved { based_on: u64, current: u64 },
    #[error("change schema: {0}")]
    Schema(#[from] SchemaError),
    #[error("an entry of epoch {found}, where {expected} comes next")]
    OutOfOrder { found: u64, expected: u64 },
    #[error("{act} metadata log: {source}")]
    Disk { act: &'static str, source: io::Error },
    #[error("head of metadata log: {0}")]
    Head(#[from] storage::StateError),
    #[error("encode metadata log entry: {0}")]
    Encode(#[from] serde_json::Error),
}

impl MetadataLog {
    /// Opens the log and applies what it holds to `base`, the schema every node is born with. Blocks.
    ///
    /// # Errors
    /// The disk fails, or bytes that were durable do not check.
    pub fn open(disk: &Arc<dyn Disk>, path: &Path, base: Schema) -> Result<MetadataLog, MetadataError> {
        let fail = |act| move |source| MetadataError::Disk { act, source };
        let head_path = path.with_extension("head");
        let head: Head = read_state(&**disk, &head_path)?.unwrap_or_default();
        let exists = disk.exists(path).map_err(fail("look for"))?;
        let mode = if exists { OpenMode::ReadWrite } else { OpenMode::CreateNew };
        let file = disk.open(path, mode).map_err(fail("open"))?;
        // Also of a log that exists: a killed process may have left its names in the cache alone.
        if let Some(directory) = path.parent() {
            disk.sync_dir(directory).map_err(fail("sync directory of"))?;
        }
        let content = disk.read(path).map_err(fail("read"))?;
        let damaged = |offset: usize, what: String| MetadataError::Damaged {
            path: path.into(),
            offset: offset as u64,
            what,
        };
        if (content.len() as u64) < head.bytes {
            return Err(damaged(content.len(), format!("it ends there, {} bytes were written", head.bytes)));
        }
        let mut metadata = Metadata::new(Arc::new(base));
        let mut offset = 0;
        while offset < content.len() {
            match read_entry(&content[offset..]) {
                Ok((entry, length)) => {
                    metadata = metadata.after(&entry).map_err(|error| damaged(offset, error.to_string()))?;
                    offset += length;
                }
                Err(what) if (offset as u64) < head.bytes => return Err(damaged(offset, what)),
                Err(_) => {
                    tracing::info!(path = %path.display(), offset, "a schema change that was never acknowledged is cut off");
                    file.set_len(offset as u64).map_err(fail("cut"))?;
                    file.sync_all().map_err(fail("sync"))?;
                    break;
                }
            }
        }
        let log = MetadataLog { disk: Arc::clone(disk), file, head_path, bytes: offset as u64, metadata };
        if log.bytes != head.bytes {
            // Their sync may have failed: then they are in the cache, and only writing helps.
            let from = usize::try_from(head.bytes).unwrap_or(offset);
            log.file.write_all_at(&content[from..offset], head.bytes).map_err(fail("append to"))?;
            log.file.sync_all().map_err(fail("sync"))?;
            log.write_head()?;
        }
        Ok(log)
    }

    /// What the history has made so far.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The schema after all changes so far.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.metadata.schema
    }

    /// All changes of the schema so far, read once more. Blocks.
    ///
    /// # Errors
    /// The disk fails, or it has other bytes than it had at the start.
    pub fn changes(&self, path: &Path) -> Result<Vec<Transformation>, MetadataError> {
        let content = self.disk.read(path).map_err(|source| MetadataError::Disk { act: "read", source })?;
        let (mut offset, mut changes) = (0, Vec::new());
        while (offset as u64) < self.bytes {
            let read = read_entry(content.get(offset..).unwrap_or_default());
            let (entry, length) = read.map_err(|what| MetadataError::Damaged {
                path: path.into(),
                offset: offset as u64,
                what,
            })?;
            if let Entry::Schema { change, .. } = entry {
                changes.push(change);
            }
            offset += length;
        }
        Ok(changes)
    }

    /// Appends one change that was planned against the schema of epoch `based_on`, and makes it
    /// durable. Blocks.
    ///
    /// # Errors
    /// `Moved` when another change came first: plan again. Otherwise the change does not fit, or the
    /// disk failed; then the schema is as before.
    pub fn commit(&mut self, change: Transformation, based_on: u64) -> Result<Arc<Schema>, MetadataError> {
        let current = self.schema().epoch();
        if based_on != current {
            return Err(MetadataError::Moved { based_on, current });
        }
        self.append(&Entry::Schema { epoch: current + 1, change })?;
        Ok(Arc::clone(self.schema()))
    }

    /// Appends the next entry, and makes it durable. Blocks.
    ///
    /// # Errors
    /// It is not the next one, does not fit, or the disk failed; then all is as before.
    pub fn append(&mut self, entry: &Entry) -> Result<(), MetadataError> {
        let next = self.metadata.after(entry)?;
        let entry = serde_json::to_string(entry)?;
        let line = format!("{:08x} {entry}\n", crc32fast::hash(entry.as_bytes()));
        let fail = |act| move |source| MetadataError::Disk { act, source };
        self.file.write_all_at(line.as_bytes(), self.bytes).map_err(fail("append to"))?;
        self.file.sync_data().map_err(fail("sync"))?;
        self.bytes += line.len() as u64;
        self.metadata = next;
        if let Err(error) = self.write_head() {
            // The change itself is durable. An old head only makes the next start more forgiving.
            tracing::warn!(%error, "the head of the metadata log is behind");
        }
        Ok(())
    }

    fn write_head(&self) -> Result<(), MetadataError> {
        let head = Head { epoch: self.schema().epoch(), bytes: self.bytes };
        Ok(write_state(&*self.disk, &self.head_path, &head)?)
    }
}

/// The first entry and the length of its line, or what is wrong with it.
fn read_entry(bytes: &[u8]) -> Result<(Entry, usize), String> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("no end of line")?;
    let line = std::str::from_utf8(&bytes[..end]).map_err(|error| error.to_string())?;
    let (checksum, entry) = line.split_once(' ').ok_or("no checksum")?;
    let expected = u32::from_str_radix(checksum, 16).map_err(|error| error.to_string())?;
    let got = crc32fast::hash(entry.as_bytes());
    // Another spelling of the same number is a change too.
    if got != expected || checksum != format!("{got:08x}") {
        return Err(format!("checksum {got:#010x}, expected {expected:#010x}"));
    }
    let entry = serde_json::from_str(entry).map_err(|error| error.to_string())?;
    Ok((entry, end + 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use runtime::MemoryDisk;
    use schema::Replication;
    use uuid::Uuid;

    use super::super::Members;
    use super::super::members::testing::candidate;
    use super::*;

    fn create(name: &str) -> Transformation {
        let class = "org.apache.cassandra.locator.SimpleStrategy".into();
        let options = BTreeMap::from([("replication_factor".into(), "1".into())]);
        Transformation::CreateKeyspace {
            name: name.into(),
            replication: Replication { class, options },
            durable_writes: true,
        }
    }

    fn open(disk: &Arc<dyn Disk>) -> Result<MetadataLog, MetadataError> {
        MetadataLog::open(disk, Path::new("/node/schema.log"), Schema::default())
    }

    fn disk_with_two_keyspaces() -> Arc<dyn Disk> {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        disk.create_dir_all(Path::new("/node")).expect("directory");
        let mut log = open(&disk).expect("new log");
        log.commit(create("one"), 0).expect("first");
        log.commit(create("two"), 1).expect("second");
        disk
    }

    #[test]
    fn changes_survive_a_restart_in_order() {
        let log = open(&disk_with_two_keyspaces()).expect("opens");
        assert_eq!(log.schema().epoch(), 2);
        assert_eq!(log.schema().keyspaces().keys().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn members_stand_between_changes_of_the_schema_and_are_counted_apart() {
        let disk = disk_with_two_keyspaces();
        let members = Members::founded(Uuid::from_u128(9), candidate(1)).expect("a ring");
        let entry = Entry::Members { members: Box::new(members.clone()) };
        let mut log = open(&disk).expect("opens");
        log.append(&entry).expect("the next one");
        assert!(matches!(log.append(&entry), Err(MetadataError::OutOfOrder { found: 1, expected: 2 })));
        log.commit(create("three"), 2).expect("a change of the schema");
        let log = open(&disk).expect("opens");
        assert_eq!(log.metadata().members.as_deref(), Some(&members));
        let changes = log.changes(Path::new("/node/schema.log")).expect("changes");
        assert_eq!(changes, [create("one"), create("two"), create("three")]);
    }

    #[test]
    fn a_change_planned_against_an_older_schema_is_refused() {
        let mut log = open(&disk_with_two_keyspaces()).expect("opens");
        let refused = log.commit(create("three"), 1);
        assert!(matches!(refused, Err(MetadataError::Moved { based_on: 1, current: 2 })), "{refused:?}");
    }

    #[test]
    fn a_torn_append_is_cut_off() {
        let disk = disk_with_two_keyspaces();
        let file = disk.open(Path::new("/node/schema.log"), OpenMode::ReadWrite).expect("open");
        let end = file.len().expect("length");
        file.write_all_at(b"0000abcd {\"epoch\":3,", end).expect("write");
        let mut log = open(&disk).expect("opens");
        log.commit(create("three"), 2).expect("goes on");
        assert_eq!(open(&disk).expect("opens").schema().epoch(), 3);
    }

    #[test]
    fn every_flipped_byte_is_reported() {
        let disk = disk_with_two_keyspaces();
        let file = disk.open(Path::new("/node/schema.log"), OpenMode::ReadWrite).expect("open");
        for offset in 0..file.len().expect("length") {
            let mut byte = [0];
            file.read_exact_at(&mut byte, offset).expect("read");
            for mask in [0x40, 0x20, 0x01] {
                file.write_all_at(&[byte[0] ^ mask], offset).expect("flip");
                assert!(open(&disk).is_err(), "flip at {offset} went unseen");
            }
            file.write_all_at(&byte, offset).expect("flip back");
        }
    }
}
