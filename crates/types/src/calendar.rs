//! The proleptic Gregorian calendar, in days from 1970-01-01.

/// A day by its year, month and day of month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    /// 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
}

const DAYS_PER_400_YEARS: i64 = 146_097;
/// From 0000-03-01, where the count by eras starts, to 1970-01-01.
const EPOCH_OFFSET_DAYS: i64 = 719_468;

impl Day {
    /// Days from 1970-01-01. The year must stay within a thousand million.
    pub fn to_epoch_days(self) -> i64 {
        // Years start in March here, so that the leap day is their last.
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month_from_march = (self.month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * DAYS_PER_400_YEARS + day_of_era - EPOCH_OFFSET_DAYS
    }

    /// The inverse of [`to_epoch_days`](Self::to_epoch_days).
    pub fn from_epoch_days(days: i64) -> Day {
        let shifted = days + EPOCH_OFFSET_DAYS;
        let era = shifted.div_euclid(DAYS_PER_400_YEARS);
        let day_of_era = shifted.rem_euclid(DAYS_PER_400_YEARS);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12 + 1;
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Day { year, month, day }
    }

    /// The same day of another month, or that month's last.
    pub fn plus_months(self, months: i64) -> Day {
        let total = self.year * 12 + self.month - 1 + months;
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
        Day { year, month, day: self.day.min(days_in(year, month)) }
    }

    /// Is there such a day?
    pub fn exists(self) -> bool {
        (1..=12).contains(&self.month) && (1..=days_in(self.year, self.month)).contains(&self.day)
    }
}

/// Days of a month.
pub fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        let check = |year, month, day, days| {
            let day = Day { year, month, day };
            assert_eq!(day.to_epoch_days(), days);
            assert_eq!(Day::from_epoch_days(days), day);
        };
        check(1970, 1, 1, 0);
        check(2000, 2, 29, 11_016);
        check(2000, 3, 1, 11_017);
        check(0, 1, 1, -719_528);
        check(-1, 12, 31, -719_529);
        check(1582, 10, 15, -141_427);
    }

    #[test]
    fn every_day_of_nine_centuries_round_trips() {
        let mut before = Day::from_epoch_days(-200_001);
        for days in -200_000..130_000 {
            let day = Day::from_epoch_days(days);
            assert!(day.exists());
            assert_eq!(day.to_epoch_days(), days);
            assert!((before.year, before.month, before.day) < (day.year, day.month, day.day));
            before = day;
        }
    }
}
