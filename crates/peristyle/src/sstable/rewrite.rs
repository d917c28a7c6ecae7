//! Table files written anew: what is left of damaged ones, or large ones in parts.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use runtime::{OsRandom, Random, SystemClock};
use sstable::{Component, Descriptor, SstableError, TableWriter, WriterOptions};
use upkeep::{ReadableKeys, Salvaged, copy_or_salvage, copy_partition, readable_keys};

use super::{Opened, ToolError};

impl Opened {
    fn writer(&self, output: Option<&Path>) -> Result<(Descriptor, TableWriter), SstableError> {
        let directory = output.unwrap_or(&self.file.descriptor().directory);
        self.disk.create_dir_all(directory)?;
        let descriptor = Descriptor::new(directory, OsRandom::new()?.uuid_v1(&SystemClock::new()));
        let options = WriterOptions {
            compression: self.file.compression(),
            ..WriterOptions::for_file_of(&self.table, self.file.summary())
        };
        let table = Arc::clone(&self.table);
        Ok((descriptor.clone(), TableWriter::create(Arc::clone(&self.disk), descriptor, table, options)?))
    }
}

/// Writes every partition that can be read whole.
pub(super) fn scrub(opened: &Opened, output: Option<&Path>, out: &mut dyn Write) -> Result<(), ToolError> {
    let mut written = None;
    let salvaged = copy_or_salvage(
        &opened.file,
        |_| true,
        || {
            let (descriptor, writer) = opened.writer(output)?;
            written = Some(descriptor);
            Ok(writer)
        },
    )?;
    let Salvaged { kept, lost, damage, expected } = &salvaged;
    for (key, error) in lost {
        let hex: String = key.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "partition 0x{hex} is lost: {error}")?;
    }
    if lost.is_empty() {
        for error in damage {
            writeln!(out, "partitions are lost: {error}")?;
        }
    }
    if let Some(descriptor) = written {
        writeln!(out, "{}", descriptor.path(Component::Data).display())?;
    }
    let lost_count = salvaged.lost_count();
    writeln!(out, "{kept} partitions kept, {lost_count} lost")?;
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
    let ReadableKeys { found: keys, damage } = readable_keys(&opened.file);
    if let Some(error) = damage.into_iter().next() {
        return Err(error.into());
    }
    let mut current: Option<(Descriptor, TableWriter)> = None;
    for key in &keys {
        let (descriptor, mut writer) = match current.take() {
            Some(current) => current,
            None => opened.writer(output)?,
        };
        if let Err(error) = copy_partition(&opened.file, key, &mut writer) {
            _ = writer.abort();
            return Err(error.into());
        }
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

    use rows::PartitionKey;

    use super::*;

    fn keys(opened: &Opened) -> ReadableKeys {
        readable_keys(&opened.file)
    }

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
        for folder in [
            "cassandra-da/tombstones",
            "cassandra-da/compressed_none",
            "cassandra-da/compressed_ratio",
            "cassandra-da/compressed_zstd",
            "cassandra-big/nb/every_type",
            "cassandra-big/nb/compressed_snappy",
            "cassandra-big/oa/user_types",
        ] {
            let (directory, path) = copied(folder);
            let output = directory.path().join("out");
            let opened = Opened::open(&path).expect("opens");
            for (files, words, is_well) in [
                run(|out| scrub(&opened, Some(&output), out)),
                run(|out| split(&opened, 1 << 30, Some(&output), out)),
            ] {
                assert!(is_well && files.len() == 1, "{folder}: {words:?}");
                let new = Opened::open(&files[0]).expect("opens").file;
                new.verify().expect("is sound");
                assert!(new.is_compressed_as(&opened.file.compression()), "{folder}");
                assert_eq!(new.summary().pending_repair, opened.file.summary().pending_repair);
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
