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

/// Line (from 1) and column (from 0) of a byte, as Cassandra counts them: a line ends with `\n`,
/// a column is a UTF-16 unit.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before[line_start..].encode_utf16().count())
}
