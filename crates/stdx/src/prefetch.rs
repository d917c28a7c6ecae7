//! Asking for memory before it is read.

/// The bytes a processor fetches at once.
const LINE_BYTES: usize = 64;
/// What is asked for of one run of bytes at most.
const BYTES_MAX: usize = 4096;

/// Has the processor fetch bytes that will be read soon. Of many runs that lie apart, asking for the
/// next ones first hides most of the time that each would be waited for. Changes nothing else.
#[inline]
#[allow(unsafe_code, reason = "a hint to the processor has no safe form")]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..bytes.len().min(BYTES_MAX)).step_by(LINE_BYTES) {
        let line = bytes[offset..].as_ptr();
        // SAFETY: a prefetch reads nothing and never faults; the place is within `bytes` besides.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, LINE_BYTES, BYTES_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_will_do() {
        for length in [0, 1, 63, 64, 65, 5000] {
            prefetch(&vec![1; length]);
        }
    }
}
