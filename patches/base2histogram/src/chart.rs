//! Several histograms, one below the other.

use std::fmt;

use crate::{Histogram, PercentileStats};

/// Histograms with their names. Each is a line with its percentiles; bars are not drawn.
#[derive(Clone, Debug, Default)]
pub struct AsciiChart {
    lines: Vec<(String, PercentileStats)>,
}

impl AsciiChart {
    /// Without any.
    pub fn new() -> AsciiChart {
        AsciiChart::default()
    }

    /// With one more.
    #[must_use]
    pub fn add(mut self, name: &str, histogram: Histogram) -> AsciiChart {
        self.lines.push((name.to_owned(), histogram.percentile_stats()));
        self
    }

    /// What is shown of it: there is one way only.
    pub fn detailed(&self) -> &AsciiChart {
        self
    }
}

impl fmt::Display for AsciiChart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|(name, stats)| writeln!(out, "{name}: {stats}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_histogram_is_a_line() {
        let mut histogram = Histogram::new();
        histogram.record(7);
        let chart = AsciiChart::new().add("some", histogram).add("none", Histogram::new());
        assert_eq!(
            chart.detailed().to_string(),
            "some: n=1 p0.1=7 p1=7 p5=7 p10=7 p50=7 p90=7 p99=7 p99.9=7\n\
             none: n=0 p0.1=0 p1=0 p5=0 p10=0 p50=0 p90=0 p99=0 p99.9=0\n"
        );
    }
}
