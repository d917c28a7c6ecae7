//! Words of the command line: `name=value`.

use std::collections::HashMap;
use std::str::FromStr;

use crate::Outcome;

/// What was given.
pub(crate) struct Words(HashMap<String, String>);

impl Words {
    /// Reads them; a word without `=` is an error.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Outcome<Words> {
        let pairs = words.map(|word| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(format!("'{word}' is not name=value").into()),
        });
        Ok(Words(pairs.collect::<Outcome<_>>()?))
    }

    /// The text of a word, or a default.
    pub(crate) fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.0.get(name).map_or(default, String::as_str)
    }

    /// The texts of a word between its commas, or of a default.
    pub(crate) fn list<'a>(&'a self, name: &str, default: &'a str) -> Vec<&'a str> {
        self.text(name, default).split(',').collect()
    }

    /// The number of a word, or a default.
    pub(crate) fn number<T: FromStr>(&self, name: &str, default: T) -> Outcome<T> {
        match self.0.get(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| format!("{name} does not take '{text}'").into()),
        }
    }
}
