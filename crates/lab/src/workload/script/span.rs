//! Small values of a script that TOML has no word for: a range, a literal, a distribution.

use serde::Deserialize;
use toml::Value;

use crate::generator::{Random, ZIPFIAN_CONSTANT};

/// A whole number, or any from one to another: `100` or `[100, 200]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Span {
    /// The least.
    pub(super) from: i64,
    /// The greatest. Invariant: not below `from`.
    pub(super) to: i64,
}

impl Span {
    /// One of them.
    pub(super) fn draw(self, random: &mut Random) -> i64 {
        let count = self.to.abs_diff(self.from).saturating_add(1);
        if count == 1 { self.from } else { self.from.wrapping_add_unsigned(random.below(count)) }
    }

    /// Is this number one of them?
    pub(super) fn has(self, number: usize) -> bool {
        i64::try_from(number).is_ok_and(|number| (self.from..=self.to).contains(&number))
    }
}

impl TryFrom<Value> for Span {
    type Error = String;

    fn try_from(value: Value) -> Result<Span, String> {
        let (from, to) = match &value {
            Value::Integer(number) => (*number, *number),
            Value::Array(both) => match both.as_slice() {
                [Value::Integer(from), Value::Integer(to)] => (*from, *to),
                _ => return Err(format!("{value} is not two whole numbers")),
            },
            _ => return Err(format!("{value} is neither a whole number nor two, as in [100, 200]")),
        };
        if from > to { Err(format!("{value} ends before it begins")) } else { Ok(Span { from, to }) }
    }
}

/// A value that is written as it is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub(super) enum Literal {
    Whole(i64),
    Fraction(f64),
    Truth(bool),
    Text(String),
}

impl TryFrom<Value> for Literal {
    type Error = String;

    fn try_from(value: Value) -> Result<Literal, String> {
        Ok(match value {
            Value::Integer(number) => Literal::Whole(number),
            Value::Float(number) => Literal::Fraction(number),
            Value::Boolean(truth) => Literal::Truth(truth),
            Value::String(text) => Literal::Text(text),
            other => return Err(format!("{other} is no number, text, true or false")),
        })
    }
}

/// How one of many is chosen: `uniform`, or with a number as in `normal(0.25)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Distribution {
    /// All alike.
    #[default]
    Uniform,
    /// YCSB's `zipfian`, which is milder than it says.
    Zipfian,
    /// Zipfian with this exponent, over exactly those that there are.
    TrueZipfian(f64),
    /// Around the middle, with this part of all as the standard deviation.
    Normal(f64),
    /// One after the other, and again from the first.
    Sequence,
    /// The newest most often.
    Latest,
    /// One that was not there before.
    Next,
}

/// What `normal` is without a number: tlp-stress has the mean n/2 and the deviation n/8.
const DEVIATION: f64 = 0.125;

impl TryFrom<String> for Distribution {
    type Error = String;

    fn try_from(text: String) -> Result<Distribution, String> {
        let (name, number) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((name, number)) => {
                let number = number.trim().parse::<f64>();
                (name, Some(number.map_err(|_| format!("'{text}' has no number between its brackets"))?))
            }
            None => (text.as_str(), None),
        };
        let distribution = match (name, number) {
            ("uniform", None) => Distribution::Uniform,
            ("zipfian", None) => Distribution::Zipfian,
            ("true-zipfian", _) => Distribution::TrueZipfian(number.unwrap_or(ZIPFIAN_CONSTANT)),
            ("normal", _) => Distribution::Normal(number.unwrap_or(DEVIATION)),
            ("sequence", None) => Distribution::Sequence,
            ("latest", None) => Distribution::Latest,
            ("next", None) => Distribution::Next,
            _ => {
                return Err(format!(
                    "there is no distribution '{text}': there are uniform, zipfian, true-zipfian, normal, \
                     sequence, latest, next"
                ));
            }
        };
        match distribution {
            Distribution::TrueZipfian(theta) if !(theta > 0.0 && theta <= 10.0) => {
                Err(format!("the exponent of '{text}' is not above 0 and at most 10"))
            }
            Distribution::Normal(part) if !(part > 0.0 && part <= 1.0) => {
                Err(format!("the deviation of '{text}' is a part of all, above 0 and at most 1"))
            }
            _ => Ok(distribution),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_one_number_or_two() {
        let span = |text: &str| {
            let table: toml::Table = format!("it = {text}").parse().unwrap();
            Span::try_from(table["it"].clone())
        };
        assert_eq!(span("7"), Ok(Span { from: 7, to: 7 }));
        assert_eq!(span("[-7, 7]"), Ok(Span { from: -7, to: 7 }));
        assert!(span("[7, 1]").unwrap_err().contains("ends before it begins"));
        assert!(span("[7]").unwrap_err().contains("not two whole numbers"));
        assert!(span("'7'").unwrap_err().contains("neither a whole number"));
        let mut random = Random::new(1, 0);
        let drawn: std::collections::BTreeSet<i64> =
            (0..1000).map(|_| Span { from: -1, to: 2 }.draw(&mut random)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [-1, 0, 1, 2]);
    }

    #[test]
    fn a_distribution_is_named_and_may_have_a_number() {
        let named = |text: &str| Distribution::try_from(text.to_owned());
        assert_eq!(named("normal"), Ok(Distribution::Normal(0.125)));
        assert_eq!(named("normal(0.25)"), Ok(Distribution::Normal(0.25)));
        assert_eq!(named("true-zipfian"), Ok(Distribution::TrueZipfian(0.99)));
        assert!(named("zipf").unwrap_err().contains("no distribution 'zipf'"));
        assert!(named("normal(2)").unwrap_err().contains("at most 1"));
        assert!(named("normal(x)").unwrap_err().contains("no number"));
        assert!(named("uniform(2)").is_err());
    }
}
