//! Which row is next: at random under a seed, or with YCSB's skew.

use crate::Outcome;

/// A small random number generator (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    /// Any seed will do.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// From 0 to 1, without 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Samples drawn before the run; more would only fill the client's cache.
const SAMPLES: usize = 1 << 16;
/// YCSB's constant of its zipfian choice.
const THETA: f64 = 0.99;
/// Beyond this many the sum is taken as an integral.
const EXACT: u64 = 100_000;

/// Rows with YCSB's skew: few are asked for often. Drawn before the run, since drawing is dear.
pub(crate) struct Skewed {
    samples: Vec<u64>,
    next: usize,
}

impl Skewed {
    /// Of so many rows. The method is that of Gray et al., "Quickly generating billion-record synthetic
    /// databases", as in YCSB; ranks are scattered over the rows by a hash.
    pub(crate) fn new(rows: u64, seed: u64) -> Skewed {
        let mut random = Random::new(seed);
        let rows = rows.max(2);
        let zeta = zeta(rows);
        let alpha = 1.0 / (1.0 - THETA);
        let eta = (1.0 - (2.0 / rows as f64).powf(1.0 - THETA)) / (1.0 - (1.0 + 0.5f64.powf(THETA)) / zeta);
        let mut sample = || {
            let drawn = random.fraction();
            let scaled = drawn * zeta;
            let rank = match scaled {
                _ if scaled < 1.0 => 0,
                _ if scaled < 1.0 + 0.5f64.powf(THETA) => 1,
                _ => (rows as f64 * (eta * drawn - eta + 1.0).powf(alpha)) as u64,
            };
            hash(rank) % rows
        };
        Skewed { samples: (0..SAMPLES).map(|_| sample()).collect(), next: 0 }
    }

    /// The same choice among the rows that `has` says yes to.
    pub(crate) fn among(&self, has: impl Fn(u64) -> bool) -> Outcome<Skewed> {
        let samples: Vec<u64> = self.samples.iter().copied().filter(|row| has(*row)).collect();
        if samples.is_empty() {
            Err("a node has none of the rows".into())
        } else {
            Ok(Skewed { samples, next: 0 })
        }
    }

    /// The next row.
    pub(crate) fn next(&mut self) -> u64 {
        self.next = (self.next + 1) % self.samples.len();
        self.samples[self.next]
    }
}

fn zeta(rows: u64) -> f64 {
    let exact: f64 = (1..=rows.min(EXACT)).map(|rank| (rank as f64).powf(-THETA)).sum();
    let power = 1.0 - THETA;
    let rest = ((rows.max(EXACT) as f64).powf(power) - (EXACT as f64).powf(power)) / power;
    exact + rest
}

/// FNV-1a over a number's bytes, as YCSB scatters its keys.
pub(crate) fn hash(number: u64) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211);
    number.to_le_bytes().iter().fold(0xCBF2_9CE4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skewed_rows_exist_and_few_are_asked_for_often() {
        let mut skewed = Skewed::new(1000, 1);
        let mut counts = vec![0u32; 1000];
        (0..SAMPLES).for_each(|_| counts[skewed.next() as usize] += 1);
        counts.sort_unstable_by(|left, right| right.cmp(left));
        let first_tenth: u32 = counts[..100].iter().sum();
        assert!(first_tenth > SAMPLES as u32 / 2, "{first_tenth}");
    }
}
