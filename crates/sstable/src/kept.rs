//! What a writer keeps in memory of what it writes, so that nobody need read it from the disk.

use crate::{Chunk, Component};

/// Chunks of a table file that was just written, as reading would give them.
#[derive(Debug, Default)]
pub struct KeptChunks {
    room_bytes: usize,
    chunks: Vec<(Component, u32, Chunk)>,
}

impl KeptChunks {
    /// Room for so many bytes; what comes when it is used up is not kept.
    pub(crate) fn new(room_bytes: usize) -> Self {
        KeptChunks { room_bytes, chunks: Vec::new() }
    }

    /// Bytes for which there still is room.
    pub(crate) fn room_bytes(&self) -> usize {
        self.room_bytes
    }

    /// Keeps a copy, if there is room.
    pub(crate) fn copy(&mut self, component: Component, index: u32, bytes: &[u8]) {
        if bytes.len() <= self.room_bytes {
            self.keep(component, index, Chunk::from(bytes.to_vec()));
        }
    }

    /// Keeps a chunk, if there is room.
    pub(crate) fn keep(&mut self, component: Component, index: u32, chunk: Chunk) {
        if let Some(left) = self.room_bytes.checked_sub(chunk.len()) {
            self.room_bytes = left;
            self.chunks.push((component, index, chunk));
        }
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|(_, _, chunk)| chunk.len()).sum()
    }

    pub(crate) fn into_chunks(self) -> Vec<(Component, u32, Chunk)> {
        self.chunks
    }
}
