//! The file of a snapshot: what the log has made up to an entry, so that entries up to it may go.
//!
//! It is written beside the one before and renamed over it. `docs/formats/raft-log.md` draws the bytes.

use std::path::Path;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use runtime::Disk;

use super::bytes_of::{BadBytes, Reader, put_bytes, put_snapshot_meta};
use super::error::OpenError;
use super::types::Snapshot;

const MAGIC: [u8; 8] = *b"PERIsnap";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 24;

/// A snapshot as the bytes of its file.
pub(super) fn encode(snapshot: &Snapshot) -> Bytes {
    let mut out = BytesMut::zeroed(HEADER_BYTES);
    put_snapshot_meta(&mut out, &snapshot.meta);
    put_bytes(&mut out, &snapshot.snapshot);
    let (header, body) = out.split_at_mut(HEADER_BYTES);
    let mut head = &mut header[..];
    head.put_slice(&MAGIC);
    head.put_u32_le(VERSION);
    head.put_u64_le(body.len() as u64);
    let check = check_of(&header[..HEADER_BYTES - 4], body);
    header[HEADER_BYTES - 4..].copy_from_slice(&check.to_le_bytes());
    out.freeze()
}

fn check_of(header: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(body);
    hasher.finalize()
}

/// Reads the snapshot at the path, if there is one. Blocks.
///
/// # Errors
/// The disk fails, or the file is damaged: it was durable before it had its name.
pub(super) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Snapshot>, OpenError> {
    let fail = |source| OpenError::Disk { act: "read the snapshot", source };
    if !disk.exists(path).map_err(fail)? {
        return Ok(None);
    }
    let bytes = disk.read(path).map_err(fail)?;
    let damaged = |BadBytes(what)| OpenError::Damaged { path: path.into(), offset: 0, what: what.to_owned() };
    decode(&bytes).map(Some).map_err(damaged)
}

fn decode(bytes: &[u8]) -> Result<Snapshot, BadBytes> {
    let (header, body) =
        bytes.split_at_checked(HEADER_BYTES).ok_or(BadBytes("a header that is cut short"))?;
    let (checked, mut expected) = header.split_at(HEADER_BYTES - 4);
    if check_of(checked, body) != expected.get_u32_le() {
        return Err(BadBytes("the checksum"));
    }
    let mut fields = &checked[MAGIC.len()..];
    if checked[..MAGIC.len()] != MAGIC || fields.get_u32_le() != VERSION {
        return Err(BadBytes("the version"));
    }
    if fields.get_u64_le() != body.len() as u64 {
        return Err(BadBytes("the length"));
    }
    let mut reader = Reader(body);
    let (meta, snapshot) = (reader.snapshot_meta()?, reader.bytes()?);
    reader.end()?;
    Ok(Snapshot { meta, snapshot })
}

#[cfg(test)]
mod tests {
    use runtime::MemoryDisk;

    use super::super::types::{LogId, Membership, StoredMembership};
    use super::*;

    #[test]
    fn a_snapshot_is_read_again_and_every_flipped_byte_is_told() {
        let path = Path::new("/raft.snapshot");
        let disk = MemoryDisk::new();
        assert!(read(&disk, path).expect("the disk is well").is_none());
        let last_log_id = Some(LogId::new_term_index(3, 40));
        let last_membership = StoredMembership::new(last_log_id, Membership::default());
        let meta = super::super::types::SnapshotMeta { last_log_id, last_membership };
        let snapshot = Snapshot { meta, snapshot: Bytes::from_static(b"what the log has made") };
        let bytes = encode(&snapshot);
        disk.write_atomically(path, &bytes).expect("written");
        let again = read(&disk, path).expect("it is sound").expect("it is there");
        assert_eq!((again.meta, again.snapshot), (snapshot.meta, snapshot.snapshot));
        for offset in 0..bytes.len() as u64 {
            disk.flip_bits(path, offset, 0x04).expect("within the file");
            assert!(
                matches!(read(&disk, path), Err(OpenError::Damaged { .. })),
                "flip at {offset} went unseen"
            );
            disk.flip_bits(path, offset, 0x04).expect("within the file");
        }
    }
}
