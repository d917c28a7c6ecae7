//! The bytes of a manifest; `docs/formats/manifest.md` draws them.
//!
//! A header, then records. Integers are little-endian. A record's check covers its place, so bytes that belong
//! elsewhere never look valid.

/// First bytes of a manifest.
const MAGIC: [u8; 8] = *b"PERImani";
/// The version this program writes and reads.
pub(super) const VERSION: u32 = 1;
/// Length of the header.
pub(super) const HEADER_BYTES: usize = 16;
/// Length of what stands before a record's payload.
const RECORD_HEADER_BYTES: usize = 12;

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The whole state; the first record, and no other.
    Checkpoint = 1,
    /// Changes that are made in one step.
    Edit = 2,
    /// Nothing: everything before this record was durable when it was written.
    Synced = 3,
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    Sound,
    /// Sound, of a version we do not read.
    Newer {
        version: u32,
    },
    Bad {
        expected: u32,
        got: u32,
    },
}

/// What is at a place where a record should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// The end.
    Nothing,
    /// A sound record, though perhaps of a kind that we do not know.
    Record { kind: u32, payload: &'a [u8], end: usize },
    /// Something else, and the two checksums: written and found.
    Bad { expected: u32, got: u32 },
}

pub(super) fn encode_header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let check = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&check.to_le_bytes());
    header
}

pub(super) fn check_header(bytes: &[u8]) -> Header {
    let Some(header) = bytes.get(..HEADER_BYTES) else {
        return Header::Bad { expected: 0, got: crc32fast::hash(bytes) };
    };
    let (expected, got) = (u32_at(header, 12), crc32fast::hash(&header[..12]));
    match u32_at(header, 8) {
        _ if expected != got || header[..8] != MAGIC => Header::Bad { expected, got },
        VERSION => Header::Sound,
        version => Header::Newer { version },
    }
}

/// A record that will lie at `offset`.
pub(super) fn encode_record(offset: usize, kind: Kind, payload: &[u8]) -> Vec<u8> {
    let payload_bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    assert_eq!(payload_bytes as usize, payload.len(), "a manifest takes less than 4 GiB");
    let mut record = Vec::with_capacity(RECORD_HEADER_BYTES + payload.len());
    record.extend_from_slice(&payload_bytes.to_le_bytes());
    record.extend_from_slice(&(kind as u32).to_le_bytes());
    record.extend_from_slice(&check(offset, payload_bytes, kind as u32, payload).to_le_bytes());
    record.extend_from_slice(payload);
    record
}

pub(super) fn find_record(bytes: &[u8], offset: usize) -> Found<'_> {
    let rest = bytes.get(offset..).unwrap_or_default();
    if rest.is_empty() {
        return Found::Nothing;
    }
    let Some((header, behind)) = rest.split_at_checked(RECORD_HEADER_BYTES) else {
        return Found::Bad { expected: 0, got: crc32fast::hash(rest) };
    };
    let (payload_bytes, kind, expected) = (u32_at(header, 0), u32_at(header, 4), u32_at(header, 8));
    let payload = behind.get(..payload_bytes as usize);
    let got = check(offset, payload_bytes, kind, payload.unwrap_or(behind));
    match payload {
        // What was reserved and never written is zeros.
        Some(payload) if got == expected && kind != 0 => {
            Found::Record { kind, payload, end: offset + RECORD_HEADER_BYTES + payload.len() }
        }
        _ => Found::Bad { expected, got },
    }
}

/// Does a sound record at or behind `offset` say that what is before it was durable?
pub(super) fn is_known_synced(bytes: &[u8], offset: usize) -> bool {
    let head = [0u32.to_le_bytes(), (Kind::Synced as u32).to_le_bytes()].concat();
    let behind = bytes.get(offset..).unwrap_or_default();
    let places = behind.windows(RECORD_HEADER_BYTES).enumerate().skip(1);
    places
        .filter(|(_, window)| window.starts_with(&head))
        .any(|(index, _)| matches!(find_record(bytes, offset + index), Found::Record { .. }))
}

/// Sets the checks right, as far as records follow each other; for hostile input.
pub(super) fn correct(bytes: &mut [u8]) {
    if let Some(header) = bytes.get_mut(..HEADER_BYTES) {
        header.copy_from_slice(&encode_header());
    }
    let mut offset = HEADER_BYTES;
    while let Some((header, behind)) =
        bytes.get(offset..).and_then(|rest| rest.split_at_checked(RECORD_HEADER_BYTES))
    {
        let (payload_bytes, kind) = (u32_at(header, 0), u32_at(header, 4));
        let Some(payload) = behind.get(..payload_bytes as usize) else { return };
        let check = check(offset, payload_bytes, kind, payload);
        bytes[offset + 8..offset + RECORD_HEADER_BYTES].copy_from_slice(&check.to_le_bytes());
        offset += RECORD_HEADER_BYTES + payload_bytes as usize;
    }
}

fn check(offset: usize, payload_bytes: u32, kind: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(offset as u64).to_le_bytes());
    hasher.update(&payload_bytes.to_le_bytes());
    hasher.update(&kind.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_refused_with_any_byte_changed() {
        let header = encode_header();
        assert_eq!(check_header(&header), Header::Sound);
        for index in 0..HEADER_BYTES {
            let mut flipped = header;
            flipped[index] ^= 0x10;
            assert!(matches!(check_header(&flipped), Header::Bad { .. }), "byte {index}");
            assert!(matches!(check_header(&header[..index]), Header::Bad { .. }), "cut to {index}");
        }
    }

    #[test]
    fn a_record_is_sound_at_its_own_place_alone() {
        for payload in [&b""[..], b"a", b"[1,2,3]"] {
            let mut bytes = vec![0; 16];
            bytes.extend(encode_record(16, Kind::Edit, payload));
            let whole = Found::Record { kind: 2, payload, end: bytes.len() };
            assert_eq!(find_record(&bytes, 16), whole);
            assert_eq!(find_record(&bytes, bytes.len()), Found::Nothing);
            let moved = [&[0][..], &bytes].concat();
            assert!(matches!(find_record(&moved, 17), Found::Bad { .. }));
            for index in 16..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[index] ^= 1;
                assert!(
                    matches!(find_record(&flipped, 16), Found::Bad { .. }),
                    "byte {index} of {payload:?}"
                );
                let cut = find_record(&bytes[..index], 16);
                assert!(index == 16 || matches!(cut, Found::Bad { .. }), "cut to {index}");
            }
        }
    }

    #[test]
    fn what_was_durable_is_known_by_a_later_record_that_says_so() {
        let mut bytes = encode_record(0, Kind::Edit, b"x");
        assert!(!is_known_synced(&bytes, 0));
        let end = bytes.len();
        bytes.extend(encode_record(end, Kind::Synced, b""));
        assert!(is_known_synced(&bytes, 0) && !is_known_synced(&bytes, end));
        bytes[end + 8] ^= 1;
        assert!(!is_known_synced(&bytes, 0));
    }
}
