//! The error of this crate.

/// The text is no CQL. The message is for the client, word for word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    message: String,
}

impl SyntaxError {
    pub(crate) fn new(message: String) -> Self {
        SyntaxError { message }
    }

    /// The message, word for word what the client is told.
    pub fn message(&self) -> &str {
        &self.message
    }
}
