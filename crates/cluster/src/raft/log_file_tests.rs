//! The log's file: what was durable is there after any power cut, and no byte of it changes unseen.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use runtime::memory_disk::{Fault, Operation};
use runtime::{Disk, MemoryDisk, OpenMode};
use uuid::Uuid;

use super::contents::{Contents, Record};
use super::error::OpenError;
use super::log_file::{LogFile, Opened};
use super::types::{Address, Command, Entry, LogId, Membership, Payload, Vote};

const PATH: &str = "/raft/raft.log";

fn disk() -> MemoryDisk {
    let disk = MemoryDisk::new();
    disk.create_dir_all(Path::new("/raft")).expect("directory");
    disk
}

fn open(disk: &MemoryDisk) -> Result<Opened, OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    LogFile::open(&disk, Path::new(PATH))
}

fn opened(disk: &MemoryDisk) -> Opened {
    open(disk).unwrap_or_else(|error| panic!("{error}"))
}

fn id(term: u64, index: u64) -> LogId {
    LogId::new_term_index(term, index)
}

fn command(term: u64, index: u64) -> Record {
    let command =
        Command { id: Uuid::from_u128(index.into()), body: Bytes::from(vec![7; index as usize * 90]) };
    Record::Entry(Entry { log_id: id(term, index), payload: Payload::Normal(command) })
}

/// One of each kind.
fn history() -> Vec<Record> {
    let node = Uuid::from_u128(9);
    let addresses = ["127.0.0.1:7000", "[::1]:7001"].map(|text| Address(text.parse().expect("an address")));
    let nodes =
        [node, Uuid::from_u128(10)].into_iter().zip(addresses).collect::<std::collections::BTreeMap<_, _>>();
    let membership = Membership::new(vec![[node].into()], nodes).expect("sound");
    vec![
        Record::Vote(Vote::new(1, node)),
        Record::Entry(Entry { log_id: id(1, 0), payload: Payload::Membership(membership) }),
        Record::Entry(Entry { log_id: id(1, 1), payload: Payload::Blank }),
        command(1, 2),
        command(1, 3),
        Record::Committed(Some(id(1, 2))),
        Record::Truncated(Some(id(1, 2))),
        Record::Vote(Vote::new_committed(2, node)),
        command(2, 3),
        command(2, 4),
        Record::Purged(id(1, 1)),
    ]
}

fn contents_of(records: &[Record]) -> Contents {
    let mut contents = Contents::default();
    records.iter().for_each(|record| contents.take(record).expect("it fits"));
    contents
}

fn write_history(disk: &MemoryDisk) {
    let mut file = opened(disk).file;
    file.append(&history()).expect("written");
    file.sync().expect("durable");
}

#[test]
fn what_was_written_is_read_again() {
    let disk = disk();
    write_history(&disk);
    let Opened { mut file, contents, record_count } = opened(&disk);
    assert_eq!(contents, contents_of(&history()));
    assert_eq!(record_count, history().len());
    file.append(&[command(2, 5)]).expect("it goes on");
    file.sync().expect("durable");
    assert_eq!(opened(&disk).contents.last_log_id(), Some(id(2, 5)));
    // Made anew it says the same.
    let mut again = opened(&disk);
    again.file.rewrite(&again.contents).expect("rewritten");
    assert_eq!(opened(&disk).contents, again.contents);
}

#[test]
fn every_flipped_byte_is_told() {
    let disk = disk();
    write_history(&disk);
    for offset in 0..disk.file_bytes(Path::new(PATH)).expect("there") {
        for mask in [0x80, 0x10, 0x01] {
            disk.flip_bits(Path::new(PATH), offset, mask).expect("within the file");
            assert!(matches!(open(&disk), Err(OpenError::Damaged { .. })), "flip at {offset} went unseen");
            disk.flip_bits(Path::new(PATH), offset, mask).expect("within the file");
        }
    }
}

#[test]
fn a_log_that_is_too_short_is_told() {
    let disk = disk();
    write_history(&disk);
    let file = disk.open(Path::new(PATH), OpenMode::ReadWrite).expect("there");
    for bytes in (0..file.len().expect("its length")).rev() {
        file.set_len(bytes).expect("cut");
        assert!(matches!(open(&disk), Err(OpenError::Damaged { .. })), "cut at {bytes} went unseen");
    }
}

#[test]
fn a_torn_tail_is_cut_off_and_the_log_goes_on() {
    let disk = disk();
    write_history(&disk);
    let file = disk.open(Path::new(PATH), OpenMode::ReadWrite).expect("there");
    let end = file.len().expect("its length");
    file.write_all_at(&[40, 0, 0, 0, 1, 0, 0], end).expect("written");
    let mut torn = opened(&disk);
    assert_eq!(torn.contents, contents_of(&history()));
    torn.file.append(&[command(2, 5)]).expect("it goes on");
    torn.file.sync().expect("durable");
    assert_eq!(opened(&disk).contents.last_log_id(), Some(id(2, 5)));
}

/// What a failed sync has left is seen by the next start, and a later sync of the file does not make it durable.
#[test]
fn what_a_failed_sync_has_left_is_written_again() {
    let disk = disk();
    write_history(&disk);
    let mut file = opened(&disk).file;
    file.append(&[command(2, 5)]).expect("written");
    disk.faults().fail_nth(Some(Operation::Sync), 0, Fault::InputOutput);
    file.sync().expect_err("as ordered");
    assert_eq!(opened(&disk).contents.last_log_id(), Some(id(2, 5)), "it is acknowledged from here on");
    assert_eq!(opened(&disk.crash(1)).contents.last_log_id(), Some(id(2, 5)));
}

/// Writes the history record by record; what was durable when the power went.
fn write_until_power_goes(disk: &MemoryDisk) -> usize {
    let mut durable_count = 0;
    let mut write = || -> io::Result<()> {
        let Ok(Opened { mut file, .. }) = open(disk) else { return Err(io::ErrorKind::Other.into()) };
        for (index, record) in history().iter().enumerate() {
            file.append(std::slice::from_ref(record))?;
            if index % 3 == 2 {
                file.sync()?;
                durable_count = index + 1;
            }
            if index == 6 {
                file.rewrite(&contents_of(&history()[..=index]))?;
                durable_count = index + 1;
            }
        }
        Ok(())
    };
    // It may have gone at any of these.
    _ = write();
    durable_count
}

#[test]
fn after_a_power_cut_at_any_change_all_that_was_durable_is_there() {
    for change_count in 0..40 {
        for seed in 0..8 {
            let disk = disk();
            disk.faults().power_off_after(change_count);
            let durable_count = write_until_power_goes(&disk);
            let found = opened(&disk.crash(seed)).contents;
            let could_be = (durable_count..=history().len()).map(|count| contents_of(&history()[..count]));
            assert!(
                could_be.into_iter().any(|contents| contents == found),
                "change {change_count}, seed {seed}: {durable_count} were durable, {found:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(kind in 0_u32..7, payload in proptest::collection::vec(any::<u8>(), 0..80)) {
        _ = Record::read(kind, &payload);
    }

    #[test]
    fn a_changed_record_is_refused_or_another_one(
        index in 0_usize..11,
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let history = history();
        let record = &history[index];
        let mut bytes = bytes::BytesMut::new();
        record.put(&mut bytes);
        let read = Record::read(record.kind(), &bytes);
        prop_assert_eq!(read.as_ref(), Ok(record));
        let place = place.index(bytes.len());
        bytes[place] ^= byte | 1;
        let read = Record::read(record.kind(), &bytes);
        prop_assert_ne!(read.as_ref(), Ok(record));
    }
}
