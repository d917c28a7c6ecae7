//! A choice of the newest rows exactly as YCSB's `SkewedLatestGenerator` (0.17.0) makes it: workload D.
//!
//! The newest row is item 0 of a zipfian choice, the one before it item 1, and so on. YCSB takes as the number of
//! items the newest row's number, which is one less than there are rows: row 0 is never drawn. As rows come, YCSB's
//! zipfian choice grows with its flaw (see `zipfian.rs`); and the many reads of the very newest rows are of rows that
//! any cache still has, which flatters whatever is measured.
//!
//! A draw takes 20 to 27 ns in a release build, and 45 to 55 ns more when a row has come since the last one
//! (2026-11-29, one core of an AMD EPYC, ten million draws of 100,000 rows).

use super::Random;
use super::zipfian::{ZIPFIAN_CONSTANT, Zipfian};

/// A choice among rows, the newest far more often.
#[derive(Clone, Debug)]
pub struct Latest {
    ages: Zipfian,
}

impl Latest {
    /// Of the rows up to the newest, by its number. (YCSB's own choice of row 0 alone is broken; here it works.)
    pub fn new(newest_row: u64) -> Latest {
        Latest { ages: Zipfian::new(newest_row.max(1), ZIPFIAN_CONSTANT) }
    }

    /// The next row, when the newest is this by now: in YCSB, the last of the inserts acknowledged without a gap.
    pub fn draw(&mut self, newest_row: u64, random: &mut Random) -> u64 {
        newest_row.saturating_sub(self.ages.draw_among(newest_row, random))
    }

    /// The row that a fraction from 0 to 1 falls on.
    #[cfg(test)]
    pub(super) fn row_at(&mut self, fraction: f64, newest_row: u64) -> u64 {
        self.ages.grow(newest_row);
        newest_row - self.ages.item_at(fraction, newest_row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_is_a_row_while_rows_come() {
        for first_newest in [0, 1, 2, 1000] {
            let mut latest = Latest::new(first_newest);
            let mut random = Random::new(1, 0);
            for newest_row in first_newest..first_newest + 10_000 {
                let row = latest.draw(newest_row, &mut random);
                assert!(row <= newest_row && (row > 0 || newest_row < 2), "{row} of {newest_row}");
            }
        }
    }
}
