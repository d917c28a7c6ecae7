//! The primitive notations of the specification: `[short]`, `[string]`, `[bytes]` and so on.
//!
//! Reading never trusts a length: it is compared with what is left of the body before anything is
//! sliced, and nothing is allocated ahead for a count that the peer claims.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

use crate::values::{NULL_LENGTH, UNSET_LENGTH};
use crate::{Consistency, CustomPayload, ProtocolError, Text, Value, Values, Version};

/// How many elements are made room for before any was read, whatever the peer claims.
const CAPACITY_HINT_MAX: usize = 64;

/// A cursor over a body. What it gives out shares the body's bytes.
#[derive(Debug)]
pub(crate) struct Reader {
    body: Bytes,
    /// Invariant: at most `body.len()`.
    position: usize,
}

impl Reader {
    pub(crate) fn new(body: Bytes) -> Reader {
        Reader { body, position: 0 }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.body.len() - self.position
    }

    /// All that was not read.
    pub(crate) fn rest(self) -> Bytes {
        self.body.slice(self.position..)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ProtocolError> {
        let range = self.take(N, what)?;
        let mut array = [0; N];
        array.copy_from_slice(&self.body[range]);
        Ok(array)
    }

    fn take(&mut self, length: usize, what: &'static str) -> Result<std::ops::Range<usize>, ProtocolError> {
        if length > self.remaining() {
            return Err(ProtocolError::Truncated { what });
        }
        let start = self.position;
        self.position += length;
        Ok(start..self.position)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ProtocolError> {
        Ok(u8::from_be_bytes(self.array("a byte")?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ProtocolError> {
        Ok(u16::from_be_bytes(self.array("a 2 bytes integer")?))
    }

    pub(crate) fn i32(&mut self) -> Result<i32, ProtocolError> {
        Ok(i32::from_be_bytes(self.array("a 4 bytes integer")?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, ProtocolError> {
        Ok(i64::from_be_bytes(self.array("an 8 bytes integer")?))
    }

    pub(crate) fn uuid(&mut self) -> Result<Uuid, ProtocolError> {
        Ok(Uuid::from_bytes(self.array("a UUID")?))
    }

    pub(crate) fn consistency(&mut self) -> Result<Consistency, ProtocolError> {
        Consistency::from_code(self.u16()?)
    }

    /// `[string]`: a 2-byte length and UTF-8.
    pub(crate) fn text(&mut self) -> Result<Text, ProtocolError> {
        const WHAT: &str = "an UTF8 serialized string preceded by its 2 bytes length";
        let length = u16::from_be_bytes(self.array(WHAT)?);
        self.utf8(usize::from(length), WHAT)
    }

    /// `[string]`, copied.
    pub(crate) fn string(&mut self) -> Result<String, ProtocolError> {
        Ok(self.text()?.as_str().to_owned())
    }

    /// `[long string]`: a 4-byte length and UTF-8.
    pub(crate) fn long_text(&mut self) -> Result<Text, ProtocolError> {
        const WHAT: &str = "an UTF8 serialized string preceded by its 4 bytes length";
        let length = i32::from_be_bytes(self.array(WHAT)?);
        let length = usize::try_from(length).map_err(|_| ProtocolError::Truncated { what: WHAT })?;
        self.utf8(length, WHAT)
    }

    fn utf8(&mut self, length: usize, what: &'static str) -> Result<Text, ProtocolError> {
        let range = self.take(length, what)?;
        Text::from_bytes(self.body.slice(range)).map_err(|bytes| ProtocolError::not_utf8(&bytes))
    }

    /// `[short bytes]`: a 2-byte length and bytes.
    pub(crate) fn short_bytes(&mut self) -> Result<Bytes, ProtocolError> {
        const WHAT: &str = "a byte array preceded by its 2 bytes length";
        let length = u16::from_be_bytes(self.array(WHAT)?);
        let range = self.take(usize::from(length), WHAT)?;
        Ok(self.body.slice(range))
    }

    /// `[bytes]`: a 4-byte length, negative for null, and bytes.
    pub(crate) fn bytes(&mut self) -> Result<Option<Bytes>, ProtocolError> {
        let length = self.i32()?;
        match length < 0 {
            true => Ok(None),
            false => {
                let range = self.value_range(length)?;
                Ok(Some(self.body.slice(range)))
            }
        }
    }

    /// Skips one `[bytes]` and tells where it lay.
    pub(crate) fn cell_range(&mut self) -> Result<Option<std::ops::Range<usize>>, ProtocolError> {
        let length = self.i32()?;
        match length < 0 {
            true => Ok(None),
            false => Ok(Some(self.value_range(length)?)),
        }
    }

    fn value_range(&mut self, length: i32) -> Result<std::ops::Range<usize>, ProtocolError> {
        let remaining = self.remaining();
        match usize::try_from(length) {
            Ok(byte_count) if byte_count <= remaining => self.take(byte_count, "a value"),
            _ => Err(ProtocolError::ValueTooLong { length, remaining }),
        }
    }

    /// A 2-byte count and that many bound values, each with its name if `names` is given.
    pub(crate) fn values(
        &mut self,
        version: Version,
        mut names: Option<&mut Vec<Text>>,
    ) -> Result<Values, ProtocolError> {
        let count = usize::from(self.u16()?);
        if count == 0 {
            return Ok(Values::default());
        }
        let mut values = Values::over(self.body.clone(), count.min(self.remaining() / 4));
        for _ in 0..count {
            if let Some(names) = names.as_deref_mut() {
                names.push(self.text()?);
            }
            let length = self.i32()?;
            match length {
                NULL_LENGTH => values.push_span(0, NULL_LENGTH),
                // Before version 4 every negative length is null.
                length if length < 0 && version < Version::V4 => values.push_span(0, NULL_LENGTH),
                UNSET_LENGTH => values.push_span(0, UNSET_LENGTH),
                length if length < 0 => return Err(ProtocolError::NegativeValueLength { length }),
                length => {
                    let range = self.value_range(length)?;
                    values.push_span(range.start, length);
                }
            }
        }
        Ok(values)
    }

    /// `[string list]`.
    pub(crate) fn string_list(&mut self) -> Result<Vec<String>, ProtocolError> {
        self.list(Reader::string)
    }

    /// `[string map]`, in the order sent.
    pub(crate) fn string_map(&mut self) -> Result<Vec<(String, String)>, ProtocolError> {
        self.list(|reader| Ok((reader.string()?, reader.string()?)))
    }

    /// `[string multimap]`, in the order sent.
    pub(crate) fn string_multimap(&mut self) -> Result<Vec<(String, Vec<String>)>, ProtocolError> {
        self.list(|reader| Ok((reader.string()?, reader.string_list()?)))
    }

    /// `[bytes map]`, in the order sent.
    pub(crate) fn bytes_map(&mut self) -> Result<CustomPayload, ProtocolError> {
        self.list(|reader| Ok((reader.string()?, reader.bytes()?)))
    }

    /// A 2-byte count and that many elements.
    pub(crate) fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Reader) -> Result<T, ProtocolError>,
    ) -> Result<Vec<T>, ProtocolError> {
        let count = usize::from(self.u16()?);
        let mut list = Vec::with_capacity(count.min(CAPACITY_HINT_MAX));
        for _ in 0..count {
            list.push(element(self)?);
        }
        Ok(list)
    }

    /// `[inetaddr]`: a length byte and an address.
    pub(crate) fn address(&mut self) -> Result<IpAddr, ProtocolError> {
        match self.u8()? {
            4 => Ok(IpAddr::V4(Ipv4Addr::from(self.array::<4>("an address")?))),
            16 => Ok(IpAddr::V6(Ipv6Addr::from(self.array::<16>("an address")?))),
            length => Err(ProtocolError::AddressLength { length }),
        }
    }

    /// `[inet]`: an `[inetaddr]` and a 4-byte port.
    pub(crate) fn socket_address(&mut self) -> Result<SocketAddr, ProtocolError> {
        let address = self.address()?;
        let port = self.i32()?;
        let port = u16::try_from(port).map_err(|_| ProtocolError::Port { port })?;
        Ok(SocketAddr::new(address, port))
    }
}

/// The largest `[short]`: so long may a `[string]` be, and a list or the values of a request so many.
pub(crate) const SHORT_MAX: usize = u16::MAX as usize;

/// Writes the notations. Texts and lists longer than their count can say are cut off, so that a
/// response is always well formed; only error messages come near.
pub(crate) trait Put: BufMut {
    fn put_text(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(SHORT_MAX)];
        self.put_u16(text.len() as u16);
        self.put_slice(text.as_bytes());
    }

    fn put_long_text(&mut self, text: &[u8]) {
        self.put_i32(text.len() as i32);
        self.put_slice(text);
    }

    fn put_short_bytes(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(SHORT_MAX)];
        self.put_u16(bytes.len() as u16);
        self.put_slice(bytes);
    }

    fn put_bytes_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            None => self.put_i32(NULL_LENGTH),
            Some(bytes) => {
                self.put_i32(bytes.len() as i32);
                self.put_slice(bytes);
            }
        }
    }

    fn put_value(&mut self, value: Value<'_>) {
        match value {
            Value::Unset => self.put_i32(UNSET_LENGTH),
            Value::Null | Value::Bytes(_) => self.put_bytes_or_null(value.bytes()),
        }
    }

    fn put_list<T>(&mut self, list: &[T], mut element: impl FnMut(&mut Self, &T)) {
        let list = &list[..list.len().min(SHORT_MAX)];
        self.put_u16(list.len() as u16);
        list.iter().for_each(|item| element(self, item));
    }

    fn put_string_list(&mut self, list: &[String]) {
        self.put_list(list, |out, text| out.put_text(text));
    }

    fn put_string_map(&mut self, map: &[(String, String)]) {
        self.put_list(map, |out, (key, value)| {
            out.put_text(key);
            out.put_text(value);
        });
    }

    fn put_string_multimap(&mut self, map: &[(String, Vec<String>)]) {
        self.put_list(map, |out, (key, values)| {
            out.put_text(key);
            out.put_string_list(values);
        });
    }

    fn put_bytes_map(&mut self, map: &CustomPayload) {
        self.put_list(map, |out, (key, value)| {
            out.put_text(key);
            out.put_bytes_or_null(value.as_deref());
        });
    }

    fn put_address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.put_u8(4);
                self.put_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                self.put_u8(16);
                self.put_slice(&address.octets());
            }
        }
    }

    fn put_socket_address(&mut self, address: SocketAddr) {
        self.put_address(address.ip());
        self.put_i32(i32::from(address.port()));
    }
}

impl Put for BytesMut {}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut BytesMut)) -> Reader {
        let mut out = BytesMut::new();
        write(&mut out);
        Reader::new(out.freeze())
    }

    #[test]
    fn a_text_too_long_for_its_length_is_cut_at_a_character() {
        let mut reader = written(|out| out.put_text(&"é".repeat(40_000)));
        let text = reader.text().unwrap();
        assert_eq!(text.as_bytes().len(), 65_534);
        assert_eq!(reader.remaining(), 0);
    }

    #[test]
    fn a_claimed_length_past_the_end_is_refused() {
        let mut reader = Reader::new(Bytes::from_static(b"\x00\x00\x00\x09ab"));
        assert_eq!(reader.bytes(), Err(ProtocolError::ValueTooLong { length: 9, remaining: 2 }));
        let mut reader = Reader::new(Bytes::from_static(b"\x7f\xff\xff\xff"));
        assert!(reader.long_text().is_err());
        let mut reader = Reader::new(Bytes::from_static(b"\xff\xff"));
        assert!(reader.string_list().is_err());
    }

    #[test]
    fn addresses_survive_both_ways() {
        for text in ["127.0.0.1:9042", "[2001:db8::1]:19042"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut reader = written(|out| out.put_socket_address(address));
            assert_eq!(reader.socket_address(), Ok(address));
        }
    }

    #[test]
    fn an_address_of_five_bytes_is_refused() {
        let mut reader = Reader::new(Bytes::from_static(b"\x05abcde"));
        assert_eq!(reader.address(), Err(ProtocolError::AddressLength { length: 5 }));
    }
}
