//! What a writer keeps in memory of what it writes, so that nobody need read it from the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Chunk, Component};

/// Room for what writers keep, shared by all clones. Who lends it may lend more while they write.
#[derive(Clone, Debug, Default)]
pub struct KeptRoom(Arc<AtomicUsize>);

impl KeptRoom {
    /// Room for so many bytes.
    pub fn new(bytes: usize) -> Self {
        let room = KeptRoom::default();
        room.add(bytes);
        room
    }

    /// Makes room for so many bytes more.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes for which there still is room.
    fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes room, if there is as much.
    fn take(&self, bytes: usize) -> bool {
        let less = |room: usize| room.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// Chunks of a table file that was just written, as reading would give them.
#[derive(Debug, Default)]
pub struct KeptChunks {
    room: KeptRoom,
    chunks: Vec<(Component, u32, Chunk)>,
}

impl KeptChunks {
    /// What comes when there is no room is not kept.
    pub fn new(room: KeptRoom) -> Self {
        KeptChunks { room, chunks: Vec::new() }
    }

    /// Bytes for which there still is room.
    pub fn room_bytes(&self) -> usize {
        self.room.bytes()
    }

    /// Keeps a copy, if there is room.
    pub(crate) fn copy(&mut self, component: Component, index: u32, bytes: &[u8]) {
        if bytes.len() <= self.room.bytes() {
            self.keep(component, index, Chunk::from(bytes.to_vec()));
        }
    }

    /// Keeps a chunk, if there is room.
    pub fn keep(&mut self, component: Component, index: u32, chunk: Chunk) {
        if self.room.take(chunk.len()) {
            self.chunks.push((component, index, chunk));
        }
    }

    /// All that was kept.
    pub fn into_chunks(self) -> Vec<(Component, u32, Chunk)> {
        self.chunks
    }
}
