//! A zipfian choice exactly as YCSB's `ZipfianGenerator` (0.17.0) makes it.
//!
//! Item 0 is the most likely, item 1 is `2^theta` times less so, and so on. The method is that of Gray et al.
//! ("Quickly generating billion-record synthetic databases", SIGMOD 1994): one random fraction, one power. It is
//! exact for items 0 and 1; the rest follows a smooth curve in place of the steps, so that of 1,000 items with YCSB's
//! constant item 2 is drawn 17% more often than the law says, item 3 11%, item 10 1%, and item 100 3% less often.
//! Whoever wants the law itself takes `TrueZipfian`.
//!
//! YCSB lets the number of items grow and then reckons one of its two constants (`eta`) from the *first* number
//! still. Grown twofold, items 2 and 3 are never drawn; grown a hundredfold, items 2 to 199. We repeat that, since to
//! repeat YCSB is what this is for; runs that insert some percent do not notice.
//!
//! A draw takes 17 to 27 ns in a release build (2026-11-29, one core of an AMD EPYC, ten million draws of 100,000
//! items).

use super::Random;
use super::zeta::{grown_zeta, zeta};

/// YCSB's theta.
pub const ZIPFIAN_CONSTANT: f64 = 0.99;

/// A choice among items from 0 on, the first ones far more often. Cheap to clone: the clones of threads need not
/// each add up zeta.
#[derive(Clone, Debug)]
pub struct Zipfian {
    /// How many items there were at first.
    item_count: u64,
    theta: f64,
    /// `1 / (1 - theta)`: what turns a fraction into a rank.
    alpha: f64,
    /// The weights of the items together. Invariant: of `zeta_item_count` items.
    zeta: f64,
    zeta_item_count: u64,
    /// The weights of items 0 and 1 together.
    zeta_of_two: f64,
    eta: f64,
}

impl Zipfian {
    /// Of so many items. Takes up to 100,000 powers (1 to 2 ms), however many items there are.
    ///
    /// # Panics
    /// When there is no item, or theta is not between 0 and 1.
    pub fn new(item_count: u64, theta: f64) -> Zipfian {
        Zipfian::with_zeta(item_count, theta, zeta(item_count, theta))
    }

    /// The same with a sum of weights known beforehand.
    ///
    /// # Panics
    /// When there is no item, or theta is not between 0 and 1.
    pub fn with_zeta(item_count: u64, theta: f64, zeta: f64) -> Zipfian {
        assert!(item_count > 0, "a choice needs an item");
        assert!(theta > 0.0 && theta < 1.0, "theta {theta} is not between 0 and 1");
        let mut zipfian = Zipfian {
            item_count,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta,
            zeta_item_count: item_count,
            zeta_of_two: 1.0 + 0.5f64.powf(theta),
            eta: 0.0,
        };
        zipfian.set_eta();
        zipfian
    }

    /// The next item.
    pub fn draw(&self, random: &mut Random) -> u64 {
        self.item_at(random.fraction(), self.item_count)
    }

    /// The next item when there are so many by now. Fewer than at an earlier call are drawn from with the weights of
    /// that call, as YCSB does: one thread may not yet know of another's insert.
    pub fn draw_among(&mut self, item_count: u64, random: &mut Random) -> u64 {
        self.grow(item_count);
        self.item_at(random.fraction(), item_count)
    }

    /// Adds the weights of items that came since: two powers for one of them.
    pub(super) fn grow(&mut self, item_count: u64) {
        if item_count > self.zeta_item_count {
            self.zeta = grown_zeta(self.zeta, self.zeta_item_count..item_count, self.theta);
            self.zeta_item_count = item_count;
            self.set_eta();
        }
    }

    /// The item that a fraction from 0 to 1 falls on.
    pub(super) fn item_at(&self, fraction: f64, item_count: u64) -> u64 {
        let weight = fraction * self.zeta;
        if weight < 1.0 {
            return 0;
        }
        if weight < self.zeta_of_two {
            return 1;
        }
        let share = (self.eta * fraction - self.eta + 1.0).powf(self.alpha);
        // YCSB gives `item_count` itself, one past the end, for a fraction that rounds up to 1: once in 2^53 draws.
        ((item_count as f64 * share) as u64).min(item_count.saturating_sub(1))
    }

    fn set_eta(&mut self) {
        // The first number of items also after growth: see the head of the file.
        let lowest = (2.0 / self.item_count as f64).powf(1.0 - self.theta);
        self.eta = (1.0 - lowest) / (1.0 - self.zeta_of_two / self.zeta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_is_an_item() {
        for item_count in [1, 2, 3, 10, 1000] {
            let zipfian = Zipfian::new(item_count, ZIPFIAN_CONSTANT);
            let mut random = Random::new(1, 0);
            assert!((0..10_000).all(|_| zipfian.draw(&mut random) < item_count), "{item_count} items");
            let largest_fraction = 1.0 - f64::EPSILON / 2.0;
            assert!(zipfian.item_at(largest_fraction, item_count) < item_count);
            assert_eq!(zipfian.item_at(0.0, item_count), 0);
        }
    }

    #[test]
    fn growth_far_beyond_the_start_skips_items_as_in_ycsb() {
        let mut zipfian = Zipfian::new(1000, ZIPFIAN_CONSTANT);
        let mut random = Random::new(1, 0);
        let drawn: Vec<u64> = (0..100_000).map(|_| zipfian.draw_among(2000, &mut random)).collect();
        assert!(drawn.contains(&1) && drawn.contains(&4));
        assert!(!drawn.contains(&2) && !drawn.contains(&3));
    }

    #[test]
    fn growth_keeps_the_weights_for_a_thread_that_is_behind() {
        let mut ahead = Zipfian::new(1000, ZIPFIAN_CONSTANT);
        ahead.draw_among(1100, &mut Random::new(1, 0));
        let zeta_before = ahead.zeta;
        assert!((0..1000).all(|seed| ahead.draw_among(1050, &mut Random::new(seed, 0)) < 1050));
        assert_eq!(ahead.zeta, zeta_before);
    }
}
