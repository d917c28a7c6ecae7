//! Segments: how version 5 carries envelopes once the connection is established.
//!
//! ```text
//!   plain   | header 3 bytes, little-endian          | CRC24 | payload            | CRC32 |
//!             payload bytes: 17, self-contained: 1
//!   lz4     | header 5 bytes, little-endian          | CRC24 | compressed payload | CRC32 |
//!             compressed bytes: 17, plain bytes: 17 (0: stored as is), self-contained: 1
//! ```
//!
//! A self-contained segment holds whole envelopes; a large envelope is cut over several segments
//! that are not. Both checksums are little-endian; CRC32 covers the payload as sent.

use crate::ProtocolError;

/// The longest payload, as 17 bits can say.
pub(crate) const PAYLOAD_BYTES_MAX: usize = (1 << 17) - 1;

/// Length of the checksum after the payload.
pub(crate) const TRAILER_BYTES: usize = 4;

const CRC24_BYTES: usize = 3;
const CRC24_INITIAL: u32 = 0x0087_5060;
const CRC24_POLYNOMIAL: u32 = 0x0197_4F0B;

/// CRC32 of the bytes FA 2D 55 CA, with which every payload's checksum begins.
const CRC32_INITIAL: u32 = 0x4477_7ED3;

/// Which of the two layouts a connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Plain,
    Lz4,
}

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Length of the payload as sent.
    pub(crate) payload_bytes: usize,
    /// Length of the payload once decompressed; `None` when it was stored as is.
    pub(crate) plain_bytes: Option<usize>,
    /// Whole envelopes?
    pub(crate) is_self_contained: bool,
}

/// A checksum that does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) read: u32,
    pub(crate) computed: u32,
}

impl Mismatch {
    /// The error of it, for the connection with this id.
    pub(crate) fn error(self, connection: u32, header: bool) -> ProtocolError {
        ProtocolError::Checksum { connection, header, read: self.read as i32, computed: self.computed as i32 }
    }
}

impl Layout {
    /// Length of a header with its checksum.
    pub(crate) fn header_bytes(self) -> usize {
        self.length_bytes() + CRC24_BYTES
    }

    fn length_bytes(self) -> usize {
        match self {
            Layout::Plain => 3,
            Layout::Lz4 => 5,
        }
    }

    /// The bytes of a header; the first [`Layout::header_bytes`] of the eight count.
    pub(crate) fn encode(self, header: SegmentHeader) -> [u8; 8] {
        debug_assert!(header.payload_bytes <= PAYLOAD_BYTES_MAX);
        let mut bits = header.payload_bytes as u64;
        let mut flag_at = 17;
        if self == Layout::Lz4 {
            bits |= (header.plain_bytes.unwrap_or(0) as u64) << 17;
            flag_at = 34;
        }
        bits |= u64::from(header.is_self_contained) << flag_at;
        let checksum = u64::from(crc24(bits, self.length_bytes()));
        (bits | checksum << (8 * self.length_bytes())).to_le_bytes()
    }

    /// Reads a header; `bytes` has at least [`Layout::header_bytes`].
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<SegmentHeader, Mismatch> {
        let mut raw = [0; 8];
        raw[..self.header_bytes()].copy_from_slice(&bytes[..self.header_bytes()]);
        let raw = u64::from_le_bytes(raw);
        let length_bits = 8 * self.length_bytes();
        let bits = raw & ((1 << length_bits) - 1);
        let read = (raw >> length_bits) as u32 & 0x00FF_FFFF;
        let computed = crc24(bits, self.length_bytes());
        if read != computed {
            return Err(Mismatch { read, computed });
        }
        let payload_bytes = (bits & 0x1FFFF) as usize;
        Ok(match self {
            Layout::Plain => {
                SegmentHeader { payload_bytes, plain_bytes: None, is_self_contained: bits >> 17 & 1 == 1 }
            }
            Layout::Lz4 => SegmentHeader {
                payload_bytes,
                plain_bytes: Some((bits >> 17 & 0x1FFFF) as usize).filter(|length| *length != 0),
                is_self_contained: bits >> 34 & 1 == 1,
            },
        })
    }
}

/// Compares a payload with the checksum after it.
pub(crate) fn check_payload(payload: &[u8], trailer: [u8; TRAILER_BYTES]) -> Result<(), Mismatch> {
    let read = u32::from_le_bytes(trailer);
    let computed = crc32(payload);
    match read == computed {
        true => Ok(()),
        false => Err(Mismatch { read, computed }),
    }
}

/// The checksum after a payload.
pub(crate) fn crc32(payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(CRC32_INITIAL);
    hasher.update(payload);
    hasher.finalize()
}

/// The checksum of a header's length bytes. Bit by bit: a table costs more than it saves on five
/// bytes that are seldom in the cache.
fn crc24(mut bits: u64, byte_count: usize) -> u32 {
    let mut crc = CRC24_INITIAL;
    for _ in 0..byte_count {
        crc ^= ((bits & 0xFF) as u32) << 16;
        bits >>= 8;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= CRC24_POLYNOMIAL;
            }
        }
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_checksum_is_that_of_the_four_bytes() {
        assert_eq!(CRC32_INITIAL, crc32fast::hash(&[0xFA, 0x2D, 0x55, 0xCA]));
    }

    /// A segment of a real Cassandra 5.0.9: an ERROR about a checksum, alone in a segment.
    #[test]
    fn a_header_of_cassandra_is_read_and_written_alike() {
        let bytes = [0x70, 0x00, 0x02, 0x33, 0x57, 0x7c];
        let header = Layout::Plain.decode(&bytes).unwrap();
        let expected = SegmentHeader { payload_bytes: 112, plain_bytes: None, is_self_contained: true };
        assert_eq!(header, expected);
        assert_eq!(Layout::Plain.encode(header)[..6], bytes);
    }

    /// What Cassandra computed when an unframed STARTUP was sent to it as a segment.
    #[test]
    fn an_unframed_envelope_gives_the_checksums_cassandra_reported() {
        let mismatch = Layout::Plain.decode(&[0x05, 0x00, 0x00, 0x01, 0x01, 0x00]).unwrap_err();
        assert_eq!(mismatch, Mismatch { read: 257, computed: 2_312_196 });
    }

    #[test]
    fn headers_survive_both_ways() {
        for payload_bytes in [0, 1, 9, 4096, PAYLOAD_BYTES_MAX] {
            for is_self_contained in [false, true] {
                for plain_bytes in [None, Some(1), Some(PAYLOAD_BYTES_MAX)] {
                    let header = SegmentHeader { payload_bytes, plain_bytes, is_self_contained };
                    assert_eq!(Layout::Lz4.decode(&Layout::Lz4.encode(header)), Ok(header));
                    let header = SegmentHeader { plain_bytes: None, ..header };
                    assert_eq!(Layout::Plain.decode(&Layout::Plain.encode(header)), Ok(header));
                }
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        let header = SegmentHeader { payload_bytes: 77, plain_bytes: Some(100), is_self_contained: true };
        let bytes = Layout::Lz4.encode(header);
        for bit in 0..64 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Layout::Lz4.decode(&flipped).is_err(), "bit {bit}");
        }
    }
}
