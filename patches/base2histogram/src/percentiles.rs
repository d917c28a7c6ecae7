//! What is told of a histogram.

use std::fmt;

/// How many numbers were recorded, and which of them stand where in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PercentileStats {
    /// How many there are.
    pub samples: u64,
    /// One in a thousand is no larger.
    pub p0_1: u64,
    /// One in a hundred is no larger.
    pub p1: u64,
    /// One in twenty is no larger.
    pub p5: u64,
    /// One in ten is no larger.
    pub p10: u64,
    /// The median.
    pub p50: u64,
    /// One in ten is larger.
    pub p90: u64,
    /// One in a hundred is larger.
    pub p99: u64,
    /// One in a thousand is larger.
    pub p99_9: u64,
}

impl fmt::Display for PercentileStats {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PercentileStats { samples, p0_1, p1, p5, p10, p50, p90, p99, p99_9 } = self;
        write!(out, "n={samples} p0.1={p0_1} p1={p1} p5={p5} p10={p10} ")?;
        write!(out, "p50={p50} p90={p90} p99={p99} p99.9={p99_9}")
    }
}
