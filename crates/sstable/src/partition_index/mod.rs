//! Partitions.db: a trie over the partition keys, and a footer.
//!
//! A key is in the trie by the shortest prefix of its byte-comparable form that tells it from its
//! neighbours, so a key found may be another one: its last hash byte, kept in the payload, and the
//! whole key where the payload points to, tell.
//!
//! ```text
//!   trie | u16 first key bytes, first key | u16 last key bytes, last key
//!        | u64 offset of the first key | u64 key count | u64 root
//!   payload: u8 hash byte, when flag 8 is set | signed position in 1 to 8 bytes:
//!            p >= 0: of an entry in Rows.db;  p < 0: !p is the partition's place in Data
//! ```

mod footer;

use bytes::Bytes;
use rows::PartitionKey;
use types::byte_comparable;
use types::encoding::KEY_BYTES_MAX;

use crate::SstableError;
use crate::bloom::KeyHash;
use components::FileChecksums;
use components::FileWriter;
use trie::{
    Followed, Malformed, PageFile, Payload, Payloads, TrieWriter, push_low_bytes, read_signed, signed_bytes,
};

pub(crate) use footer::read_footer;

const HAS_HASH: u8 = 8;
const _: () =
    assert!(HAS_HASH + 7 < 16, "a payload's flags, for positions of up to eight bytes, are four bits");

/// The path of a key in the trie, at most.
pub(crate) fn form_of(key: &PartitionKey) -> Vec<u8> {
    let mut form = Vec::with_capacity(key.bytes.len() + 16);
    byte_comparable::decorated_key(key.token, &key.bytes, &mut form);
    form
}

/// Where the index says a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionPlace {
    /// Directly in Data.
    Data(u64),
    /// At an entry in Rows.db, which tells the place in Data.
    Rows(u64),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    position: i64,
    hash: u8,
}

impl Payload for Entry {
    fn flags(&self) -> u8 {
        HAS_HASH + signed_bytes(self.position) as u8 - 1
    }

    fn bytes(&self) -> usize {
        1 + signed_bytes(self.position)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.hash);
        push_low_bytes(self.position as u64, signed_bytes(self.position), out);
    }
}

/// Writes Partitions.db.
#[derive(Debug)]
pub(crate) struct PartitionIndexWriter {
    file: FileWriter,
    trie: TrieWriter<Entry>,
    /// Form of the last key, which waits for its neighbour.
    last_form: Vec<u8>,
    form: Vec<u8>,
    last_entry: Option<Entry>,
    /// Bytes of the last key that tell it from the one before.
    last_distinct_bytes: usize,
    first_key: Bytes,
    last_key: Bytes,
}

impl PartitionIndexWriter {
    pub(crate) fn new(file: FileWriter) -> Self {
        PartitionIndexWriter {
            file,
            trie: TrieWriter::new(),
            last_form: Vec::new(),
            form: Vec::new(),
            last_entry: None,
            last_distinct_bytes: 0,
            first_key: Bytes::new(),
            last_key: Bytes::new(),
        }
    }

    /// Adds the next key.
    pub(crate) fn add(
        &mut self,
        key: &PartitionKey,
        hash: KeyHash,
        place: PartitionPlace,
    ) -> Result<(), SstableError> {
        self.form.clear();
        byte_comparable::decorated_key(key.token, &key.bytes, &mut self.form);
        if self.last_entry.is_none() {
            self.first_key = key.bytes.clone();
        } else {
            let shared = self.last_form.iter().zip(&self.form).take_while(|(a, b)| a == b).count();
            assert!(
                self.form.get(shared) > self.last_form.get(shared),
                "forms are in the order of their keys"
            );
            self.write_last(shared + 1)?;
            self.last_distinct_bytes = shared + 1;
        }
        let position = match place {
            PartitionPlace::Data(position) => !(position as i64),
            PartitionPlace::Rows(position) => position as i64,
        };
        let is_in_data = matches!(place, PartitionPlace::Data(_));
        assert_eq!(position < 0, is_in_data, "the sign of a position tells which file it is in");
        self.last_entry = Some(Entry { position, hash: hash.index_byte() });
        self.last_key = key.bytes.clone();
        std::mem::swap(&mut self.form, &mut self.last_form);
        Ok(())
    }

    /// How many keys were added.
    pub(crate) fn key_count(&self) -> u64 {
        self.trie.count() + u64::from(self.last_entry.is_some())
    }

    fn write_last(&mut self, distinct_bytes: usize) -> Result<(), SstableError> {
        let Some(entry) = self.last_entry else { return Ok(()) };
        let bytes = distinct_bytes.max(self.last_distinct_bytes).min(self.last_form.len());
        self.trie.add(&self.last_form[..bytes], entry, &mut self.file)
    }

    /// Writes the rest.
    pub(crate) fn finish(mut self) -> Result<FileChecksums, SstableError> {
        self.write_last(0)?;
        let count = self.trie.count();
        let root = self.trie.finish(&mut self.file)?;
        let keys_offset = self.file.position();
        assert!(root < keys_offset, "the root is before the keys");
        for key in [&self.first_key, &self.last_key] {
            assert!(key.len() <= KEY_BYTES_MAX, "the writer of the file refuses longer keys");
            self.file.write(&(key.len() as u16).to_be_bytes())?;
            self.file.write(key)?;
        }
        for number in [keys_offset, count, root] {
            self.file.write(&number.to_be_bytes())?;
        }
        self.file.finish()
    }
}

/// What a payload says; `None` when it is damaged.
pub(crate) fn place_of(payload: &Payloads) -> Option<PartitionPlace> {
    let (skipped, size) = match payload.flags {
        0 => return None,
        flags if flags >= HAS_HASH => (1, usize::from(flags - HAS_HASH) + 1),
        flags => (0, usize::from(flags)),
    };
    let position = read_signed(payload.bytes().get(skipped..skipped + size)?);
    Some(match u64::try_from(position) {
        Ok(position) => PartitionPlace::Rows(position),
        Err(_) => PartitionPlace::Data(!position as u64),
    })
}

/// Where the key may be whose path ends there; `None` when it surely is not in the file.
pub(crate) fn place_at_end(end: &Followed, hash: KeyHash) -> Result<Option<PartitionPlace>, Malformed> {
    let payload = &end.payload;
    if payload.flags == 0 || (end.has_children && !end.is_whole) {
        return Ok(None);
    }
    if payload.flags >= HAS_HASH && payload.bytes().first() != Some(&hash.index_byte()) {
        return Ok(None);
    }
    place_of(payload).map(Some).ok_or(Malformed)
}
