//! Latencies as a histogram: three significant digits, up to an hour.
//!
//! Kept raw, second by second, in the HdrHistogram format (V2, compressed, in base64) that its tools in other
//! languages read; so any percentile of any part of a run can be told later, and runs can be added up. A percentile
//! is never the mean of percentiles.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// An hour; whatever takes longer is counted as that.
const MAX_US: u64 = 3_600_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    /// None yet.
    pub fn new() -> Latencies {
        // Grows with what is recorded: a second of short latencies has 16 KiB.
        Latencies(Histogram::new(SIGNIFICANT_DIGITS).expect("the format allows three digits"))
    }

    /// One more latency.
    pub fn record(&mut self, us: u64) {
        self.0.record(us.min(MAX_US)).expect("a histogram grows as far as an hour");
    }

    /// All of another one as well.
    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("a histogram grows as far as an hour");
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// So much of them took at most so many microseconds; 0 of none. `quantile` is from 0 to 1.
    pub fn quantile_us(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// The mean in microseconds; 0 of none.
    pub fn mean_us(&self) -> f64 {
        self.0.mean()
    }

    /// The longest, in microseconds; 0 of none.
    pub fn max_us(&self) -> u64 {
        self.0.max()
    }

    /// Steps of the distribution: values that occur, with how many there are of each.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// The histogram as HdrHistogram's tools read it.
    pub fn encoded(&self) -> String {
        let mut bytes = Vec::new();
        let encoded = V2DeflateSerializer::new().serialize(&self.0, &mut bytes);
        encoded.expect("a vector takes all bytes, and the counts fit");
        STANDARD.encode(bytes)
    }

    /// The other way round.
    ///
    /// # Errors
    /// Not base64, or not a histogram.
    pub fn decode(text: &str) -> Result<Latencies, String> {
        let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
        let histogram: Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| error.to_string())?;
        let mut latencies = Latencies::new();
        latencies.0.add(&histogram).map_err(|error| error.to_string())?;
        Ok(latencies)
    }
}

impl Serialize for Latencies {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.encoded())
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Latencies, D::Error> {
        let text = String::deserialize(deserializer)?;
        Latencies::decode(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_comes_back_from_its_text() {
        let mut latencies = Latencies::new();
        (1..10_000u64).for_each(|us| latencies.record(us * us));
        let text = serde_json::to_string(&latencies).unwrap();
        let back: Latencies = serde_json::from_str(&text).unwrap();
        assert_eq!(back, latencies);
        assert!(Latencies::decode("AAAA").is_err() && Latencies::decode("?").is_err());
    }

    #[test]
    fn a_quantile_is_off_by_a_thousandth_at_most() {
        let mut latencies = Latencies::new();
        (1..=100_000).for_each(|us| latencies.record(us));
        for quantile in [0.5, 0.99, 0.999] {
            let (got, exact) = (latencies.quantile_us(quantile) as f64, quantile * 100_000.0);
            assert!((got / exact - 1.0).abs() < 0.001, "{quantile}: {got}");
        }
    }

    #[test]
    fn what_took_longer_than_an_hour_is_counted() {
        let mut latencies = Latencies::new();
        latencies.record(u64::MAX);
        assert_eq!(latencies.count(), 1);
    }
}
