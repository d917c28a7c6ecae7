//! CompressionInfo.db: how Data is compressed, and where its chunks are.
//!
//! ```text
//!   UTF class | u32 option count, UTF key and UTF value each
//!   u32 chunk bytes | u32 greatest compressed bytes | u64 uncompressed bytes
//!   u32 chunk count | u64 offset of each chunk in Data
//! ```
//!
//! "UTF" is Java's: `u16` length and text. In Data, each chunk is followed by its CRC32. A chunk
//! that compresses to no less than the greatest compressed bytes is kept as it is (and filled up
//! with zeros to that length if it is the last).

use std::collections::BTreeMap;
use std::path::Path;

use schema::{ChunkLength, CompressionOptions};
use stdx::cursor::{Cursor, EndOfInput};

use super::Codec;
use crate::SstableError;

/// Bytes of the checksum behind each chunk.
pub(crate) const CRC_BYTES: u64 = 4;
const _: () = assert!(CRC_BYTES == size_of::<u32>() as u64, "a CRC32");
const _: () = assert!(CHUNK_BYTES_MAX.is_power_of_two(), "the largest chunk is one that may be");
const _: () = assert!(RATIO_NONE > CHUNK_BYTES_MAX, "without a ratio, every chunk is kept compressed");
/// Options that stand elsewhere than among the compressor's own.
const NOT_OF_THE_COMPRESSOR: [&str; 6] = [
    "class",
    "sstable_compression",
    "chunk_length_in_kb",
    "min_compress_ratio",
    "crc_check_chance",
    "enabled",
];
/// The largest chunk we take: a file may not make us allocate more.
const CHUNK_BYTES_MAX: u32 = 1 << 28;
const RATIO_NONE: u32 = i32::MAX as u32;

/// How Data is compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressionParameters {
    pub(crate) codec: Codec,
    pub(crate) options: BTreeMap<String, String>,
    /// Uncompressed bytes of each chunk but the last.
    pub(crate) chunk_bytes: u32,
    /// Chunks that compress to no less are kept as they are.
    pub(crate) compressed_bytes_max: u32,
}

impl CompressionParameters {
    /// As the table's options say; `None` when they say not to compress.
    ///
    /// # Errors
    /// The compressor is not known, or no chunk can have that length.
    pub fn from_options(options: &CompressionOptions, path: &Path) -> Result<Option<Self>, SstableError> {
        let Some(class) = &options.class else { return Ok(None) };
        let unsupported = |what: String| SstableError::Unsupported { path: path.to_owned(), what };
        let codec = Codec::from_class(class, &options.options)
            .ok_or_else(|| unsupported(format!("compressor {class} is not known")))?;
        let chunk_bytes = options.chunk_length.bytes();
        if !chunk_bytes.is_power_of_two() || chunk_bytes > CHUNK_BYTES_MAX {
            return Err(unsupported(format!("chunks of {chunk_bytes} bytes")));
        }
        let ratio = options.options.get("min_compress_ratio").and_then(|ratio| ratio.parse::<f64>().ok());
        let compressed_bytes_max = match ratio {
            Some(ratio) if ratio > 0.0 => {
                (f64::from(chunk_bytes) / ratio).ceil().min(f64::from(i32::MAX)) as u32
            }
            _ => RATIO_NONE,
        };
        let own = options.options.iter().filter(|(key, _)| !NOT_OF_THE_COMPRESSOR.contains(&key.as_str()));
        let options = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Some(CompressionParameters { codec, options, chunk_bytes, compressed_bytes_max }))
    }

    /// Options that say the same: [`CompressionParameters::from_options`] of them gives these.
    pub fn to_options(&self) -> CompressionOptions {
        let mut options = self.options.clone();
        if self.compressed_bytes_max != RATIO_NONE {
            // Of the ratios that are rounded up to that length, one in the middle.
            let compressed_bytes = f64::from(self.compressed_bytes_max.max(1)) - 0.5;
            let ratio = f64::from(self.chunk_bytes) / compressed_bytes;
            options.insert("min_compress_ratio".into(), ratio.to_string());
        }
        CompressionOptions {
            class: Some(self.codec.class().to_owned()),
            // Cassandra writes no others.
            chunk_length: ChunkLength::Fixed(self.chunk_bytes.next_power_of_two()),
            options,
        }
    }
}

/// The content of CompressionInfo.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompressionInfo {
    pub(crate) parameters: CompressionParameters,
    pub(crate) uncompressed_bytes: u64,
    /// Rising.
    pub(crate) chunk_offsets: Vec<u64>,
}

/// Where a chunk is in Data, and how long it will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkPlace {
    pub(crate) offset: u64,
    /// Without the checksum.
    pub(crate) compressed_bytes: usize,
    pub(crate) uncompressed_bytes: usize,
}

impl CompressionInfo {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.chunk_offsets.len() * 8);
        let utf = |text: &str, out: &mut Vec<u8>| {
            let text = &text.as_bytes()[..text.len().min(usize::from(u16::MAX))];
            out.extend_from_slice(&(text.len() as u16).to_be_bytes());
            out.extend_from_slice(text);
        };
        utf(self.parameters.codec.class(), &mut out);
        out.extend_from_slice(&(self.parameters.options.len() as u32).to_be_bytes());
        for (key, value) in &self.parameters.options {
            utf(key, &mut out);
            utf(value, &mut out);
        }
        out.extend_from_slice(&self.parameters.chunk_bytes.to_be_bytes());
        out.extend_from_slice(&self.parameters.compressed_bytes_max.to_be_bytes());
        out.extend_from_slice(&self.uncompressed_bytes.to_be_bytes());
        out.extend_from_slice(&(self.chunk_offsets.len() as u32).to_be_bytes());
        self.chunk_offsets.iter().for_each(|offset| out.extend_from_slice(&offset.to_be_bytes()));
        out
    }

    /// Reads it, and checks that the chunks fit into `data_file_bytes` and hold all of Data.
    pub(crate) fn from_bytes(path: &Path, bytes: &[u8], data_file_bytes: u64) -> Result<Self, SstableError> {
        let mut input = Cursor::new(bytes);
        let damaged = |offset: usize, what| SstableError::Damaged {
            path: path.to_owned(),
            offset: offset as u64,
            what,
        };
        let raw =
            read_raw(&mut input).map_err(|end| damaged(end.offset, "compression parameters are cut off"))?;
        let Some(codec) = Codec::from_class(&raw.class, &raw.options) else {
            let what = format!("compressor {} is not known", raw.class);
            return Err(SstableError::Unsupported { path: path.to_owned(), what });
        };
        if raw.chunk_bytes == 0 || raw.chunk_bytes > CHUNK_BYTES_MAX {
            return Err(damaged(input.position(), "length of chunks"));
        }
        let expected = raw.uncompressed_bytes.div_ceil(u64::from(raw.chunk_bytes));
        if expected != raw.chunk_offsets.len() as u64 || expected > u64::from(u32::MAX) {
            return Err(damaged(input.position(), "the chunks are not as many as the length asks for"));
        }
        let rises = raw.chunk_offsets.windows(2).all(|pair| pair[0].saturating_add(CRC_BYTES) < pair[1]);
        let starts = raw.chunk_offsets.first().is_none_or(|first| *first == 0);
        let ends =
            raw.chunk_offsets.last().is_none_or(|last| last.saturating_add(CRC_BYTES) < data_file_bytes);
        if rises && starts && !ends {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let path = path.with_file_name(name.replace("CompressionInfo.db", "Data.db"));
            return Err(SstableError::Damaged { path, offset: data_file_bytes, what: "it is cut off" });
        }
        if !rises || !starts {
            return Err(damaged(input.position(), "offsets of chunks do not rise within the file"));
        }
        Ok(CompressionInfo {
            parameters: CompressionParameters {
                codec,
                options: raw.options,
                chunk_bytes: raw.chunk_bytes,
                compressed_bytes_max: raw.compressed_bytes_max,
            },
            uncompressed_bytes: raw.uncompressed_bytes,
            chunk_offsets: raw.chunk_offsets,
        })
    }

    /// Where a chunk is; `None` when there is no such chunk.
    pub(crate) fn place(&self, index: u32, data_file_bytes: u64) -> Option<ChunkPlace> {
        let offset = *self.chunk_offsets.get(index as usize)?;
        let next = self.chunk_offsets.get(index as usize + 1).copied().unwrap_or(data_file_bytes);
        let compressed_bytes = next.checked_sub(offset)?.checked_sub(CRC_BYTES)?;
        let chunk_bytes = u64::from(self.parameters.chunk_bytes);
        let left = self.uncompressed_bytes.checked_sub(u64::from(index) * chunk_bytes)?;
        Some(ChunkPlace {
            offset,
            compressed_bytes: usize::try_from(compressed_bytes).ok()?,
            uncompressed_bytes: left.min(chunk_bytes) as usize,
        })
    }
}

struct Raw {
    class: String,
    options: BTreeMap<String, String>,
    chunk_bytes: u32,
    compressed_bytes_max: u32,
    uncompressed_bytes: u64,
    chunk_offsets: Vec<u64>,
}

fn read_raw(input: &mut Cursor<'_>) -> Result<Raw, EndOfInput> {
    let utf = |input: &mut Cursor<'_>| -> Result<String, EndOfInput> {
        let length = usize::from(input.u16()?);
        Ok(String::from_utf8_lossy(input.take(length)?).into_owned())
    };
    let class = utf(input)?;
    let mut options = BTreeMap::new();
    for _ in 0..input.u32()? {
        let key = utf(input)?;
        options.insert(key, utf(input)?);
    }
    let chunk_bytes = input.u32()?;
    let compressed_bytes_max = input.u32()?;
    let uncompressed_bytes = input.u64()?;
    let count = input.u32()? as usize;
    let offsets = input.take(count.saturating_mul(8))?;
    let chunk_offsets = offsets.as_chunks::<8>().0.iter().map(|offset| u64::from_be_bytes(*offset)).collect();
    Ok(Raw { class, options, chunk_bytes, compressed_bytes_max, uncompressed_bytes, chunk_offsets })
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema::ChunkLength;

    fn sample() -> CompressionInfo {
        let options = CompressionOptions {
            class: Some("org.apache.cassandra.io.compress.ZstdCompressor".into()),
            chunk_length: ChunkLength::Fixed(4096),
            options: [
                ("compression_level".to_owned(), "5".to_owned()),
                ("min_compress_ratio".to_owned(), "1.1".to_owned()),
            ]
            .into(),
        };
        let parameters = CompressionParameters::from_options(&options, Path::new("d"));
        CompressionInfo {
            parameters: parameters.expect("known").expect("compressed"),
            uncompressed_bytes: 9000,
            chunk_offsets: vec![0, 1000, 2100],
        }
    }

    #[test]
    fn parameters_round_trip() {
        let info = sample();
        assert_eq!(info.parameters.compressed_bytes_max, 3724);
        assert_eq!(info.parameters.options.len(), 1);
        let read = CompressionInfo::from_bytes(Path::new("c"), &info.to_bytes(), 2500);
        assert_eq!(read.expect("sound"), info);
        let place = info.place(2, 2500).expect("a chunk");
        assert_eq!(place, ChunkPlace { offset: 2100, compressed_bytes: 396, uncompressed_bytes: 808 });
    }

    #[test]
    fn damaged_parameters_never_panic() {
        let bytes = sample().to_bytes();
        for index in 0..bytes.len() {
            for mask in [1, 0x80, 0xff] {
                let mut flipped = bytes.clone();
                flipped[index] ^= mask;
                let _ = CompressionInfo::from_bytes(Path::new("c"), &flipped, 2500);
            }
            assert!(CompressionInfo::from_bytes(Path::new("c"), &bytes[..index], 2500).is_err());
        }
    }
}
