//! What the whole process has, held to what it may have.
//!
//! Every part that grows with what clients ask has a share of `memory` and keeps to it. But what is freed in one place
//! is of no use to another until the kernel has had it back, and small things are not counted one by one. So the
//! process looks at all that it has, often while it has much, and the chunk cache, which can do with less at any time,
//! makes up for the difference:
//!
//! ```text
//!   resident  ──────── 13/16 ──── 7/8 ──── 15/16 ───── memory
//!             freed memory is kept │          │ the cache gives back what is above 7/8
//!                                  └ freed memory goes to the kernel at once
//! ```
//!
//! To keep freed memory is cheap only for who needs as much again: the kernel clears each page that it hands out, and
//! to take pages back it interrupts the other cores. (Rows read from the disk, 256 MiB: 45,000 a second with 24 µs of
//! the processor each where nothing was kept, 49,000 with 17 where it was.)

use std::time::Duration;

use server::Server;

/// How long freed memory is kept.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// And by a process that has small pages.
const KEPT_FOR_IN_SMALL: Duration = Duration::from_secs(1);
/// And while a process with huge pages has little room.
const KEPT_WHEN_TIGHT: Duration = Duration::from_millis(10);

/// A process with less than this has its memory in small pages: of huge ones so much stays in use by a few bytes each
/// that freed memory does not come back in time. (64 MiB, 400 answers of 15 MB: 246 MiB resident with, 80 without.)
const HUGE_PAGES_FROM: u64 = 2 << 30;

/// A process with less than this keeps nothing: there is no room for what may come between two looks.
const KEPT_FROM: u64 = 256 << 20;

/// How often the process looks while it has little, and while it has more than half of what it may.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOK_OFTEN_EVERY: Duration = Duration::from_millis(20);

/// Of what the process may have, one part in so many is left free for what comes between two looks.
const TIGHT_PART: u64 = 16;
/// The cache gives back until one part in so many is free.
const GOAL_PART: u64 = 8;
/// And is given back one part in so many at a time, when there is room again.
const RETURNED_PART: u64 = 64;

/// How a process stands with its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// The cache may have back what it gave.
    Enough,
    Little,
    /// The cache gives back.
    Tight,
}

/// Looks after the memory of a process that is to have no more than so much.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    bytes_max: u64,
    room: Room,
    /// What the cache has to do without.
    called_back_bytes: u64,
}

impl MemoryWatch {
    /// Keeps freed memory from now on.
    pub(crate) fn start(bytes_max: u64) -> Self {
        let watch = MemoryWatch { bytes_max, room: Room::Enough, called_back_bytes: 0 };
        allocator::keep_freed_for(watch.kept_for());
        if bytes_max < HUGE_PAGES_FROM
            && let Err(error) = runtime::refuse_huge_pages()
        {
            tracing::warn!(%error, "the system may give memory by 2 MiB at a time, and keep more than is used");
        }
        watch
    }

    /// How long freed memory is kept now.
    fn kept_for(&self) -> Duration {
        let is_small = self.bytes_max < HUGE_PAGES_FROM;
        match self.room {
            _ if self.bytes_max < KEPT_FROM => Duration::ZERO,
            Room::Enough if is_small => KEPT_FOR_IN_SMALL,
            _ if is_small => Duration::ZERO,
            Room::Tight => KEPT_WHEN_TIGHT,
            Room::Enough | Room::Little => KEPT_FOR,
        }
    }

    /// Looks, does what there is to do, and says when to look again.
    pub(crate) async fn look(&mut self, server: &Server) -> Duration {
        let Some(resident_bytes) = runtime::resident_bytes() else { return LOOK_EVERY };
        let (called_back_before, kept_before) = (self.called_back_bytes, self.kept_for());
        self.decide(resident_bytes);
        if self.called_back_bytes != called_back_before {
            server.call_back_cache(self.called_back_bytes).await;
        }
        let kept_for = self.kept_for();
        if kept_for != kept_before {
            allocator::keep_freed_for(kept_for);
        }
        if self.room == Room::Tight || kept_for < kept_before {
            allocator::give_back();
        }
        if resident_bytes > self.bytes_max / 2 { LOOK_OFTEN_EVERY } else { LOOK_EVERY }
    }

    /// What follows from having so much.
    fn decide(&mut self, resident_bytes: u64) {
        let goal = self.bytes_max - self.bytes_max / GOAL_PART;
        self.room = match resident_bytes {
            bytes if bytes > self.bytes_max - self.bytes_max / TIGHT_PART => Room::Tight,
            bytes if bytes < goal - self.bytes_max / TIGHT_PART => Room::Enough,
            _ => Room::Little,
        };
        self.called_back_bytes = match self.room {
            Room::Tight => (self.called_back_bytes + resident_bytes - goal).min(self.bytes_max),
            Room::Little => self.called_back_bytes,
            Room::Enough => self.called_back_bytes.saturating_sub(self.bytes_max / RETURNED_PART),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_cache_gives_back_what_is_too_much_and_has_it_again_piece_by_piece() {
        let mut watch = MemoryWatch { bytes_max: 64 * MIB, room: Room::Enough, called_back_bytes: 0 };
        watch.decide(60 * MIB);
        assert_eq!((watch.room, watch.called_back_bytes), (Room::Little, 0), "not more than it may");
        watch.decide(62 * MIB);
        assert_eq!((watch.room, watch.called_back_bytes), (Room::Tight, 6 * MIB));
        watch.decide(61 * MIB);
        assert_eq!(watch.called_back_bytes, 11 * MIB, "it was not enough");
        watch.decide(55 * MIB);
        assert_eq!((watch.room, watch.called_back_bytes), (Room::Little, 11 * MIB));
        (0..20).for_each(|_| watch.decide(50 * MIB));
        assert_eq!(watch.called_back_bytes, 0);
        (0..20).for_each(|_| watch.decide(90 * MIB));
        assert_eq!(watch.called_back_bytes, 64 * MIB, "no more than there is");
    }

    #[test]
    fn freed_memory_is_kept_while_there_is_room_for_it() {
        let kept_for = |memory: u64, resident: u64| {
            let mut watch = MemoryWatch { bytes_max: memory, room: Room::Enough, called_back_bytes: 0 };
            watch.decide(resident);
            watch.kept_for()
        };
        assert_eq!(kept_for(64 * MIB, 10 * MIB), Duration::ZERO, "too small to keep anything");
        assert_eq!(kept_for(256 * MIB, 200 * MIB), KEPT_FOR_IN_SMALL);
        assert_eq!(kept_for(256 * MIB, 210 * MIB), Duration::ZERO);
        assert_eq!(kept_for(4096 * MIB, 3600 * MIB), KEPT_FOR);
        assert_eq!(kept_for(4096 * MIB, 4000 * MIB), KEPT_WHEN_TIGHT);
    }
}
