//! Frames of native protocol v4: just what a load needs.
//!
//! ```text
//!   | version | flags | stream (2) | opcode | length (4) | body |
//! ```

pub(crate) const HEADER_BYTES: usize = 9;
pub(crate) const REQUEST_VERSION: u8 = 0x04;
pub(crate) const ANSWER_VERSION: u8 = 0x84;
/// What a server may send us at most; more is a stream out of step.
pub(crate) const BODY_BYTES_MAX: usize = 256 << 20;

pub(crate) const ERROR: u8 = 0x00;
pub(crate) const STARTUP: u8 = 0x01;
pub(crate) const READY: u8 = 0x02;
pub(crate) const OPTIONS: u8 = 0x05;
pub(crate) const SUPPORTED: u8 = 0x06;
pub(crate) const QUERY: u8 = 0x07;
pub(crate) const RESULT: u8 = 0x08;
pub(crate) const PREPARE: u8 = 0x09;
pub(crate) const EXECUTE: u8 = 0x0a;
pub(crate) const REGISTER: u8 = 0x0b;

/// `Overloaded` among the error codes.
pub(crate) const OVERLOADED: u32 = 0x1001;

/// A whole frame, borrowed from what was received.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) version: u8,
    pub(crate) stream: u16,
    pub(crate) opcode: u8,
    pub(crate) body: &'a [u8],
}

/// The first frame of some bytes, if it is whole; how many bytes it takes.
pub(crate) fn first(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, &'static str> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize;
    if length > BODY_BYTES_MAX {
        return Err("a frame announces more bytes than any answer has");
    }
    let Some(body) = bytes[HEADER_BYTES..].get(..length) else { return Ok(None) };
    let stream = u16::from_be_bytes([header[2], header[3]]);
    Ok(Some((Frame { version: header[0], stream, opcode: header[4], body }, HEADER_BYTES + length)))
}

/// Appends a frame whose body `put` writes.
pub(crate) fn put(
    out: &mut Vec<u8>,
    version: u8,
    stream: u16,
    opcode: u8,
    put_body: impl FnOnce(&mut Vec<u8>),
) {
    let stream = stream.to_be_bytes();
    out.extend_from_slice(&[version, 0, stream[0], stream[1], opcode, 0, 0, 0, 0]);
    let start = out.len();
    put_body(out);
    let length = (out.len() - start) as u32;
    out[start - 4..start].copy_from_slice(&length.to_be_bytes());
}

/// A text with its length in two bytes.
pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// A text with its length in four bytes.
pub(crate) fn put_long_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The body of STARTUP.
pub(crate) fn put_startup(out: &mut Vec<u8>) {
    out.extend_from_slice(&1u16.to_be_bytes());
    put_string(out, "CQL_VERSION");
    put_string(out, "3.0.0");
}

/// The code of an ERROR's body, and its message.
pub(crate) fn error_of(body: &[u8]) -> (u32, String) {
    let code = body.first_chunk::<4>().map_or(0, |code| u32::from_be_bytes(*code));
    let length = body.get(4..6).map_or(0, |bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])));
    let message = body.get(6..6 + length).unwrap_or_default();
    (code, String::from_utf8_lossy(message).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_only_when_it_is_whole() {
        let mut bytes = Vec::new();
        put(&mut bytes, REQUEST_VERSION, 7, QUERY, |out| out.extend_from_slice(b"abc"));
        assert!(first(&bytes[..11]).unwrap().is_none());
        let (frame, length) = first(&bytes).unwrap().unwrap();
        assert_eq!((frame.stream, frame.opcode, frame.body, length), (7, QUERY, &b"abc"[..], 12));
    }

    #[test]
    fn a_length_out_of_this_world_is_refused() {
        assert!(first(&[0x84, 0, 0, 0, 8, 255, 255, 255, 255]).is_err());
    }
}
