//! `WITH name = value`: options by name, each read as the kind of value it must be.

use cql::ast::{Property, PropertyValue};

use crate::QueryError;

/// The options of one statement.
#[derive(Clone, Copy)]
pub(super) struct Properties<'a>(pub(super) &'a [Property]);

fn syntax(message: String) -> QueryError {
    QueryError::Syntax(message)
}

impl<'a> Properties<'a> {
    fn value(self, name: &str) -> Option<&'a PropertyValue> {
        self.0.iter().find(|property| property.name.as_str() == name).map(|property| &property.value)
    }

    pub(super) fn has(self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The names that are none of these.
    pub(super) fn check_known(self, known: &[&str]) -> Result<(), QueryError> {
        match self.0.iter().find(|property| !known.contains(&property.name.as_str())) {
            Some(property) => Err(syntax(format!("Unknown property '{}'", property.name.as_str()))),
            None => Ok(()),
        }
    }

    pub(super) fn string(self, name: &str) -> Result<Option<&'a str>, QueryError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let wrong = || syntax(format!("Invalid value for property '{name}'. It should be a string"));
        value.as_text().map(Some).ok_or_else(wrong)
    }

    /// The pairs of a map in the order they were written.
    pub(super) fn map(self, name: &str) -> Result<Option<Vec<(&'a str, &'a str)>>, QueryError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let wrong = || syntax(format!("Invalid value for property '{name}'. It should be a map."));
        value.as_map().map(|pairs| Some(pairs.collect())).ok_or_else(wrong)
    }

    pub(super) fn boolean(self, name: &str) -> Result<Option<bool>, QueryError> {
        let Some(text) = self.string(name)? else { return Ok(None) };
        match text.to_lowercase().as_str() {
            "1" | "true" | "yes" => Ok(Some(true)),
            "0" | "false" | "no" => Ok(Some(false)),
            _ => Err(syntax(format!(
                "Invalid boolean value {text} for '{name}'. Positive values can be '1', 'true' or 'yes'. \
                 Negative values can be '0', 'false' or 'no'."
            ))),
        }
    }

    pub(super) fn int(self, name: &str) -> Result<Option<i32>, QueryError> {
        let Some(text) = self.string(name)? else { return Ok(None) };
        let wrong = |_| syntax(format!("Invalid integer value {text} for '{name}'"));
        text.parse().map(Some).map_err(wrong)
    }

    pub(super) fn double(self, name: &str) -> Result<Option<f64>, QueryError> {
        let Some(text) = self.string(name)? else { return Ok(None) };
        let wrong = || syntax(format!("Invalid double value {text} for '{name}'"));
        double(text).map(Some).ok_or_else(wrong)
    }
}

/// A number as Java reads it.
pub(super) fn double(text: &str) -> Option<f64> {
    types::float::parse_double(text).ok().map(f64::from_be_bytes)
}

/// A number as Java shows it.
pub(crate) fn double_text(number: f64) -> String {
    types::float::format_double(&number.to_be_bytes())
}
