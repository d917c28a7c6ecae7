//! Compression of bodies (versions 3 and 4) and of segments' payloads (version 5 on).
//!
//! A body under LZ4 is a 4-byte big-endian length of the plain body and one LZ4 block; under
//! Snappy one raw Snappy block, which knows its length. Lengths are checked against a limit and
//! against what the compressed bytes could possibly hold before anything is allocated.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use lz4_flex::block;

use crate::ProtocolError;

/// A compression algorithm, as named in STARTUP and SUPPORTED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// `lz4`, in every version.
    Lz4,
    /// `snappy`, in versions 3 and 4.
    Snappy,
}

impl Compression {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Lz4 => "lz4",
            Compression::Snappy => "snappy",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A block of LZ4 holds at most this many times its own bytes: one byte of length adds 255.
const LZ4_RATIO_MAX: usize = 255;

/// Length of the big-endian length before an LZ4 body.
const LENGTH_BYTES: usize = 4;

/// The working memory of compressors, kept from one body to the next.
#[derive(Default)]
pub(crate) struct Compressor {
    lz4: Option<Box<block::CompressTable>>,
    snappy: Option<Box<snap::raw::Encoder>>,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Compressor")
    }
}

impl Compressor {
    /// Appends a body in its compressed form.
    pub(crate) fn put_body(&mut self, compression: Compression, body: &[u8], out: &mut BytesMut) {
        match compression {
            Compression::Lz4 => {
                out.put_u32(body.len() as u32);
                self.put_lz4_block(body, out);
            }
            Compression::Snappy => self.put_snappy_block(body, out),
        }
    }

    /// Appends one LZ4 block.
    pub(crate) fn put_lz4_block(&mut self, input: &[u8], out: &mut BytesMut) {
        let start = out.len();
        out.resize(start + block::get_maximum_output_size(input.len()), 0);
        let table = self.lz4.get_or_insert_with(Default::default);
        let written = block::compress_into_with_table(input, &mut out[start..], table)
            .expect("the output has the maximum size a block can take");
        out.truncate(start + written);
    }

    fn put_snappy_block(&mut self, input: &[u8], out: &mut BytesMut) {
        let start = out.len();
        out.resize(start + snap::raw::max_compress_len(input.len()), 0);
        let encoder = self.snappy.get_or_insert_with(|| Box::new(snap::raw::Encoder::new()));
        let written = encoder
            .compress(input, &mut out[start..])
            .expect("the output has the maximum size a block can take and bodies are below 4 GiB");
        out.truncate(start + written);
    }
}

/// The plain form of a body.
pub(crate) fn decompress_body(
    compression: Compression,
    input: &[u8],
    length_max: usize,
) -> Result<Bytes, ProtocolError> {
    match compression {
        Compression::Lz4 => {
            let (length, block) = input.split_first_chunk::<LENGTH_BYTES>().ok_or(ProtocolError::NotLz4)?;
            decompress_lz4_block(block, u32::from_be_bytes(*length) as usize, length_max)
        }
        Compression::Snappy => {
            let length = snap::raw::decompress_len(input).map_err(|_| ProtocolError::NotSnappy)?;
            check_length(length, length_max)?;
            let mut output = vec![0; length];
            let written = snap::raw::Decoder::new().decompress(input, &mut output);
            match written {
                Ok(written) if written == length => Ok(Bytes::from(output)),
                _ => Err(ProtocolError::NotSnappy),
            }
        }
    }
}

/// The plain form of one LZ4 block of known length.
pub(crate) fn decompress_lz4_block(
    input: &[u8],
    length: usize,
    length_max: usize,
) -> Result<Bytes, ProtocolError> {
    check_length(length, length_max)?;
    if length == 0 {
        return Ok(Bytes::new());
    }
    if length > input.len().saturating_mul(LZ4_RATIO_MAX) {
        return Err(ProtocolError::NotLz4);
    }
    let mut output = vec![0; length];
    match block::decompress_into(input, &mut output) {
        Ok(written) if written == length => Ok(Bytes::from(output)),
        _ => Err(ProtocolError::NotLz4),
    }
}

fn check_length(length: usize, length_max: usize) -> Result<(), ProtocolError> {
    match length > length_max {
        true => Err(ProtocolError::RequestTooBig { length: length as u64, length_max }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(compression: Compression, body: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        Compressor::default().put_body(compression, body, &mut out);
        out
    }

    #[test]
    fn an_empty_body_compresses_to_the_bytes_cassandra_sends() {
        assert_eq!(&compressed(Compression::Lz4, b"")[..], b"\0\0\0\0\0");
        assert_eq!(&compressed(Compression::Snappy, b"")[..], b"\0");
    }

    #[test]
    fn an_empty_body_of_either_algorithm_is_read() {
        assert_eq!(decompress_body(Compression::Lz4, b"\0\0\0\0\0", 10), Ok(Bytes::new()));
        assert_eq!(decompress_body(Compression::Snappy, b"\0", 10), Ok(Bytes::new()));
    }

    #[test]
    fn one_compressor_serves_bodies_of_many_sizes() {
        let mut compressor = Compressor::default();
        for size in [0_usize, 1, 13, 70_000, 5, 200_000, 64] {
            let body: Vec<u8> = (0..size).map(|index| (index / 7) as u8).collect();
            for compression in [Compression::Lz4, Compression::Snappy] {
                let mut out = BytesMut::new();
                compressor.put_body(compression, &body, &mut out);
                assert_eq!(decompress_body(compression, &out, size).unwrap(), body);
            }
        }
    }

    #[test]
    fn a_claimed_length_beyond_the_limit_is_refused_before_it_is_allocated() {
        let bomb = b"\x7f\xff\xff\xffabcdef";
        let error = decompress_body(Compression::Lz4, bomb, 1 << 20).unwrap_err();
        assert!(matches!(error, ProtocolError::RequestTooBig { length: 0x7fff_ffff, .. }));
        assert_eq!(decompress_body(Compression::Lz4, bomb, usize::MAX), Err(ProtocolError::NotLz4));
    }

    #[test]
    fn garbage_is_refused() {
        assert_eq!(decompress_body(Compression::Lz4, b"\0\0", 100), Err(ProtocolError::NotLz4));
        assert_eq!(decompress_body(Compression::Lz4, b"\0\0\0\x05abcdef", 100), Err(ProtocolError::NotLz4));
        assert_eq!(decompress_body(Compression::Snappy, b"\xff\xff\xff", 100), Err(ProtocolError::NotSnappy));
    }
}
