//! Table files written anew: what is left of damaged ones, or large ones in parts.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use rows::{PartitionKey, Slices, Step, UnfilteredCursor};
use runtime::{OsRandom, Random, SystemClock};
use sstable::{
    Component, Descriptor, DirectChunks, FileCursor, RingRange, SstableError, TableWriter, WriterOptions,
};

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

/// All keys that the file still tells, and why there are no more.
fn keys(opened: &Opened) -> (Vec<PartitionKey>, Option<SstableError>) {
    let mut cursor = opened.file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::none());
    let mut keys = Vec::new();
    loop {
        match cursor.step() {
            Ok(Step::Header(header)) => keys.push(header.key),
            Ok(Step::End) => return (keys, None),
            Ok(Step::Item(_) | Step::Need(_)) => {}
            Err(error) => return (keys, Some(error)),
        }
    }
}

/// Reads a partition through without writing it.
fn is_whole(opened: &Opened, key: &PartitionKey) -> Result<(), SstableError> {
    let mut cursor = opened.file.partition_cursor(DirectChunks::new(), key, &Slices::all(), false);
    while !matches!(cursor.step()?, Step::End) {}
    Ok(())
}

/// Writes every partition that can be read whole.
pub(super) fn scrub(opened: &Opened, output: Option<&Path>, out: &mut dyn Write) -> Result<(), ToolError> {
    let (keys, end) = keys(opened);
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
    if let Some(error) = end {
        writeln!(out, "partitions behind those found are lost: {error}")?;
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
    let (keys, end) = keys(opened);
    if let Some(error) = end {
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
