//! `speculative_retry` and `additional_write_policy`: `99p`, `50ms`, `MIN(99p,50ms)`, `ALWAYS`, `NEVER`.

use super::super::properties::double;
use crate::QueryError;

/// What a policy waits for.
enum Policy {
    Always,
    Never,
    Percentile(f64),
    FixedMilliseconds(i32),
    /// `MIN` or `MAX`, its percentile and its fixed time.
    Hybrid(&'static str, f64, i32),
}

/// The text Cassandra shows for a policy written like this.
///
/// # Errors
/// It is none. The message names `speculative_retry`, whichever option it was written for.
pub(super) fn canonical(text: &str) -> Result<String, QueryError> {
    Ok(match parse(text)? {
        Policy::Always => "ALWAYS".to_owned(),
        Policy::Never => "NEVER".to_owned(),
        Policy::Percentile(percentile) => percentile_text(percentile),
        Policy::FixedMilliseconds(milliseconds) => format!("{milliseconds}ms"),
        Policy::Hybrid(function, percentile, milliseconds) => {
            format!("{function}({},{milliseconds}ms)", percentile_text(percentile))
        }
    })
}

fn invalid(text: &str) -> QueryError {
    QueryError::config(format!("Invalid value {text} for option 'speculative_retry'"))
}

fn parse(text: &str) -> Result<Policy, QueryError> {
    let lower = text.to_ascii_lowercase();
    if lower == "always" {
        return Ok(Policy::Always);
    }
    if matches!(lower.as_str(), "never" | "none") {
        return Ok(Policy::Never);
    }
    let number = |suffix: &str| lower.strip_suffix(suffix).filter(|number| is_number(number));
    if let Some(digits) = number("percentile").or_else(|| number("p")) {
        let percentile = double(digits).ok_or_else(|| invalid(text))?;
        if percentile <= 0.0 || percentile >= 100.0 {
            return Err(QueryError::config(format!(
                "Invalid value {text} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)"
            )));
        }
        return Ok(Policy::Percentile(percentile));
    }
    if let Some(digits) = number("ms") {
        return double(digits)
            .map(|number| Policy::FixedMilliseconds(number as i32))
            .ok_or_else(|| invalid(text));
    }
    parse_hybrid(text, &lower)
}

/// `MIN(a,b)` of one percentile and one fixed time, in either order.
fn parse_hybrid(text: &str, lower: &str) -> Result<Policy, QueryError> {
    let function = match lower.get(..4) {
        Some("min(") => "MIN",
        Some("max(") => "MAX",
        _ => return Err(invalid(text)),
    };
    let inner = text.get(4..).and_then(|rest| rest.strip_suffix(')')).ok_or_else(|| invalid(text))?;
    let (first, second) = inner.split_once(',').ok_or_else(|| invalid(text))?;
    let (first, second) = (first.trim_end_matches(is_blank), second.trim_start_matches(is_blank));
    if !is_argument(first) || !is_argument(second) {
        return Err(invalid(text));
    }
    let parse_argument = |argument| parse(argument).map_err(|_| invalid(text));
    match (parse_argument(first)?, parse_argument(second)?) {
        (Policy::Percentile(percentile), Policy::FixedMilliseconds(milliseconds))
        | (Policy::FixedMilliseconds(milliseconds), Policy::Percentile(percentile)) => {
            Ok(Policy::Hybrid(function, percentile, milliseconds))
        }
        (Policy::Percentile(_), _) => Err(same_kinds(text, "PERCENTILE")),
        _ => Err(same_kinds(text, "FIXED")),
    }
}

fn same_kinds(text: &str, kind: &str) -> QueryError {
    QueryError::config(format!(
        "Invalid value {text} for option 'speculative_retry': MIN()/MAX() arguments should be of different types, \
         but both are of type {kind}"
    ))
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// Digits and points, at least one.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// A number and letters behind it.
fn is_argument(text: &str) -> bool {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    number.len() < text.len() && is_number(number)
}

/// At most four digits behind the point, none that is not needed; halves go to the even digit.
fn percentile_text(percentile: f64) -> String {
    let text = format!("{percentile:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}p")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_shown_in_one_way() {
        for (written, shown) in [
            ("99PERCENTILE", "99p"),
            ("99.90p", "99.9p"),
            ("0.5p", "0.5p"),
            ("50MS", "50ms"),
            ("50.9ms", "50ms"),
            ("min(99p, 20ms)", "MIN(99p,20ms)"),
            ("Max(20ms ,99.5p)", "MAX(99.5p,20ms)"),
            ("never", "NEVER"),
            ("none", "NEVER"),
            ("Always", "ALWAYS"),
        ] {
            assert_eq!(canonical(written).as_deref(), Ok(shown));
        }
    }

    #[test]
    fn wrong_policies_are_refused() {
        for wrong in ["", "99", "p", "-1p", "MIN(99p)", "MIN(1p,2p)", "MIN(99p,20ms", "0p", "100p", "1.1.1p"]
        {
            assert!(canonical(wrong).is_err(), "{wrong}");
        }
    }
}
