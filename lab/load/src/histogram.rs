//! Latencies in a fixed number of buckets: 1/32 wide, from a microsecond to an hour.

/// Buckets in each doubling.
const STEPS: u64 = 32;
const BUCKETS: usize = 32 * STEPS as usize;

/// Counts of latencies.
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    most_us: u64,
}

impl Histogram {
    /// An empty one.
    pub(crate) fn new() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], total: 0, most_us: 0 }
    }

    /// One more latency.
    pub(crate) fn record(&mut self, us: u64) {
        self.counts[bucket(us)] += 1;
        self.total += 1;
        self.most_us = self.most_us.max(us);
    }

    /// Adds all of another one.
    pub(crate) fn add(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.total += other.total;
        self.most_us = self.most_us.max(other.most_us);
    }

    /// The upper end of the bucket in which the quantile lies; 0 of none.
    pub(crate) fn quantile_us(&self, quantile: f64) -> u64 {
        let wanted = (self.total as f64 * quantile).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return upper_end(index).min(self.most_us);
            }
        }
        self.most_us
    }

    /// Fields of a JSON object.
    pub(crate) fn json(&self) -> String {
        let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|quantile| self.quantile_us(quantile));
        let most = self.most_us;
        format!("\"p50_us\":{p50},\"p90_us\":{p90},\"p99_us\":{p99},\"p999_us\":{p999},\"max_us\":{most}")
    }
}

fn bucket(us: u64) -> usize {
    if us < STEPS {
        return us as usize;
    }
    let doubling = u64::from(us.ilog2()) - u64::from(STEPS.ilog2());
    let step = (us >> doubling) - STEPS;
    ((doubling + 1) * STEPS + step).min(BUCKETS as u64 - 1) as usize
}

fn upper_end(index: usize) -> u64 {
    let (doubling, step) = (index as u64 / STEPS, index as u64 % STEPS);
    if doubling == 0 { step } else { ((STEPS + step + 1) << (doubling - 1)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_off_by_a_thirty_second_at_most() {
        let mut histogram = Histogram::new();
        (1..=100_000).for_each(|us| histogram.record(us));
        for quantile in [0.5, 0.99, 0.999] {
            let (got, exact) = (histogram.quantile_us(quantile) as f64, quantile * 100_000.0);
            assert!(got >= exact && got <= exact * (1.0 + 1.0 / 32.0), "{quantile}: {got}");
        }
        assert_eq!(histogram.quantile_us(1.0), 100_000);
    }

    #[test]
    fn every_latency_lies_below_the_end_of_its_bucket() {
        for us in (0..2000).chain([1 << 20, (1 << 30) + 12345]) {
            let index = bucket(us);
            assert!(upper_end(index) >= us && (index == 0 || upper_end(index - 1) < us), "{us}");
        }
    }
}
