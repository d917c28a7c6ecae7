//! Short texts without an allocation.
//!
//! Nearly every name and constant in a statement is shorter than 23 bytes. A batch of a hundred
//! inserts holds a thousand of them, so they are kept inline in the tree; only longer ones go to
//! the heap. A `Text` has the size of a `String`.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// Longest text that is kept inline.
const INLINE_BYTES_MAX: usize = 22;

/// An immutable string; inline up to 22 bytes.
#[derive(Clone)]
pub struct Text(Repr);

#[derive(Clone)]
enum Repr {
    /// Invariant: `bytes[..length]` is UTF-8; it was copied from a `str`.
    Inline {
        length: u8,
        bytes: [u8; INLINE_BYTES_MAX],
    },
    Heap(Box<str>),
}

impl Text {
    /// Copies a string.
    #[inline]
    pub fn new(text: &str) -> Self {
        if text.len() > INLINE_BYTES_MAX {
            return Text(Repr::Heap(text.into()));
        }
        let mut bytes = [0; INLINE_BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Text(Repr::Inline { length: text.len() as u8, bytes })
    }

    /// Copies a string with its ASCII letters made lower case.
    #[inline]
    pub fn new_lower_case(text: &str) -> Self {
        if text.len() > INLINE_BYTES_MAX {
            return Text(Repr::Heap(text.to_ascii_lowercase().into()));
        }
        let mut bytes = [0; INLINE_BYTES_MAX];
        for (lower, byte) in bytes.iter_mut().zip(text.bytes()) {
            *lower = byte.to_ascii_lowercase();
        }
        Text(Repr::Inline { length: text.len() as u8, bytes })
    }

    /// The string.
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // Cannot fail by the invariant; the empty string is only there to keep this total.
            Repr::Inline { .. } => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Repr::Heap(text) => text,
        }
    }

    /// The bytes of the string.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Repr::Heap(text) => text.as_bytes(),
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        if text.len() > INLINE_BYTES_MAX { Text(Repr::Heap(text.into())) } else { Text::new(&text) }
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        match text.0 {
            Repr::Heap(text) => text.into(),
            Repr::Inline { .. } => text.as_str().to_owned(),
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Default for Text {
    fn default() -> Self {
        Text::new("")
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The bare text, without quotes.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_and_heap_texts_read_back() {
        for length in [0, 1, 21, 22, 23, 24, 500] {
            let source = "é".repeat(length / 2) + &"x".repeat(length % 2);
            let text = Text::new(&source);
            assert_eq!(text.as_str(), source);
            assert_eq!(Text::from(source.clone()), text);
            assert_eq!(String::from(text), source);
        }
    }

    #[test]
    fn lower_case_touches_ascii_only() {
        assert_eq!(Text::new_lower_case("ÀbC"), "Àbc");
        assert_eq!(Text::new_lower_case(&"AbÀ".repeat(20)).as_str(), "abÀ".repeat(20));
    }

    #[test]
    fn is_as_large_as_a_string() {
        assert_eq!(size_of::<Text>(), size_of::<String>());
    }
}
