//! Whatever can be said is read back as it was said: in every version, under every compression,
//! however the bytes are split on the way.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod generate;

use proptest::prelude::*;
use protocol::{
    Compression, Decoder, Encoder, Frame, Request, RequestEnvelope, Response, ResponseEnvelope, Stage,
    Version,
};

const FRAME_BYTES_MAX: usize = 4 << 20;

/// Feeds bytes in pieces of the given sizes (over and over) and collects the frames.
fn frames_in_pieces(decoder: &mut Decoder, mut bytes: &[u8], piece_sizes: &[usize]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for size in piece_sizes.iter().cycle() {
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        decoder.feed(piece);
        while let Some(frame) = decoder.next_frame() {
            frames.push(frame.expect("a frame of our own"));
        }
        bytes = rest;
        if bytes.is_empty() {
            break;
        }
    }
    assert_eq!(decoder.held_bytes(), 0, "bytes left over");
    frames
}

fn settings() -> impl Strategy<Value = (Version, Option<Compression>)> {
    let version = prop_oneof![Just(Version::V3), Just(Version::V4), Just(Version::V5), Just(Version::V6)];
    version.prop_flat_map(|version| {
        let mut compressions = vec![None, Some(Compression::Lz4)];
        if !version.uses_segments() {
            compressions.push(Some(Compression::Snappy));
        }
        (Just(version), prop::sample::select(compressions))
    })
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![usize::MAX]),
        Just(vec![1]),
        prop::collection::vec(1_usize..200, 1..8),
        prop::collection::vec(1_usize..100_000, 1..4)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_survive(
        (version, compression) in settings(),
        requests in prop::collection::vec((any::<i16>(), generate::request_envelope()), 1..6),
        pieces in pieces(),
    ) {
        let mut encoder = Encoder::client();
        encoder.establish(version, compression);
        let expected: Vec<(i16, RequestEnvelope)> = requests
            .into_iter()
            .map(|(stream, request)| (stream, generate::as_said_in(request, version)))
            .collect();
        for (stream, request) in &expected {
            encoder.append_request(version, *stream, request);
        }
        let mut decoder = Decoder::server(FRAME_BYTES_MAX);
        decoder.establish(version, compression);
        decoder.set_ready();
        let frames = frames_in_pieces(&mut decoder, &encoder.take(), &pieces);
        let got: Vec<(i16, RequestEnvelope)> = frames
            .iter()
            .map(|frame| (frame.header.stream, decoder.decode_request(frame).expect("a request of our own")))
            .collect();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn responses_survive(
        (version, compression) in settings(),
        responses in prop::collection::vec((any::<i16>(), generate::response_envelope()), 1..6),
        pieces in pieces(),
    ) {
        let mut encoder = Encoder::server();
        encoder.establish(version, compression);
        // The answer to STARTUP goes before the segments.
        encoder.append_response(version, 0, &Response::Ready.into());
        let ready = encoder.take();
        let mut decoder = Decoder::client(FRAME_BYTES_MAX);
        if !version.uses_segments() {
            decoder.establish(version, compression);
        }
        let frames = frames_in_pieces(&mut decoder, &ready, &pieces);
        prop_assert_eq!(ResponseEnvelope::decode(&frames[0]).unwrap().response, Response::Ready);
        decoder.establish(version, compression);

        for (stream, response) in &responses {
            encoder.append_response(version, *stream, response);
        }
        let frames = frames_in_pieces(&mut decoder, &encoder.take(), &pieces);
        prop_assert_eq!(frames.len(), responses.len());
        for (frame, (stream, response)) in frames.iter().zip(responses) {
            prop_assert_eq!(frame.header.stream, stream);
            let got = ResponseEnvelope::decode(frame).expect("a response of our own");
            prop_assert_eq!(got, generate::as_heard_in(response, version));
        }
    }
}

/// Envelopes around the size of a segment, alone and in company: packed, moved on, cut.
#[test]
fn envelopes_of_every_size_around_a_segment_survive() {
    let query = |length: usize| {
        let text = "x".repeat(length);
        let parameters = protocol::QueryParameters::at(protocol::Consistency::One);
        RequestEnvelope::from(Request::Query(protocol::Query { query: text.into(), parameters }))
    };
    let segment = (1 << 17) - 1;
    for compression in [None, Some(Compression::Lz4)] {
        for base in [segment - 40, segment - 19, segment, 2 * segment, 3 * segment - 19] {
            for length in base - 3..base + 3 {
                let mut encoder = Encoder::client();
                encoder.establish(Version::V5, compression);
                let sent = [query(10), query(length), query(segment / 2), query(segment / 2), query(3)];
                for (stream, request) in sent.iter().enumerate() {
                    encoder.append_request(Version::V5, stream as i16, request);
                }
                let mut decoder = Decoder::server(FRAME_BYTES_MAX);
                decoder.establish(Version::V5, compression);
                decoder.set_ready();
                let frames = frames_in_pieces(&mut decoder, &encoder.take(), &[70_001]);
                let got: Vec<_> = frames.iter().map(|frame| decoder.decode_request(frame).unwrap()).collect();
                assert!(got == sent, "length {length}");
            }
        }
    }
}

#[test]
fn a_large_envelope_before_authentication_ends_the_connection() {
    let mut encoder = Encoder::client();
    encoder.establish(Version::V5, None);
    let token = Request::AuthResponse(Some(vec![b'x'; 300_000].into()));
    encoder.append_request(Version::V5, 3, &token.into());
    let mut decoder = Decoder::server(FRAME_BYTES_MAX);
    decoder.establish(Version::V5, None);
    decoder.feed(&encoder.take());
    let error = decoder.next_frame().unwrap().unwrap_err();
    assert_eq!((error.stream, error.fate), (3, protocol::Fate::Close));
    assert!(error.error.message.contains("type = AUTH_RESPONSE, size = 300004"), "{}", error.error.message);
    assert!(Stage::Authentication.check(protocol::Opcode::AuthResponse).is_ok());
}

#[test]
fn a_request_that_is_too_big_is_skipped_and_told() {
    for (version, text) in [
        (Version::V4, "Request is too big: length 200022 exceeds maximum allowed length 1000."),
        (Version::V5, "CQL Message of size 200016 bytes exceeds allowed maximum of 1000 bytes"),
    ] {
        let mut encoder = Encoder::client();
        encoder.establish(version, None);
        let parameters = protocol::QueryParameters::at(protocol::Consistency::One);
        let query = protocol::Query { query: "x".repeat(200_006).into(), parameters };
        encoder.append_request(version, 9, &Request::Query(query).into());
        encoder.append_request(version, 10, &Request::Options.into());
        let mut decoder = Decoder::server(1000);
        decoder.establish(version, None);
        decoder.set_ready();
        let mut results = Vec::new();
        for piece in encoder.take().chunks(999) {
            decoder.feed(piece);
            results.extend(std::iter::from_fn(|| decoder.next_frame()));
            let segment_bytes = if version.uses_segments() { 140_000 } else { 2_000 };
            assert!(decoder.held_bytes() < segment_bytes, "{version}: {} held", decoder.held_bytes());
        }
        let error = results.remove(0).unwrap_err();
        assert_eq!((error.stream, error.fate), (9, protocol::Fate::GoOn));
        assert_eq!(error.error.kind, protocol::ErrorKind::Invalid);
        assert_eq!(error.error.message, text);
        assert_eq!(results.remove(0).unwrap().header.stream, 10);
    }
}
