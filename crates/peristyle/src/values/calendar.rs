//! Days and seconds to civil dates (proleptic Gregorian), without a time zone.

/// Year, month (1 to 12) and day (1 to 31) of a number of days since 1970-01-01.
///
/// Counts in eras of 400 years that begin on 1 March, so that a leap day is the last of its year.
pub(crate) fn civil(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month as u32, day as u32)
}

/// `2013-01-31`, or `None` outside of the years 1 to 9999.
pub(crate) fn date(days: i64) -> Option<String> {
    let (year, month, day) = civil(days);
    (1..=9999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Days and milliseconds of the day of a number of milliseconds since 1970.
pub(crate) fn split_millis(millis: i64) -> (i64, i64) {
    (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000))
}

/// `05:17:00` of a number of milliseconds of a day.
pub(crate) fn clock(millis: i64) -> String {
    let seconds = millis / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(date(15_706).as_deref(), Some("2013-01-01"));
        assert_eq!(date(-1).as_deref(), Some("1969-12-31"));
        assert_eq!(date(11_016).as_deref(), Some("2000-02-29"));
        assert_eq!(date(i64::from(i32::MAX)), None);
    }

    #[test]
    fn milliseconds_before_1970_belong_to_the_day_before() {
        assert_eq!(split_millis(-1), (-1, 86_399_999));
        assert_eq!(clock(19_020_000), "05:17:00");
    }
}
