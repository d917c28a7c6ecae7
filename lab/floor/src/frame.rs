//! Frames of native protocol v4: just what a proxy needs.
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
pub(crate) const EXECUTE: u8 = 0x0a;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_only_when_it_is_whole() {
        let mut bytes = Vec::new();
        put(&mut bytes, REQUEST_VERSION, 7, EXECUTE, |out| out.extend_from_slice(b"abc"));
        assert!(first(&bytes[..11]).unwrap().is_none());
        let (frame, length) = first(&bytes).unwrap().unwrap();
        assert_eq!((frame.stream, frame.opcode, frame.body, length), (7, EXECUTE, &b"abc"[..], 12));
    }

    #[test]
    fn a_length_out_of_this_world_is_refused() {
        assert!(first(&[0x84, 0, 0, 0, 8, 255, 255, 255, 255]).is_err());
    }
}
