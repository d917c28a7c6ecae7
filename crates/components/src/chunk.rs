//! Pieces of a component that are read, checked and kept as one.
//!
//! A chunk of Data is what one checksum covers: a compression chunk, or a chunk of `CRC.db`. A
//! chunk of Partitions or Rows is a page of 4 KiB. Chunks are verified and decompressed when read
//! from the disk, once; whoever caches them hands out clones, which share the bytes.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use runtime::DiskFile;

/// The bytes of a chunk, verified and decompressed. A clone shares them.
#[derive(Clone, PartialEq, Eq)]
pub struct Chunk(Bytes);

impl Chunk {
    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// How many bytes it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Does it hold none?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        Chunk(bytes.into())
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} bytes)", self.0.len())
    }
}

/// Where neighbouring chunks lie on the disk.
#[derive(Clone, Debug)]
pub struct Extent {
    /// In which file.
    pub file: Arc<dyn DiskFile>,
    /// From where.
    pub offset: u64,
    /// How many bytes.
    pub bytes: usize,
    /// Number of the first chunk in it.
    pub(crate) first: u32,
    /// How many chunks it holds, at least one.
    pub(crate) count: usize,
}

impl Extent {
    /// How many chunks it holds, at least one.
    pub fn chunk_count(&self) -> usize {
        self.count
    }
}
