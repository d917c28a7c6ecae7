//! The native protocol's decoder and every message behind it.
//!
//! ```text
//!   byte 0   bits 0-2: version (none, 3, 4, 5, 6)   bits 3-4: compression   bit 5: server or client
//!            bit 6: checksums are corrected (or nothing but errors would be found behind them)
//!   byte 1   how many bytes are fed at a time (0: all at once)
//!   the rest the stream
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::{
    CellReader, Compression, Decoder, Direction, Encoder, Fate, Flags, Frame, Opcode, RequestEnvelope, Response,
    ResponseEnvelope, Stage, StartupOptions, Version,
};

const FRAME_BYTES_MAX: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let [settings, piece_bytes, stream @ ..] = data else { return };
    let version = match settings & 7 {
        0 => None,
        number => Version::from_number(number + 2),
    };
    let compression = match settings >> 3 & 3 {
        0 => None,
        1 => Some(Compression::Snappy),
        _ => Some(Compression::Lz4),
    };
    let mut decoder = match settings >> 5 & 1 {
        0 => Decoder::server(FRAME_BYTES_MAX),
        _ => Decoder::client(FRAME_BYTES_MAX),
    };
    if let Some(version) = version {
        decoder.establish(version, compression);
    }
    decoder.set_ready();
    let in_segments;
    let stream = match version.filter(|version| version.uses_segments() && settings >> 6 & 1 == 1) {
        None => stream,
        Some(version) => {
            in_segments = wrapped(version, compression, decoder.direction(), stream);
            &in_segments
        }
    };
    let piece_bytes = if *piece_bytes == 0 { stream.len().max(1) } else { usize::from(*piece_bytes) };
    for piece in stream.chunks(piece_bytes) {
        decoder.feed(piece);
        while let Some(result) = decoder.next_frame() {
            match result {
                Ok(frame) => read(&mut decoder, &frame),
                Err(error) => {
                    Encoder::server().append_frame_error(&error);
                    if error.fate != Fate::GoOn {
                        assert!(decoder.next_frame().is_none());
                    }
                }
            }
        }
        assert!(decoder.held_bytes() <= FRAME_BYTES_MAX + (1 << 18));
    }
});

/// The stream as the bodies of envelopes in good segments: opcode, length of the body, body.
fn wrapped(version: Version, compression: Option<Compression>, direction: Direction, mut stream: &[u8]) -> Vec<u8> {
    let mut encoder = match direction {
        Direction::Request => Encoder::client(),
        Direction::Response => Encoder::server(),
    };
    encoder.establish(version, compression);
    if direction == Direction::Response {
        encoder.append_response(version, 0, &Response::Ready.into());
        encoder.take();
    }
    while let [opcode, flags, length, rest @ ..] = stream {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        if let Ok(opcode) = Opcode::from_code(*opcode, direction) {
            let flags = Flags::from_bits(*flags);
            encoder.append_with(version, 1, opcode, flags, |out| out.extend_from_slice(body));
        }
        stream = rest;
    }
    encoder.take().to_vec()
}

/// Reads a frame as a request and as a response; what is read can be written and read alike.
fn read(decoder: &mut Decoder, frame: &Frame) {
    assert!(frame.body.len() <= FRAME_BYTES_MAX);
    let version = frame.header.version;
    let _ = Stage::Startup.check(frame.header.opcode);
    if decoder.direction() == Direction::Request {
        if let Ok(request) = decoder.decode_request(frame) {
            if let protocol::Request::Startup(options) = &request.request {
                let _ = StartupOptions::check(options, version);
            }
            let mut encoder = Encoder::client();
            encoder.append_request(version, 1, &request);
            let again = read_back(Decoder::server(usize::MAX), &encoder.take());
            assert_eq!(RequestEnvelope::decode(&again).as_ref(), Ok(&request));
        }
        return;
    }
    if let Ok(response) = ResponseEnvelope::decode(frame) {
        if let Response::Rows(rows) = &response.response {
            CellReader::new(rows.cells.clone()).take_while(Result::is_ok).for_each(drop);
        }
        let mut encoder = Encoder::server();
        encoder.append_response(version, 1, &response);
        // Not compared: a response may say more than its version would have us write.
        let again = read_back(Decoder::client(usize::MAX), &encoder.take());
        ResponseEnvelope::decode(&again).expect("what we wrote");
    }
}

fn read_back(mut decoder: Decoder, bytes: &[u8]) -> Frame {
    decoder.feed(bytes);
    decoder.next_frame().expect("a whole frame").expect("a good frame")
}
