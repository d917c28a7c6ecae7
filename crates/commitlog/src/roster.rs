//! The roster of a stream names the segments there must be: without it, nobody would miss one that was deleted.
//!
//! ```text
//!   a segment begins   created, header and name durable ──► entered ──► its first record
//!   a segment goes     struck out ──► renamed or deleted
//! ```
//!
//! So whatever moment the power goes at, a segment that the roster names is there, whole and with a sound header.
//! One that it does not name may be there too: it holds no record yet, or none that is needed. The file is replaced
//! as a whole, twice for each segment; `docs/formats/commitlog.md` draws it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtime::{Disk, EntryKind};

use crate::error::CommitLogError;
use crate::format::u32_at;
use crate::replay::{list_entries, read_whole};

const MAGIC: [u8; 8] = *b"PERIrstr";
/// The version this program writes and reads.
const VERSION: u32 = 1;
/// What stands before the ids.
const HEAD_BYTES: usize = 16;
const CHECK_BYTES: usize = 4;

/// The ids of segments of a stream.
pub(crate) type Ids = BTreeSet<u64>;

/// A stream's roster while its log is open. Blocks on the disk: for I/O threads and the start.
#[derive(Debug)]
pub(crate) struct Roster {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    stream: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What the file says or, when the last write of it failed, is to say.
    ids: Ids,
    /// Is there a file?
    is_written: bool,
}

impl Roster {
    /// Of a stream that is opened: what is there is, from now on, what there must be. On a full disk the file stays as
    /// it is until a segment begins: it names no more than there is, and a node has to start there too.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        stream: u32,
        ids: Ids,
    ) -> Result<Roster, CommitLogError> {
        // Whether it is damaged, and what it misses, was for the replay to say.
        let old = read_roster(&**disk, directory, stream);
        let is_current = matches!(&old, Ok(Some(old)) if *old == ids);
        let state = Mutex::new(State { ids, is_written: matches!(old, Ok(Some(_))) });
        let path = roster_path(directory, stream);
        let roster = Roster { disk: Arc::clone(disk), path, stream, state };
        if is_current {
            return Ok(roster);
        }
        match roster.change(|_| {}) {
            Err(error) if error.kind() != io::ErrorKind::StorageFull => {
                Err(CommitLogError::disk("write a roster")(error))
            }
            _ => Ok(roster),
        }
    }

    /// Is there one? Not yet, if the disk was full at a first start.
    pub(crate) fn is_written(&self) -> bool {
        self.lock().is_written
    }

    /// Enters a segment, durably. Its header and its name are durable already.
    pub(crate) fn enter(&self, id: u64) -> io::Result<()> {
        self.change(|ids| {
            assert!(
                ids.last().is_none_or(|last| *last < id),
                "segments are entered once, in the order of their ids"
            );
            ids.insert(id);
        })
    }

    /// Strikes out segments that are about to go, durably.
    pub(crate) fn strike(&self, gone: &Ids) -> io::Result<()> {
        self.change(|ids| {
            assert!(gone.last() < ids.last(), "the last segment stays, so that ids do not repeat");
            ids.retain(|id| !gone.contains(id));
        })
    }

    fn change(&self, change: impl FnOnce(&mut Ids)) -> io::Result<()> {
        // Held to the end: segments go while another one begins.
        let mut state = self.lock();
        let mut next = state.ids.clone();
        change(&mut next);
        self.disk.write_atomically(&self.path, &encode(self.stream, &next))?;
        *state = State { ids: next, is_written: true };
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the roster of a stream is.
pub(crate) fn roster_path(directory: &Path, stream: u32) -> PathBuf {
    directory.join(file_name(stream))
}

/// The streams of a directory that have a roster.
pub(crate) fn list_rosters(disk: &dyn Disk, directory: &Path) -> Result<Vec<u32>, CommitLogError> {
    let entries = list_entries(disk, directory)?;
    let files = entries.iter().filter(|entry| entry.kind == EntryKind::File);
    Ok(files.filter_map(|entry| parse_file_name(&entry.name)).collect())
}

/// What a stream's roster says; `None` when it has none, as one that an earlier version has left.
///
/// # Errors
/// It is damaged, of a newer version, or the disk fails.
pub(crate) fn read_roster(
    disk: &dyn Disk,
    directory: &Path,
    stream: u32,
) -> Result<Option<Ids>, CommitLogError> {
    let path = roster_path(directory, stream);
    let entry = disk.metadata(&path).map_err(CommitLogError::disk("look for a roster"))?;
    let Some(entry) = entry.filter(|entry| entry.kind == EntryKind::File) else { return Ok(None) };
    let bytes = read_whole(disk, &path, entry.file_bytes)?;
    decode(&bytes, stream, path).map(Some)
}

/// Which segments a stream's roster names: none, when it is damaged or there is none, as a replay tells.
///
/// # Errors
/// The disk fails.
pub(crate) fn entered_ids(disk: &dyn Disk, directory: &Path, stream: u32) -> Result<Ids, CommitLogError> {
    match read_roster(disk, directory, stream) {
        Err(error @ CommitLogError::Disk { .. }) => Err(error),
        roster => Ok(roster.ok().flatten().unwrap_or_default()),
    }
}

pub(crate) fn file_name(stream: u32) -> String {
    format!("commitlog-{stream}.roster")
}

/// The stream of a roster's name; anything that [`file_name`] would not write is not ours.
pub(crate) fn parse_file_name(name: &str) -> Option<u32> {
    let stream = name.strip_prefix("commitlog-")?.strip_suffix(".roster")?.parse().ok()?;
    (file_name(stream) == name).then_some(stream)
}

/// The bytes of a roster.
pub(crate) fn encode(stream: u32, ids: &Ids) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&stream.to_le_bytes());
    ids.iter().for_each(|id| bytes.extend_from_slice(&id.to_le_bytes()));
    let check = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&check.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8], stream: u32, path: PathBuf) -> Result<Ids, CommitLogError> {
    let covered_bytes = bytes.len().saturating_sub(CHECK_BYTES);
    let got = crc32fast::hash(&bytes[..covered_bytes]);
    let damaged = |expected| CommitLogError::Damaged { path: path.clone(), offset: 0, expected, got };
    if covered_bytes < HEAD_BYTES {
        return Err(damaged(0));
    }
    let expected = u32_at(bytes, covered_bytes);
    if got != expected || bytes[..8] != MAGIC {
        return Err(damaged(expected));
    }
    let version = u32_at(bytes, 8);
    if version != VERSION {
        return Err(CommitLogError::UnsupportedVersion { path, version, supported: VERSION });
    }
    let (ids, rest) = bytes[HEAD_BYTES..covered_bytes].as_chunks::<8>();
    let ids: Ids = ids.iter().map(|id| u64::from_le_bytes(*id)).collect();
    // Another stream's, or ids that no log would write.
    if u32_at(bytes, 12) != stream || !rest.is_empty() || encode(stream, &ids) != bytes {
        return Err(damaged(expected));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roster_round_trips_and_no_changed_byte_passes() {
        for ids in [Ids::new(), Ids::from([7]), Ids::from([1, 2, u64::MAX])] {
            let bytes = encode(3, &ids);
            assert_eq!(decode(&bytes, 3, PathBuf::new()).expect("sound"), ids);
            assert!(decode(&bytes, 4, PathBuf::new()).is_err(), "another stream's");
            for index in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[index] ^= 0x20;
                assert!(decode(&flipped, 3, PathBuf::new()).is_err(), "byte {index} of {ids:?}");
                assert!(decode(&bytes[..index], 3, PathBuf::new()).is_err(), "cut to {index} of {ids:?}");
            }
        }
    }

    #[test]
    fn names_round_trip_and_strangers_are_not_ours() {
        assert_eq!(parse_file_name(&file_name(12)), Some(12));
        for stranger in ["commitlog-12.roster.tmp", "commitlog-012.roster", "commitlog-1-2.roster", "LOCK"] {
            assert_eq!(parse_file_name(stranger), None, "{stranger}");
        }
    }

    #[test]
    #[should_panic(expected = "segments are entered once")]
    fn a_segment_that_is_entered_twice_ends_the_program() {
        let disk: Arc<dyn Disk> = Arc::new(runtime::MemoryDisk::new());
        let roster = Roster::open(&disk, Path::new("/"), 0, Ids::from([3])).expect("opens");
        roster.enter(4).expect("a new one");
        _ = roster.enter(4);
    }
}
