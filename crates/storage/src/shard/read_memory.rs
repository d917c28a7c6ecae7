//! Memory that the reads of a shard work in.
//!
//! A page is bounded by its request's room. But to merge rows, a read has a row, a chunk and their buffers of each
//! place that it reads from: of rows of 100 KB in eight files that is more than 2 MiB, for a page of one row. So reads
//! that are under way have room here first, each as much as reads of its table took of late.
//!
//! Those that take little do not stand behind those that take much: they have a part for themselves.

use std::rc::Rc;

use table::ReadBytes;
use tokio::sync::Semaphore;

/// Reads of up to so many bytes have a part of the memory for themselves: one part in so many.
const SMALL_BYTES: usize = 256 << 10;
const SMALL_PART: usize = 4;
/// A shard has so much in any case.
const BYTES_MIN: usize = 1 << 20;
const KIB: usize = 1 << 10;
const _: () = assert!(SMALL_PART > 1, "large reads have the most of it");
const _: () =
    assert!(SMALL_BYTES <= BYTES_MIN / SMALL_PART, "the part of small reads has room for each of them");
const _: () = assert!(ReadBytes::UNKNOWN <= SMALL_BYTES, "a read of which nothing is known is small");

/// Memory that the reads of a shard work in; of each kind, first come, first served.
#[derive(Debug)]
pub(crate) struct ReadMemory {
    small: Rc<Part>,
    large: Rc<Part>,
}

/// Memory for reads of one kind.
#[derive(Debug)]
struct Part {
    /// In KiB.
    free: Semaphore,
    kibibytes: u32,
}

/// Room that a read has, until it is dropped.
#[derive(Debug)]
pub(crate) struct RoomToRead {
    part: Rc<Part>,
    kibibytes: u32,
}

impl ReadMemory {
    /// Memory of so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = bytes.max(BYTES_MIN);
        let small = bytes / SMALL_PART;
        ReadMemory { small: Rc::new(Part::new(small)), large: Rc::new(Part::new(bytes - small)) }
    }

    /// Waits for room for one more read. One that takes more than there is has all of it.
    pub(crate) async fn enter(&self, expected: &ReadBytes) -> RoomToRead {
        let (part, kibibytes) = self.wanted(expected);
        if let Some(room) = part.try_take(kibibytes) {
            return room;
        }
        part.free.acquire_many(kibibytes).await.expect("nobody closes it").forget();
        RoomToRead { part: Rc::clone(part), kibibytes }
    }

    /// Room for one more read, if there is any now.
    pub(crate) fn try_enter(&self, expected: &ReadBytes) -> Option<RoomToRead> {
        let (part, kibibytes) = self.wanted(expected);
        part.try_take(kibibytes)
    }

    /// How much a read takes, and of which part.
    fn wanted(&self, expected: &ReadBytes) -> (&Rc<Part>, u32) {
        let bytes = expected.get();
        let part = if bytes <= SMALL_BYTES { &self.small } else { &self.large };
        (part, u32::try_from(bytes / KIB).unwrap_or(u32::MAX).clamp(1, part.kibibytes))
    }
}

impl Part {
    fn new(bytes: usize) -> Self {
        let kibibytes = u32::try_from(bytes / KIB).unwrap_or(u32::MAX).min(1 << 28);
        assert!(kibibytes > 0, "every read comes in by itself");
        Part { free: Semaphore::new(kibibytes as usize), kibibytes }
    }

    fn try_take(self: &Rc<Self>, kibibytes: u32) -> Option<RoomToRead> {
        self.free.try_acquire_many(kibibytes).ok()?.forget();
        Some(RoomToRead { part: Rc::clone(self), kibibytes })
    }
}

impl Drop for RoomToRead {
    fn drop(&mut self) {
        self.part.free.add_permits(self.kibibytes as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn large_reads_wait_for_each_other_and_small_ones_for_none_of_them() {
        let memory = ReadMemory::new(4 << 20);
        let (large, small) = (ReadBytes::default(), ReadBytes::default());
        large.learn(8, 100_000);
        small.learn(1, 100);
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(first) = pin!(memory.enter(&large)).poll(&mut context) else { panic!("all is free") };
        let mut second = pin!(memory.enter(&large));
        assert!(second.as_mut().poll(&mut context).is_pending());
        for _ in 0..3 {
            assert!(pin!(memory.enter(&small)).poll(&mut context).is_ready());
        }
        drop(first);
        assert!(second.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn one_that_takes_more_than_there_is_has_all_of_it() {
        let memory = ReadMemory::new(0);
        let huge = ReadBytes::default();
        huge.learn(100, 1 << 20);
        assert!(pin!(memory.enter(&huge)).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
}
