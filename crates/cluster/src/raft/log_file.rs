//! The file of a node's log: a header, then records, each a change of it. `docs/formats/raft-log.md` draws the bytes.
//!
//! ```text
//!   | header: durable up to here ─┐ | record | record | record | record (torn)
//!                                 └────────────────────────────┘
//! ```
//!
//! The header's mark is written after each sync and is itself durable with the next one. What does not check below it
//! is damage, and the log is not opened; behind it, it was never acknowledged and is cut off. Calls block.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, BufMut, BytesMut};
use runtime::{Disk, DiskFile, OpenMode};

use super::contents::{Contents, Record};
use super::error::OpenError;

const MAGIC: [u8; 8] = *b"PERIraft";
const VERSION: u32 = 1;
/// A sector of its own, which a disk writes whole or not at all.
const HEADER_BYTES: u64 = 512;
const HEADER_USED_BYTES: usize = 24;
const RECORD_HEAD_BYTES: usize = 12;
/// No record is longer: an entry is a message first.
const PAYLOAD_BYTES_MAX: u32 = 64 << 20;

/// A log, open for appending.
#[derive(Debug)]
pub(crate) struct LogFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    /// Where the next record begins.
    end: u64,
}

/// A log and what it says.
pub(crate) struct Opened {
    pub(crate) file: LogFile,
    pub(crate) contents: Contents,
    pub(crate) record_count: usize,
}

impl LogFile {
    /// Opens the log at the path, or begins one.
    ///
    /// # Errors
    /// The disk fails, or what was durable is damaged.
    pub(crate) fn open(disk: &Arc<dyn Disk>, path: &Path) -> Result<Opened, OpenError> {
        let fail = |source| OpenError::Disk { act: "open the log of agreement", source };
        if !disk.exists(path).map_err(fail)? {
            let file = LogFile::rewritten(disk, path, &Contents::default()).map_err(fail)?;
            return Ok(Opened { file, contents: Contents::default(), record_count: 0 });
        }
        let bytes = disk.read(path).map_err(fail)?;
        let Found { contents, record_count, end, durable_end } = Found::read(&bytes)
            .map_err(|Damage { offset, what }| OpenError::Damaged { path: path.to_owned(), offset, what })?;
        if end == durable_end && bytes.len() as u64 == end {
            let file = disk.open(path, OpenMode::ReadWrite).map_err(fail)?;
            let file = LogFile { disk: Arc::clone(disk), path: path.to_owned(), file, end };
            return Ok(Opened { file, contents, record_count });
        }
        // What a sync that failed has left may be in the cache alone: only writing it again helps.
        let file = LogFile::rewritten(disk, path, &contents).map_err(fail)?;
        let record_count = contents.records().count();
        Ok(Opened { file, contents, record_count })
    }

    /// Puts a new file in the place of whatever is there.
    fn rewritten(disk: &Arc<dyn Disk>, path: &Path, contents: &Contents) -> io::Result<LogFile> {
        let mut bytes = BytesMut::zeroed(HEADER_BYTES as usize);
        contents.records().for_each(|record| put_record(&mut bytes, 0, &record));
        let end = bytes.len() as u64;
        bytes[..HEADER_USED_BYTES].copy_from_slice(&header(end));
        disk.write_atomically(path, &bytes)?;
        let file = disk.open(path, OpenMode::ReadWrite)?;
        Ok(LogFile { disk: Arc::clone(disk), path: path.to_owned(), file, end })
    }

    /// As [`LogFile::rewritten`], in the place of this one.
    pub(crate) fn rewrite(&mut self, contents: &Contents) -> io::Result<()> {
        *self = LogFile::rewritten(&self.disk, &self.path, contents)?;
        Ok(())
    }

    /// Writes records behind the last one. They are durable after [`LogFile::sync`].
    pub(crate) fn append(&mut self, records: &[Record]) -> io::Result<()> {
        let mut bytes = BytesMut::new();
        records.iter().for_each(|record| put_record(&mut bytes, self.end, record));
        self.file.write_all_at(&bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Makes everything durable that was written.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.file.write_all_at(&header(self.end), 0)
    }
}

/// The bytes in use of a header.
fn header(durable_end: u64) -> [u8; HEADER_USED_BYTES] {
    let mut bytes = [0; HEADER_USED_BYTES];
    let mut out = &mut bytes[..];
    out.put_slice(&MAGIC);
    out.put_u32_le(VERSION);
    out.put_u64_le(durable_end);
    let check = crc32fast::hash(&bytes[..HEADER_USED_BYTES - 4]);
    bytes[HEADER_USED_BYTES - 4..].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Appends a record to bytes that begin at `base` of the file.
fn put_record(out: &mut BytesMut, base: u64, record: &Record) {
    let begin = out.len();
    out.put_bytes(0, RECORD_HEAD_BYTES);
    record.put(out);
    let payload_bytes =
        u32::try_from(out.len() - begin - RECORD_HEAD_BYTES).expect("an entry is far shorter");
    assert!(payload_bytes <= PAYLOAD_BYTES_MAX, "an entry was a message first");
    let (head, payload) = out[begin..].split_at_mut(RECORD_HEAD_BYTES);
    let check = record_check(base + begin as u64, payload_bytes, record.kind(), payload);
    let mut head = &mut head[..];
    head.put_u32_le(payload_bytes);
    head.put_u32_le(record.kind());
    head.put_u32_le(check);
}

/// A record at another place is another record.
fn record_check(offset: u64, payload_bytes: u32, kind: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&offset.to_le_bytes());
    hasher.update(&payload_bytes.to_le_bytes());
    hasher.update(&kind.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// What a file holds.
struct Found {
    contents: Contents,
    record_count: usize,
    /// Behind the last record that checks.
    end: u64,
    /// As the header says.
    durable_end: u64,
}

/// What is wrong with a file.
struct Damage {
    offset: u64,
    what: String,
}

impl Found {
    fn read(bytes: &[u8]) -> Result<Found, Damage> {
        let durable_end = read_header(bytes)?;
        if (bytes.len() as u64) < durable_end {
            let what = format!("it ends there, {durable_end} bytes were durable");
            return Err(Damage { offset: bytes.len() as u64, what });
        }
        let mut found =
            Found { contents: Contents::default(), record_count: 0, end: HEADER_BYTES, durable_end };
        loop {
            let damage = |what: String| Damage { offset: found.end, what };
            // The file is in memory: it is no longer than that can be.
            let rest = &bytes[found.end as usize..];
            match read_record(rest, found.end) {
                Ok((record, record_bytes)) => {
                    found.contents.take(&record).map_err(|bad| damage(bad.to_string()))?;
                    found.end += record_bytes;
                    found.record_count += 1;
                }
                Err(what) if found.end < durable_end => return Err(damage(what)),
                Err(_) => break,
            }
        }
        Ok(found)
    }
}

/// How far the file was durable.
fn read_header(bytes: &[u8]) -> Result<u64, Damage> {
    let damage = |offset, what: &str| Damage { offset, what: what.to_owned() };
    let Some((mut used, padding)) =
        bytes.split_at_checked(HEADER_BYTES as usize).map(|(header, _)| header.split_at(HEADER_USED_BYTES))
    else {
        return Err(damage(bytes.len() as u64, "the header is cut short"));
    };
    let check = crc32fast::hash(&used[..HEADER_USED_BYTES - 4]);
    if used[..8] != MAGIC {
        return Err(damage(0, "it is no log of agreement"));
    }
    used.advance(MAGIC.len());
    let version = used.get_u32_le();
    if version > VERSION {
        let what = format!("it is of version {version}, this program reads version {VERSION}");
        return Err(Damage { offset: 8, what });
    }
    let durable_end = used.get_u64_le();
    let expected = used.get_u32_le();
    if check != expected || version != VERSION {
        let what = format!("checksum of the header {check:#010x}, expected {expected:#010x}");
        return Err(Damage { offset: 20, what });
    }
    if padding.iter().any(|byte| *byte != 0) {
        return Err(damage(HEADER_USED_BYTES as u64, "bytes that should be zero"));
    }
    if durable_end < HEADER_BYTES {
        return Err(damage(12, "a mark within the header"));
    }
    Ok(durable_end)
}

/// The first record and its length, or what is wrong with it.
fn read_record(bytes: &[u8], offset: u64) -> Result<(Record, u64), String> {
    let Some((mut head, rest)) = bytes.split_at_checked(RECORD_HEAD_BYTES) else {
        return Err("the head of a record is cut short".to_owned());
    };
    let (payload_bytes, kind, expected) = (head.get_u32_le(), head.get_u32_le(), head.get_u32_le());
    let Some(payload) = rest.get(..payload_bytes as usize) else {
        return Err(format!("a record of {payload_bytes} bytes is cut short"));
    };
    let got = record_check(offset, payload_bytes, kind, payload);
    if got != expected {
        return Err(format!("checksum {got:#010x}, expected {expected:#010x}"));
    }
    let record = Record::read(kind, payload).map_err(|bad| bad.to_string())?;
    Ok((record, (RECORD_HEAD_BYTES + payload.len()) as u64))
}
