//! Writes Data: gathers a chunk, compresses it, appends it with its checksum.

use std::path::Path;

use runtime::Disk;

use super::{CompressionInfo, CompressionParameters};
use crate::file_writer::FileWriter;
use crate::{Component, Descriptor, SstableError};

/// Bytes of a chunk of uncompressed Data.
const PLAIN_CHUNK_BYTES: u32 = 16 * 1024;

/// Data while it is written.
#[derive(Debug)]
pub(crate) struct DataWriter {
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
}

/// What is known of Data once it is written.
#[derive(Debug)]
pub(crate) struct FinishedData {
    pub(crate) uncompressed_bytes: u64,
    pub(crate) file_bytes: u64,
    /// Compressed by uncompressed; -1 when not compressed.
    pub(crate) compression_ratio: f64,
    /// Content of CompressionInfo.db or of CRC.db, and which.
    pub(crate) chunks: (Component, Vec<u8>),
    pub(crate) digest: u32,
}

impl DataWriter {
    pub(crate) fn create(
        disk: &dyn Disk,
        descriptor: &Descriptor,
        parameters: Option<CompressionParameters>,
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
        })
    }

    /// Uncompressed bytes so far.
    pub(crate) fn position(&self) -> u64 {
        self.chunked_bytes + self.chunk.len() as u64
    }

    /// Where it is written.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), SstableError> {
        while !bytes.is_empty() {
            let (head, tail) = bytes.split_at(bytes.len().min(self.chunk_bytes - self.chunk.len()));
            self.chunk.extend_from_slice(head);
            if self.chunk.len() == self.chunk_bytes {
                self.end_chunk()?;
            }
            bytes = tail;
        }
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<(), SstableError> {
        self.chunk_offsets.push(self.file.position());
        self.chunked_bytes += self.chunk.len() as u64;
        let Some(parameters) = &self.parameters else {
            self.chunk_crcs.push(crc32fast::hash(&self.chunk));
            self.digest.update(&self.chunk);
            self.file.write(&self.chunk)?;
            self.chunk.clear();
            return Ok(());
        };
        parameters.codec.compress(&self.chunk, &mut self.compressed).map_err(|what| {
            SstableError::Unsupported { path: self.file.path().clone(), what: what.into() }
        })?;
        let max = parameters.compressed_bytes_max as usize;
        if self.compressed.len() >= max {
            self.compressed.clear();
            self.compressed.extend_from_slice(&self.chunk);
            // Only the last chunk can be shorter than that.
            self.compressed.resize(self.compressed.len().max(max), 0);
        }
        let crc = crc32fast::hash(&self.compressed).to_be_bytes();
        self.digest.update(&self.compressed);
        self.digest.update(&crc);
        self.compressed_bytes += self.compressed.len() as u64;
        self.file.write(&self.compressed)?;
        self.file.write(&crc)?;
        self.chunk.clear();
        Ok(())
    }

    /// Writes what is left and makes it durable.
    pub(crate) fn finish(mut self) -> Result<FinishedData, SstableError> {
        if !self.chunk.is_empty() {
            self.end_chunk()?;
        }
        let uncompressed_bytes = self.chunked_bytes;
        let digest = self.digest.finalize();
        let written = self.file.finish()?;
        let (chunks, compression_ratio) = match self.parameters {
            Some(parameters) => {
                let info =
                    CompressionInfo { parameters, uncompressed_bytes, chunk_offsets: self.chunk_offsets };
                let ratio = self.compressed_bytes as f64 / uncompressed_bytes.max(1) as f64;
                ((Component::CompressionInfo, info.to_bytes()), ratio)
            }
            None => {
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
        })
    }
}
