//! Memory that was freed: kept, as long as the node is within what it may have.
//!
//! Memtables, caches and buffers come and go, and take the same memory again; the kernel has to clear each page
//! that it hands out, so to keep them for a while is cheaper. But what is kept of one kind is of no use to another, so
//! that all together can come to more than `memory`, of which every part is held by itself. Then nothing is kept.

use std::time::Duration;

/// How long it is kept.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// And while the node has more than it may.
const KEPT_WHEN_TIGHT: Duration = Duration::from_millis(10);

/// Of what the node may have, one part in so many is to be left: memory is looked at now and then only.
const SPARE: u64 = 16;

/// Looks after freed memory in a process that is to have no more than so much.
#[derive(Debug)]
pub(crate) struct FreedMemory {
    bytes_max: u64,
    is_tight: bool,
}

impl FreedMemory {
    /// Keeps freed memory from now on.
    pub(crate) fn keep(bytes_max: u64) -> Self {
        allocator::keep_freed_for(KEPT_FOR);
        FreedMemory { bytes_max, is_tight: false }
    }

    /// Gives the kernel what is kept if the process has too much; to be called now and then.
    pub(crate) fn look(&mut self) {
        let is_tight =
            runtime::resident_bytes().is_some_and(|bytes| bytes > self.bytes_max - self.bytes_max / SPARE);
        if is_tight {
            allocator::give_back();
        }
        if is_tight != self.is_tight {
            self.is_tight = is_tight;
            allocator::keep_freed_for(if is_tight { KEPT_WHEN_TIGHT } else { KEPT_FOR });
        }
    }
}
