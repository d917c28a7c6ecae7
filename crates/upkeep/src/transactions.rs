//! Cassandra's transaction logs: which files in a table's directory do not count.
//!
//! A flush or compaction of Cassandra lists its files in `<version>_txn_<operation>_<id>.log`, new ones
//! as ADD, old ones as REMOVE, and ends with COMMIT or ABORT. While the log is there, the old files of a
//! committed transaction do not count any more, and the new ones of any other do not count yet. A
//! record ends with the CRC-32 of its parts; the last one may be cut off by a crash.

use std::collections::BTreeSet;
use std::path::Path;

use runtime::Disk;
use sstable::SstableError;

use crate::UpkeepError;

/// A log of more is none.
const LOG_BYTES_MAX: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Add,
    Remove,
    Commit,
    Abort,
}

#[derive(Debug, PartialEq, Eq)]
struct Record {
    kind: Kind,
    /// File name up to the component: `nb-7-big-`.
    files: String,
    file_count: usize,
}

/// Beginnings of the names of files that do not count, of all logs in a directory.
///
/// # Errors
/// The disk fails, or a log is damaged, or contradicts what is there.
pub(crate) fn files_that_do_not_count(
    disk: &dyn Disk,
    directory: &Path,
    names: &[String],
) -> Result<BTreeSet<String>, UpkeepError> {
    let mut ignored = BTreeSet::new();
    for name in names.iter().filter(|name| is_log(name)) {
        let path = directory.join(name);
        let fail = |source| UpkeepError::Disk { act: "read transaction log", source };
        if disk.file_bytes(&path).map_err(fail)? > LOG_BYTES_MAX {
            return Err(damaged(&path, "it is longer than a transaction log can be"));
        }
        let bytes = disk.read(&path).map_err(fail)?;
        let records = read_records(&String::from_utf8_lossy(&bytes)).map_err(|what| damaged(&path, what))?;
        let of = |kind| records.iter().filter(move |record| record.kind == kind);
        match records.last().map(|record| record.kind) {
            Some(Kind::Commit) => ignored.extend(of(Kind::Remove).map(|record| record.files.clone())),
            last => {
                let there =
                    |record: &Record| names.iter().filter(|name| name.starts_with(&record.files)).count();
                let is_whole = of(Kind::Remove).all(|record| there(record) >= record.file_count);
                if last != Some(Kind::Abort) && !is_whole {
                    return Err(damaged(&path, "old files are missing though it was never committed"));
                }
                ignored.extend(of(Kind::Add).map(|record| record.files.clone()));
            }
        }
    }
    Ok(ignored)
}

fn damaged(path: &Path, what: &'static str) -> UpkeepError {
    SstableError::Damaged { path: path.to_owned(), offset: 0, what }.into()
}

/// Is it the name of a transaction log?
fn is_log(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".log") else { return false };
    let rest = stem.strip_prefix("txn_").or_else(|| stem.split_once("_txn_").map(|(_, rest)| rest));
    rest.is_some_and(|rest| rest.contains('_'))
}

/// All records; a last one that is cut off is left out.
fn read_records(text: &str) -> Result<Vec<Record>, &'static str> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut records = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        match read_record(line.trim()) {
            Some(record) => records.push(record),
            None if index + 1 == lines.len() => {}
            None => return Err("a record of it is damaged"),
        }
    }
    let is_final = |record: &Record| matches!(record.kind, Kind::Commit | Kind::Abort);
    match records.iter().rev().skip(1).any(is_final) {
        true => Err("it goes on behind its end"),
        false => Ok(records),
    }
}

/// `ADD:[/path/nb-7-big-,1700000000000,8][1234]`; `None` when it is none, or changed.
fn read_record(line: &str) -> Option<Record> {
    let (word, rest) = line.split_once(":[")?;
    let (parts, checksum) = rest.strip_suffix(']')?.split_once("][")?;
    let mut parts = parts.rsplitn(3, ',');
    let file_count: u32 = parts.next()?.parse().ok()?;
    let update_time: i64 = parts.next()?.parse().ok()?;
    let path = parts.next()?;
    let kind = match word.to_ascii_uppercase().as_str() {
        "ADD" => Kind::Add,
        "REMOVE" => Kind::Remove,
        "COMMIT" => Kind::Commit,
        "ABORT" => Kind::Abort,
        _ => return None,
    };
    let has_files = matches!(kind, Kind::Add | Kind::Remove);
    let path = if has_files { path } else { "" };
    let update_time = if kind == Kind::Remove { update_time } else { 0 };
    let counted = if has_files { file_count } else { 0 };
    let mut crc = crc32fast::Hasher::new();
    crc.update(path.as_bytes());
    crc.update(word.to_ascii_uppercase().as_bytes());
    crc.update(&(update_time as u32).to_be_bytes());
    crc.update(&((update_time >> 32) as u32).to_be_bytes());
    crc.update(&counted.to_be_bytes());
    if checksum.parse::<u32>().ok()? != crc.finalize() {
        return None;
    }
    let files = path.rsplit('/').next().unwrap_or_default().to_owned();
    if has_files && files.is_empty() {
        return None;
    }
    Some(Record { kind, files, file_count: counted as usize })
}

#[cfg(test)]
mod tests {
    use runtime::MemoryDisk;

    use super::*;

    fn record(word: &str, path: &str, time: i64, count: u32) -> String {
        let mut crc = crc32fast::Hasher::new();
        for part in [path.as_bytes(), word.as_bytes()] {
            crc.update(part);
        }
        crc.update(&(time as u32).to_be_bytes());
        crc.update(&((time >> 32) as u32).to_be_bytes());
        crc.update(&count.to_be_bytes());
        format!("{word}:[{path},{time},{count}][{}]\n", crc.finalize())
    }

    fn ignored(log: &str, names: &[&str]) -> Result<Vec<String>, UpkeepError> {
        let disk = MemoryDisk::new();
        disk.create_dir_all("/t".as_ref()).expect("made");
        let log_name = "nb_txn_compaction_4e3c1a60-8f4e-11ee-b9d1-0242ac120002.log";
        disk.write_atomically(&Path::new("/t").join(log_name), log.as_bytes()).expect("written");
        let names: Vec<String> = names.iter().chain([&log_name]).map(|name| (*name).to_owned()).collect();
        Ok(files_that_do_not_count(&disk, Path::new("/t"), &names)?.into_iter().collect())
    }

    #[test]
    fn old_files_of_a_committed_and_new_ones_of_another_transaction_do_not_count() {
        let add = record("ADD", "/old/place/nb-3-big-", 0, 1);
        let remove = record("REMOVE", "/old/place/nb-1-big-", 1_700_000_000_123, 1);
        let commit = record("COMMIT", "", 0, 0);
        let abort = record("ABORT", "", 0, 0);
        let names = ["nb-1-big-Data.db", "nb-3-big-Data.db"];
        assert_eq!(ignored(&format!("{add}{remove}{commit}"), &names).expect("read"), ["nb-1-big-"]);
        assert_eq!(ignored(&format!("{add}{remove}{abort}"), &names).expect("read"), ["nb-3-big-"]);
        assert_eq!(ignored(&format!("{add}{remove}"), &names).expect("read"), ["nb-3-big-"]);
        assert_eq!(ignored(&format!("{add}{remove}COMM"), &names).expect("read"), ["nb-3-big-"]);
        assert!(ignored(&format!("{add}{remove}"), &names[1..]).is_err(), "old files are gone");
        assert!(ignored(&format!("{}{commit}", add.replace("nb-3", "nb-4")), &names).is_err(), "checksum");
    }

    #[test]
    fn a_record_that_cassandra_wrote_is_read() {
        // The last line of every committed log.
        let line = "COMMIT:[,0,0][2613697770]";
        assert_eq!(read_record(line).map(|record| record.kind), Some(Kind::Commit));
    }

    #[test]
    fn names_of_logs_are_known() {
        assert!(is_log("nb_txn_compaction_4e3c1a60-8f4e-11ee-b9d1-0242ac120002.log"));
        assert!(is_log("bti-da_txn_flush_4e3c1a60-8f4e-11ee-b9d1-0242ac120002.log"));
        assert!(!is_log("schema.log") && !is_log("nb_txn_compaction"));
    }
}
