//! Frames through a stream that cuts anywhere, and handshakes between two sides that know this or that.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;
use runtime::SeededRandom;
use uuid::Uuid;

use super::*;

const CONTEXT: Context = Context { clock_micros: -7, schema_epoch: 3, ring_epoch: u64::MAX };
const STAMP: Stamp =
    Stamp { sender: Duration::from_micros(77_000_000_007), receiver: Duration::from_micros(9) };

fn message(kind: Kind, body: impl Into<Bytes>) -> Message {
    Message { kind, body: body.into() }
}

fn push(encoder: &mut Encoder, message: &Message) {
    encoder.push(message.kind, |out| out.extend_from_slice(&message.body)).expect("short enough");
}

fn frame_of(encoder: &mut Encoder, messages: &[Message]) -> Bytes {
    messages.iter().for_each(|message| push(encoder, message));
    encoder.seal(CONTEXT, STAMP).expect("it has messages")
}

fn messages_of(mut frame: Frame) -> Vec<Message> {
    std::iter::from_fn(|| frame.next_message().expect("ours")).collect()
}

/// All frames of a stream that comes in pieces.
fn decoded(stream: &[u8], piece_bytes: usize) -> Result<Vec<Vec<Message>>, FrameError> {
    let mut decoder = Decoder::new(BytesMut::new());
    let mut frames = Vec::new();
    for piece in stream.chunks(piece_bytes) {
        decoder.input().extend_from_slice(piece);
        while let Some(frame) = decoder.next_frame()? {
            assert_eq!((frame.context, frame.stamp), (CONTEXT, STAMP));
            frames.push(messages_of(frame));
        }
    }
    assert!(decoder.input().is_empty(), "nothing is left over");
    Ok(frames)
}

fn any_message() -> impl Strategy<Value = Message> {
    let kind = prop_oneof![
        (any::<u32>(), any::<u32>()).prop_map(|(id, micros)| Kind::Request {
            id,
            patience: Duration::from_micros(u64::from(micros))
        }),
        any::<u32>().prop_map(|id| Kind::Answer { id }),
        any::<u32>().prop_map(|id| Kind::Declined { id }),
        Just(Kind::Notice),
    ];
    // Some compress well, some not at all.
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..2000),
        (any::<u8>(), 0..5000usize).prop_map(|(byte, count)| vec![byte; count]),
    ];
    (kind, body).prop_map(|(kind, body)| message(kind, body))
}

proptest! {
    #[test]
    fn what_is_sent_is_what_comes(
        frames in proptest::collection::vec(proptest::collection::vec(any_message(), 1..6), 1..5),
        piece_bytes in 1..3000usize,
        is_compressing in any::<bool>(),
    ) {
        let mut encoder = Encoder::new(is_compressing);
        let stream: Vec<u8> = frames.iter().flat_map(|messages| frame_of(&mut encoder, messages)).collect();
        prop_assert_eq!(decoded(&stream, piece_bytes), Ok(frames));
    }

    #[test]
    fn no_byte_may_change(at in any::<prop::sample::Index>(), flip in 1..=255u8, is_compressing in any::<bool>()) {
        let mut encoder = Encoder::new(is_compressing);
        let messages = [message(Kind::Notice, vec![7; 900]), message(Kind::Answer { id: 4 }, "short")];
        let mut stream = frame_of(&mut encoder, &messages).to_vec();
        let at = at.index(stream.len());
        stream[at] ^= flip;
        let mut decoder = Decoder::new(stream.as_slice().into());
        prop_assert!(decoder.next_frame().is_err());
        prop_assert!(decoder.next_frame().is_err(), "nothing follows an error");
    }
}

#[test]
fn a_frame_may_not_be_missing_nor_come_twice() {
    let mut encoder = Encoder::new(false);
    let [first, second] = [1, 2].map(|id| frame_of(&mut encoder, &[message(Kind::Answer { id }, "")]));
    for (stream, number) in [(second.to_vec(), 0), ([first.clone(), first].concat(), 1)] {
        assert!(matches!(decoded(&stream, 1000), Err(FrameError::Head { number: at, .. }) if at == number));
    }
}

#[test]
fn a_body_above_the_limit_leaves_the_frame_as_it_was() {
    let mut encoder = Encoder::new(false);
    push(&mut encoder, &message(Kind::Notice, "before"));
    let body_bytes = BODY_BYTES_MAX + 1;
    let refused = encoder.push(Kind::Notice, |out| out.put_bytes(0, body_bytes));
    assert_eq!(refused, Err(BodyTooLong { body_bytes }));
    push(&mut encoder, &message(Kind::Notice, "after"));
    let frame = encoder.seal(CONTEXT, STAMP).expect("two messages");
    let expected = vec![message(Kind::Notice, "before"), message(Kind::Notice, "after")];
    assert_eq!(decoded(&frame, frame.len()), Ok(vec![expected]));
}

#[test]
fn the_longest_body_comes_through_and_fills_its_frame() {
    let mut encoder = Encoder::new(true);
    encoder.push(Kind::Notice, |out| out.put_bytes(1, BODY_BYTES_MAX)).expect("no longer than it may be");
    assert!(encoder.is_full());
    let frame = encoder.seal(CONTEXT, STAMP).expect("a message");
    assert!(frame.len() < BODY_BYTES_MAX / 100, "equal bytes compress");
    let mut decoder = Decoder::new(BytesMut::from(frame));
    let messages = decoder.next_frame().map(|frame| frame.map(messages_of));
    assert_eq!(messages.map(|found| found.map(|found| found[0].body.len())), Ok(Some(BODY_BYTES_MAX)));
}

#[test]
fn a_length_above_the_limit_is_refused_before_its_bytes_come() {
    // A frame that its own sender may not make: the head says more than any payload has.
    let mut head = vec![0xff; 8];
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&0u64.to_le_bytes());
    hasher.update(&head);
    head.put_u32_le(hasher.finalize());
    head.put_u32_le(0);
    assert!(matches!(decoded(&head, 16), Err(FrameError::TooLong { payload_bytes: u32::MAX, .. })));
}

#[test]
fn it_says_how_many_bytes_are_wanted() {
    let mut encoder = Encoder::new(false);
    let frame = frame_of(&mut encoder, &[message(Kind::Notice, vec![1; 300])]);
    let mut decoder = Decoder::new(BytesMut::new());
    assert_eq!(decoder.wanted_bytes(), frame::HEAD_BYTES);
    decoder.input().extend_from_slice(&frame[..20]);
    assert_eq!(decoder.wanted_bytes(), frame.len() - 20);
    decoder.input().extend_from_slice(&frame[20..]);
    assert!(decoder.next_frame().is_ok_and(|frame| frame.is_some()));
    assert_eq!(decoder.wanted_bytes(), frame::HEAD_BYTES);
}

fn identity(host: u128) -> Identity {
    Identity {
        cluster_name: "Test Cluster".into(),
        cluster_id: Some(Uuid::from_u128(99)),
        host_id: Uuid::from_u128(host),
        incarnation: host as u64 * 10,
        shard_count: 2,
        wants_compression: true,
        secret: Some(Secret::new(b"nobody knows")),
    }
}

const TO_SHARD_1: Purpose = Purpose::Shard { from: 0, to: 1 };

/// What both sides find: the one that connects, and the one that is connected to.
type Met = (Result<Established, HandshakeError>, Result<Established, HandshakeError>);

/// Has two sides talk over a stream that cuts anywhere; `wanted` is whom the one that connects looks for.
fn meet(connects: &Identity, accepts: &Identity, purpose: Purpose, wanted: Option<Uuid>) -> Met {
    let random = SeededRandom::new(5);
    let (initiator, hello) = Initiator::begin(connects.clone(), purpose, wanted, &random);
    let mut acceptor = Acceptor::new(accepts.clone(), &random);
    let (mut to_acceptor, mut to_initiator) = (BytesMut::new(), BytesMut::new());
    let answer = feed(&mut to_acceptor, &hello, |input| match acceptor.read(input) {
        Ok(Accepting::Wait) => None,
        Ok(Accepting::Send(bytes)) => Some(Ok(bytes)),
        Ok(Accepting::Established(_)) => panic!("without a proof"),
        Err(error) => Some(Err(error)),
    });
    let (answer, refused) = match answer {
        Ok(answer) => (answer, None),
        Err(error) => (error.refusal().expect("it can be told"), Some(error)),
    };
    let found = feed(&mut to_initiator, &answer, |input| initiator.read(input).transpose());
    if let Some(error) = refused {
        return (found.map(|(established, _)| established), Err(error));
    }
    let (established, proof) = match found {
        Ok(found) => found,
        Err(error) => return (Err(error), Err(HandshakeError::OutOfTurn)),
    };
    let accepted = feed(&mut to_acceptor, &proof, |input| match acceptor.read(input) {
        Ok(Accepting::Wait) => None,
        Ok(Accepting::Send(_)) => panic!("nothing is left to say"),
        Ok(Accepting::Established(established)) => Some(Ok(established)),
        Err(error) => Some(Err(error)),
    });
    (Ok(established), accepted)
}

/// Feeds byte by byte until something comes of it, which must be at the last.
fn feed<T>(input: &mut BytesMut, bytes: &[u8], mut step: impl FnMut(&mut BytesMut) -> Option<T>) -> T {
    for (index, byte) in bytes.iter().enumerate() {
        input.put_u8(*byte);
        if let Some(found) = step(input) {
            assert_eq!(index + 1, bytes.len(), "before its end");
            return found;
        }
    }
    panic!("nothing came of it")
}

#[test]
fn two_nodes_of_a_cluster_meet() {
    let (one, other) = (identity(1), identity(2));
    let (initiator, acceptor) = meet(&one, &other, TO_SHARD_1, Some(other.host_id));
    let initiator = initiator.expect("they meet");
    let seen = |host: &Identity| Established {
        version: 1,
        is_compressing: true,
        purpose: TO_SHARD_1,
        host_id: host.host_id,
        incarnation: host.incarnation,
        shard_count: 2,
        cluster_id: host.cluster_id,
    };
    assert_eq!(initiator, seen(&other));
    assert_eq!(acceptor, Ok(seen(&one)));
}

#[test]
fn both_have_to_want_compression_and_neither_needs_a_secret() {
    let plain = Identity { wants_compression: false, secret: None, ..identity(1) };
    let open = Identity { secret: None, ..identity(2) };
    let (initiator, acceptor) = meet(&plain, &open, Purpose::Urgent, None);
    assert_eq!(initiator.map(|met| met.is_compressing), Ok(false));
    assert_eq!(acceptor.map(|met| met.is_compressing), Ok(false));
}

#[test]
fn who_has_not_joined_yet_knows_no_cluster_id() {
    let stranger = Identity { cluster_id: None, ..identity(1) };
    let (initiator, acceptor) = meet(&stranger, &identity(2), Purpose::Urgent, None);
    assert_eq!(initiator.map(|met| met.cluster_id), Ok(identity(2).cluster_id));
    assert_eq!(acceptor.map(|met| met.cluster_id), Ok(None));
}

/// It had more of them when it was heard of.
#[test]
fn a_shard_that_a_node_has_no_more_is_another_one() {
    let (_, acceptor) = meet(&identity(1), &identity(2), Purpose::Shard { from: 0, to: 3 }, None);
    assert_eq!(acceptor.map(|met| met.purpose), Ok(TO_SHARD_1));
}

#[test]
fn who_does_not_belong_together_is_told_why() {
    let other = identity(2);
    let cases = [
        (Identity { cluster_name: "Test".into(), ..identity(1) }, TO_SHARD_1, Reason::ClusterName),
        (Identity { cluster_id: Some(Uuid::from_u128(98)), ..identity(1) }, TO_SHARD_1, Reason::ClusterId),
        (identity(2), TO_SHARD_1, Reason::Itself),
        (Identity { secret: None, ..identity(1) }, TO_SHARD_1, Reason::Secret),
    ];
    for (connects, purpose, expected) in cases {
        let (initiator, acceptor) = meet(&connects, &other, purpose, None);
        assert!(
            matches!(&initiator, Err(HandshakeError::Refused { reason, .. }) if *reason == expected),
            "{expected:?}: {initiator:?}"
        );
        assert!(matches!(acceptor, Err(HandshakeError::Refusing { reason, .. }) if reason == expected));
    }
}

#[test]
fn another_secret_is_found_out_by_who_connects() {
    let other = Identity { secret: Some(Secret::new(b"something else")), ..identity(2) };
    let (initiator, _) = meet(&identity(1), &other, TO_SHARD_1, None);
    assert!(matches!(initiator, Err(HandshakeError::Refusing { reason: Reason::Secret, .. })));
}

/// Who connects may pass over the other side's proof; its own is looked at all the same, and an old one is no use.
#[test]
fn a_proof_of_another_connection_is_refused() {
    let (one, other) = (identity(1), identity(2));
    let proof_of = |seed| {
        let random = SeededRandom::new(seed);
        let (initiator, hello) = Initiator::begin(one.clone(), TO_SHARD_1, None, &random);
        let mut acceptor = Acceptor::new(other.clone(), &random);
        let Ok(Accepting::Send(welcome)) = acceptor.read(&mut BytesMut::from(hello)) else {
            panic!("no welcome")
        };
        let (_, proof) = initiator.read(&mut BytesMut::from(welcome)).expect("welcome").expect("whole");
        (acceptor, proof)
    };
    let ((_, old_proof), (mut acceptor, proof)) = (proof_of(1), proof_of(2));
    let refused = acceptor.read(&mut BytesMut::from(&old_proof[..]));
    assert!(matches!(refused, Err(HandshakeError::Refusing { reason: Reason::Secret, .. })));
    assert_eq!(
        acceptor.read(&mut BytesMut::from(proof)),
        Err(HandshakeError::OutOfTurn),
        "there is no second try"
    );
}

#[test]
fn another_node_at_the_address_is_not_talked_to() {
    let wanted = Uuid::from_u128(3);
    let (initiator, _) = meet(&identity(1), &identity(2), TO_SHARD_1, Some(wanted));
    assert_eq!(initiator, Err(HandshakeError::OtherHost { wanted, found: identity(2).host_id }));
}

#[test]
fn whoever_speaks_something_else_is_told_by_its_first_bytes() {
    let mut acceptor = Acceptor::new(identity(1), &SeededRandom::new(1));
    let read = acceptor.read(&mut BytesMut::from(&b"GET / HTTP/1.1\r\n"[..]));
    assert_eq!(read, Err(HandshakeError::Bytes(HandshakeBytesError::Stranger)));
    assert_eq!(read.expect_err("refused").refusal(), None);
}

proptest! {
    #[test]
    fn no_byte_of_a_hello_may_change(at in any::<prop::sample::Index>(), flip in 1..=255u8) {
        let random = SeededRandom::new(1);
        let (_, hello) = Initiator::begin(identity(1), TO_SHARD_1, None, &random);
        let mut hello = BytesMut::from(hello);
        let at = at.index(hello.len());
        hello[at] ^= flip;
        let read = Acceptor::new(identity(2), &random).read(&mut hello);
        // A longer length waits for bytes that never come.
        prop_assert!(matches!(read, Err(HandshakeError::Bytes(_)) | Ok(Accepting::Wait)));
    }
}

/// Bytes that were kept when version 1 was made: what is written now is the same, or an older node could not read it.
#[test]
#[expect(clippy::disallowed_methods, reason = "kept bytes are files beside the code")]
fn version_1_is_what_it_was() {
    let messages = [
        message(Kind::Request { id: 3, patience: Duration::from_millis(2) }, "please"),
        message(Kind::Answer { id: 9 }, "here it is"),
        message(Kind::Notice, vec![5; 600]),
    ];
    let (initiator, hello) = Initiator::begin(identity(1), TO_SHARD_1, None, &SeededRandom::new(1));
    let mut acceptor = Acceptor::new(identity(2), &SeededRandom::new(2));
    let Ok(Accepting::Send(welcome)) = acceptor.read(&mut BytesMut::from(&hello[..])) else {
        panic!("no welcome")
    };
    let (_, proof) = initiator.read(&mut BytesMut::from(&welcome[..])).expect("a welcome").expect("whole");
    let refusal =
        HandshakeError::Refusing { reason: Reason::Shard, text: "there is no shard 2, only 2".into() };
    let cases = [
        // What follows a seed's first bytes is the stream: see `hostile`.
        ("frames", [&[64, 0, 0], &frame_of(&mut Encoder::new(false), &messages)[..]].concat()),
        ("compressed", [&[64, 0, 0], &frame_of(&mut Encoder::new(true), &messages)[..]].concat()),
        ("accepts", [&[0, 1], &hello[..], &proof].concat()),
        ("initiates", [&[0, 0], &welcome[..]].concat()),
        ("refused", [&[0, 0], &refusal.refusal().expect("it can be told")[..]].concat()),
    ];
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/messages");
    for (name, bytes) in cases {
        let kept = std::fs::read(folder.join(name)).expect("it was kept");
        assert_eq!(bytes, kept, "{name}");
    }
}
