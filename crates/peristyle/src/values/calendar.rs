//! Days and seconds to dates as people read them, without a time zone.

use types::calendar::Day;

/// `2013-01-31`, or `None` outside of the years 1 to 9999.
pub(crate) fn date(days: i64) -> Option<String> {
    let Day { year, month, day } = Day::from_epoch_days(days);
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
        assert_eq!(date(0).as_deref(), Some("1970-01-01"));
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
