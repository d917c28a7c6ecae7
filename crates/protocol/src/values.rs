//! Bound values: spans of the frame's body, so that binding a row costs one allocation.

use bytes::{BufMut, Bytes, BytesMut};

/// One bound value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// `null`: deletes, or compares to nothing.
    Null,
    /// Not given (version 4 on): leaves the column as it is.
    Unset,
    /// A value in its native encoding; empty is a value too.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The bytes, if it is neither null nor unset.
    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            Value::Null | Value::Unset => None,
        }
    }
}

/// Where a value lies in [`Values::body`].
#[derive(Clone, Copy, Debug)]
struct Span {
    offset: u32,
    /// Byte length, or [`NULL_LENGTH`] or [`UNSET_LENGTH`].
    length: i32,
}

pub(crate) const NULL_LENGTH: i32 = -1;
pub(crate) const UNSET_LENGTH: i32 = -2;

/// The values bound to the markers of one statement, in order.
#[derive(Clone, Debug, Default)]
pub struct Values {
    body: Bytes,
    /// Invariant: every span with a length lies inside `body`.
    spans: Vec<Span>,
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The value of a marker; `None` past the last one.
    pub fn get(&self, index: usize) -> Option<Value<'_>> {
        self.spans.get(index).map(|span| self.value(*span))
    }

    /// The value of a marker as a slice that keeps the frame alive; `None` for null, unset and
    /// past the last one.
    pub fn get_bytes(&self, index: usize) -> Option<Bytes> {
        let span = self.spans.get(index)?;
        let length = usize::try_from(span.length).ok()?;
        let offset = span.offset as usize;
        Some(self.body.slice(offset..offset + length))
    }

    /// All values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value<'_>> {
        self.spans.iter().map(|span| self.value(*span))
    }

    /// Packs values for sending.
    pub fn pack<'a>(values: impl IntoIterator<Item = Value<'a>>) -> Values {
        let mut body = BytesMut::new();
        let mut spans = Vec::new();
        for value in values {
            let offset = body.len() as u32;
            let length = match value {
                Value::Null => NULL_LENGTH,
                Value::Unset => UNSET_LENGTH,
                Value::Bytes(bytes) => {
                    body.put_slice(bytes);
                    bytes.len() as i32
                }
            };
            spans.push(Span { offset, length });
        }
        Values { body: body.freeze(), spans }
    }

    /// An empty list over a frame's body, to be filled by [`Values::push_span`].
    pub(crate) fn over(body: Bytes, count: usize) -> Values {
        Values { body, spans: Vec::with_capacity(count) }
    }

    /// Adds a value that lies at `offset` of the body; the caller has checked its bounds.
    pub(crate) fn push_span(&mut self, offset: usize, length: i32) {
        debug_assert!(length < 0 || offset + length as usize <= self.body.len());
        self.spans.push(Span { offset: offset as u32, length });
    }

    fn value(&self, span: Span) -> Value<'_> {
        match span.length {
            NULL_LENGTH => Value::Null,
            length if length < 0 => Value::Unset,
            length => {
                let offset = span.offset as usize;
                Value::Bytes(&self.body[offset..offset + length as usize])
            }
        }
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Values) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Values {}
