//! What the figures of a few repetitions say of those that were not run.
//!
//! Repetitions are few and scatter for reasons that nobody knows, so the interval is Student's: wide with two or three
//! of them. One alone has none, and we claim none.

/// Two-sided 95% points of Student's t for 1 to 30 degrees of freedom.
const STUDENT_T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// A mean, and how far from it the true one may be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Of the repetitions; 0 of none.
    pub(crate) mean: f64,
    /// The interval of 95% is the mean with so much on either side. None with fewer than two repetitions.
    pub(crate) margin: Option<f64>,
}

impl Estimate {
    /// From one figure of each repetition.
    pub(crate) fn of(samples: &[f64]) -> Estimate {
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count.max(1.0);
        let margin = student_t(samples.len()).map(|t| {
            let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
            t * (squares / (count - 1.0)).sqrt() / count.sqrt()
        });
        Estimate { mean, margin }
    }
}

/// Beyond the table the last point is taken, which makes the interval a trifle too wide.
fn student_t(sample_count: usize) -> Option<f64> {
    let freedom = sample_count.checked_sub(1).filter(|freedom| *freedom > 0)?;
    STUDENT_T.get(freedom - 1).or(STUDENT_T.last()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_known_sample() {
        let estimate = Estimate::of(&[10.0, 12.0, 14.0]);
        assert_eq!(estimate.mean, 12.0);
        assert!((estimate.margin.unwrap() - 4.303 * 2.0 / 3.0f64.sqrt()).abs() < 1e-9);
        let same = Estimate::of(&[5.0; 100]);
        assert_eq!((same.mean, same.margin), (5.0, Some(0.0)));
    }

    #[test]
    fn one_repetition_has_no_interval_and_none_has_no_mean() {
        assert_eq!(Estimate::of(&[7.0]), Estimate { mean: 7.0, margin: None });
        assert_eq!(Estimate::of(&[]), Estimate { mean: 0.0, margin: None });
    }
}
