//! Rows.db: for each large partition, a trie over blocks of its rows.
//!
//! The trie's keys separate blocks: each is above all of the block before it and not above the
//! first row of its own. The floor of a clustering is the block where it is, if it is anywhere.
//! After the last block a key above all rows points to the end.
//!
//! ```text
//!   (trie | entry)*
//!   entry:   u16 key bytes | partition key | vint place in Data | signed vint root - here
//!            | vint block count | partition deletion       "here" is behind the key
//!   payload: place in the partition, signed, in as many bytes as flags % 8
//!            | the range deletion open there, when flag 8 is set
//! ```

use bytes::Bytes;
use rows::DeletionTime;
use stdx::cursor::{Cursor, EndOfInput};
use stdx::vint;
use types::byte_comparable;
use types::encoding::KEY_BYTES_MAX;

use crate::SstableError;
use crate::data::{DELETION_BYTES, read_whole_deletion, write_whole_deletion};
use components::FileChecksums;
use components::FileWriter;
use trie::{PageFile, Payload, Payloads, TrieWriter, push_low_bytes, read_signed, signed_bytes};

const HAS_OPEN_DELETION: u8 = 8;

/// Where a block of rows begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// From the start of the partition.
    pub(crate) offset: u64,
    /// The range deletion open there, or live.
    pub(crate) open: DeletionTime,
}

impl Payload for Block {
    fn flags(&self) -> u8 {
        let open = if self.open.is_live() { 0 } else { HAS_OPEN_DELETION };
        let offset_bytes = signed_bytes(self.offset as i64) as u8;
        assert!(
            offset_bytes < HAS_OPEN_DELETION,
            "a place in a partition leaves the flag of a deletion alone"
        );
        offset_bytes | open
    }

    fn bytes(&self) -> usize {
        signed_bytes(self.offset as i64) + if self.open.is_live() { 0 } else { DELETION_BYTES }
    }

    fn write(&self, out: &mut Vec<u8>) {
        push_low_bytes(self.offset, signed_bytes(self.offset as i64), out);
        if !self.open.is_live() {
            write_whole_deletion(self.open, out);
        }
    }
}

impl Block {
    /// What a payload says; `None` when it is damaged.
    pub(crate) fn read(payload: &Payloads) -> Option<Block> {
        let size = usize::from(payload.flags & !HAS_OPEN_DELETION);
        let (offset, rest) = payload.bytes().split_at_checked(size)?;
        let offset = u64::try_from(read_signed(offset)).ok()?;
        let open = match payload.flags & HAS_OPEN_DELETION {
            0 => DeletionTime::LIVE,
            _ => read_whole_deletion(&mut Cursor::new(rest)).ok()??,
        };
        Some(Block { offset, open })
    }
}

/// Writes Rows.db.
#[derive(Debug)]
pub(crate) struct RowIndexWriter {
    file: FileWriter,
    trie: TrieWriter<Block>,
    block_count: u64,
    /// Where the last block begins.
    last_offset: u64,
    /// Form of the last row of the last block.
    last_form: Vec<u8>,
    separator: Vec<u8>,
}

impl RowIndexWriter {
    pub(crate) fn new(file: FileWriter) -> Self {
        RowIndexWriter {
            file,
            trie: TrieWriter::new(),
            block_count: 0,
            last_offset: 0,
            last_form: Vec::new(),
            separator: Vec::new(),
        }
    }

    /// Begins a partition.
    pub(crate) fn start(&mut self) {
        self.trie.reset();
        self.block_count = 0;
        self.separator.clear();
    }

    /// How many blocks the partition has so far.
    pub(crate) fn block_count(&self) -> u64 {
        self.block_count
    }

    /// Adds a block by the forms of its first and last item.
    pub(crate) fn add(&mut self, first: &[u8], last: &[u8], block: Block) -> Result<(), SstableError> {
        self.separator.clear();
        if self.block_count > 0 {
            assert!(block.offset > self.last_offset, "blocks follow each other");
            if first <= self.last_form.as_slice() {
                // Nothing lies between items of one form, as a null and an empty field of a tuple have: so the block
                // before goes on.
                self.last_form = last.max(&self.last_form).to_vec();
                return Ok(());
            }
            byte_comparable::separator_above(&self.last_form, first, &mut self.separator);
        }
        self.trie.add(&self.separator, block, &mut self.file)?;
        self.last_form.clear();
        self.last_form.extend_from_slice(last);
        self.block_count += 1;
        self.last_offset = block.offset;
        Ok(())
    }

    /// Ends a partition whose end is at `end` from its start. Gives the place of its entry;
    /// `None` when one block says no more than Data itself.
    pub(crate) fn finish_partition(
        &mut self,
        key: &[u8],
        data_position: u64,
        deletion: DeletionTime,
        end: u64,
    ) -> Result<Option<u64>, SstableError> {
        if self.block_count < 2 {
            return Ok(None);
        }
        assert!(end > self.last_offset, "a partition ends behind its last block");
        self.nudge();
        let block = Block { offset: end, open: DeletionTime::LIVE };
        self.trie.add(&self.separator, block, &mut self.file)?;
        let root = self.trie.finish(&mut self.file)?;
        let position = self.file.position();
        assert!(root < position, "the root is before the entry that points to it");
        assert!(key.len() <= KEY_BYTES_MAX, "the writer of the file refuses longer keys");
        let here = position + 2 + key.len() as u64;
        let block_count = self.block_count;
        self.file.write_with(|out| {
            out.extend_from_slice(&(key.len() as u16).to_be_bytes());
            out.extend_from_slice(key);
            vint::write_unsigned(data_position, out);
            vint::write_signed(root as i64 - here as i64, out);
            vint::write_unsigned(block_count, out);
            write_whole_deletion(deletion, out);
        })?;
        Ok(Some(position))
    }

    /// Replaces the last separator by one as short that is above the last row: its form up to
    /// where it leaves the separator, that byte counted up (bytes that can not be are passed).
    fn nudge(&mut self) {
        let shared = self.last_form.iter().zip(&self.separator).take_while(|(a, b)| a == b).count();
        self.separator.clear();
        self.separator.extend_from_slice(&self.last_form[..shared]);
        for byte in &self.last_form[shared..] {
            if *byte < 0xff {
                self.separator.push(byte + 1);
                return;
            }
            self.separator.push(0xff);
        }
        self.separator.push(0);
    }

    /// Writes the rest.
    pub(crate) fn finish(self) -> Result<FileChecksums, SstableError> {
        self.file.finish()
    }
}

/// The entry of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowIndexEntry {
    pub(crate) key: Bytes,
    /// Place of the partition in Data.
    pub(crate) data_position: u64,
    pub(crate) root: u64,
    pub(crate) deletion: DeletionTime,
}

impl RowIndexEntry {
    /// Reads the entry at `position`. `Ok(None)` when it makes no sense.
    pub(crate) fn read(bytes: &[u8], position: u64) -> Result<Option<Self>, EndOfInput> {
        let mut input = Cursor::new(bytes);
        let length = usize::from(input.u16()?);
        let key = Bytes::copy_from_slice(input.take(length)?);
        let here = position.saturating_add(input.position() as u64);
        let data_position = input.vint()?;
        let root = here.checked_add_signed(input.vint_signed()?);
        input.vint()?;
        let deletion = read_whole_deletion(&mut input)?;
        let (Some(root), Some(deletion)) = (root.filter(|root| *root < position), deletion) else {
            return Ok(None);
        };
        Ok(Some(RowIndexEntry { key, data_position, root, deletion }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::{Disk, MemoryDisk};

    fn writer(disk: &MemoryDisk) -> RowIndexWriter {
        disk.create_dir_all("/d".as_ref()).expect("made");
        RowIndexWriter::new(FileWriter::create(disk, "/d/r".into(), false).expect("created"))
    }

    #[test]
    fn blocks_that_do_not_follow_each_other_are_seen() {
        let mut writer = writer(&MemoryDisk::new());
        writer.start();
        let block = |offset| Block { offset, open: DeletionTime::LIVE };
        writer.add(b"\x40a\x38", b"\x40b\x38", block(50)).expect("first");
        let second = runtime::caught(|| writer.add(b"\x40b\x60", b"\x40c\x38", block(50)));
        assert_eq!(second.expect_err("it is seen").what, "blocks follow each other");
    }

    #[test]
    fn entry_and_blocks_come_back() {
        let disk = MemoryDisk::new();
        let mut writer = writer(&disk);
        let open = DeletionTime { timestamp: 9, local_deletion_time: 10 };
        writer.start();
        let first = Block { offset: 5, open: DeletionTime::LIVE };
        writer.add(b"\x40a\x38", b"\x40b\x38", first).expect("first");
        assert_eq!(writer.finish_partition(b"k", 1, open, 9).expect("written"), None);
        writer.start();
        writer.add(b"\x40a\x38", b"\x40b\x38", first).expect("first");
        writer.add(b"\x40b\x60", b"\x40c\x38", Block { offset: 5000, open }).expect("second");
        let position = writer.finish_partition(b"k", 77, open, 9000).expect("written").expect("indexed");
        writer.finish().expect("synced");
        let bytes = disk.read("/d/r".as_ref()).expect("there");
        let entry =
            RowIndexEntry::read(&bytes[position as usize..], position).expect("whole").expect("sound");
        assert_eq!((entry.data_position, entry.deletion), (77, open));
        assert_eq!(&entry.key[..], b"k");
    }
}
