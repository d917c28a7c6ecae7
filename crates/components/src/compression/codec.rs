//! The compressors that Cassandra knows, one chunk at a time.

use std::cell::RefCell;
use std::collections::BTreeMap;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// A compressor, by its Java class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// `LZ4Compressor`: length as 4 bytes little-endian, then an LZ4 block.
    Lz4,
    /// `SnappyCompressor`: raw Snappy.
    Snappy,
    /// `DeflateCompressor`: a zlib stream.
    Deflate,
    /// `ZstdCompressor`: a frame with a checksum.
    Zstd {
        /// -131072 to 22.
        level: i32,
    },
    /// `NoopCompressor`: as is, for the sake of the checksums.
    Noop,
}

const ZSTD_LEVEL_DEFAULT: i32 = 3;

thread_local! {
    /// Contexts are dear to set up and are kept by each thread.
    static ZSTD: RefCell<Option<(i32, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(None) };
}

impl Codec {
    /// The compressor of a class name, with or without package; `None` when it is not known.
    pub(crate) fn from_class(class: &str, options: &BTreeMap<String, String>) -> Option<Codec> {
        Some(match class.rsplit('.').next()? {
            "LZ4Compressor" => Codec::Lz4,
            "SnappyCompressor" => Codec::Snappy,
            "DeflateCompressor" => Codec::Deflate,
            "ZstdCompressor" => {
                let level = options.get("compression_level").and_then(|level| level.trim().parse().ok());
                Codec::Zstd { level: level.unwrap_or(ZSTD_LEVEL_DEFAULT).clamp(-131_072, 22) }
            }
            "NoopCompressor" => Codec::Noop,
            _ => return None,
        })
    }

    /// The class without its package, as CompressionInfo.db names it.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Codec::Lz4 => "LZ4Compressor",
            Codec::Snappy => "SnappyCompressor",
            Codec::Deflate => "DeflateCompressor",
            Codec::Zstd { .. } => "ZstdCompressor",
            Codec::Noop => "NoopCompressor",
        }
    }

    /// Compresses a chunk into the beginning of `out`, which grows as need be and is not cut, so that
    /// it need not be cleared for the next. Gives how many bytes count.
    pub(crate) fn compress(self, chunk: &[u8], out: &mut Vec<u8>) -> Result<usize, &'static str> {
        let room = match self {
            Codec::Lz4 => 4 + lz4_flex::block::get_maximum_output_size(chunk.len()),
            Codec::Snappy => snap::raw::max_compress_len(chunk.len()),
            Codec::Deflate => chunk.len() + chunk.len() / 1000 + 64,
            Codec::Zstd { .. } => zstd::zstd_safe::compress_bound(chunk.len()),
            Codec::Noop => chunk.len(),
        };
        if out.len() < room {
            out.resize(room, 0);
        }
        match self {
            Codec::Lz4 => {
                let (head, block) = out.split_at_mut(4);
                head.copy_from_slice(&(chunk.len() as u32).to_le_bytes());
                let written = lz4_flex::block::compress_into(chunk, block);
                Ok(4 + written.map_err(|_| "compress with LZ4")?)
            }
            Codec::Snappy => {
                snap::raw::Encoder::new().compress(chunk, out).map_err(|_| "compress with Snappy")
            }
            Codec::Deflate => {
                let mut state = Compress::new(Compression::default(), true);
                match state.compress(chunk, out, FlushCompress::Finish) {
                    Ok(Status::StreamEnd) => {
                        usize::try_from(state.total_out()).map_err(|_| "compress with Deflate")
                    }
                    _ => Err("compress with Deflate"),
                }
            }
            Codec::Zstd { level } => zstd_compress(level, chunk, out),
            Codec::Noop => {
                out[..chunk.len()].copy_from_slice(chunk);
                Ok(chunk.len())
            }
        }
    }

    /// Fills `out` with the chunk's bytes, exactly.
    pub(crate) fn decompress(self, compressed: &[u8], out: &mut [u8]) -> Result<(), &'static str> {
        let is_whole = match self {
            Codec::Lz4 => {
                let (head, block) = compressed.split_first_chunk::<4>().ok_or("an LZ4 chunk is cut off")?;
                if u32::from_le_bytes(*head) as usize != out.len() {
                    return Err("an LZ4 chunk has another length than its place asks for");
                }
                lz4_flex::block::decompress_into(block, out).is_ok_and(|written| written == out.len())
            }
            Codec::Snappy => {
                let announced = snap::raw::decompress_len(compressed).map_err(|_| "read Snappy chunk")?;
                announced == out.len()
                    && snap::raw::Decoder::new()
                        .decompress(compressed, out)
                        .is_ok_and(|written| written == out.len())
            }
            Codec::Deflate => {
                let mut state = Decompress::new(true);
                let status = state.decompress(compressed, out, FlushDecompress::Finish);
                matches!(status, Ok(Status::StreamEnd)) && state.total_out() == out.len() as u64
            }
            Codec::Zstd { .. } => {
                zstd::bulk::decompress_to_buffer(compressed, out).is_ok_and(|written| written == out.len())
            }
            Codec::Noop => {
                if compressed.len() == out.len() {
                    out.copy_from_slice(compressed);
                }
                compressed.len() == out.len()
            }
        };
        if is_whole { Ok(()) } else { Err("a chunk does not decompress to its length") }
    }
}

fn zstd_compress(level: i32, chunk: &[u8], out: &mut [u8]) -> Result<usize, &'static str> {
    const FAILED: &str = "compress with Zstd";
    ZSTD.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(of, _)| *of != level) {
            let mut context = zstd::bulk::Compressor::new(level).map_err(|_| FAILED)?;
            context.include_checksum(true).map_err(|_| FAILED)?;
            *kept = Some((level, context));
        }
        let Some((_, context)) = kept else { return Err(FAILED) };
        context.compress_to_buffer(chunk, out).map_err(|_| FAILED)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODECS: [Codec; 5] =
        [Codec::Lz4, Codec::Snappy, Codec::Deflate, Codec::Zstd { level: 3 }, Codec::Noop];

    #[test]
    fn every_codec_gives_back_what_it_got() {
        let repeated: Vec<u8> = (0..5000u32).flat_map(|i| (i / 7).to_be_bytes()).collect();
        for codec in CODECS {
            for chunk in [&b""[..], b"a", &repeated] {
                let mut compressed = Vec::new();
                let written = codec.compress(chunk, &mut compressed).expect("compresses");
                let mut out = vec![0; chunk.len()];
                codec.decompress(&compressed[..written], &mut out).expect("decompresses");
                assert_eq!(out, chunk, "{codec:?}");
            }
        }
    }

    #[test]
    fn damaged_chunks_are_refused_or_keep_their_length() {
        let chunk: Vec<u8> = (0..2000u32).flat_map(|i| (i / 5).to_be_bytes()).collect();
        for codec in CODECS {
            let mut compressed = Vec::new();
            let written = codec.compress(&chunk, &mut compressed).expect("compresses");
            compressed.truncate(written);
            let mut out = vec![0; chunk.len()];
            assert!(codec.decompress(&compressed[..compressed.len() / 2], &mut out).is_err(), "{codec:?}");
            assert!(codec.decompress(&compressed, &mut out[1..]).is_err(), "{codec:?}");
            for index in 0..compressed.len() {
                let mut flipped = compressed.clone();
                flipped[index] ^= 0x41;
                let _ = codec.decompress(&flipped, &mut out);
            }
        }
    }

    #[test]
    fn classes_are_known_with_and_without_package() {
        let options = BTreeMap::from([("compression_level".to_owned(), "9".to_owned())]);
        let class = "org.apache.cassandra.io.compress.ZstdCompressor";
        assert_eq!(Codec::from_class(class, &options), Some(Codec::Zstd { level: 9 }));
        assert_eq!(Codec::from_class("LZ4Compressor", &options), Some(Codec::Lz4));
        assert_eq!(Codec::from_class("OtherCompressor", &options), None);
    }
}
