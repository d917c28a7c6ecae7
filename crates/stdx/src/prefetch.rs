//! Asking for memory before it is read.

/// The bytes a processor fetches at once.
const LINE_BYTES: usize = 64;
/// What is asked for of one run of bytes at most.
const BYTES_MAX: usize = 4096;

/// Has the processor fetch bytes that will be read soon. Of many runs that lie apart, asking for the
/// next ones first hides most of the time that each would be waited for. Changes nothing else.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    lines(bytes.as_ptr(), bytes.len());
}

/// [`prefetch`] of all of a value.
#[inline]
pub fn prefetch_value<T>(value: &T) {
    lines(std::ptr::from_ref(value).cast(), size_of::<T>());
}

#[inline]
#[allow(unsafe_code, reason = "a hint to the processor has no safe form")]
fn lines(start: *const u8, byte_count: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..byte_count.min(BYTES_MAX)).step_by(LINE_BYTES) {
        let line = start.wrapping_add(offset);
        // SAFETY: a prefetch reads nothing and never faults, whatever the place.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, byte_count, LINE_BYTES, BYTES_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prefetch has no effect that a test could see. That it never reads the memory can be seen: a read of these
    /// places ends the process.
    #[test]
    fn memory_that_is_not_there_may_be_asked_for() {
        for address in [0, 1, LINE_BYTES, usize::MAX - BYTES_MAX / 2, usize::MAX] {
            for byte_count in [0, 1, LINE_BYTES - 1, LINE_BYTES, LINE_BYTES + 1, BYTES_MAX + 1, usize::MAX] {
                lines(std::ptr::without_provenance(address), byte_count);
            }
        }
    }
}
