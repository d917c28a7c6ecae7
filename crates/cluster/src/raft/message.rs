//! What the parts of an agreement ask each other, as bytes. `docs/formats/raft-messages.md` draws them.
//!
//! A request begins with what it is for and a version, an answer with the version. Whatever is read may be wrong.

use bytes::{BufMut, Bytes, BytesMut};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse,
};
use uuid::Uuid;

use super::bytes_of::{
    BadBytes, Reader, put_address, put_bytes, put_count, put_entry, put_log_id, put_optional,
    put_snapshot_meta, put_vote,
};
use super::error::AgreementError;
use super::types::{Address, Command, SnapshotMeta, Types, Vote};

/// The first byte of an urgent request that is for agreement.
pub(crate) const FOR_AGREEMENT: u8 = 1;
const VERSION: u8 = 1;

/// What is asked.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// A leader has entries, or none and wants to be heard.
    Append(AppendEntriesRequest<Types>),
    /// A candidate wants to lead.
    Vote(VoteRequest<Types>),
    /// Would it be voted for?
    PreVote(VoteRequest<Types>),
    /// A part of a snapshot.
    Piece(Piece),
    /// The leader wants to be followed by whom it asks.
    TakeOver(TransferLeaderRequest<Types>),
    /// Somebody who does not lead passes a command on.
    Propose(Command),
    /// Up to which entry must be applied what is read from now on?
    ReadIndex,
    /// Somebody who does not lead passes a change of the members on.
    Change(Change),
}

/// A part of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    /// The leader's.
    pub(super) vote: Vote,
    pub(super) meta: SnapshotMeta,
    /// Which sending it is a part of.
    pub(super) sending: u64,
    pub(super) total_bytes: u64,
    pub(super) offset: u64,
    pub(super) bytes: Bytes,
}

/// A change of who agrees, or who leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    AddLearner { node: Uuid, address: Address },
    MakeVoter { node: Uuid },
    Remove { node: Uuid },
    HandOver { node: Uuid },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Appended(AppendEntriesResponse<Types>),
    Voted(VoteResponse<Types>),
    /// A piece was taken, and there is more to come.
    Taken,
    /// The last piece was taken, and the snapshot is in its place; or the leader is none any more.
    Installed(Vote),
    /// A piece came that does not follow the one before: begin again.
    Again,
    /// Will whom the leader asked try to follow it?
    TakesOver(bool),
    /// What the machine said.
    Proposed(Bytes),
    ReadIndex(Option<u64>),
    Changed,
    Refused(AgreementError),
}

impl Ask {
    pub(super) fn put(&self, out: &mut BytesMut) {
        out.put_slice(&[FOR_AGREEMENT, VERSION]);
        match self {
            Ask::Append(request) => {
                out.put_u8(1);
                put_vote(out, &request.vote);
                put_optional(out, request.prev_log_id, put_log_id);
                put_optional(out, request.leader_commit, put_log_id);
                put_count(out, request.entries.len());
                request.entries.iter().for_each(|entry| put_entry(out, entry));
            }
            Ask::Vote(request) => put_vote_request(out, 2, request),
            Ask::PreVote(request) => put_vote_request(out, 3, request),
            Ask::Piece(piece) => {
                out.put_u8(4);
                put_vote(out, &piece.vote);
                put_snapshot_meta(out, &piece.meta);
                out.put_u64_le(piece.sending);
                out.put_u64_le(piece.total_bytes);
                out.put_u64_le(piece.offset);
                put_bytes(out, &piece.bytes);
            }
            Ask::TakeOver(request) => {
                out.put_u8(5);
                put_vote(out, request.from_leader());
                out.put_slice(request.to_node_id().as_bytes());
                put_optional(out, request.last_log_id().copied(), put_log_id);
            }
            Ask::Propose(command) => {
                out.put_u8(6);
                out.put_slice(command.id.as_bytes());
                put_bytes(out, &command.body);
            }
            Ask::ReadIndex => out.put_u8(7),
            Ask::Change(change) => {
                out.put_u8(8);
                change.put(out);
            }
        }
    }

    pub(super) fn read(body: &[u8]) -> Result<Ask, BadBytes> {
        let reader = &mut Reader(body);
        if reader.u8()? != FOR_AGREEMENT {
            return Err(BadBytes("what a request is for"));
        }
        version(reader)?;
        let ask = match reader.u8()? {
            1 => Ask::Append(AppendEntriesRequest {
                vote: reader.vote()?,
                prev_log_id: reader.optional(Reader::log_id)?,
                leader_commit: reader.optional(Reader::log_id)?,
                entries: reader.list(Reader::entry)?,
            }),
            2 => Ask::Vote(vote_request(reader)?),
            3 => Ask::PreVote(vote_request(reader)?),
            4 => Ask::Piece(Piece {
                vote: reader.vote()?,
                meta: reader.snapshot_meta()?,
                sending: reader.u64()?,
                total_bytes: reader.u64()?,
                offset: reader.u64()?,
                bytes: reader.bytes()?,
            }),
            5 => Ask::TakeOver(TransferLeaderRequest::new(
                reader.vote()?,
                reader.uuid()?,
                reader.optional(Reader::log_id)?,
            )),
            6 => Ask::Propose(Command { id: reader.uuid()?, body: reader.bytes()? }),
            7 => Ask::ReadIndex,
            8 => Ask::Change(Change::read(reader)?),
            _ => return Err(BadBytes("a kind of request")),
        };
        reader.end()?;
        ask.check()
    }

    /// Entries follow each other: the log has no holes.
    fn check(self) -> Result<Ask, BadBytes> {
        if let Ask::Append(request) = &self {
            let mut next = request.prev_log_id.map_or(0, |log_id| log_id.index.saturating_add(1));
            for entry in &request.entries {
                if entry.log_id.index != next {
                    return Err(BadBytes("the place of an entry"));
                }
                next = next.saturating_add(1);
            }
        }
        Ok(self)
    }
}

fn version(reader: &mut Reader<'_>) -> Result<(), BadBytes> {
    if reader.u8()? == VERSION { Ok(()) } else { Err(BadBytes("the version")) }
}

fn put_vote_request(out: &mut BytesMut, kind: u8, request: &VoteRequest<Types>) {
    out.put_u8(kind);
    put_vote(out, &request.vote);
    put_optional(out, request.last_log_id, put_log_id);
    out.put_u8(u8::from(request.leadership_transfer));
}

fn vote_request(reader: &mut Reader<'_>) -> Result<VoteRequest<Types>, BadBytes> {
    Ok(VoteRequest {
        vote: reader.vote()?,
        last_log_id: reader.optional(Reader::log_id)?,
        leadership_transfer: reader.flag()?,
    })
}

impl Change {
    /// Whom it is about.
    pub(super) fn node(&self) -> Uuid {
        match self {
            Change::AddLearner { node, .. }
            | Change::MakeVoter { node }
            | Change::Remove { node }
            | Change::HandOver { node } => *node,
        }
    }

    fn put(&self, out: &mut BytesMut) {
        let kind = match self {
            Change::AddLearner { .. } => 1,
            Change::MakeVoter { .. } => 2,
            Change::Remove { .. } => 3,
            Change::HandOver { .. } => 4,
        };
        out.put_u8(kind);
        out.put_slice(self.node().as_bytes());
        if let Change::AddLearner { address, .. } = self {
            put_address(out, *address);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Change, BadBytes> {
        let (kind, node) = (reader.u8()?, reader.uuid()?);
        Ok(match kind {
            1 => Change::AddLearner { node, address: reader.address()? },
            2 => Change::MakeVoter { node },
            3 => Change::Remove { node },
            4 => Change::HandOver { node },
            _ => return Err(BadBytes("a kind of change")),
        })
    }
}

impl Answer {
    pub(super) fn put(&self, out: &mut BytesMut) {
        out.put_u8(VERSION);
        match self {
            Answer::Appended(response) => {
                out.put_u8(1);
                put_appended(out, response);
            }
            Answer::Voted(response) => {
                out.put_u8(2);
                put_vote(out, &response.vote);
                out.put_u8(u8::from(response.vote_granted));
                put_optional(out, response.last_log_id, put_log_id);
            }
            Answer::Taken => out.put_u8(3),
            Answer::Installed(vote) => {
                out.put_u8(4);
                put_vote(out, vote);
            }
            Answer::Again => out.put_u8(5),
            Answer::TakesOver(is_so) => out.put_slice(&[6, u8::from(*is_so)]),
            Answer::Proposed(answer) => {
                out.put_u8(7);
                put_bytes(out, answer);
            }
            Answer::ReadIndex(index) => {
                out.put_u8(8);
                put_optional(out, *index, |out, index| out.put_u64_le(index));
            }
            Answer::Changed => out.put_u8(9),
            Answer::Refused(error) => {
                out.put_u8(10);
                error.put(out);
            }
        }
    }

    pub(super) fn read(body: &[u8]) -> Result<Answer, BadBytes> {
        let reader = &mut Reader(body);
        version(reader)?;
        let answer = match reader.u8()? {
            1 => Answer::Appended(appended(reader)?),
            2 => Answer::Voted(VoteResponse {
                vote: reader.vote()?,
                vote_granted: reader.flag()?,
                last_log_id: reader.optional(Reader::log_id)?,
            }),
            3 => Answer::Taken,
            4 => Answer::Installed(reader.vote()?),
            5 => Answer::Again,
            6 => Answer::TakesOver(reader.flag()?),
            7 => Answer::Proposed(reader.bytes()?),
            8 => Answer::ReadIndex(reader.optional(Reader::u64)?),
            9 => Answer::Changed,
            10 => Answer::Refused(AgreementError::read(reader)?),
            _ => return Err(BadBytes("a kind of answer")),
        };
        reader.end()?;
        Ok(answer)
    }
}

fn put_appended(out: &mut BytesMut, response: &AppendEntriesResponse<Types>) {
    match response {
        AppendEntriesResponse::Success => out.put_u8(1),
        AppendEntriesResponse::PartialSuccess(upto) => {
            out.put_u8(2);
            put_optional(out, *upto, put_log_id);
        }
        AppendEntriesResponse::Conflict => out.put_u8(3),
        AppendEntriesResponse::HigherVote(vote) => {
            out.put_u8(4);
            put_vote(out, vote);
        }
    }
}

fn appended(reader: &mut Reader<'_>) -> Result<AppendEntriesResponse<Types>, BadBytes> {
    Ok(match reader.u8()? {
        1 => AppendEntriesResponse::Success,
        2 => AppendEntriesResponse::PartialSuccess(reader.optional(Reader::log_id)?),
        3 => AppendEntriesResponse::Conflict,
        4 => AppendEntriesResponse::HigherVote(reader.vote()?),
        _ => return Err(BadBytes("what became of entries")),
    })
}
