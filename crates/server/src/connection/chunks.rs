//! The memory that the connections of a shard read into: one buffer lent to whoever has its turn, so that a
//! connection with nothing to do needs none.
//!
//! Frames are not copied out of it. A request that waits keeps the buffer it lies in, together with its
//! neighbours of that time, and the next turns read into another one. Buffers that are kept so are counted,
//! whole, until the last of their requests is over.

use std::rc::Rc;

use bytes::BytesMut;

use crate::budget::{Budget, Held, READ_BYTES};

/// Bytes of a buffer: some turns' worth, so that requests that wait lie close together.
const CHUNK_BYTES: usize = 128 << 10;
const _: () = assert!(READ_BYTES <= CHUNK_BYTES, "a turn's reading has room in one");

/// A shard's buffers to read into.
#[derive(Debug)]
pub(super) struct Chunks {
    current: BytesMut,
    /// Handles of buffers that requests still lie in.
    kept: Vec<BytesMut>,
    held: Held,
}

impl Chunks {
    pub(super) fn new(budget: &Rc<Budget>) -> Self {
        Chunks {
            current: BytesMut::with_capacity(CHUNK_BYTES),
            kept: Vec::new(),
            held: budget.hold_for_client(),
        }
    }

    /// An empty buffer with room for so many bytes, which are less than [`CHUNK_BYTES`]. What is put into it
    /// is split off.
    pub(super) fn with_room(&mut self, bytes: usize) -> &mut BytesMut {
        assert!(bytes <= CHUNK_BYTES, "no more is read at once");
        let current = &mut self.current;
        if current.capacity() - current.len() < bytes && !current.try_reclaim(bytes) {
            let free = self.kept.iter_mut().position(|chunk| chunk.try_reclaim(CHUNK_BYTES));
            let next = free.map(|index| self.kept.swap_remove(index));
            let next = next.unwrap_or_else(|| BytesMut::with_capacity(CHUNK_BYTES));
            self.kept.push(std::mem::replace(current, next));
            self.held.set(self.kept.len() * CHUNK_BYTES);
        }
        assert!(self.current.capacity() - self.current.len() >= bytes, "there is room");
        &mut self.current
    }

    /// Gives back the buffers whose requests are all over.
    pub(super) fn sweep(&mut self) {
        if !self.kept.is_empty() {
            self.kept.retain_mut(|chunk| !chunk.try_reclaim(CHUNK_BYTES));
            self.held.set(self.kept.len() * CHUNK_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_only_those_that_requests_lie_in_are_counted() {
        let budget = Budget::new(1 << 20, std::sync::Arc::default());
        let mut chunks = Chunks::new(&budget);
        let mut fill = |count: usize| {
            let chunk = chunks.with_room(count);
            chunk.resize(count, 7);
            (chunk.split().freeze(), chunks.held.bytes())
        };
        for _ in 0..20 {
            assert_eq!(fill(32 << 10).1, 0, "one buffer is enough while nobody keeps any of it");
        }
        let kept: Vec<_> = (0..8).map(|_| fill(32 << 10).0).collect();
        assert!(kept.iter().all(|bytes| bytes.len() == 32 << 10 && bytes.iter().all(|byte| *byte == 7)));
        let (first, held) = fill(100 << 10);
        assert!((2 * CHUNK_BYTES..=4 * CHUNK_BYTES).contains(&held), "{held}");
        drop((kept, first));
        chunks.sweep();
        assert_eq!(chunks.held.bytes(), 0, "given back when their requests are over");
    }
}
