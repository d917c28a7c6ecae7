//! Segments: what a v5 connection wraps its frames in once it has started.
//!
//! ```text
//!   | length 17 bits, self-contained 1 bit, padding | crc24 | payload | crc32 |
//! ```

use std::io::Read;

use super::WireError;

const PAYLOAD_BYTES_MAX: usize = 0x1_ffff;

/// A frame in one segment, or in several when it is long.
pub(crate) fn wrap(frame: &[u8]) -> Vec<u8> {
    let self_contained = frame.len() <= PAYLOAD_BYTES_MAX;
    let mut bytes = Vec::with_capacity(frame.len() + 10);
    for payload in frame.chunks(PAYLOAD_BYTES_MAX) {
        let header = (payload.len() as u64 | u64::from(self_contained) << 17).to_le_bytes();
        bytes.extend_from_slice(&header[..3]);
        bytes.extend_from_slice(&crc24(&header[..3]).to_le_bytes()[..3]);
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(&crc32(payload).to_le_bytes());
    }
    bytes
}

/// Reads one segment and gives its payload.
pub(crate) fn read(source: &mut impl Read) -> Result<Vec<u8>, WireError> {
    let mut header = [0; 6];
    source.read_exact(&mut header)?;
    check(crc24(&header[..3]), u32::from_le_bytes([header[3], header[4], header[5], 0]))?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize & PAYLOAD_BYTES_MAX;
    let mut payload = vec![0; length];
    source.read_exact(&mut payload)?;
    let mut trailer = [0; 4];
    source.read_exact(&mut trailer)?;
    check(crc32(&payload), u32::from_le_bytes(trailer))?;
    Ok(payload)
}

fn check(expected: u32, got: u32) -> Result<(), WireError> {
    if got == expected { Ok(()) } else { Err(WireError::Checksum { expected, got }) }
}

/// CRC24 of a segment's header, polynomial 0x1974f0b, as the protocol's specification has it.
fn crc24(bytes: &[u8]) -> u32 {
    let mut crc = 0x87_5060u32;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x100_0000 != 0 {
                crc ^= 0x197_4f0b;
            }
        }
    }
    crc
}

/// CRC32 of a segment's payload, seeded with four fixed bytes.
fn crc32(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[0xfa, 0x2d, 0x55, 0xca]);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_frame_reads_back_and_a_flipped_bit_is_seen() {
        let frame: Vec<u8> = (0..=255).collect();
        let mut segment = wrap(&frame);
        assert_eq!(read(&mut segment.as_slice()).unwrap(), frame);
        segment[20] ^= 1;
        assert!(matches!(read(&mut segment.as_slice()), Err(WireError::Checksum { .. })));
    }
}
