//! Writes Data: gathers a chunk, compresses it, appends it with its checksum.

use std::path::Path;

use runtime::Disk;
use trie::PageFile;

use super::info::CRC_BYTES;
use super::{CompressionInfo, CompressionParameters};
use crate::file_writer::FileWriter;
use crate::{Component, Descriptor, KeptChunks, SstableError};

/// Bytes of a chunk of uncompressed Data.
const PLAIN_CHUNK_BYTES: u32 = 16 * 1024;
const _: () = assert!(PLAIN_CHUNK_BYTES.is_power_of_two(), "as chunks that are compressed");

/// Data while it is written.
#[derive(Debug)]
pub struct DataWriter {
    file: FileWriter,
    parameters: Option<CompressionParameters>,
    chunk: Vec<u8>,
    chunk_bytes: usize,
    compressed: Vec<u8>,
    /// Uncompressed bytes in finished chunks.
    chunked_bytes: u64,
    compressed_bytes: u64,
    chunk_offsets: Vec<u64>,
    /// Checksums for CRC.db.
    chunk_crcs: Vec<u32>,
    digest: crc32fast::Hasher,
    kept: KeptChunks,
}

/// What is known of Data once it is written.
#[derive(Debug)]
pub struct FinishedData {
    /// Bytes of Data, uncompressed.
    pub uncompressed_bytes: u64,
    /// Bytes of Data on the disk.
    pub file_bytes: u64,
    /// Compressed by uncompressed; -1 when not compressed.
    pub compression_ratio: f64,
    /// Content of CompressionInfo.db or of CRC.db, and which.
    pub chunks: (Component, Vec<u8>),
    /// Checksum of the whole of Data.
    pub digest: u32,
    /// What was kept of it in memory.
    pub kept: KeptChunks,
}

impl DataWriter {
    /// Creates Data.
    ///
    /// # Errors
    /// The disk fails.
    pub fn create(
        disk: &dyn Disk,
        descriptor: &Descriptor,
        parameters: Option<CompressionParameters>,
        kept: KeptChunks,
    ) -> Result<Self, SstableError> {
        let chunk_bytes = parameters.as_ref().map_or(PLAIN_CHUNK_BYTES, |p| p.chunk_bytes) as usize;
        Ok(DataWriter {
            file: FileWriter::create(disk, descriptor.path(Component::Data), false)?,
            parameters,
            chunk: Vec::with_capacity(chunk_bytes),
            chunk_bytes,
            compressed: Vec::new(),
            chunked_bytes: 0,
            compressed_bytes: 0,
            chunk_offsets: Vec::new(),
            chunk_crcs: Vec::new(),
            digest: crc32fast::Hasher::new(),
            kept,
        })
    }

    /// Uncompressed bytes so far.
    #[inline]
    pub fn position(&self) -> u64 {
        self.chunked_bytes + self.chunk.len() as u64
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Appends with the help of the buffer itself; if that fails, nothing is appended.
    ///
    /// # Errors
    /// Outside, the disk fails; inside, `write` does.
    pub fn write_with<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Result<(), E>, SstableError> {
        let before = self.chunk.len();
        let written = write(&mut self.chunk);
        assert!(self.chunk.len() >= before, "what was written before stays");
        if written.is_err() {
            self.chunk.truncate(before);
        }
        if self.chunk.len() >= self.chunk_bytes {
            self.end_chunks()?;
        }
        Ok(written)
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The disk fails.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), SstableError> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= self.chunk_bytes { self.end_chunks() } else { Ok(()) }
    }

    /// Writes all whole chunks, and keeps the rest.
    fn end_chunks(&mut self) -> Result<(), SstableError> {
        let buffer = std::mem::take(&mut self.chunk);
        let mut chunks = buffer.chunks_exact(self.chunk_bytes);
        chunks.by_ref().try_for_each(|chunk| self.end_chunk(chunk))?;
        let kept = chunks.remainder().len();
        self.chunk = buffer;
        let whole = self.chunk.len() - kept;
        self.chunk.copy_within(whole.., 0);
        self.chunk.truncate(kept);
        assert!(kept < self.chunk_bytes, "what is left is less than a chunk");
        Ok(())
    }

    fn end_chunk(&mut self, chunk: &[u8]) -> Result<(), SstableError> {
        assert!((1..=self.chunk_bytes).contains(&chunk.len()), "a chunk has some bytes, and not too many");
        let offset = self.file.position();
        assert!(self.chunk_offsets.last().is_none_or(|last| *last < offset), "chunks follow each other");
        self.kept.copy(Component::Data, self.chunk_offsets.len() as u32, chunk);
        self.chunk_offsets.push(offset);
        self.chunked_bytes += chunk.len() as u64;
        let Some(parameters) = &self.parameters else {
            self.chunk_crcs.push(crc32fast::hash(chunk));
            self.digest.update(chunk);
            return self.file.write(chunk);
        };
        let mut length = parameters.codec.compress(chunk, &mut self.compressed).map_err(|what| {
            SstableError::Unsupported { path: self.file.path().clone(), what: what.into() }
        })?;
        let max = parameters.compressed_bytes_max as usize;
        if length >= max {
            // Only the last chunk can be shorter than that.
            length = chunk.len().max(max);
            self.compressed.clear();
            self.compressed.extend_from_slice(chunk);
            self.compressed.resize(length, 0);
        }
        let compressed = &self.compressed[..length];
        let crc = crc32fast::hash(compressed).to_be_bytes();
        self.digest.update(compressed);
        self.digest.update(&crc);
        self.compressed_bytes += length as u64;
        self.file.write(compressed)?;
        self.file.write(&crc)
    }

    /// Writes what is left and makes it durable.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(mut self) -> Result<FinishedData, SstableError> {
        if !self.chunk.is_empty() {
            let rest = std::mem::take(&mut self.chunk);
            self.end_chunk(&rest)?;
        }
        let uncompressed_bytes = self.chunked_bytes;
        let digest = self.digest.finalize();
        let written = self.file.finish()?;
        let chunk_count = self.chunk_offsets.len() as u64;
        let whole = uncompressed_bytes.div_ceil(self.chunk_bytes as u64);
        assert_eq!(chunk_count, whole, "every chunk but the last is whole");
        let data_bytes = match self.parameters {
            Some(_) => self.compressed_bytes + chunk_count * CRC_BYTES,
            None => uncompressed_bytes,
        };
        assert_eq!(written.file_bytes, data_bytes, "Data is its chunks and their checksums");
        let (chunks, compression_ratio) = match self.parameters {
            Some(parameters) => {
                let info =
                    CompressionInfo { parameters, uncompressed_bytes, chunk_offsets: self.chunk_offsets };
                let ratio = self.compressed_bytes as f64 / uncompressed_bytes.max(1) as f64;
                ((Component::CompressionInfo, info.to_bytes()), ratio)
            }
            None => {
                assert_eq!(self.chunk_crcs.len() as u64, chunk_count, "every chunk has a checksum");
                let mut out = PLAIN_CHUNK_BYTES.to_be_bytes().to_vec();
                self.chunk_crcs.iter().for_each(|crc| out.extend_from_slice(&crc.to_be_bytes()));
                ((Component::Crc, out), -1.0)
            }
        };
        Ok(FinishedData {
            uncompressed_bytes,
            file_bytes: written.file_bytes,
            compression_ratio,
            chunks,
            digest,
            kept: self.kept,
        })
    }
}
