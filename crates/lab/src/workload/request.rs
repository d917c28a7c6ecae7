//! Requests in the making, and those that are kept to be asked once more.

use bytes::{BufMut, BytesMut};
use types::Token;
/// A request in the making: which statement, with which values.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The statement's place.
    pub(crate) statement: usize,
    token: Option<Token>,
    value_count: u16,
    values: &'a mut BytesMut,
}

impl<'a> Request<'a> {
    /// Without values yet, in a buffer that is empty.
    pub(crate) fn new(values: &'a mut BytesMut) -> Request<'a> {
        values.clear();
        Request { statement: 0, token: None, value_count: 0, values }
    }

    /// Is to execute this statement, from its first value on.
    pub(crate) fn execute(&mut self, statement: usize) -> &mut Self {
        self.values.clear();
        (self.statement, self.token, self.value_count) = (statement, None, 0);
        self
    }

    /// Is about the partition with this key, as a token is made of it.
    pub(crate) fn on(&mut self, partition_key: &[u8]) -> &mut Self {
        self.token = Some(Token::of(partition_key));
        self
    }

    /// Where its partition is on the ring, if it is about one.
    pub(crate) fn token(&self) -> Option<Token> {
        self.token
    }

    /// The next value.
    pub(crate) fn value(&mut self, value: &[u8]) -> &mut Self {
        self.values.put_u32(value.len() as u32);
        self.values.put_slice(value);
        self.value_count += 1;
        self
    }

    /// The next value, of so many bytes that `fill` writes.
    pub(crate) fn value_with(&mut self, byte_count: usize, fill: impl FnOnce(&mut [u8])) -> &mut Self {
        self.values.put_u32(byte_count as u32);
        let start = self.values.len();
        self.values.resize(start + byte_count, 0);
        fill(&mut self.values[start..]);
        self.value_count += 1;
        self
    }

    /// The values, each by itself.
    #[cfg(test)]
    pub(crate) fn apart(&self) -> Vec<Vec<u8>> {
        let (count, values) = self.values();
        let (mut values, mut apart) = (stdx::cursor::Cursor::new(values), Vec::new());
        while let Ok(value) = values.cql_bytes() {
            apart.extend(value.map(<[u8]>::to_vec));
        }
        assert_eq!(apart.len(), usize::from(count));
        apart
    }

    /// The values as EXECUTE has them, with their count.
    pub(crate) fn values(&self) -> (u16, &[u8]) {
        (self.value_count, self.values)
    }

    /// Keeps it, to be asked once more.
    pub(crate) fn keep(&self, kept: &mut Kept) {
        (kept.statement, kept.token, kept.value_count) = (self.statement, self.token, self.value_count);
        kept.values.clear();
        kept.values.extend_from_slice(self.values);
    }

    /// The one that was kept, once more.
    pub(crate) fn again(kept: &Kept, values: &'a mut BytesMut) -> Request<'a> {
        values.clear();
        values.put_slice(&kept.values);
        Request { statement: kept.statement, token: kept.token, value_count: kept.value_count, values }
    }
}

/// A request that was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    statement: usize,
    token: Option<Token>,
    value_count: u16,
    /// As EXECUTE has them.
    values: Vec<u8>,
}
