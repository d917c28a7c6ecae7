//! What can be wrong with a configuration, and where.

use std::fmt;
use std::path::PathBuf;

/// Where an option was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file, at a line from 1.
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// As a flag.
    Flag,
    /// Nowhere: what is wrong is how options go together.
    Together,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { path, line } => write!(formatter, "{}:{line}: ", path.display()),
            Place::Flag => formatter.write_str("command line: "),
            Place::Together => formatter.write_str("configuration: "),
        }
    }
}

/// Something wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file is not TOML.
    #[error("{place}{message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser says.
        message: String,
    },
    /// There is no such option.
    #[error("{place}unknown option `{name}`{}", .nearest.map(|name| format!(": did you mean `{name}`?")).unwrap_or_default())]
    UnknownOption {
        /// Where.
        place: Place,
        /// As it was written.
        name: String,
        /// The option that may have been meant.
        nearest: Option<&'static str>,
    },
    /// The option has no such value.
    #[error("{place}`{name}` = {value}: {problem}")]
    InvalidValue {
        /// Where.
        place: Place,
        /// The option.
        name: &'static str,
        /// As it was written.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}
