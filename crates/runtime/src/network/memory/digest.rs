//! All that was sent over a network, in one number: two runs of a seed must agree on it.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// Spreads what is taken in over all bits, and is odd.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash of bytes and of the moments at which they arrive.
#[derive(Debug)]
pub(super) struct Digest {
    begun: Instant,
    value: AtomicU64,
}

impl Digest {
    /// Of nothing, at this moment.
    pub(super) fn new() -> Digest {
        Digest { begun: Instant::now(), value: AtomicU64::new(0) }
    }

    pub(super) fn add(&self, arrives: Instant, bytes: &[u8]) {
        let nanos = arrives.saturating_duration_since(self.begun).as_nanos() as u64;
        let mut value = mix(self.value(), nanos);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            value = mix(value, u64::from_le_bytes(*word));
        }
        for byte in rest {
            value = mix(value, u64::from(*byte));
        }
        self.value.store(mix(value, bytes.len() as u64), Ordering::Relaxed);
    }

    pub(super) fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

fn mix(value: u64, more: u64) -> u64 {
    (value ^ more).wrapping_mul(FACTOR).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_sent_and_when_makes_a_difference() {
        let begun = Instant::now();
        let of = |micros: u64, bytes: &[u8]| {
            let digest = Digest::new();
            digest.add(begun + Duration::from_micros(micros), bytes);
            digest.value()
        };
        let bytes = b"some bytes that are longer than one word";
        assert_eq!(of(7, bytes), of(7, bytes));
        assert_ne!(of(7, bytes), of(8, bytes));
        assert_ne!(of(7, bytes), of(7, &bytes[1..]));
        assert_ne!(of(7, b"a"), of(7, b"a\0"));
    }
}
