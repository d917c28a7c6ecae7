//! Reads bytes that may be anything as a node reads them: what the fuzzer calls.
//!
//! Nothing may panic, loop, or take memory beyond what the bytes are worth; and in whatever pieces bytes come, the same
//! is found.

use bytes::{BufMut, Bytes, BytesMut};
use runtime::SeededRandom;
use uuid::Uuid;

use crate::frame::Head;
use crate::{Accepting, Acceptor, Context, Decoder, FrameError, Identity, Initiator, Message, Purpose};

/// Reads a stream of frames; or, when the first byte is odd, frames with these bytes as payloads and right checks.
///
/// ```text
///   | settings | piece | stream …                                           bit 0 of the settings clear
///   | settings | piece | (length u8, plain length u16, length × payload)*   set: bit 1: compressed
/// ```
///
/// # Panics
/// When a promise is broken: that is what it is for.
pub fn read_frames(bytes: &[u8]) {
    let [settings, piece_bytes, rest @ ..] = bytes else { return };
    let stream = match settings & 1 {
        0 => rest.to_vec(),
        _ => with_right_checks(rest, settings >> 1 & 1 == 1),
    };
    let whole = frames_of(&stream, stream.len().max(1));
    let in_pieces = frames_of(&stream, usize::from(*piece_bytes).max(1));
    assert_eq!(whole, in_pieces, "what is found depends on the pieces");
}

fn with_right_checks(mut bytes: &[u8], is_compressed: bool) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut number = 0;
    while let [length, plain_low, plain_high, rest @ ..] = bytes {
        let (payload, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        let plain_bytes = usize::from(u16::from_le_bytes([*plain_low, *plain_high]));
        stream.put_slice(&Head::encode(number, payload, is_compressed.then_some(plain_bytes)));
        stream.put_slice(payload);
        number += 1;
        bytes = rest;
    }
    stream
}

/// What a stream came to: all whole frames, each as far as it made sense, and the error that ended it.
type Found = (Vec<(Context, Vec<Message>)>, Option<FrameError>);

fn frames_of(stream: &[u8], piece_bytes: usize) -> Found {
    let mut decoder = Decoder::new(BytesMut::new());
    let mut frames = Vec::new();
    for piece in stream.chunks(piece_bytes) {
        decoder.input().put_slice(piece);
        loop {
            assert!(decoder.wanted_bytes() > 0, "somebody would wait for nothing");
            match decoder.next_frame() {
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
                Ok(Some(mut frame)) => {
                    let context = frame.context;
                    let (mut messages, mut error) = (Vec::new(), None);
                    loop {
                        match frame.next_message() {
                            Ok(None) => break,
                            Ok(Some(message)) => messages.push(message),
                            Err(found) => {
                                error = Some(found);
                                break;
                            }
                        }
                    }
                    frames.push((context, messages));
                    if error.is_some() {
                        return (frames, error);
                    }
                }
            }
        }
    }
    (frames, None)
}

/// Reads a handshake, as the side that connects when the first byte is even, else as the other.
///
/// # Panics
/// When a promise is broken: that is what it is for.
pub fn read_handshake(bytes: &[u8]) {
    let Some((side, stream)) = bytes.split_first() else { return };
    let random = SeededRandom::new(1);
    let identity = Identity {
        cluster_name: "Test Cluster".to_owned(),
        cluster_id: None,
        host_id: Uuid::from_u128(1),
        incarnation: 1,
        shard_count: 1,
        wants_compression: true,
        secret: None,
    };
    let mut input = BytesMut::from(stream);
    if side & 1 == 0 {
        let (initiator, _) = Initiator::begin(identity, Purpose::Urgent, None, &random);
        while let Ok(Some(_)) = initiator.read(&mut input) {}
        return;
    }
    let mut acceptor = Acceptor::new(identity, &random);
    loop {
        match acceptor.read(&mut input) {
            Ok(Accepting::Send(answer)) => assert!(!answer.is_empty(), "nothing to send"),
            Ok(Accepting::Wait | Accepting::Established(_)) => return,
            Err(error) => {
                let _: Option<Bytes> = error.refusal();
                return;
            }
        }
    }
}
