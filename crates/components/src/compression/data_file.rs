//! Chunks of Data: where they lie, and how they are verified and decompressed.

use std::path::Path;
use std::sync::Arc;

use runtime::DiskFile;

use super::info::ChunkPlace;
use super::{CRC_BYTES, CompressionInfo, CompressionParameters};
use crate::{Chunk, Extent, SstableError};

/// The largest chunk of uncompressed Data we take.
const PLAIN_CHUNK_BYTES_MAX: u32 = 1 << 28;

/// Data, open for reading.
#[derive(Debug)]
pub struct DataFile {
    file: Arc<dyn DiskFile>,
    file_bytes: u64,
    layout: Layout,
}

#[derive(Debug)]
enum Layout {
    Compressed(CompressionInfo),
    /// Bytes of a chunk, and the checksums.
    Plain {
        chunk_bytes: u32,
        crcs: Option<Vec<u32>>,
    },
}

impl DataFile {
    /// Data with the content of CompressionInfo.db.
    pub(crate) fn compressed(
        file: Arc<dyn DiskFile>,
        info_path: &Path,
        info: &[u8],
    ) -> Result<Self, SstableError> {
        let file_bytes = file.len()?;
        let info = CompressionInfo::from_bytes(info_path, info, file_bytes)?;
        Ok(DataFile { file, file_bytes, layout: Layout::Compressed(info) })
    }

    /// Data with the content of CRC.db, if there is one.
    pub(crate) fn plain(
        file: Arc<dyn DiskFile>,
        crc_path: &Path,
        crc: Option<&[u8]>,
    ) -> Result<Self, SstableError> {
        let file_bytes = file.len()?;
        let damaged = |what| SstableError::Damaged { path: crc_path.to_owned(), offset: 0, what };
        let mut chunk_bytes = 64 * 1024;
        let mut crcs = None;
        if let Some(bytes) = crc {
            let (words, rest) = bytes.as_chunks::<4>();
            let (head, words) = words.split_first().ok_or_else(|| damaged("no length of chunks"))?;
            chunk_bytes = u32::from_be_bytes(*head);
            if chunk_bytes == 0 || chunk_bytes > PLAIN_CHUNK_BYTES_MAX || !rest.is_empty() {
                return Err(damaged("length of chunks"));
            }
            if words.len() as u64 != file_bytes.div_ceil(u64::from(chunk_bytes)) {
                return Err(damaged("the checksums are not as many as the chunks"));
            }
            crcs = Some(words.iter().map(|word| u32::from_be_bytes(*word)).collect());
        }
        Ok(DataFile { file, file_bytes, layout: Layout::Plain { chunk_bytes, crcs } })
    }

    /// Bytes of each chunk but the last, uncompressed.
    #[inline]
    pub fn chunk_bytes(&self) -> u32 {
        match &self.layout {
            Layout::Compressed(info) => info.parameters.chunk_bytes,
            Layout::Plain { chunk_bytes, .. } => *chunk_bytes,
        }
    }

    /// Bytes of Data, uncompressed.
    #[inline]
    pub fn uncompressed_bytes(&self) -> u64 {
        match &self.layout {
            Layout::Compressed(info) => info.uncompressed_bytes,
            Layout::Plain { .. } => self.file_bytes,
        }
    }

    /// Bytes of Data on the disk.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Bytes of memory that offsets or checksums of chunks take.
    pub fn memory_bytes(&self) -> u64 {
        let entry_bytes = match &self.layout {
            Layout::Compressed(_) => size_of::<u64>(),
            Layout::Plain { .. } => size_of::<u32>(),
        };
        u64::from(self.chunk_count()) * entry_bytes as u64
    }

    /// Is it compressed?
    pub fn is_compressed(&self) -> bool {
        matches!(self.layout, Layout::Compressed(_))
    }

    /// How it is compressed, if it is.
    pub fn parameters(&self) -> Option<&CompressionParameters> {
        match &self.layout {
            Layout::Compressed(info) => Some(&info.parameters),
            Layout::Plain { .. } => None,
        }
    }

    /// How many chunks there are.
    pub fn chunk_count(&self) -> u32 {
        let count = self.uncompressed_bytes().div_ceil(u64::from(self.chunk_bytes()));
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Where up to `count` neighbouring chunks lie, at least one.
    ///
    /// # Errors
    /// There are none, or what is known of their places is damaged.
    pub fn extent(&self, first: u32, count: usize) -> Result<Extent, SstableError> {
        let left = self.chunk_count().saturating_sub(first) as usize;
        if left == 0 {
            let offset = u64::from(first).saturating_mul(u64::from(self.chunk_bytes()));
            return Err(self.damaged(offset, "a place beyond the end"));
        }
        let count = count.clamp(1, left);
        let (offset, end) = match &self.layout {
            Layout::Compressed(info) => {
                let last = self.place(info, first + (count - 1) as u32)?;
                (self.place(info, first)?.offset, last.offset + last.compressed_bytes as u64 + CRC_BYTES)
            }
            Layout::Plain { chunk_bytes, .. } => {
                let start = u64::from(first) * u64::from(*chunk_bytes);
                (start, self.file_bytes.min(start + count as u64 * u64::from(*chunk_bytes)))
            }
        };
        let bytes = usize::try_from(end - offset).map_err(|_| self.damaged(offset, "chunk length"))?;
        Ok(Extent { file: Arc::clone(&self.file), offset, bytes, first, count })
    }

    /// Verifies and decompresses the chunks of an extent.
    ///
    /// # Errors
    /// One of them is damaged.
    pub fn decode(&self, extent: &Extent, raw: &[u8]) -> Result<Vec<Chunk>, SstableError> {
        match &self.layout {
            Layout::Compressed(info) => self.decode_compressed(info, extent, raw),
            Layout::Plain { chunk_bytes, crcs } => {
                self.decode_plain(*chunk_bytes as usize, crcs.as_deref(), extent, raw)
            }
        }
    }

    /// Reads up to `count` neighbouring chunks in one go, at least one.
    ///
    /// # Errors
    /// There are none, the disk fails, or a chunk is damaged.
    pub fn read(&self, first: u32, count: usize) -> Result<Vec<Chunk>, SstableError> {
        let extent = self.extent(first, count)?;
        let mut raw = vec![0; extent.bytes];
        self.file.read_exact_at(&mut raw, extent.offset)?;
        self.decode(&extent, &raw)
    }

    fn place(&self, info: &CompressionInfo, index: u32) -> Result<ChunkPlace, SstableError> {
        info.place(index, self.file_bytes).ok_or_else(|| self.damaged(0, "no such chunk"))
    }

    fn decode_compressed(
        &self,
        info: &CompressionInfo,
        extent: &Extent,
        raw: &[u8],
    ) -> Result<Vec<Chunk>, SstableError> {
        let mut chunks = Vec::with_capacity(extent.count);
        for index in extent.first..extent.first + extent.count as u32 {
            let place = self.place(info, index)?;
            let raw = raw.get((place.offset - extent.offset) as usize..).unwrap_or_default();
            let (compressed, crc) = raw
                .split_at_checked(place.compressed_bytes)
                .and_then(|(compressed, rest)| Some((compressed, rest.first_chunk::<4>()?)))
                .ok_or_else(|| self.damaged(place.offset, "a chunk is cut off"))?;
            self.check_crc(place.offset, compressed, u32::from_be_bytes(*crc))?;
            if place.compressed_bytes < info.parameters.compressed_bytes_max as usize {
                let mut out = vec![0; place.uncompressed_bytes];
                let codec = info.parameters.codec;
                codec.decompress(compressed, &mut out).map_err(|what| self.damaged(place.offset, what))?;
                chunks.push(Chunk::from(out));
            } else {
                let kept = compressed.get(..place.uncompressed_bytes);
                let kept = kept.ok_or_else(|| self.damaged(place.offset, "a raw chunk is too short"))?;
                chunks.push(Chunk::from(kept.to_vec()));
            }
        }
        Ok(chunks)
    }

    fn decode_plain(
        &self,
        chunk_bytes: usize,
        crcs: Option<&[u32]>,
        extent: &Extent,
        raw: &[u8],
    ) -> Result<Vec<Chunk>, SstableError> {
        if raw.len() != extent.bytes {
            return Err(self.damaged(extent.offset, "a chunk is cut off"));
        }
        let mut chunks = Vec::with_capacity(extent.count);
        for (index, chunk) in raw.chunks(chunk_bytes).enumerate() {
            if let Some(expected) = crcs.and_then(|crcs| crcs.get(extent.first as usize + index)) {
                self.check_crc(extent.offset + (index * chunk_bytes) as u64, chunk, *expected)?;
            }
            chunks.push(Chunk::from(chunk.to_vec()));
        }
        Ok(chunks)
    }

    fn check_crc(&self, offset: u64, bytes: &[u8], expected: u32) -> Result<(), SstableError> {
        let got = crc32fast::hash(bytes);
        if got == expected {
            return Ok(());
        }
        Err(SstableError::Checksum { path: self.file.path().to_owned(), offset, expected, got })
    }

    /// The error for bytes that do not say what they should.
    pub fn damaged(&self, offset: u64, what: &'static str) -> SstableError {
        SstableError::Damaged { path: self.file.path().to_owned(), offset, what }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The open file, to read it raw.
    pub(crate) fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }
}
