//! UTF-8 text that shares the bytes of the frame it came in.

use std::fmt;

use bytes::Bytes;

/// Text without a copy: a slice of a frame's body that was checked to be UTF-8.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text {
    /// Invariant: valid UTF-8.
    bytes: Bytes,
}

impl Text {
    /// Takes bytes if they are UTF-8, gives them back if not.
    pub fn from_bytes(bytes: Bytes) -> Result<Text, Bytes> {
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Text { bytes }),
            Err(_) => Err(bytes),
        }
    }

    /// The text. It is checked again here: cheaper than a copy, and it needs no `unsafe`.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Is it ""?
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text { bytes: Bytes::from(text) }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text { bytes: Bytes::copy_from_slice(text.as_bytes()) }
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.bytes == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.bytes == other.as_bytes()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}
