//! Memory that the kernel reads into past its page cache: aligned, and owned by the read.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, Range};
use std::ptr::NonNull;

/// Alignment of every buffer: that of a page, which is enough for any device.
pub(super) const BUFFER_ALIGNMENT: usize = 4096;

/// Bytes at an aligned address, of which a first part holds something.
pub(super) struct AlignedBuffer {
    start: NonNull<u8>,
    capacity: usize,
    /// Invariant: so many bytes from the start are initialised; filled <= capacity.
    filled: usize,
}

// SAFETY: the buffer owns its memory alone, as a `Vec<u8>` does.
#[expect(unsafe_code, reason = "owns a raw allocation")]
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// Room for that many bytes, at least one, none of them filled.
    #[expect(unsafe_code, reason = "`Vec` can not be told an alignment")]
    pub(super) fn with_capacity(capacity: usize) -> AlignedBuffer {
        let layout = layout(capacity);
        // SAFETY: the layout's size is not 0.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        AlignedBuffer { start, capacity: layout.size(), filled: 0 }
    }

    /// One without room.
    pub(super) fn empty() -> AlignedBuffer {
        AlignedBuffer { start: NonNull::dangling(), capacity: 0, filled: 0 }
    }

    /// Gives one without room that of so many bytes.
    pub(super) fn make_room(&mut self, capacity: usize) {
        if self.capacity == 0 {
            *self = AlignedBuffer::with_capacity(capacity);
        }
    }

    /// How many bytes hold something.
    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// Address and length of what is not filled. Writing there needs the buffer to live on and
    /// nobody else to look, which is what the owner of a read in flight sees to.
    pub(super) fn rest(&mut self) -> (*mut u8, usize) {
        let rest = self.spare();
        (rest.as_mut_ptr().cast(), rest.len())
    }

    /// What is not filled.
    #[expect(unsafe_code, reason = "the memory is raw")]
    pub(super) fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: filled <= capacity, the memory is ours, and need not be initialised.
        unsafe {
            let start = self.start.as_ptr().add(self.filled).cast::<MaybeUninit<u8>>();
            std::slice::from_raw_parts_mut(start, self.capacity - self.filled)
        }
    }

    /// Says that the kernel has written so many more bytes.
    ///
    /// # Safety
    /// They must have been written, from the first that was not filled on.
    #[expect(unsafe_code, reason = "only the caller knows what the kernel wrote")]
    pub(super) unsafe fn add_filled(&mut self, bytes: usize) {
        assert!(bytes <= self.capacity - self.filled, "the kernel wrote more than was asked for");
        self.filled += bytes;
    }

    /// What holds something.
    #[expect(unsafe_code, reason = "the memory is raw")]
    fn as_slice(&self) -> &[u8] {
        // SAFETY: the first `filled` bytes are initialised and ours.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.filled) }
    }
}

impl Drop for AlignedBuffer {
    #[expect(unsafe_code, reason = "gives back what `with_capacity` took")]
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: allocated with this layout, and given back once.
            unsafe { dealloc(self.start.as_ptr(), layout(self.capacity)) };
        }
    }
}

fn layout(capacity: usize) -> Layout {
    // A read is bounded long before `isize::MAX`, the one thing that makes a layout impossible.
    Layout::from_size_align(capacity.max(1), BUFFER_ALIGNMENT).expect("a bounded size, a power of two")
}

/// Bytes that were read, exactly those that were asked for.
pub struct ColdBytes {
    memory: Memory,
    wanted: Range<usize>,
}

enum Memory {
    Aligned(AlignedBuffer),
    Plain(Vec<u8>),
}

impl ColdBytes {
    /// A part of an aligned buffer. It must be filled so far.
    pub(super) fn aligned(buffer: AlignedBuffer, wanted: Range<usize>) -> ColdBytes {
        assert!(wanted.end <= buffer.filled, "bytes that were not read");
        ColdBytes { memory: Memory::Aligned(buffer), wanted }
    }

    /// All of a vector.
    pub(super) fn plain(bytes: Vec<u8>) -> ColdBytes {
        let wanted = 0..bytes.len();
        ColdBytes { memory: Memory::Plain(bytes), wanted }
    }
}

impl Deref for ColdBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let all = match &self.memory {
            Memory::Aligned(buffer) => buffer.as_slice(),
            Memory::Plain(bytes) => bytes,
        };
        &all[self.wanted.clone()]
    }
}

impl fmt::Debug for ColdBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColdBytes({} bytes)", self.wanted.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "plays the kernel")]
    fn a_buffer_shows_what_was_filled_and_is_aligned() {
        let mut buffer = AlignedBuffer::with_capacity(8192);
        assert_eq!(buffer.rest().0.align_offset(BUFFER_ALIGNMENT), 0);
        for part in [&b"abc"[..], b"defg"] {
            for (target, byte) in buffer.spare().iter_mut().zip(part) {
                target.write(*byte);
            }
            // SAFETY: written just now.
            unsafe { buffer.add_filled(part.len()) };
        }
        assert_eq!(buffer.filled(), 7);
        assert_eq!(&*ColdBytes::aligned(buffer, 2..5), b"cde");
    }
}
