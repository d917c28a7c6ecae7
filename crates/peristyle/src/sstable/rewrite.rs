//! Table files written anew: what is left of damaged ones, or large ones in parts.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use rows::{PartitionKey, Slices, Step, UnfilteredCursor};
use runtime::{OsRandom, Random, SystemClock};
use sstable::{
    Component, Descriptor, DirectChunks, FileCursor, RingPlace, RingRange, SstableError, TableWriter,
    WriterOptions,
};

use types::Token;

use super::{Opened, ToolError};

impl Opened {
    fn writer(&self, output: Option<&Path>) -> Result<(Descriptor, TableWriter), SstableError> {
        let directory = output.unwrap_or(&self.file.descriptor().directory);
        self.disk.create_dir_all(directory)?;
        let descriptor = Descriptor::new(directory, OsRandom::new()?.uuid_v1(&SystemClock::new()));
        let summary = self.file.summary();
        let options = WriterOptions {
            estimated_partitions: summary.partition_count,
            encoding_stats: summary.encoding_stats,
            repaired_at: summary.repaired_at,
            level: summary.level,
            ..WriterOptions::for_table(&self.table)
        };
        let table = Arc::clone(&self.table);
        Ok((descriptor.clone(), TableWriter::create(Arc::clone(&self.disk), descriptor, table, options)?))
    }
}

/// Copies one partition; the cursor stands before its header. `false` when there is none.
fn copy(cursor: &mut FileCursor<DirectChunks>, writer: &mut TableWriter) -> Result<bool, SstableError> {
    match cursor.step()? {
        Step::Header(header) => writer.start_partition(&header)?,
        _ => return Ok(false),
    }
    while let Step::Item(item) = cursor.step()? {
        writer.append(&item)?;
    }
    writer.end_partition()?;
    Ok(true)
}

/// Keys that a file still tells, and what kept it from telling others.
struct Keys {
    found: Vec<PartitionKey>,
    damage: Vec<SstableError>,
}

/// All keys that the file still tells. Behind damage the index finds the next partition.
fn keys(opened: &Opened) -> Keys {
    let mut keys = Keys { found: Vec::new(), damage: Vec::new() };
    let mut start = RingPlace::Start;
    loop {
        let range = RingRange { start: start.clone(), end: RingPlace::End };
        let mut cursor = opened.file.scan(DirectChunks::new(), &range, &Slices::none());
        let error = loop {
            match cursor.step() {
                Ok(Step::Header(header)) => {
                    start = RingPlace::AfterKey(header.key.clone());
                    keys.found.push(header.key);
                }
                Ok(Step::End) => return keys,
                Ok(Step::Item(_) | Step::Need(_)) => {}
                Err(error) => break error,
            }
        };
        keys.damage.push(error);
        // It may be the rows of the last partition that are damaged; then the next one is readable.
        if first(opened, &start).is_ok() {
            continue;
        }
        let last = keys.found.last().map_or(i64::MIN, |key| key.token.0);
        match readable(opened, last) {
            Some(token) => start = RingPlace::BeforeToken(token),
            None => return keys,
        }
    }
}

/// Can the first partition behind a place be read (or is there none)?
fn first(opened: &Opened, start: &RingPlace) -> Result<(), SstableError> {
    let range = RingRange { start: start.clone(), end: RingPlace::End };
    opened.file.scan(DirectChunks::new(), &range, &Slices::none()).step().map(drop)
}

/// A token near behind another from which on a partition can be read again: looked for in strides that
/// double, and then between the last two. Of partitions that begin in damage, the tokens are not known.
fn readable(opened: &Opened, last: i64) -> Option<Token> {
    let is_readable = |token: i64| first(opened, &RingPlace::BeforeToken(Token(token))).is_ok();
    let (mut bad, mut stride) = (last, 1_i64);
    let mut good = loop {
        let token = last.saturating_add(stride);
        if is_readable(token) {
            break token;
        }
        if token == i64::MAX {
            return None;
        }
        (bad, stride) = (token, stride.saturating_mul(2));
    };
    while i128::from(good) - i128::from(bad) > 1 {
        let middle = ((i128::from(good) + i128::from(bad)) / 2) as i64;
        if is_readable(middle) { good = middle } else { bad = middle }
    }
    Some(Token(good))
}

/// Reads a partition through without writing it.
fn is_whole(opened: &Opened, key: &PartitionKey) -> Result<(), SstableError> {
    let mut cursor = opened.file.partition_cursor(DirectChunks::new(), key, &Slices::all(), false);
    while !matches!(cursor.step()?, Step::End) {}
    Ok(())
}

/// Writes every partition that can be read whole.
pub(super) fn scrub(opened: &Opened, output: Option<&Path>, out: &mut dyn Write) -> Result<(), ToolError> {
    let Keys { found: keys, damage } = keys(opened);
    let expected = opened.file.summary().partition_count;
    let (mut kept, mut lost) = (Vec::new(), Vec::new());
    for key in keys {
        match is_whole(opened, &key) {
            Ok(()) => kept.push(key),
            Err(error) => lost.push((key, error)),
        }
    }
    for (key, error) in &lost {
        let hex: String = key.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "partition 0x{hex} is lost: {error}")?;
    }
    if lost.is_empty() {
        for error in &damage {
            writeln!(out, "partitions are lost: {error}")?;
        }
    }
    let lost_count = expected.saturating_sub(kept.len() as u64).max(lost.len() as u64);
    if !kept.is_empty() {
        let (descriptor, mut writer) = opened.writer(output)?;
        for key in &kept {
            let mut cursor = opened.file.partition_cursor(DirectChunks::new(), key, &Slices::all(), false);
            copy(&mut cursor, &mut writer)?;
        }
        writer.finish()?;
        writeln!(out, "{}", descriptor.path(Component::Data).display())?;
    }
    writeln!(out, "{} partitions kept, {lost_count} lost", kept.len())?;
    match lost_count {
        0 => Ok(()),
        _ => Err(ToolError::Lost(format!("{lost_count} of {expected} partitions are lost"))),
    }
}

/// Writes files of about that many bytes of Data.
pub(super) fn split(
    opened: &Opened,
    bytes: u64,
    output: Option<&Path>,
    out: &mut dyn Write,
) -> Result<(), ToolError> {
    let Keys { found: keys, damage } = keys(opened);
    if let Some(error) = damage.into_iter().next() {
        return Err(error.into());
    }
    let mut current: Option<(Descriptor, TableWriter)> = None;
    for key in &keys {
        let (descriptor, mut writer) = match current.take() {
            Some(current) => current,
            None => opened.writer(output)?,
        };
        let mut cursor = opened.file.partition_cursor(DirectChunks::new(), key, &Slices::all(), false);
        copy(&mut cursor, &mut writer)?;
        if writer.data_bytes_written() >= bytes {
            writer.finish()?;
            writeln!(out, "{}", descriptor.path(Component::Data).display())?;
        } else {
            current = Some((descriptor, writer));
        }
    }
    if let Some((descriptor, writer)) = current {
        writer.finish()?;
        writeln!(out, "{}", descriptor.path(Component::Data).display())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    /// A copy of a table file of the repository, which may be harmed.
    fn copied(folder: &str) -> (TempDir, PathBuf) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats").join(folder);
        let (directory, mut data) = (tempfile::tempdir().expect("made"), None);
        for entry in std::fs::read_dir(from).expect("in the repository") {
            let path = entry.expect("an entry").path();
            let to = directory.path().join(path.file_name().expect("a name"));
            std::fs::copy(&path, &to).expect("copied");
            data = data.or_else(|| to.to_string_lossy().ends_with("-Data.db").then_some(to));
        }
        (directory, data.expect("a data file"))
    }

    fn dumped(path: &Path) -> String {
        let mut out = Vec::new();
        super::super::dump::dump(&Opened::open(path).expect("opens"), true, &mut out).expect("reads");
        let text = String::from_utf8(out).expect("text");
        let is_kept = |line: &&str| !line.trim().is_empty() && !line.contains("\"position\"");
        text.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
    }

    /// Runs it, and gives the files that it named, and what else it said.
    fn run(work: impl FnOnce(&mut dyn Write) -> Result<(), ToolError>) -> (Vec<PathBuf>, Vec<String>, bool) {
        let mut out = Vec::new();
        let is_well = work(&mut out).is_ok();
        let text = String::from_utf8(out).expect("text");
        let (files, words): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.ends_with("-Data.db"));
        (
            files.iter().map(PathBuf::from).collect(),
            words.iter().map(|word| (*word).to_owned()).collect(),
            is_well,
        )
    }

    #[test]
    fn a_sound_file_is_the_same_after_scrub_and_split_in_every_version() {
        for folder in
            ["cassandra-da/tombstones", "cassandra-big/nb/every_type", "cassandra-big/oa/user_types"]
        {
            let (directory, path) = copied(folder);
            let output = directory.path().join("out");
            let opened = Opened::open(&path).expect("opens");
            for (files, words, is_well) in [
                run(|out| scrub(&opened, Some(&output), out)),
                run(|out| split(&opened, 1 << 30, Some(&output), out)),
            ] {
                assert!(is_well && files.len() == 1, "{folder}: {words:?}");
                Opened::open(&files[0]).expect("opens").file.verify().expect("is sound");
                assert_eq!(dumped(&files[0]), dumped(&path), "{folder}");
            }
        }
    }

    #[test]
    fn a_file_is_split_into_several_that_hold_the_same_partitions() {
        let (directory, path) = copied("cassandra-big/nb/many");
        let opened = Opened::open(&path).expect("opens");
        let output = directory.path().join("out");
        let (files, ..) = run(|out| split(&opened, 8000, Some(&output), out));
        assert!(files.len() > 2, "{files:?}");
        let parts: Vec<Opened> = files.iter().map(|file| Opened::open(file).expect("opens")).collect();
        let found: Vec<PartitionKey> = parts.iter().flat_map(|part| keys(part).found).collect();
        assert_eq!(found, keys(&opened).found);
        parts.iter().for_each(|part| part.file.verify().expect("is sound"));
    }

    #[test]
    fn scrub_keeps_the_partitions_before_and_behind_damage() {
        for folder in ["cassandra-da/many", "cassandra-big/oa/many"] {
            let (directory, path) = copied(folder);
            let whole = keys(&Opened::open(&path).expect("opens"));
            assert!(whole.damage.is_empty());
            let mut bytes = std::fs::read(&path).expect("there");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).expect("written");
            let opened = Opened::open(&path).expect("opens");
            assert!(opened.file.verify().is_err_and(|error| error.is_damage()));
            let output = directory.path().join("out");
            let (files, words, is_well) = run(|out| scrub(&opened, Some(&output), out));
            assert!(!is_well, "{words:?}");
            let kept = Opened::open(&files[0]).expect("opens");
            kept.file.verify().expect("is sound");
            let kept = keys(&kept).found;
            assert_eq!(kept.first(), whole.found.first(), "{folder}");
            assert_eq!(kept.last(), whole.found.last(), "{folder}");
            let lost = whole.found.len() - kept.len();
            assert!(lost > 0, "{folder}");
            assert_eq!(
                words.last(),
                Some(&format!("{} partitions kept, {lost} lost", kept.len())),
                "{folder}"
            );
        }
    }

    #[test]
    fn what_is_no_table_file_is_told_without_a_panic() {
        let (directory, path) = copied("cassandra-da/many");
        let told = |path: &Path| Opened::open(path).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told(&directory.path().join("x")).contains("is not the name of a table file"));
        std::fs::write(&path, &std::fs::read(&path).expect("there")[..100]).expect("cut");
        assert!(told(&path).contains("Data.db is damaged at byte 100: it is cut off"), "{}", told(&path));
        std::fs::remove_file(&path).expect("removed");
        assert!(told(&path).contains("Data.db: entity not found"), "{}", told(&path));
    }
}
