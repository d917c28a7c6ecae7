//! Memory that the reads of a shard work in.
//!
//! A page is bounded by its request's room. But to merge rows, a read has a row, a chunk and their buffers of each place
//! that it reads from: of rows of 100 KB in eight files that is more than 2 MiB, for a page of one row. So reads that are
//! under way have room here first, each as much as reads took of late.

use std::cell::Cell;

use tokio::sync::{Semaphore, SemaphorePermit};

/// What a read is taken for as long as nothing is known.
const EXPECTED_BYTES: usize = 256 << 10;
/// For each place, beside rows: a chunk, and what it is decompressed from.
const PLACE_BYTES: usize = 32 << 10;
/// A row is there as it comes, decoded and merged.
const ROW_COPIES: usize = 3;
/// A shard has so much in any case.
const BYTES_MIN: usize = 512 << 10;
const KIB: usize = 1 << 10;

/// Memory that the reads of a shard work in; first come, first served.
#[derive(Debug)]
pub(super) struct ReadMemory {
    /// In KiB.
    free: Semaphore,
    kibibytes: u32,
    /// What the next read is taken for: as much as a read took of late.
    expected_bytes: Cell<usize>,
}

impl ReadMemory {
    /// Memory of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let kibibytes = u32::try_from(bytes.max(BYTES_MIN) / KIB).unwrap_or(u32::MAX).min(1 << 28);
        ReadMemory {
            free: Semaphore::new(kibibytes as usize),
            kibibytes,
            expected_bytes: Cell::new(EXPECTED_BYTES),
        }
    }

    /// Waits for room for one more read. One that takes more than there is has all of it.
    pub(super) async fn enter(&self) -> SemaphorePermit<'_> {
        let wanted =
            u32::try_from(self.expected_bytes.get() / KIB).unwrap_or(u32::MAX).clamp(1, self.kibibytes);
        match self.free.try_acquire_many(wanted) {
            Ok(room) => room,
            Err(_) => self.free.acquire_many(wanted).await.expect("nobody closes it"),
        }
    }

    /// Notes that a read from so many places, of rows of so many bytes at most, is over.
    pub(super) fn learn(&self, place_count: usize, row_bytes_max: usize) {
        let bytes = place_count * (PLACE_BYTES + ROW_COPIES * row_bytes_max);
        let before = self.expected_bytes.get();
        self.expected_bytes.set(bytes.max(before - before / 16));
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn reads_of_large_rows_wait_for_each_other_and_others_follow_in_their_order() {
        let memory = ReadMemory::new(2 << 20);
        let mut context = Context::from_waker(Waker::noop());
        let mut first = (0..8).map(|_| match pin!(memory.enter()).poll(&mut context) {
            Poll::Ready(room) => room,
            Poll::Pending => panic!("there is room for eight as long as nothing is known"),
        });
        let first: Vec<_> = first.by_ref().collect();
        let mut ninth = pin!(memory.enter());
        assert!(ninth.as_mut().poll(&mut context).is_pending());
        memory.learn(8, 100_000);
        drop(first);
        let Poll::Ready(small) = ninth.as_mut().poll(&mut context) else { panic!("all others are over") };
        let mut large = pin!(memory.enter());
        assert!(large.as_mut().poll(&mut context).is_pending(), "it takes all there is");
        drop(small);
        assert!(large.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn what_reads_take_is_forgotten_bit_by_bit() {
        let memory = ReadMemory::new(2 << 20);
        memory.learn(10, 1 << 20);
        let large = memory.expected_bytes.get();
        (0..100).for_each(|_| memory.learn(1, 100));
        assert!(memory.expected_bytes.get() < large / 100, "{} of {large}", memory.expected_bytes.get());
    }
}
