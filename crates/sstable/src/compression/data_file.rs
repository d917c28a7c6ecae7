//! Reads chunks of Data: fetches, verifies, decompresses.

use std::path::Path;
use std::sync::Arc;

use runtime::DiskFile;

use super::{CRC_BYTES, CompressionInfo};
use crate::chunk::Fetch;
use crate::{Chunk, SstableError};

/// The largest chunk of uncompressed Data we take.
const PLAIN_CHUNK_BYTES_MAX: u32 = 1 << 28;

/// Data, open for reading.
#[derive(Debug)]
pub(crate) struct DataFile {
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
    pub(crate) fn chunk_bytes(&self) -> u32 {
        match &self.layout {
            Layout::Compressed(info) => info.parameters.chunk_bytes,
            Layout::Plain { chunk_bytes, .. } => *chunk_bytes,
        }
    }

    /// Bytes of Data, uncompressed.
    pub(crate) fn uncompressed_bytes(&self) -> u64 {
        match &self.layout {
            Layout::Compressed(info) => info.uncompressed_bytes,
            Layout::Plain { .. } => self.file_bytes,
        }
    }

    /// Bytes of Data on the disk.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// How many chunks there are.
    pub(crate) fn chunk_count(&self) -> u32 {
        let count = self.uncompressed_bytes().div_ceil(u64::from(self.chunk_bytes()));
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Reads up to `count` neighbouring chunks in one go, at least one.
    pub(crate) fn read(&self, first: u32, count: usize, fetch: Fetch) -> Result<Vec<Chunk>, SstableError> {
        let left = self.chunk_count().saturating_sub(first) as usize;
        if left == 0 {
            let offset = u64::from(first).saturating_mul(u64::from(self.chunk_bytes()));
            return Err(self.damaged(offset, "a place beyond the end"));
        }
        let count = count.clamp(1, left);
        match &self.layout {
            Layout::Compressed(info) => self.read_compressed(info, first, count, fetch),
            Layout::Plain { chunk_bytes, crcs } => {
                self.read_plain(u64::from(*chunk_bytes), crcs.as_deref(), first, count, fetch)
            }
        }
    }

    fn read_compressed(
        &self,
        info: &CompressionInfo,
        first: u32,
        count: usize,
        fetch: Fetch,
    ) -> Result<Vec<Chunk>, SstableError> {
        let place =
            |index: u32| info.place(index, self.file_bytes).ok_or_else(|| self.damaged(0, "no such chunk"));
        let last = place(first + count as u32 - 1)?;
        let start = place(first)?.offset;
        let end = last.offset + last.compressed_bytes as u64 + CRC_BYTES;
        let mut raw = vec![0; usize::try_from(end - start).map_err(|_| self.damaged(start, "chunk length"))?];
        fetch.read(&*self.file, &mut raw, start)?;
        let mut chunks = Vec::with_capacity(count);
        for index in first..first + count as u32 {
            let place = place(index)?;
            let from = (place.offset - start) as usize;
            let compressed = &raw[from..from + place.compressed_bytes];
            let crc = raw[from + place.compressed_bytes..].first_chunk::<4>();
            let expected = crc.map_or(0, |crc| u32::from_be_bytes(*crc));
            self.check_crc(place.offset, compressed, expected)?;
            let mut out = vec![0; place.uncompressed_bytes];
            if place.compressed_bytes < info.parameters.compressed_bytes_max as usize {
                let codec = info.parameters.codec;
                codec.decompress(compressed, &mut out).map_err(|what| self.damaged(place.offset, what))?;
            } else {
                let kept = compressed.get(..out.len());
                out.copy_from_slice(
                    kept.ok_or_else(|| self.damaged(place.offset, "a raw chunk is too short"))?,
                );
            }
            chunks.push(Chunk::new(out));
        }
        Ok(chunks)
    }

    fn read_plain(
        &self,
        chunk_bytes: u64,
        crcs: Option<&[u32]>,
        first: u32,
        count: usize,
        fetch: Fetch,
    ) -> Result<Vec<Chunk>, SstableError> {
        let start = u64::from(first) * chunk_bytes;
        let bytes = (self.file_bytes - start).min(count as u64 * chunk_bytes);
        let mut raw = vec![0; usize::try_from(bytes).map_err(|_| self.damaged(start, "chunk length"))?];
        fetch.read(&*self.file, &mut raw, start)?;
        let raw = bytes::Bytes::from(raw);
        let mut chunks = Vec::with_capacity(count);
        for (index, from) in (0..raw.len()).step_by(chunk_bytes as usize).enumerate() {
            let chunk = raw.slice(from..raw.len().min(from + chunk_bytes as usize));
            if let Some(expected) = crcs.and_then(|crcs| crcs.get(first as usize + index)) {
                self.check_crc(start + from as u64, &chunk, *expected)?;
            }
            // A chunk of its own memory, so that a cache does not hold its neighbours through it.
            let chunk = if count == 1 { chunk } else { bytes::Bytes::copy_from_slice(&chunk) };
            chunks.push(Chunk::new(chunk));
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

    fn damaged(&self, offset: u64, what: &'static str) -> SstableError {
        SstableError::Damaged { path: self.file.path().to_owned(), offset, what }
    }

    /// The open file, to read it raw.
    pub(crate) fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }
}
