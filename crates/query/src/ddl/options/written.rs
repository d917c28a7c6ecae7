//! The entries of a map of options, as they are written.

use std::collections::BTreeMap;

use crate::QueryError;

/// Names and values.
pub(super) type Map = BTreeMap<String, String>;

/// Refuses what is written, in these words.
pub(super) fn refuse<T>(message: String) -> Result<T, QueryError> {
    Err(QueryError::Config(message))
}

/// Is it one of the words for a truth value, in whatever case?
pub(super) fn is_boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

/// The option as a whole number.
pub(super) fn integer<T: std::str::FromStr>(options: &Map, name: &str) -> Result<Option<T>, QueryError> {
    match options.get(name).map(|text| text.parse().map_err(|_| text)) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(text)) => refuse(format!("{text} is not a parsable int (base10) for {name}")),
    }
}
