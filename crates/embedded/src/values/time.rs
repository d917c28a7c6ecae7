//! Dates, times and durations, as the numbers they are: no calendar is brought along.

use types::{CqlType, date};

pub use types::duration::Duration;

use super::{FromCql, ToCql, ValueError, Written, damaged, fixed, mismatch, required};

/// A `timestamp`: milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A `date`: days since 1970-01-01, negative before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

/// A `time` of day: nanoseconds since midnight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

const MILLIS_PER_SECOND: i64 = 1_000;

impl From<std::time::SystemTime> for Timestamp {
    /// Whole milliseconds, rounded towards the past; times beyond the type's range are at its end.
    fn from(time: std::time::SystemTime) -> Self {
        let millis = |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Timestamp(match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => millis(since),
            Err(before) => {
                let before = before.duration();
                let is_whole = before.subsec_nanos().is_multiple_of(1_000_000);
                -millis(before) - i64::from(!is_whole)
            }
        })
    }
}

impl Timestamp {
    /// The same as the system's time; `None` when the system can not say it.
    pub fn to_system_time(self) -> Option<std::time::SystemTime> {
        let seconds = std::time::Duration::from_secs(self.0.div_euclid(MILLIS_PER_SECOND).unsigned_abs());
        let whole = match self.0 < 0 {
            true => std::time::UNIX_EPOCH.checked_sub(seconds)?,
            false => std::time::UNIX_EPOCH.checked_add(seconds)?,
        };
        let rest = u64::try_from(self.0.rem_euclid(MILLIS_PER_SECOND)).unwrap_or(0);
        whole.checked_add(std::time::Duration::from_millis(rest))
    }
}

macro_rules! number {
    ($rust:ident, $cql:ident) => {
        impl ToCql for $rust {
            fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
                match cql_type {
                    CqlType::$cql => out.extend(self.0.to_be_bytes()),
                    _ => return Err(mismatch::<$rust>(cql_type)),
                }
                Ok(Written::Value)
            }
        }

        impl FromCql<'_> for $rust {
            fn from_cql(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Self, ValueError> {
                match cql_type {
                    CqlType::$cql => {
                        let bytes = fixed(cql_type, required::<$rust>(value)?)?;
                        Ok($rust(i64::from_be_bytes(bytes)))
                    }
                    _ => Err(mismatch::<$rust>(cql_type)),
                }
            }
        }
    };
}

number!(Timestamp, Timestamp);
number!(Time, Time);

impl ToCql for Date {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match cql_type {
            CqlType::Date => out.extend(date::encode(self.0.into())),
            _ => return Err(mismatch::<Date>(cql_type)),
        }
        Ok(Written::Value)
    }
}

impl FromCql<'_> for Date {
    fn from_cql(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Self, ValueError> {
        match cql_type {
            CqlType::Date => {
                let days = date::decode(required::<Date>(value)?).ok_or_else(|| damaged(cql_type))?;
                // 32 bits around the epoch.
                i32::try_from(days).map(Date).map_err(|_| damaged(cql_type))
            }
            _ => Err(mismatch::<Date>(cql_type)),
        }
    }
}

impl ToCql for Duration {
    fn to_cql(&self, cql_type: &CqlType, out: &mut Vec<u8>) -> Result<Written, ValueError> {
        match cql_type {
            CqlType::Duration => out.extend(self.encode()),
            _ => return Err(mismatch::<Duration>(cql_type)),
        }
        Ok(Written::Value)
    }
}

impl FromCql<'_> for Duration {
    fn from_cql(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Self, ValueError> {
        match cql_type {
            CqlType::Duration => {
                Duration::decode(required::<Duration>(value)?).ok_or_else(|| damaged(cql_type))
            }
            _ => Err(mismatch::<Duration>(cql_type)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration as StdDuration, UNIX_EPOCH};

    #[test]
    fn a_timestamp_is_a_system_time() {
        for millis in [0, 1, 999, 1_000, -1, -999, -1_000, -1_001, 1_700_000_000_123] {
            let time = Timestamp(millis).to_system_time().expect("in range");
            assert_eq!(Timestamp::from(time), Timestamp(millis));
        }
        assert_eq!(Timestamp::from(UNIX_EPOCH - StdDuration::from_micros(1)), Timestamp(-1));
    }
}
