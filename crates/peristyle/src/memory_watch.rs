//! What the whole process has, held to what it may have.
//!
//! Every part that grows with what clients ask has a share of `memory` and keeps to it. But what is freed in one place
//! is of no use to another until the kernel has had it back, and small things are not counted one by one. So the
//! process looks at all that it has, often while it has much, and the chunk cache, which can do with less at any time,
//! makes up for the difference:
//!
//! ```text
//!   resident  ────────── 7/8 ───────── 15/16 ───── memory
//!             freed memory is kept │ the cache gives back what is above 7/8, freed memory goes to the kernel at once
//! ```

use std::time::Duration;

use server::Server;

/// How long freed memory is kept: the kernel clears each page that it hands out, so to keep them for a while is
/// cheaper.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// And while the process has more than it may.
const KEPT_WHEN_TIGHT: Duration = Duration::from_millis(10);

/// A process with less than this has its memory in small pages: of huge ones so much stays in use by a few bytes each
/// that freed memory does not come back in time. (64 MiB, 400 answers of 15 MB: 246 MiB resident with, 80 without.)
const HUGE_PAGES_FROM: u64 = 2 << 30;

/// A process with less than this keeps nothing: there is no room for what may come between two looks.
const KEPT_FROM: u64 = HUGE_PAGES_FROM;

/// How often the process looks while it has little, and while it has more than half of what it may.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOK_OFTEN_EVERY: Duration = Duration::from_millis(20);

/// Of what the process may have, one part in so many is left free for what comes between two looks.
const TIGHT_PART: u64 = 16;
/// The cache gives back until one part in so many is free.
const GOAL_PART: u64 = 8;
/// And is given back one part in so many at a time, when there is room again.
const RETURNED_PART: u64 = 64;

/// Looks after the memory of a process that is to have no more than so much.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    bytes_max: u64,
    is_tight: bool,
    /// What the cache has to do without.
    called_back_bytes: u64,
}

impl MemoryWatch {
    /// Keeps freed memory from now on.
    pub(crate) fn start(bytes_max: u64) -> Self {
        let watch = MemoryWatch { bytes_max, is_tight: false, called_back_bytes: 0 };
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
        if self.bytes_max < KEPT_FROM {
            Duration::ZERO
        } else if self.is_tight {
            KEPT_WHEN_TIGHT
        } else {
            KEPT_FOR
        }
    }

    /// Looks, does what there is to do, and says when to look again.
    pub(crate) async fn look(&mut self, server: &Server) -> Duration {
        let Some(resident_bytes) = runtime::resident_bytes() else { return LOOK_EVERY };
        let was_tight = self.is_tight;
        let before = self.called_back_bytes;
        self.decide(resident_bytes);
        if self.called_back_bytes != before {
            server.call_back_cache(self.called_back_bytes).await;
        }
        if self.is_tight {
            allocator::give_back();
        }
        if self.is_tight != was_tight {
            allocator::keep_freed_for(self.kept_for());
        }
        if resident_bytes > self.bytes_max / 2 { LOOK_OFTEN_EVERY } else { LOOK_EVERY }
    }

    /// What follows from having so much.
    fn decide(&mut self, resident_bytes: u64) {
        let goal = self.bytes_max - self.bytes_max / GOAL_PART;
        self.is_tight = resident_bytes > self.bytes_max - self.bytes_max / TIGHT_PART;
        if self.is_tight {
            self.called_back_bytes = (self.called_back_bytes + resident_bytes - goal).min(self.bytes_max);
        } else if resident_bytes < goal - self.bytes_max / TIGHT_PART {
            self.called_back_bytes = self.called_back_bytes.saturating_sub(self.bytes_max / RETURNED_PART);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_cache_gives_back_what_is_too_much_and_has_it_again_piece_by_piece() {
        let mut watch = MemoryWatch { bytes_max: 64 * MIB, is_tight: false, called_back_bytes: 0 };
        watch.decide(60 * MIB);
        assert_eq!((watch.is_tight, watch.called_back_bytes), (false, 0), "not more than it may");
        watch.decide(62 * MIB);
        assert_eq!((watch.is_tight, watch.called_back_bytes), (true, 6 * MIB));
        watch.decide(61 * MIB);
        assert_eq!(watch.called_back_bytes, 11 * MIB, "it was not enough");
        watch.decide(55 * MIB);
        assert_eq!((watch.is_tight, watch.called_back_bytes), (false, 11 * MIB));
        (0..20).for_each(|_| watch.decide(50 * MIB));
        assert_eq!(watch.called_back_bytes, 0);
        (0..20).for_each(|_| watch.decide(90 * MIB));
        assert_eq!(watch.called_back_bytes, 64 * MIB, "no more than there is");
    }
}
