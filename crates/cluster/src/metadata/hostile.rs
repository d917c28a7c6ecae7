//! Reads bytes that may be anything as metadata from other nodes and from the disk: what the fuzzer calls.
//!
//! Nothing may panic, loop, or take memory beyond what the bytes are worth; and what is read can be written and read
//! again.

use std::path::Path;
use std::sync::Arc;

use runtime::{Disk, MemoryDisk, OpenMode};
use schema::Schema;
use tokio::sync::mpsc::unbounded_channel;

use super::command::{Command, decode_outcome, encode_outcome};
use super::{Entry, MetadataLog, MetadataMachine};
use crate::raft::Machine;

const LOG: &str = "/node/schema.log";
/// More are not carried out of one input: each may make a ring of many tokens.
const COMMANDS_MAX: usize = 16;

/// Reads what was agreed on, a snapshot of it, what a command came to, or a log, by what the first byte leaves when it
/// is divided by five. Commands and entries of a log have lines of their own.
///
/// # Panics
/// When a promise is broken: that is what it is for.
pub fn read_metadata(bytes: &[u8]) {
    let Some((which, body)) = bytes.split_first() else { return };
    match which % 5 {
        0 => carry_out(body),
        1 => restore(body),
        2 => {
            let outcome = decode_outcome(body);
            assert_eq!(decode_outcome(&encode_outcome(&outcome)), outcome, "read as it was written");
        }
        3 => open(body),
        _ => open(&with_checks(body)),
    }
}

/// Commands, one after the other, as an agreement carries them out.
fn carry_out(body: &[u8]) {
    let mut machine = machine();
    for (line, index) in body.split(|byte| *byte == b'\n').take(COMMANDS_MAX).zip(1..) {
        if let Ok(command) = Command::decode(line) {
            assert_eq!(
                Command::decode(&command.encode()),
                Ok(command),
                "a command is read as it was written"
            );
        }
        if let Ok(outcome) = machine.apply(index, line) {
            _ = decode_outcome(&outcome);
        }
    }
    let mut behind = self::machine();
    behind.restore(&machine.snapshot()).expect("what was agreed on can be taken over");
    assert_eq!(behind.snapshot(), machine.snapshot(), "and is the same then");
}

fn restore(body: &[u8]) {
    let mut machine = machine();
    if machine.restore(body).is_err() {
        return;
    }
    let read: Vec<Entry> = serde_json::from_slice(body).expect("it was restored");
    let again: Vec<Entry> = serde_json::from_slice(&machine.snapshot()).expect("it is a snapshot");
    assert_eq!(again, read, "a snapshot is read as it was written");
}

fn machine() -> MetadataMachine {
    MetadataMachine::new(Arc::default(), unbounded_channel().0)
}

/// A log of these bytes, opened twice: the second time it is as the first has left it.
fn open(content: &[u8]) {
    let (disk, path) = (disk_with(content), Path::new(LOG));
    let Ok(log) = MetadataLog::open(&disk, path, Schema::default()) else { return };
    let again = MetadataLog::open(&disk, path, Schema::default()).expect("it is sound now");
    assert_eq!(again.metadata().members, log.metadata().members, "the members are those that were read");
    let of = |log: &MetadataLog| (log.schema().epoch(), log.schema().keyspaces().clone());
    assert_eq!(of(&again), of(&log), "and so is the schema");
    log.changes(path).expect("its changes can be read");
}

fn disk_with(content: &[u8]) -> Arc<dyn Disk> {
    let (disk, path) = (Arc::new(MemoryDisk::new()), Path::new(LOG));
    disk.create_dir_all(path.parent().expect("it is in a directory")).expect("memory never fails");
    let file = disk.open(path, OpenMode::CreateNew).expect("memory never fails");
    file.write_all_at(content, 0).expect("memory never fails");
    disk
}

/// Each line with its checksum, as if it had been written so.
fn with_checks(body: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    for line in body.split(|byte| *byte == b'\n') {
        content.extend_from_slice(format!("{:08x} ", crc32fast::hash(line)).as_bytes());
        content.extend_from_slice(line);
        content.push(b'\n');
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the fuzzer begins with: if nothing could be made of it, it would begin with nothing.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "kept files of the repository")]
    fn kept_inputs_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/membership");
        let kept = |name: &str| std::fs::read(folder.join(name)).expect("it was kept");
        let path = Path::new(LOG);
        for (name, epochs) in
            [("log", (8, 1)), ("log_torn", (7, 1)), ("log_entries", (8, 1)), ("log_members", (0, 3))]
        {
            let bytes = kept(name);
            read_metadata(&bytes);
            let content = if bytes[0] % 5 == 3 { bytes[1..].to_vec() } else { with_checks(&bytes[1..]) };
            let log = MetadataLog::open(&disk_with(&content), path, Schema::default()).expect("it opens");
            assert_eq!((log.schema().epoch(), log.metadata().ring_epoch()), epochs, "{name}");
        }
        for (name, entry_count) in [("commands", 6), ("snapshot", 4)] {
            let bytes = kept(name);
            read_metadata(&bytes);
            let mut machine = machine();
            match bytes[0] % 5 {
                0 => bytes[1..].split(|byte| *byte == b'\n').for_each(|line| {
                    let outcome = machine.apply(1, line).expect("it is known");
                    decode_outcome(&outcome).expect("it is not refused");
                }),
                _ => machine.restore(&bytes[1..]).expect("it is restored"),
            }
            let history: Vec<Entry> = serde_json::from_slice(&machine.snapshot()).expect("a history");
            assert_eq!(history.len(), entry_count, "{name}");
        }
        assert!(decode_outcome(&kept("outcome_ok")[1..]).is_ok());
        for name in ["outcome_refused", "outcome_not_founded"] {
            let refusal = decode_outcome(&kept(name)[1..]).expect_err(name);
            assert!(!matches!(refusal, super::super::Refusal::Unknown { .. }), "{name}: {refusal}");
        }
    }
}
