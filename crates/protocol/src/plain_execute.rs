//! The most frequent request, read in place: EXECUTE of a prepared statement with values and nothing unusual.
//!
//! A view gives what the whole [`Execute`](crate::Execute) would, without handles or lists of its own.
//! All other requests, malformed ones included, are for
//! [`Decoder::decode_request`](crate::Decoder::decode_request), which knows what to say of them.

use bytes::Bytes;

use crate::parameters::{PAGE_SIZE, SERIAL_CONSISTENCY, SKIP_METADATA, TIMESTAMP, VALUES};
use crate::{Consistency, Flags, Frame, Opcode, Version};

/// An EXECUTE seen in its frame.
#[derive(Clone, Debug)]
pub struct PlainExecute<'a> {
    /// The statement.
    pub id: &'a [u8],
    /// The id of the result's metadata that the client knows (version 5 on).
    pub result_metadata_id: Option<&'a [u8]>,
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// Leave the metadata out of the answer.
    pub skip_metadata: bool,
    /// Rows of a page; not positive for no pages.
    pub page_size: Option<i32>,
    /// The time of what is written, µs since 1970.
    pub timestamp: Option<i64>,
    /// The bound values, none of them null or unset.
    pub values: PlainValues<'a>,
    body: &'a Bytes,
}

/// Bound values, one after the other.
#[derive(Clone, Debug)]
pub struct PlainValues<'a> {
    count: usize,
    /// Invariant: `count` times a length and so many bytes.
    rest: Rest<'a>,
}

impl<'a> PlainExecute<'a> {
    /// Looks at a frame; `None` when it is anything else, has no values, or has more in it. A serial
    /// consistency, which only conditional updates heed, is passed over.
    pub fn of(frame: &'a Frame) -> Option<PlainExecute<'a>> {
        let header = &frame.header;
        let has_extras =
            header.flags.contains(Flags::TRACING) || header.flags.contains(Flags::CUSTOM_PAYLOAD);
        if header.opcode != Opcode::Execute || has_extras {
            return None;
        }
        let mut rest = Rest(&frame.body);
        let id = rest.short_bytes()?;
        let is_wide = header.version.uses_segments();
        let result_metadata_id = if is_wide { Some(rest.short_bytes()?) } else { None };
        let consistency = Consistency::from_code(rest.u16()?).ok()?;
        let flags = rest.flags(header.version)?;
        let known = VALUES | SKIP_METADATA | PAGE_SIZE | SERIAL_CONSISTENCY | TIMESTAMP;
        if flags & VALUES == 0 || flags & !known != 0 {
            return None;
        }
        let count = usize::from(rest.u16()?);
        let values = PlainValues { count, rest: Rest(rest.0) };
        for _ in 0..count {
            rest.value()?;
        }
        let page_size = if flags & PAGE_SIZE != 0 { Some(rest.i32()?) } else { None };
        if flags & SERIAL_CONSISTENCY != 0 {
            Consistency::from_code(rest.u16()?).ok()?;
        }
        let timestamp = match flags & TIMESTAMP {
            0 => None,
            _ => Some(i64::from_be_bytes(rest.array()?)).filter(|timestamp| *timestamp != i64::MIN),
        };
        if timestamp.is_none() && flags & TIMESTAMP != 0 {
            return None;
        }
        let skip_metadata = flags & SKIP_METADATA != 0;
        let body = &frame.body;
        Some(PlainExecute {
            id,
            result_metadata_id,
            consistency,
            skip_metadata,
            page_size,
            timestamp,
            values,
            body,
        })
    }

    /// One of the values, as a slice that keeps the frame alive.
    pub fn shared(&self, value: &[u8]) -> Bytes {
        self.body.slice_ref(value)
    }
}

impl<'a> Iterator for PlainValues<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.count = self.count.checked_sub(1)?;
        self.rest.value()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for PlainValues<'_> {}

/// What is left of a body.
#[derive(Clone, Debug)]
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// A value; `None` for null and unset too.
    fn value(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.i32()?).ok()?;
        self.take(length)
    }

    fn short_bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }

    fn flags(&mut self, version: Version) -> Option<u32> {
        match version.uses_segments() {
            true => self.array().map(u32::from_be_bytes),
            false => self.array().map(|[flags]| u32::from(flags)),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::*;
    use crate::{Decoder, Encoder, Execute, QueryParameters, Request, RequestEnvelope, Text, Value, Values};

    fn execute(version: Version) -> Execute {
        Execute {
            id: Bytes::from_static(&[7; 16]),
            result_metadata_id: version.uses_segments().then(|| Bytes::from_static(&[9; 16])),
            parameters: QueryParameters {
                values: Values::pack([Value::Bytes(b"user42"), Value::Bytes(b"")]),
                skip_metadata: true,
                page_size: Some(5000),
                timestamp: Some(3),
                serial_consistency: Some(Consistency::Serial),
                ..QueryParameters::at(Consistency::LocalOne)
            },
        }
    }

    fn frame(version: Version, envelope: &RequestEnvelope) -> Frame {
        let mut encoder = Encoder::client();
        encoder.append_request(version, 3, envelope);
        let mut decoder = Decoder::server(1 << 20);
        decoder.feed(&encoder.take());
        decoder.next_frame().expect("whole").expect("well-formed")
    }

    fn envelope(execute: Execute) -> RequestEnvelope {
        RequestEnvelope { tracing: false, custom_payload: None, request: Request::Execute(execute) }
    }

    #[test]
    fn the_usual_execute_is_seen_as_it_is() {
        for version in [Version::V3, Version::V4, Version::V5] {
            let frame = frame(version, &envelope(execute(version)));
            let seen = PlainExecute::of(&frame).expect("nothing unusual");
            assert_eq!(seen.id, [7; 16]);
            assert_eq!(seen.result_metadata_id.is_some(), version.uses_segments());
            assert_eq!((seen.consistency, seen.skip_metadata), (Consistency::LocalOne, true));
            assert_eq!(seen.page_size, Some(5000));
            assert_eq!(seen.timestamp, Some(3));
            assert_eq!(seen.values.len(), 2);
            assert_eq!(seen.values.clone().collect::<Vec<_>>(), [&b"user42"[..], b""]);
        }
    }

    #[test]
    fn whatever_is_unusual_is_left_to_the_decoder() {
        let version = Version::V4;
        let with = |change: fn(&mut QueryParameters)| {
            let mut execute = execute(version);
            change(&mut execute.parameters);
            envelope(execute)
        };
        let unusual = [
            with(|parameters| parameters.paging_state = Some(Bytes::from_static(b"x"))),
            with(|parameters| parameters.names = Some(vec![Text::from("k")])),
            with(|parameters| parameters.values = Values::default()),
            with(|parameters| parameters.values = Values::pack([Value::Bytes(b"a"), Value::Null])),
            with(|parameters| parameters.values = Values::pack([Value::Unset])),
            RequestEnvelope { tracing: true, ..envelope(execute(version)) },
        ];
        for envelope in unusual {
            assert!(PlainExecute::of(&frame(version, &envelope)).is_none(), "{envelope:?}");
        }
    }

    proptest! {
        /// What it takes for whole, the decoder does too, and sees the same in it.
        #[test]
        fn it_agrees_with_the_decoder(
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let mut frame = frame(Version::V4, &envelope(execute(Version::V4)));
            let mut body = BytesMut::from(&frame.body[..]);
            for (index, byte) in flips {
                let index = index.index(body.len());
                body[index] = byte;
            }
            if is_cut {
                body.truncate(cut.index(body.len()));
            }
            frame.body = body.freeze();
            if let Some(seen) = PlainExecute::of(&frame) {
                let whole = RequestEnvelope::decode(&frame).expect("the decoder takes it too");
                let Request::Execute(whole) = whole.request else { panic!("an EXECUTE") };
                prop_assert_eq!(seen.id, &whole.id[..]);
                prop_assert_eq!(seen.consistency, whole.parameters.consistency);
                prop_assert_eq!(seen.skip_metadata, whole.parameters.skip_metadata);
                prop_assert_eq!(seen.page_size, whole.parameters.page_size);
                prop_assert_eq!(seen.timestamp, whole.parameters.timestamp);
                let values = seen.values.map(Value::Bytes);
                prop_assert!(values.eq(whole.parameters.values.iter()));
            }
        }
    }
}
