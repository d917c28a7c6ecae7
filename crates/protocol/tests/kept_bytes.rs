//! What a real Cassandra said, byte for byte: its answers are read and written alike, and a small
//! server made of our parts gives the same errors to the same wrong frames.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use bytes::Bytes;
use protocol::{
    Decoder, Encoder, FRAME_BYTES_MAX_DEFAULT, Fate, Flags, Frame, Opcode, ProtocolError, Request, Response,
    ResponseEnvelope, ResultMetadata, Stage, StartupOptions, Version, supported_options,
};

const ANSWERS: &str = include_str!("kept/answers.txt");
const ERRORS: &str = include_str!("kept/errors.txt");

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.trim().as_bytes();
    assert_eq!(digits.len() % 2, 0, "odd number of digits");
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn all_frames(decoder: &mut Decoder) -> Vec<Frame> {
    std::iter::from_fn(|| decoder.next_frame()).map(|frame| frame.expect("a frame of Cassandra")).collect()
}

/// Lines of `answers.txt`: version, name, request, answer.
fn answers() -> impl Iterator<Item = (Version, &'static str, Vec<u8>, Vec<u8>)> {
    ANSWERS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut fields = line.split(' ');
        let mut field = || fields.next().expect("four fields");
        let version = field().trim_start_matches('v').parse().unwrap();
        (Version::from_number(version).unwrap(), field(), unhex(field()), unhex(field()))
    })
}

fn client_of(version: Version) -> Decoder {
    let mut decoder = Decoder::client(FRAME_BYTES_MAX_DEFAULT);
    decoder.establish(version, None);
    decoder
}

fn established_server_encoder(version: Version) -> Encoder {
    let mut encoder = Encoder::server();
    encoder.establish(version, None);
    encoder.append_with(version, 0, Opcode::Ready, Flags::NONE, |_| {});
    encoder.take();
    encoder
}

/// Columns of the one answer that leaves its columns out, found in the answer before it.
fn with_columns(response: &mut ResponseEnvelope, columns: &Arc<ResultMetadata>) {
    if let Response::Rows(rows) = &mut response.response
        && rows.no_metadata
    {
        rows.metadata = columns.clone();
    }
}

#[test]
fn answers_of_cassandra_are_read_and_written_alike() {
    let mut columns = Arc::new(ResultMetadata::default());
    let mut count = 0;
    for (version, name, _, answer) in answers() {
        let mut decoder = client_of(version);
        decoder.feed(&answer);
        let [mut one_by_one, mut packed] = [(); 2].map(|()| established_server_encoder(version));
        let mut written = Vec::new();
        for frame in all_frames(&mut decoder) {
            let mut response = ResponseEnvelope::decode(&frame).unwrap_or_else(|e| panic!("{name}: {e}"));
            with_columns(&mut response, &columns);
            if let Response::Rows(rows) = &response.response {
                columns = rows.metadata.clone();
            }
            packed.append_response(version, frame.header.stream, &response);
            one_by_one.append_response(version, frame.header.stream, &response);
            written.extend_from_slice(&one_by_one.take());
            count += 1;
        }
        // Cassandra packs answers together when they happen to be ready together.
        if answer != written {
            assert_eq!(hex(&packed.take()), hex(&answer), "{version} {name}");
        }
    }
    assert!(count > 50, "{count} answers");
}

#[test]
fn requests_sent_to_cassandra_are_read_and_written_alike() {
    for (version, name, request, _) in answers() {
        let mut decoder = Decoder::server(FRAME_BYTES_MAX_DEFAULT);
        decoder.feed(&request);
        let frames = all_frames(&mut decoder);
        assert_eq!(frames.len(), 1);
        let envelope = decoder.decode_request(&frames[0]).unwrap();
        let mut encoder = Encoder::client();
        encoder.append_request(version, frames[0].header.stream, &envelope);
        assert_eq!(hex(&encoder.take()), hex(&request), "{version} {name}");
    }
}

/// The least a server can be: OPTIONS, STARTUP without authentication, REGISTER, and errors.
struct SmallServer {
    decoder: Decoder,
    encoder: Encoder,
    stage: Stage,
    written: Vec<u8>,
    is_closed: bool,
}

impl SmallServer {
    fn new() -> SmallServer {
        SmallServer {
            decoder: Decoder::server(FRAME_BYTES_MAX_DEFAULT),
            encoder: Encoder::server(),
            stage: Stage::default(),
            written: Vec::new(),
            is_closed: false,
        }
    }

    fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.decoder.feed(bytes);
        while !self.is_closed
            && let Some(next) = self.decoder.next_frame()
        {
            match next {
                Ok(frame) => self.frame(&frame),
                Err(error) => {
                    self.is_closed = error.fate != Fate::GoOn;
                    if error.fate != Fate::CloseSilently {
                        self.encoder.append_frame_error(&error);
                    }
                }
            }
            // Cassandra seldom packs answers together; one segment each compares best.
            self.written.extend_from_slice(&self.encoder.take());
        }
        std::mem::take(&mut self.written)
    }

    fn frame(&mut self, frame: &Frame) {
        let header = frame.header;
        if let Err(error) = self.stage.check(header.opcode) {
            self.is_closed = self.decoder.version().is_none();
            return self.encoder.append_error(header.version, header.stream, &error.into());
        }
        let response = match self.decoder.decode_request(frame) {
            Err(error) => {
                self.is_closed = error.fate != Fate::GoOn;
                return self.encoder.append_frame_error(&error);
            }
            Ok(envelope) => self.answer(&envelope.request, header.version),
        };
        self.encoder.append_response(header.version, header.stream, &response.into());
    }

    fn answer(&mut self, request: &Request, version: Version) -> Response {
        match request {
            Request::Options => Response::Supported(supported_options()),
            Request::Startup(options) => self.startup(options, version),
            Request::Register(_) => Response::Ready,
            _ => Response::Void,
        }
    }

    fn startup(&mut self, options: &[(String, String)], version: Version) -> Response {
        let checked: Result<StartupOptions, ProtocolError> = StartupOptions::check(options, version);
        let compression = checked.as_ref().ok().and_then(|options| options.compression);
        self.decoder.establish(version, compression);
        self.encoder.establish(version, compression);
        match checked {
            Err(error) => Response::Error(error.into()),
            Ok(_) => {
                self.stage = Stage::Ready;
                self.decoder.set_ready();
                Response::Ready
            }
        }
    }
}

#[test]
fn wrong_frames_get_the_answers_of_cassandra() {
    let mut server = SmallServer::new();
    let mut name = "";
    let mut answer: Option<Vec<u8>> = None;
    let mut count = 0;
    for line in ERRORS.lines().chain(["= end"]) {
        let (kind, rest) = line.split_at(line.len().min(1));
        if matches!(kind, "=" | ">")
            && let Some(rest) = answer.take()
        {
            // D136: what Cassandra says to nine bytes and more, we say to fewer.
            let is_told = name.trim() == "v2 8 bytes";
            assert_eq!(!rest.is_empty(), is_told, "{name}: answered where Cassandra did not: {}", hex(&rest));
        }
        match kind {
            "=" => {
                server = SmallServer::new();
                name = rest;
            }
            ">" => answer = Some(server.receive(&unhex(rest))),
            "<" => {
                count += 1;
                let got = answer.replace(Vec::new()).unwrap_or_default();
                assert_eq!(hex(&got), rest.trim(), "{name}");
            }
            "!" => assert!(server.is_closed, "{name}: still open"),
            _ => {}
        }
    }
    assert!(count > 60, "{count} answers");
}

#[test]
fn a_bad_checksum_is_told_with_the_connections_name_and_ends_it() {
    let options = "0500000805000000000a";
    for (position, part) in [(0, "header"), (9, "body")] {
        let mut encoder = Encoder::client();
        encoder.establish(Version::V5, None);
        encoder.append_request(Version::V5, 8, &Request::Options.into());
        let mut segment = encoder.take().to_vec();
        segment[position] ^= 1;
        let mut decoder = Decoder::server(1 << 20).with_connection_id(0x1efc_8afb);
        decoder.establish(Version::V5, None);
        decoder.feed(&segment);
        decoder.feed(&unhex(options));
        let error = decoder.next_frame().unwrap().unwrap_err();
        assert_eq!((error.stream, error.fate), (0, Fate::Close));
        let text = format!("1efc8afb invalid, unrecoverable CRC mismatch detected in frame {part}. Read ");
        assert!(error.error.message.starts_with(&text), "{}", error.error.message);
        assert_eq!(decoder.next_frame(), None);
        assert_eq!(decoder.held_bytes(), 0);
    }
}

#[test]
fn a_good_request_between_bad_ones_keeps_the_connection() {
    let mut encoder = Encoder::client();
    encoder.establish(Version::V5, None);
    let bad = |encoder: &mut Encoder| {
        encoder.append_with(Version::V5, 7, Opcode::Query, Flags::NONE, |out| out.extend_from_slice(b"abc"));
    };
    for _ in 0..3 {
        bad(&mut encoder);
        encoder.append_request(Version::V5, 8, &Request::Options.into());
    }
    let mut server = SmallServer::new();
    server.decoder.establish(Version::V5, None);
    server.encoder.establish(Version::V5, None);
    server.stage = Stage::Ready;
    server.receive(&encoder.take());
    assert!(!server.is_closed);
    bad(&mut encoder);
    bad(&mut encoder);
    server.receive(&encoder.take());
    assert!(server.is_closed);
}

#[test]
fn compressed_startup_answers_are_those_of_cassandra() {
    for (compression, answer) in
        [("LZ4", "84010001020000000500 00000000"), ("snappy", "8401000102000000 0100")]
    {
        let options = [("CQL_VERSION", "3.0.0"), ("COMPRESSION", compression)];
        let options = options.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let mut encoder = Encoder::client();
        encoder.append_request(Version::V4, 1, &Request::Startup(options).into());
        let mut server = SmallServer::new();
        let got = server.receive(&encoder.take());
        assert_eq!(hex(&got), answer.replace(' ', ""));
    }
}

/// OPTIONS of versions 1 and 2 is eight bytes: as many as their header.
#[test]
fn a_client_of_version_1_or_2_is_told_at_its_first_byte() {
    let text = |version| {
        format!(
            "Invalid or unsupported protocol version ({version}); supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)"
        )
    };
    for (version, sent, stream) in [
        (1, "01", 0),
        (1, "0100", 0),
        (1, "010007", 7),
        (1, "0100070500000000", 7),
        (2, "0200fe05000000", 0xfe),
    ] {
        let mut server = SmallServer::new();
        let got = server.receive(&unhex(sent));
        // As Cassandra answers what is longer: the header of that version, code and message.
        let mut expected = vec![0x80 | version, 0, stream, 0, 0, 0, 0, 0x67, 0, 0, 0, 0x0a, 0, 0x61];
        expected.extend_from_slice(text(version).as_bytes());
        assert_eq!(hex(&got), hex(&expected), "{sent}");
        assert!(server.is_closed, "{sent}");
    }
    for sent in ["00", "07", "4745540a", "4600000000"] {
        let mut server = SmallServer::new();
        assert!(server.receive(&unhex(sent)).is_empty() && server.is_closed, "{sent} is another protocol");
    }
    for sent in ["03", "04000007050000", "06"] {
        let mut server = SmallServer::new();
        assert!(server.receive(&unhex(sent)).is_empty() && !server.is_closed, "{sent}: more must come");
    }
}

#[test]
fn the_bytes_of_a_request_are_shared_not_copied() {
    let body = b"\0\0\0\x08SELECT 1\0\x01\x01\0\x02\0\0\0\x03abc\xff\xff\xff\xff";
    let mut bytes = vec![4, 0, 0, 1, 7, 0, 0, 0, body.len() as u8];
    bytes.extend_from_slice(body);
    let mut decoder = Decoder::server(1 << 20);
    decoder.feed(&bytes);
    let frame = decoder.next_frame().unwrap().unwrap();
    let Request::Query(query) = decoder.decode_request(&frame).unwrap().request else { panic!("a query") };
    let value: Bytes = query.parameters.values.get_bytes(0).unwrap();
    assert_eq!(value, &b"abc"[..]);
    assert!(frame.body.as_ptr_range().contains(&value.as_ptr()));
    assert!(frame.body.as_ptr_range().contains(&query.query.as_bytes().as_ptr()));
}
