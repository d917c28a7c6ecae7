//! What the replicas of a partition promise and accept, so that conditional changes of it come one after the other.
//!
//! This is Paxos, for each partition by itself. Who proposes a change asks the replicas to *promise* its ballot, which
//! is greater than all that it knows; a quorum that has promised accepts nothing of a lesser ballot any more, and tells
//! what it has accepted before. That is made good first. Then the change is *proposed*; once a quorum has accepted it,
//! it is chosen, and is *written* to all replicas like any other change. When a quorum has written it, those that have
//! are told that it is *committed*, and forget the proposal ([`committed`](crate::committed)).
//!
//! Who proposes one change after the other need not ask for each promise: a replica that accepts promises the *next*
//! ballot of the same node with it. So a quorum has promised that once a change is chosen.

use bytes::{BufMut, Bytes, BytesMut};
use read::{PageDigest, ReadCommand};
use rows::{Mutation, PartitionKey};
use schema::TableId;
use types::uuid as time_uuid;
use uuid::Uuid;

use crate::body::{BodyError, Reader, put_bytes, put_key, put_list, put_option};
use crate::operations::Operation;
use crate::read_request::ReadRequest;

const PREPARE: u8 = 1;
const PROPOSE: u8 = 2;
const WRITE: u8 = 3;

const PROMISED: u8 = 1;
const DONE: u8 = 2;
const REFUSED: u8 = 3;
const DIFFERS: u8 = 4;
const KNOWN: u8 = 5;

/// The variant of a UUID, in its low half.
const VARIANT: u64 = 1 << 63;
const VARIANT_MASK: u64 = 3 << 62;

/// Microseconds from the calendar of UUIDs to 1970.
const CALENDAR_MICROS: i64 = -1_000 * time_uuid::EPOCH_MILLIS;

/// Whose turn it is: of two the later one goes first. Nodes may make theirs at one time; of those the one that came
/// first goes first, since the changes of both would have one timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ballot {
    /// A timestamp in µs since 1970 that its node gives once.
    micros: i64,
    /// Of its node.
    node: u64,
}

impl Ballot {
    /// That of a node at a timestamp, in µs since 1970, which the node gives to no other ballot.
    pub fn new(micros: i64, node: Uuid) -> Ballot {
        let half = node.as_u64_pair().0;
        Ballot { micros, node: half & !VARIANT_MASK | VARIANT }
    }

    /// Was it made later?
    pub fn is_after(self, other: Ballot) -> bool {
        self.micros > other.micros
    }

    /// The one of its node that comes next.
    pub fn next(self) -> Ballot {
        Ballot { micros: self.micros.saturating_add(1), ..self }
    }

    /// When it was made, in µs since 1970.
    pub fn micros(self) -> i64 {
        self.micros
    }

    /// As a `timeuuid`, as which it stands in `system.paxos` and in messages.
    pub fn to_uuid(self) -> [u8; 16] {
        time_uuid::from_ticks(self.micros.saturating_add(CALENDAR_MICROS).saturating_mul(10), self.node)
    }

    /// The ballot of a `timeuuid`; `None` of another UUID.
    pub fn of_uuid(uuid: &[u8; 16]) -> Option<Ballot> {
        let ticks = time_uuid::ticks(uuid)?;
        let node = u64::from_be_bytes(uuid[8..].try_into().ok()?);
        let ballot = Ballot { micros: ticks / 10 - CALENDAR_MICROS, node };
        (ballot.to_uuid() == *uuid).then_some(ballot)
    }
}

/// A change of a partition that is proposed.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// Under which it is.
    pub ballot: Ballot,
    /// Under which it was at first: others may have made it good since.
    pub origin: Ballot,
    /// The epoch of the schema that it was planned on.
    pub planned_on: u64,
    /// The latest timestamp of its changes and of all that were chosen before, in µs: later ones have later timestamps.
    pub timestamp: i64,
    /// The changes, all of the partition, and one after the other; and what tells of operations among them. None when
    /// nothing is changed, and nothing that came before may be any more.
    pub mutations: Vec<Mutation>,
}

impl Proposal {
    /// The same after its table was emptied: what it changes there came before that. What it tells of operations has
    /// come of them all the same.
    pub fn leave_out(&mut self, emptied: TableId) {
        self.mutations.retain(|mutation| mutation.table != emptied);
    }
}

/// A proposal on its way, and on what it hangs.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposing {
    /// What is proposed.
    pub proposal: Box<Proposal>,
    /// The ballot that is promised by whoever accepts it.
    pub next: Ballot,
    /// What was chosen last, if who proposes knows it, and a quorum has written it: a replica has it before it forgets
    /// that it has accepted it. Without its changes where the replica is known to have written them.
    pub known: Option<Box<Proposal>>,
    /// What its changes were decided on: where something else is read, it is refused.
    pub seen: Vec<Seen>,
}

/// What a replica has read of the partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The read, as it goes to other nodes.
    pub read: Bytes,
    /// The hash of what came of it.
    pub digest: PageDigest,
}

impl Seen {
    /// A command of one key, as it goes to other nodes.
    ///
    /// # Panics
    /// When the command is of no key, or of several.
    pub fn read_of(command: &ReadCommand) -> Bytes {
        let mut read = BytesMut::new();
        ReadRequest::put(command, &mut read);
        read.freeze()
    }

    /// The read, to be asked of another replica.
    pub(crate) fn request(&self) -> Result<ReadRequest, BodyError> {
        let reader = &mut Reader::new(self.read.clone());
        let request = ReadRequest::read(reader)?;
        reader.end()?;
        Ok(request)
    }
}

/// What is asked of a replica about a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct PaxosRequest {
    /// The table.
    pub table: TableId,
    /// The partition.
    pub key: PartitionKey,
    /// What is asked.
    pub phase: Phase,
}

/// A phase of an agreement.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Promise to accept nothing of a lesser ballot.
    Prepare(Ballot),
    /// Accept this.
    Propose(Proposing),
    /// This was chosen: write it, durably.
    Write(Box<Proposal>),
}

/// What a replica says.
#[derive(Clone, Debug, PartialEq)]
pub enum PaxosAnswer {
    /// It has promised.
    Promised(Promise),
    /// It has accepted what was proposed, or has written what was chosen.
    Done,
    /// It has promised a later ballot, which is this one.
    Refused(Ballot),
    /// It has something else of what was read, and has not accepted what was decided on that.
    Differs,
    /// It knows what has come of these operations, by another proposal, and has not accepted this one.
    Known(Vec<Operation>),
}

/// What a replica tells that promises.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Promise {
    /// What it has accepted last and does not know to be committed.
    pub accepted: Option<Box<Proposal>>,
    /// The last ballot that it knows to be committed.
    pub committed: Ballot,
    /// And under which that was at first.
    pub origin: Ballot,
    /// And its timestamp.
    pub timestamp: i64,
}

impl Phase {
    /// The same for a replica that has written what was chosen before: it is told so, and not the changes.
    pub fn without_known_changes(&self) -> Phase {
        match self {
            Phase::Propose(Proposing { proposal, next, known: Some(known), seen }) => {
                let Proposal { ballot, origin, planned_on, timestamp, .. } = **known;
                let known = Proposal { ballot, origin, planned_on, timestamp, mutations: Vec::new() };
                let (proposal, known) = (proposal.clone(), Some(Box::new(known)));
                Phase::Propose(Proposing { proposal, next: *next, known, seen: seen.clone() })
            }
            phase => phase.clone(),
        }
    }
}

impl PaxosRequest {
    /// What Cassandra calls such a message, without its `_REQ`.
    pub fn verb(&self) -> &'static str {
        match self.phase {
            Phase::Prepare(_) => "PAXOS_PREPARE",
            Phase::Propose(_) => "PAXOS_PROPOSE",
            Phase::Write(_) => "PAXOS_COMMIT",
        }
    }

    pub(crate) fn put(&self, out: &mut BytesMut) {
        out.put_slice(self.table.0.as_bytes());
        put_key(out, &self.key);
        match &self.phase {
            Phase::Prepare(ballot) => {
                out.put_u8(PREPARE);
                put_ballot(out, *ballot);
            }
            Phase::Propose(Proposing { proposal, next, known, seen }) => {
                out.put_u8(PROPOSE);
                put_proposal(out, proposal);
                put_ballot(out, *next);
                put_option(out, known.as_deref(), put_proposal);
                put_list(out, seen, |out, seen| {
                    put_bytes(out, &seen.read);
                    out.put_u128_le(seen.digest.0);
                });
            }
            Phase::Write(proposal) => {
                out.put_u8(WRITE);
                put_proposal(out, proposal);
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader) -> Result<PaxosRequest, BodyError> {
        let (table, key) = (TableId(reader.uuid("table id")?), reader.key()?);
        let phase = match reader.u8("phase")? {
            PREPARE => Phase::Prepare(ballot(reader)?),
            PROPOSE => Phase::Propose(Proposing {
                proposal: Box::new(proposal(reader)?),
                next: ballot(reader)?,
                known: reader.option("known", proposal)?.map(Box::new),
                seen: reader.list("reads", |reader| {
                    Ok(Seen { read: reader.bytes("read")?, digest: PageDigest(reader.u128("digest")?) })
                })?,
            }),
            WRITE => Phase::Write(Box::new(proposal(reader)?)),
            _ => return Err(reader.wrong("phase")),
        };
        let request = PaxosRequest { table, key, phase };
        let is_next = match &request.phase {
            Phase::Propose(Proposing { proposal, next, .. }) => *next == proposal.ballot.next(),
            Phase::Prepare(_) | Phase::Write(_) => true,
        };
        if !is_next {
            return Err(reader.wrong("next ballot"));
        }
        let are_of_it = request.mutations().all(|mutation| mutation.key == request.key);
        match are_of_it {
            true => Ok(request),
            false => Err(reader.wrong("mutation")),
        }
    }

    /// All changes that it brings.
    pub(crate) fn mutations(&self) -> impl Iterator<Item = &Mutation> {
        let (known, last) = match &self.phase {
            Phase::Prepare(_) => (None, None),
            Phase::Propose(Proposing { proposal, known, .. }) => (known.as_ref(), Some(proposal)),
            Phase::Write(proposal) => (None, Some(proposal)),
        };
        known.into_iter().chain(last).flat_map(|proposal| &proposal.mutations)
    }
}

impl PaxosAnswer {
    pub(crate) fn put(&self, out: &mut BytesMut) {
        match self {
            PaxosAnswer::Promised(Promise { accepted, committed, origin, timestamp }) => {
                out.put_u8(PROMISED);
                put_option(out, accepted.as_deref(), put_proposal);
                put_ballot(out, *committed);
                put_ballot(out, *origin);
                out.put_i64_le(*timestamp);
            }
            PaxosAnswer::Done => out.put_u8(DONE),
            PaxosAnswer::Refused(promised) => {
                out.put_u8(REFUSED);
                put_ballot(out, *promised);
            }
            PaxosAnswer::Differs => out.put_u8(DIFFERS),
            PaxosAnswer::Known(operations) => {
                out.put_u8(KNOWN);
                put_list(out, operations, |out, operation| operation.put(out));
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader) -> Result<PaxosAnswer, BodyError> {
        Ok(match reader.u8("agreement")? {
            PROMISED => {
                let accepted = reader.option("accepted", proposal)?.map(Box::new);
                PaxosAnswer::Promised(Promise {
                    accepted,
                    committed: ballot(reader)?,
                    origin: ballot(reader)?,
                    timestamp: reader.i64("timestamp")?,
                })
            }
            DONE => PaxosAnswer::Done,
            REFUSED => PaxosAnswer::Refused(ballot(reader)?),
            DIFFERS => PaxosAnswer::Differs,
            KNOWN => PaxosAnswer::Known(reader.list("operations", Operation::read)?),
            _ => return Err(reader.wrong("agreement")),
        })
    }
}

/// Appends a proposal: as it stands in `system.paxos`, too.
pub(crate) fn put_proposal(out: &mut BytesMut, proposal: &Proposal) {
    let Proposal { ballot, origin, planned_on, timestamp, mutations } = proposal;
    put_ballot(out, *ballot);
    put_ballot(out, *origin);
    out.put_u64_le(*planned_on);
    out.put_i64_le(*timestamp);
    put_list(out, mutations, |out, mutation| put_bytes(out, mutation.as_encoded()));
}

/// Reads what [`put_proposal`] has written.
pub(crate) fn proposal(reader: &mut Reader) -> Result<Proposal, BodyError> {
    let (ballot, origin) = (ballot(reader)?, ballot(reader)?);
    let (planned_on, timestamp) = (reader.u64("epoch")?, reader.i64("timestamp")?);
    let mutations = reader.list("mutations", Reader::mutation)?;
    Ok(Proposal { ballot, origin, planned_on, timestamp, mutations })
}

pub(crate) fn put_ballot(out: &mut BytesMut, ballot: Ballot) {
    out.put_slice(&ballot.to_uuid());
}

pub(crate) fn ballot(reader: &mut Reader) -> Result<Ballot, BodyError> {
    let uuid = reader.uuid("ballot")?;
    Ballot::of_uuid(uuid.as_bytes()).ok_or_else(|| reader.wrong("ballot"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ballot_is_a_time_uuid_and_back() {
        let node = Uuid::from_u128(0x1234_5678_9abc_def0_1234_5678_9abc_def0);
        for micros in [0, 1, 1_700_000_000_123_456, 4_000_000_000_000_000] {
            let ballot = Ballot::new(micros, node);
            assert_eq!(Ballot::of_uuid(&ballot.to_uuid()), Some(ballot), "{micros}");
            assert_eq!(ballot.micros(), micros);
            assert_eq!(time_uuid::unix_micros(&ballot.to_uuid()), Some(micros), "as CQL shows it");
        }
        assert_eq!(Ballot::of_uuid(&Ballot::default().to_uuid()), Some(Ballot::default()), "that of none");
        assert_eq!(Ballot::of_uuid(&[0xff; 16]), None);
        assert!(Ballot::new(2, node) > Ballot::new(1, Uuid::max()), "the later one");
        assert!(Ballot::new(0, node) > Ballot::default(), "any is later than none");
    }
}
