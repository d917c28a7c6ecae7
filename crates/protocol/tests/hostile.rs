//! Bytes from people who mean no good: arbitrary ones, and valid streams with bytes flipped, cut,
//! repeated and inserted. Nothing panics, nothing is held beyond the limit, nothing loops, and how
//! the bytes were split on the way makes no difference.
//!
//! Not checked here: how much a single call allocates. The fuzz target `frames` does, by running
//! under an allocation limit.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod generate;

use proptest::prelude::*;
use protocol::{
    CellReader, Compression, Decoder, Encoder, Fate, Frame, FrameError, RequestEnvelope, Response,
    ResponseEnvelope, Version,
};

const FRAME_BYTES_MAX: usize = 100_000;

/// What may be held besides an envelope: a segment that is not complete.
const SEGMENT_BYTES_MAX: usize = 2 * 140_000;

#[derive(Clone, Debug)]
enum Damage {
    Flip(usize, u8),
    Set(usize, u8),
    Cut(usize, usize),
    Repeat(usize, usize),
    Insert(usize, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let position = prop_oneof![3 => 0_usize..60, 1 => any::<usize>()];
    let length = 0_usize..40;
    prop_oneof![
        (position.clone(), 1_u8..).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (position.clone(), prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff]))
            .prop_map(|(at, b)| Damage::Set(at, b)),
        (position.clone(), length.clone()).prop_map(|(at, length)| Damage::Cut(at, length)),
        (position.clone(), length).prop_map(|(at, length)| Damage::Repeat(at, length)),
        (position, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    match damage {
        Damage::Flip(at, bits) => bytes[at % length] ^= bits,
        Damage::Set(at, byte) => bytes[at % length] = *byte,
        Damage::Cut(at, count) => {
            let at = at % length;
            bytes.drain(at..length.min(at + count));
        }
        Damage::Repeat(at, count) => {
            let at = at % length;
            let piece = bytes[at..length.min(at + count)].to_vec();
            bytes.splice(at..at, piece);
        }
        Damage::Insert(at, piece) => {
            let at = at % length;
            bytes.splice(at..at, piece.iter().copied());
        }
    }
}

fn settings() -> impl Strategy<Value = (Option<Version>, Option<Compression>)> {
    let version = prop::option::weighted(0.9, prop::sample::select(Version::ALL.to_vec()));
    let compression = prop::sample::select(vec![None, Some(Compression::Lz4), Some(Compression::Snappy)]);
    (version, compression)
}

/// Takes the bytes in pieces, decodes all that comes out, and gives what came out.
fn digest(mut decoder: Decoder, mut bytes: &[u8], pieces: &[usize]) -> Vec<Result<Frame, FrameError>> {
    let mut results = Vec::new();
    let total = bytes.len();
    for size in pieces.iter().cycle() {
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        decoder.feed(piece);
        while let Some(result) = decoder.next_frame() {
            results.push(result);
            assert!(results.len() <= total + 1, "a loop");
        }
        let held = decoder.held_bytes();
        assert!(held <= FRAME_BYTES_MAX + SEGMENT_BYTES_MAX + 9, "{held} bytes held");
        bytes = rest;
        if bytes.is_empty() {
            break;
        }
    }
    if results.iter().any(|result| matches!(result, Err(error) if error.fate != Fate::GoOn)) {
        assert!(results.last().unwrap().is_err(), "something after a fatal error");
    }
    results
}

/// Decodes a frame as anything; whatever is read can be written and read again.
fn probe(frame: &Frame) {
    assert!(frame.body.len() <= FRAME_BYTES_MAX);
    let version = frame.header.version;
    if let Ok(request) = RequestEnvelope::decode(frame) {
        let mut encoder = Encoder::client();
        encoder.append_request(version, 1, &request);
        let mut decoder = Decoder::server(usize::MAX);
        decoder.feed(&encoder.take());
        let again = decoder.next_frame().unwrap().unwrap();
        assert_eq!(RequestEnvelope::decode(&again), Ok(request));
    }
    if let Ok(response) = ResponseEnvelope::decode(frame) {
        if let Response::Rows(rows) = &response.response {
            let cell_count = CellReader::new(rows.cells.clone()).take_while(Result::is_ok).count();
            assert!(cell_count >= rows.row_count as usize * rows.metadata.columns().len());
        }
        let mut encoder = Encoder::server();
        encoder.append_response(version, 1, &response);
        assert!(!encoder.take().is_empty());
    }
}

fn decoder_of(is_server: bool, version: Option<Version>, compression: Option<Compression>) -> Decoder {
    let mut decoder = match is_server {
        true => Decoder::server(FRAME_BYTES_MAX),
        false => Decoder::client(FRAME_BYTES_MAX),
    };
    if let Some(version) = version {
        decoder.establish(version, compression);
    }
    decoder.set_ready();
    decoder
}

/// Is the outcome one that depends on how much had arrived? An unknown version is: what came
/// with it is thrown away, and less than a header of it is not even answered.
fn depends_on_pieces(results: &[Result<Frame, FrameError>]) -> bool {
    results.iter().any(|result| match result {
        Ok(_) => false,
        Err(error) => {
            error.error.message.contains("protocol version") || error.error.message.contains("Beta")
        }
    })
}

fn check(
    bytes: &[u8],
    is_server: bool,
    version: Option<Version>,
    compression: Option<Compression>,
    pieces: &[usize],
) {
    let whole = digest(decoder_of(is_server, version, compression), bytes, &[usize::MAX]);
    let split = digest(decoder_of(is_server, version, compression), bytes, pieces);
    if !depends_on_pieces(&whole) && !depends_on_pieces(&split) {
        assert_eq!(whole, split);
    }
    whole.iter().flatten().for_each(probe);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_streams_do_no_harm(
        (version, compression) in settings(),
        requests in prop::collection::vec(generate::request_envelope(), 0..3),
        responses in prop::collection::vec(generate::response_envelope(), 0..3),
        is_server in any::<bool>(),
        damages in prop::collection::vec(damage(), 0..4),
        pieces in prop::collection::vec(1_usize..5000, 1..5),
    ) {
        let said_in = version.unwrap_or(Version::V4);
        let mut encoder = if is_server { Encoder::client() } else { Encoder::server() };
        if version.is_some() {
            encoder.establish(said_in, compression);
        }
        requests.iter().for_each(|request| encoder.append_request(said_in, 1, request));
        responses.iter().for_each(|response| encoder.append_response(said_in, 2, response));
        let mut bytes = encoder.take().to_vec();
        bytes.truncate(400_000);
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        check(&bytes, is_server, version, compression, &pieces);
    }

    #[test]
    fn bodies_damaged_inside_good_frames_do_no_harm(
        version in prop::sample::select(Version::ALL.to_vec()),
        request in generate::request_envelope(),
        response in generate::response_envelope(),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let server = (Encoder::client(), Decoder::server(FRAME_BYTES_MAX));
        let client = (Encoder::server(), Decoder::client(FRAME_BYTES_MAX));
        for (mut encoder, mut decoder) in [server, client] {
            match decoder_is_server(&decoder) {
                true => encoder.append_request(version, 1, &request),
                false => encoder.append_response(version, 1, &response),
            }
            decoder.feed(&encoder.take());
            if let Some(Ok(mut frame)) = decoder.next_frame() {
                let mut body = frame.body.to_vec();
                damages.iter().for_each(|damage| apply(&mut body, damage));
                body.truncate(FRAME_BYTES_MAX);
                frame.body = body.into();
                probe(&frame);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(
        (version, compression) in settings(),
        is_server in any::<bool>(),
        mut bytes in prop::collection::vec(any::<u8>(), 0..600),
        header in prop::option::of((3_u8..7, any::<u8>(), 0_u8..18, 0_u32..700)),
        pieces in prop::collection::vec(1_usize..50, 1..5),
    ) {
        if let Some((number, flags, opcode, length)) = header {
            let direction = if is_server { 0 } else { 0x80 };
            let mut framed = vec![number | direction, flags, 0, 1, opcode];
            framed.extend_from_slice(&length.to_be_bytes());
            framed.append(&mut bytes);
            bytes = framed;
        }
        check(&bytes, is_server, version, compression, &pieces);
    }
}

fn decoder_is_server(decoder: &Decoder) -> bool {
    decoder.direction() == protocol::Direction::Request
}
