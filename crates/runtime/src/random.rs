//! Randomness and unique ids, so that a seed repeats a run.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::{Builder, Uuid};

use crate::clock::Clock;

/// A source of random numbers and of unique ids.
pub trait Random: Send + Sync + fmt::Debug {
    /// Sixty-four random bits.
    fn next_u64(&self) -> u64;

    /// Fills the buffer with random bytes.
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// A number below `bound`; 0 if the bound is 0. Its bias is at most `bound / 2^64`.
    fn below(&self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A random id.
    fn uuid_v4(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        Builder::from_random_bytes(bytes).into_uuid()
    }

    /// A time id: unique for this source, and later ones compare greater as CQL's `timeuuid`, even
    /// when the clock stands still or goes back.
    fn uuid_v1(&self, clock: &dyn Clock) -> Uuid;
}

/// Numbers that depend on the seed alone. Cheap, and safe to share; not for secrets.
#[derive(Debug)]
pub struct SeededRandom {
    state: AtomicU64,
    time_ids: TimeIds,
}

impl SeededRandom {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> SeededRandom {
        let state = AtomicU64::new(seed);
        let time_ids = TimeIds::new(split_mix(&state));
        SeededRandom { state, time_ids }
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        split_mix(&self.state)
    }

    fn uuid_v1(&self, clock: &dyn Clock) -> Uuid {
        self.time_ids.next(clock)
    }
}

/// Numbers seeded by the operating system; ids and bytes come from its entropy directly.
#[derive(Debug)]
pub struct OsRandom {
    seeded: SeededRandom,
}

impl OsRandom {
    /// Draws a seed from the operating system.
    pub fn new() -> io::Result<OsRandom> {
        let mut seed = [0; 8];
        fill_from_system(&mut seed)?;
        Ok(OsRandom { seeded: SeededRandom::new(u64::from_le_bytes(seed)) })
    }
}

impl Random for OsRandom {
    fn next_u64(&self) -> u64 {
        self.seeded.next_u64()
    }

    fn fill(&self, buffer: &mut [u8]) {
        if fill_from_system(buffer).is_err() {
            // The pool was ready when the seed was drawn, so this does not happen; numbers from
            // that seed are still unique enough for ids.
            self.seeded.fill(buffer);
        }
    }

    fn uuid_v1(&self, clock: &dyn Clock) -> Uuid {
        self.seeded.uuid_v1(clock)
    }
}

fn fill_from_system(mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        let filled = match rustix::rand::getrandom(&mut *buffer, rustix::rand::GetRandomFlags::empty()) {
            Err(rustix::io::Errno::INTR) => 0,
            other => other?,
        };
        buffer = &mut buffer[filled..];
    }
    Ok(())
}

/// Steele, Lea and Flood's SplitMix64: an additive counter and a mixing function, which makes the
/// shared state a single atomic addition.
fn split_mix(state: &AtomicU64) -> u64 {
    const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut mixed = state.fetch_add(GOLDEN_GAMMA, Ordering::Relaxed).wrapping_add(GOLDEN_GAMMA);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Makes version 1 UUIDs: 100 ns since 1582, a clock sequence, a node.
#[derive(Debug)]
struct TimeIds {
    /// The last time handed out, in ticks; the next one is greater.
    last_ticks: AtomicU64,
    clock_sequence: u16,
    node: [u8; 6],
}

/// Ticks of 100 ns between 1582-10-15 and 1970-01-01.
const TICKS_BEFORE_1970: i64 = 0x01B2_1DD2_1381_4000;

impl TimeIds {
    fn new(seed: u64) -> TimeIds {
        let [a, b, c, d, e, f, g, h] = seed.to_le_bytes();
        TimeIds {
            last_ticks: AtomicU64::new(0),
            clock_sequence: u16::from_le_bytes([g, h]),
            // RFC 9562: a node that is no hardware address carries the multicast bit.
            node: [a | 1, b, c, d, e, f],
        }
    }

    fn next(&self, clock: &dyn Clock) -> Uuid {
        let ticks = clock.now_micros().saturating_mul(10).saturating_add(TICKS_BEFORE_1970);
        let now = u64::try_from(ticks).unwrap_or(0);
        let mut chosen = now;
        // The closure always answers, so the update cannot fail.
        let _ = self.last_ticks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            chosen = now.max(last.saturating_add(1));
            Some(chosen)
        });
        let [high @ .., m4, m5, m6, m7] = chosen.to_be_bytes();
        let [h0, h1, h2, h3] = high;
        let [s0, s1] = self.clock_sequence.to_be_bytes();
        let [n0, n1, n2, n3, n4, n5] = self.node;
        Uuid::from_bytes([
            m4,
            m5,
            m6,
            m7,
            h2,
            h3,
            (h0 & 0x0F) | 0x10,
            h1,
            (s0 & 0x3F) | 0x80,
            s1,
            n0,
            n1,
            n2,
            n3,
            n4,
            n5,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use std::time::Duration;

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let (left, right) = (SeededRandom::new(7), SeededRandom::new(7));
        let clock = ManualClock::default();
        assert_eq!(left.uuid_v4(), right.uuid_v4());
        assert_eq!(left.uuid_v1(&clock), right.uuid_v1(&clock));
        assert_ne!(left.next_u64(), SeededRandom::new(8).next_u64());
    }

    #[test]
    fn time_ids_are_unique_and_rise_while_the_clock_stands_still() {
        let random = SeededRandom::new(1);
        let clock = ManualClock::default();
        let ids: Vec<Uuid> = (0..100).map(|_| random.uuid_v1(&clock)).collect();
        for pair in ids.windows(2) {
            let ticks = |id: &Uuid| id.get_timestamp().expect("version 1 has a time").to_gregorian().0;
            assert!(ticks(&pair[0]) < ticks(&pair[1]));
        }
    }

    #[test]
    fn time_ids_carry_the_clock_s_time() {
        let random = SeededRandom::new(1);
        let clock = ManualClock::new(1_700_000_000_123_456);
        clock.advance(Duration::from_secs(1));
        let id = random.uuid_v1(&clock);
        assert_eq!(id.get_version_num(), 1);
        let (seconds, nanos) = id.get_timestamp().expect("version 1 has a time").to_unix();
        assert_eq!((seconds, nanos), (1_700_000_001, 123_456_000));
    }

    #[test]
    fn system_entropy_fills_buffers() {
        let random = OsRandom::new().expect("entropy");
        assert_ne!(random.uuid_v4(), random.uuid_v4());
        assert_eq!(random.uuid_v4().get_version_num(), 4);
        assert!(random.below(10) < 10);
    }
}
