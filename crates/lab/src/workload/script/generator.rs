//! The generators of values that a script can name, each with its words.

use serde::Deserialize;

use super::span::{Distribution, Literal, Span};
use super::template::Template;

/// What makes a value. The words are explained in `docs/lab/workloads.md`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub(super) enum Generator {
    /// The number of the partition.
    Partition {},
    /// The number of the row in its partition.
    Row {},
    /// A text of both.
    Template { text: Template },
    /// A text or blob that tells whose it is, and is looked at when it is read.
    Derived { bytes: Span, of: Vec<String> },
    /// Letters by chance.
    Letters { bytes: Span },
    /// A whole number.
    Number {
        from: i64,
        to: i64,
        #[serde(default)]
        distribution: Distribution,
    },
    /// A fraction: even from one number to another, or normal.
    Double { from: Option<f64>, to: Option<f64>, mean: Option<f64>, deviation: Option<f64> },
    /// True with this chance.
    Boolean {
        #[serde(default = "half")]
        chance: f64,
    },
    /// Always the same.
    Constant { value: Literal },
    /// One of a few.
    Choice { of: Vec<Literal>, weights: Option<Vec<f64>> },
    /// The time of now, so many milliseconds later; or earlier, if that is negative.
    Now {
        #[serde(default)]
        offset_ms: Span,
    },
    /// A time that follows from the row.
    Time { start_ms: i64, step_ms: i64 },
    /// By chance, or following from a number.
    Uuid { of: Option<String> },
    /// So many of another value.
    List { of: String, count: Span },
    /// The same.
    Set { of: String, count: Span },
    /// So many keys with values.
    Map { key: String, value: String, count: Span },
    /// The fields of a user-defined type, or of a tuple.
    Fields { of: Vec<String> },
    /// What the partition is known to hold, or 0.
    Held {},
    /// One more than it holds; 0 again after so many.
    Next { modulo: Option<u64> },
}

fn half() -> f64 {
    0.5
}

impl Generator {
    /// Does it follow from partition and row alone, so that whoever reads knows it, too?
    pub(super) fn is_known_of_the_row(&self) -> bool {
        matches!(
            self,
            Generator::Partition {}
                | Generator::Row {}
                | Generator::Template { .. }
                | Generator::Constant { .. }
                | Generator::Time { .. }
        )
    }

    /// Generators that it is made of.
    pub(super) fn parts(&self) -> Vec<&String> {
        match self {
            Generator::List { of, .. } | Generator::Set { of, .. } => vec![of],
            Generator::Map { key, value, .. } => vec![key, value],
            Generator::Fields { of } => of.iter().collect(),
            Generator::Uuid { of } => of.iter().collect(),
            _ => Vec::new(),
        }
    }
}
