//! Messages about agreement: what is put is read again, and no bytes make a node panic.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse,
};
use proptest::prelude::*;
use uuid::Uuid;

use super::error::AgreementError;
use super::message::{Answer, Ask, Change, Piece};
use super::types::{
    Address, Command, Entry, LogId, Membership, Payload, SnapshotMeta, StoredMembership, Vote,
};

fn node(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn membership() -> Membership {
    let address = |text: &str| Address(text.parse().expect("an address"));
    let nodes = BTreeMap::from([
        (node(1), address("10.0.0.1:7000")),
        (node(2), address("[fe80::1]:7001")),
        (node(3), address("10.0.0.3:7002")),
    ]);
    Membership::new(vec![[node(1)].into(), [node(1), node(2)].into()], nodes).expect("sound")
}

fn asks() -> Vec<Ask> {
    let id = |index| LogId::new_term_index(3, index);
    let vote = Vote::new_committed(3, node(1));
    let payloads = [
        Payload::Blank,
        Payload::Normal(Command { id: node(9), body: Bytes::from_static(b"a command") }),
        Payload::Membership(membership()),
    ];
    let entries = payloads.into_iter().zip(8..).map(|(payload, index)| Entry { log_id: id(index), payload });
    let append = AppendEntriesRequest {
        vote,
        prev_log_id: Some(id(7)),
        entries: entries.collect(),
        leader_commit: Some(id(6)),
    };
    let wants = VoteRequest { vote: Vote::new(4, node(2)), last_log_id: None, leadership_transfer: true };
    let meta = SnapshotMeta {
        last_log_id: Some(id(5)),
        last_membership: StoredMembership::new(Some(id(2)), membership()),
    };
    let bytes = Bytes::from_static(b"a piece");
    let piece = Piece { vote, meta, sending: 77, total_bytes: 100, offset: 50, bytes };
    vec![
        Ask::Append(append),
        Ask::Append(AppendEntriesRequest { vote, prev_log_id: None, entries: vec![], leader_commit: None }),
        Ask::Vote(wants.clone()),
        Ask::PreVote(wants),
        Ask::Piece(piece),
        Ask::TakeOver(TransferLeaderRequest::new(vote, node(2), Some(id(4)))),
        Ask::Propose(Command { id: node(10), body: Bytes::new() }),
        Ask::ReadIndex,
        Ask::Change(Change::AddLearner {
            node: node(4),
            address: Address("127.0.0.1:1".parse().expect("sound")),
        }),
        Ask::Change(Change::MakeVoter { node: node(4) }),
        Ask::Change(Change::Remove { node: node(4) }),
        Ask::Change(Change::HandOver { node: node(4) }),
    ]
}

fn answers() -> Vec<Answer> {
    let id = LogId::new_term_index(3, 9);
    let vote = Vote::new(5, node(3));
    let refused = [
        AgreementError::NoLeader,
        AgreementError::InDoubt,
        AgreementError::TooLong { bytes: 1 << 40 },
        AgreementError::Founded,
        AgreementError::Changing,
        AgreementError::NotMember { node: node(1) },
        AgreementError::Behind { node: node(2) },
        AgreementError::LastVoter,
        AgreementError::Refused { what: "it is so".to_owned() },
    ];
    let plain = vec![
        Answer::Appended(AppendEntriesResponse::Success),
        Answer::Appended(AppendEntriesResponse::PartialSuccess(Some(id))),
        Answer::Appended(AppendEntriesResponse::Conflict),
        Answer::Appended(AppendEntriesResponse::HigherVote(vote)),
        Answer::Voted(VoteResponse { vote, vote_granted: true, last_log_id: Some(id) }),
        Answer::Taken,
        Answer::Installed(vote),
        Answer::Again,
        Answer::TakesOver(false),
        Answer::Proposed(Bytes::from_static(b"done")),
        Answer::ReadIndex(Some(8)),
        Answer::ReadIndex(None),
        Answer::Changed,
    ];
    plain.into_iter().chain(refused.map(Answer::Refused)).collect()
}

fn bytes_of(ask: &Ask) -> BytesMut {
    let mut bytes = BytesMut::new();
    ask.put(&mut bytes);
    bytes
}

#[test]
fn what_is_put_is_read_again_and_nothing_shorter_is() {
    for ask in asks() {
        let bytes = bytes_of(&ask);
        let read = Ask::read(&bytes).unwrap_or_else(|error| panic!("{ask:?}: {error}"));
        assert_eq!(format!("{read:?}"), format!("{ask:?}"));
        (0..bytes.len()).for_each(|length| assert!(Ask::read(&bytes[..length]).is_err(), "{ask:?}"));
    }
    for answer in answers() {
        let mut bytes = BytesMut::new();
        answer.put(&mut bytes);
        assert_eq!(Answer::read(&bytes).as_ref(), Ok(&answer));
        (0..bytes.len()).for_each(|length| assert!(Answer::read(&bytes[..length]).is_err(), "{answer:?}"));
    }
}

#[test]
fn entries_with_a_hole_are_refused() {
    let Ask::Append(mut request) = asks().remove(0) else { unreachable!("it is the first") };
    request.entries.remove(1);
    assert!(Ask::read(&bytes_of(&Ask::Append(request))).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        _ = Ask::read(&bytes);
        _ = Answer::read(&bytes);
    }

    #[test]
    fn a_changed_request_is_read_without_a_panic(
        ask in proptest::sample::select(asks()),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = bytes_of(&ask);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(read) = Ask::read(&bytes) {
            // Whatever it is now, it is what it says.
            prop_assert_eq!(format!("{:?}", Ask::read(&bytes_of(&read)).expect("it was put")), format!("{read:?}"));
        }
    }
}
