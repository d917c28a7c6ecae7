//! The allocator of our binaries: mimalloc, asked the short way.
//!
//! The `mimalloc` crate asks for a *given* alignment every time, even where any block has it, which costs a
//! longer way whenever no block of the size is at hand. Nearly all of what a program asks for needs no more
//! than `ALIGN_ALWAYS`.
//!
//! A crate of its own, so that a program which embeds the database keeps its own allocator.

#![expect(unsafe_code, reason = "an allocator is unsafe by its trait, and a C library's functions are")]

use std::alloc::{GlobalAlloc, Layout};
use std::collections::TryReserveError;
use std::ffi::{c_int, c_long};
use std::time::Duration;

use libmimalloc_sys as mi;

/// `mi_option_purge_delay`: the milliseconds after which memory that nobody uses goes back to the kernel.
const PURGE_DELAY: c_int = 15;

unsafe extern "C" {
    // In the library as it is built always; the crate declares them with more than we need.
    fn mi_option_set(option: c_int, value: c_long);
    fn mi_collect(force: bool);
}

/// Keeps memory that was freed for so long before the kernel gets it back. Memory that the kernel hands out has
/// to be cleared page by page, so a program that always needs about as much again had better keep it.
pub fn keep_freed_for(time: Duration) {
    let milliseconds = c_long::try_from(time.as_millis()).unwrap_or(c_long::MAX);
    // SAFETY: the option takes any number; it is read anew whenever memory is freed.
    unsafe { mi_option_set(PURGE_DELAY, milliseconds) }
}

/// Gives the kernel what was freed and is kept ([`keep_freed_for`]), whichever thread freed it; unless all is kept for
/// ever ([`take_ahead`]).
pub fn give_back() {
    // SAFETY: any thread may ask for it at any time.
    unsafe { mi_collect(true) }
}

/// The library cuts blocks from regions of 1 GiB, which all threads and sizes share, in slices of this many bytes.
const SLICE_BYTES: usize = 64 << 10;
/// A block that is taken ahead, with the slice before it that the library describes it in: so many fill a region
/// without gaps.
const AHEAD_BYTES: usize = 32 * SLICE_BYTES;

/// Takes memory from the kernel, every page of it, for blocks that are asked for later, and keeps from now on
/// whatever is freed. Bytes are rounded up to 2 MiB.
///
/// # Errors
/// When there is not as much.
pub fn take_ahead(bytes: usize) -> Result<(), TryReserveError> {
    // SAFETY: as in `keep_freed_for`; below zero is for ever.
    unsafe { mi_option_set(PURGE_DELAY, -1) }
    let mut blocks = Vec::new();
    for _ in 0..bytes.div_ceil(AHEAD_BYTES) {
        let mut block = Vec::<u8>::new();
        block.try_reserve_exact(AHEAD_BYTES - SLICE_BYTES)?;
        // The kernel gives a page when it is written to.
        block.resize(AHEAD_BYTES - SLICE_BYTES, 1);
        blocks.push(std::hint::black_box(block));
    }
    Ok(())
}

/// Bytes that every block is aligned to, if it has as many: C's `max_align_t` on the machines we run on.
const ALIGN_ALWAYS: usize = 16;

/// mimalloc, for `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

fn is_aligned_anyway(layout: &Layout) -> bool {
    layout.align() <= ALIGN_ALWAYS && layout.align() <= layout.size()
}

// SAFETY: mimalloc's functions keep what `GlobalAlloc` asks for: blocks of at least that size, aligned as asked
// (or to `ALIGN_ALWAYS`, which is enough where `is_aligned_anyway`), apart from each other, until they are freed;
// null when there is no memory. They do not unwind.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and any power of two will do.
        unsafe {
            match is_aligned_anyway(&layout) {
                true => mi::mi_malloc(layout.size()).cast(),
                false => mi::mi_malloc_aligned(layout.size(), layout.align()).cast(),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe {
            match is_aligned_anyway(&layout) {
                true => mi::mi_zalloc(layout.size()).cast(),
                false => mi::mi_zalloc_aligned(layout.size(), layout.align()).cast(),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the block came from here, as the caller promises.
        unsafe { mi::mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the block came from here; whichever way is taken, the new one is aligned as the old one was.
        unsafe {
            match is_aligned_anyway(&layout) && layout.align() <= size {
                true => mi::mi_realloc(block.cast(), size).cast(),
                false => mi::mi_realloc_aligned(block.cast(), size, layout.align()).cast(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    unsafe extern "C" {
        fn mi_option_get(option: c_int) -> c_long;
    }

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    /// Pages of 4 KiB that the process has.
    fn resident_pages() -> usize {
        let figures = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
        figures.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number of pages")
    }

    /// What is freed is kept, or not, in the whole process: one test at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn memory_is_kept_and_given_back_and_taken_ahead() {
        let _alone = ALONE.lock();
        // SAFETY: any option may be asked for.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1000, "what the library does unless told, under the number it has");
        keep_freed_for(Duration::from_secs(60));
        assert_eq!(delay(), 60_000);

        // Others may have left memory that it comes from, so what counts is what is there with it.
        let block = std::hint::black_box(vec![1u8; 100 << 20]);
        let with_block = resident_pages();
        drop(block);
        assert!(resident_pages() >= with_block - ((10 << 20) >> 12), "it is kept");
        give_back();
        assert!(resident_pages() <= with_block - ((90 << 20) >> 12), "it went back");

        // A block of 128 KiB takes three slices.
        let (pages, blocks) = ((256 << 20) >> 12, 150 << 20);
        take_ahead(pages << 12).expect("memory");
        let ahead = resident_pages();
        assert!(ahead >= pages * 9 / 10, "{ahead} pages");
        let used: Vec<Vec<u8>> = (0..blocks >> 17).map(|index| vec![index as u8; 1 << 17]).collect();
        assert!(used.iter().enumerate().all(|(index, block)| block[99] == index as u8));
        let later = resident_pages();
        assert!(later <= ahead + pages / 10, "blocks come from there: {ahead} and then {later} pages");
        drop(used);
        assert!(resident_pages() >= ahead, "nothing goes back");
    }

    #[test]
    fn blocks_of_every_size_are_aligned_and_keep_their_bytes() {
        let _alone = ALONE.lock();
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in (1..200).chain([1000, 1 << 12, 1 << 17, 1 << 24]) {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                let bigger = size * 2 + 1;
                // SAFETY: the blocks are used within their sizes and freed once.
                unsafe {
                    let block = Allocator.alloc_zeroed(layout);
                    assert!(!block.is_null() && (block as usize).is_multiple_of(align), "{layout:?}");
                    assert!((0..size).all(|at| *block.add(at) == 0), "{layout:?}");
                    block.write_bytes(0x5a, size);
                    let grown = Allocator.realloc(block, layout, bigger);
                    assert!(!grown.is_null() && (grown as usize).is_multiple_of(align), "{layout:?}");
                    assert!((0..size).all(|at| *grown.add(at) == 0x5a), "{layout:?}");
                    Allocator.dealloc(grown, Layout::from_size_align(bigger, align).expect("a layout"));
                }
            }
        }
    }
}
