//! A replica's part in agreeing: what it has promised and accepted, in `system.paxos`.
//!
//! The row of a partition has the partition's own key, and so lies on the shard that owns the partition. It is read and
//! written under a claim ([`storage::Claim`]), and whatever is answered is on the disk before, also what was read.
//!
//! | column | has |
//! |---|---|
//! | `in_progress_ballot` | the ballot that was promised last |
//! | `proposal_ballot`, `proposal` | what was accepted last; none once it is committed |
//! | `most_recent_commit_at`, `most_recent_commit` | the last ballot that was committed, and its ballot at first |

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use read::{PartitionRows, ReadCommand, ReadTarget};
use rows::{
    CellRef, Clustering, ClusteringBuilder, ColumnData, DeletionTime, Liveness, Mutation, MutationBuilder,
    PartitionKey, Row, RowBuilder,
};
use runtime::Plant;
use schema::{ColumnId, Schema, Table, TableId};
use storage::{ShardHandle, StorageError, Wait, outdated};

use crate::body::Reader;
use crate::failure::Failure;
use crate::paxos::{Ballot, PaxosAnswer, PaxosRequest, Phase, Promise, Proposal, proposal, put_proposal};
use crate::request::Turn;
use crate::service::check_mutations;

/// The least that a state is kept, in seconds; as long as the tombstones of its table if those are kept longer. As in
/// Cassandra 5.0 (`SystemKeyspace.paxosTtlSec`): no proposer works for as long.
const KEPT_SECONDS_MIN: u32 = 3 * 60 * 60;

/// Carries out what is asked about a partition, and planned on that epoch of the schema.
///
/// # Errors
/// The table is gone or was emptied since, what is proposed does not fit it, or the disk is to blame: nothing is
/// promised or accepted.
pub async fn agree(
    shard: &ShardHandle,
    planned_on: u64,
    request: PaxosRequest,
) -> Result<PaxosAnswer, Failure> {
    if let Some(error) = outdated(shard.local(), request.table, planned_on) {
        return Err(Failure::from(&error));
    }
    if let Some(mutation) = request.mutation() {
        check_mutations(shard, std::slice::from_ref(mutation))?;
    }
    let log = shard.local().with_schema(|schema| PaxosLog::of(schema, request.table))?;
    log.carry_out(shard, request).await
}

/// Gives another node its turn, or hears that it is over.
///
/// # Errors
/// The shard is busy.
///
/// # Cancel safety
/// Dropped, the place in the queue is given up.
pub(crate) async fn take_turn(shard: &ShardHandle, turn: Turn) -> Result<(), Failure> {
    let Turn { table, key, is_over } = turn;
    let owner = shard.shards().owner(key.token);
    let taken = match is_over {
        true => shard.end_turn(owner, table, key).await,
        false => shard.give_turn(owner, table, key).await,
    };
    taken.map_err(|error| Failure::from(&error))
}

/// Reads and writes rows of `system.paxos`.
struct PaxosLog {
    table: Arc<Table>,
    columns: Columns,
    kept_seconds: u32,
}

struct Columns {
    promised: ColumnId,
    accepted_under: ColumnId,
    accepted: ColumnId,
    committed: ColumnId,
    origin: ColumnId,
}

/// What a replica knows of a partition.
#[derive(Debug, Default)]
struct State {
    promised: Ballot,
    promise: Promise,
}

impl PaxosLog {
    /// For partitions of that table.
    fn of(schema: &Schema, table: TableId) -> Result<PaxosLog, Failure> {
        let of = schema.table_by_id(table).ok_or(Failure::NoTable { table })?;
        let missing = || Failure::Other { what: "there is no table system.paxos".to_owned() };
        let log = schema.table("system", "paxos").ok_or_else(missing)?;
        let id = |name: &str| log.column(name).map(|column| column.id).ok_or_else(missing);
        let columns = Columns {
            promised: id("in_progress_ballot")?,
            accepted_under: id("proposal_ballot")?,
            accepted: id("proposal")?,
            committed: id("most_recent_commit_at")?,
            origin: id("most_recent_commit")?,
        };
        let kept_seconds = of.options().gc_grace_seconds.max(KEPT_SECONDS_MIN);
        Ok(PaxosLog { table: Arc::clone(log), columns, kept_seconds })
    }

    async fn carry_out(&self, shard: &ShardHandle, request: PaxosRequest) -> Result<PaxosAnswer, Failure> {
        let PaxosRequest { table, key, phase } = request;
        let owner = shard.shards().owner(key.token);
        let failed = |error: StorageError| Failure::from(&error);
        let claim = shard.claim(owner, self.table.id(), &key).await.map_err(failed)?;
        let now = shard.local().now_seconds();
        let page = shard.read(owner, &self.command(&key, table, now)).await.map_err(failed)?;
        let state = self.state(page.partitions.first())?;
        let forgets = shard.local().runtime().plants.has(Plant::PromiseForgotten);
        let (answer, change) = match decide(state, phase, forgets) {
            (answer, Some(change)) => (answer, change),
            (answer, None) => {
                drop(claim);
                shard.claimed_settled(owner).await.map_err(failed)?;
                return Ok(answer);
            }
        };
        // Later than what is there, whatever the ballots are: two nodes may have made theirs at one time.
        let timestamp = shard.local().timestamps().next_after_all();
        let mut mutations = vec![self.mutation(&key, table, &change, (timestamp, now))];
        // Where a quorum has on its disks what is committed, nothing hangs on this record: without it what was accepted
        // is made good once more.
        let is_made_good = matches!(change, Change::Commit { .. }) && shard.local().syncs_writes();
        let wait = if is_made_good { Wait::Never } else { Wait::Synced };
        if let Change::Commit { mut proposal, .. } = change {
            // One record: who knows that it is committed has it.
            mutations.extend(proposal.mutation.take());
        }
        shard.write_claimed(owner, None, mutations, claim, wait).await.map_err(failed)?;
        Ok(answer)
    }

    /// What reads the state of a partition.
    fn command(&self, key: &PartitionKey, table: TableId, now: u32) -> ReadCommand {
        let target = ReadTarget::Keys(vec![key.clone()]);
        let mut command = ReadCommand::new(Arc::clone(&self.table), target, now);
        let slice = rows::Slice::prefix(clustering_of(table));
        let comparator = rows::ClusteringComparator::new(Arc::clone(self.table.clustering_types()));
        command.slices = rows::Slices::new(vec![slice], &comparator);
        command
    }

    fn state(&self, partition: Option<&PartitionRows>) -> Result<State, Failure> {
        let Some(row) = partition.and_then(|partition| partition.rows.first()) else {
            return Ok(State::default());
        };
        let damaged = || Failure::Other { what: "a row of system.paxos can not be read".to_owned() };
        let ballot = |id| match value(row, id) {
            None => Ok(Ballot::default()),
            Some(uuid) => uuid.try_into().ok().and_then(Ballot::of_uuid).ok_or_else(damaged),
        };
        let accepted = match value(row, self.columns.accepted) {
            None => None,
            Some(bytes) => {
                let read = proposal(&mut Reader::new(Bytes::copy_from_slice(bytes)));
                Some(Box::new(read.map_err(|_| damaged())?))
            }
        };
        let (committed, origin) = (ballot(self.columns.committed)?, ballot(self.columns.origin)?);
        let promised = ballot(self.columns.promised)?;
        Ok(State { promised, promise: Promise { accepted, committed, origin } })
    }

    /// What changes the state of a partition, written at that time, in µs and in seconds.
    fn mutation(
        &self,
        key: &PartitionKey,
        table: TableId,
        change: &Change,
        (timestamp, now): (i64, u32),
    ) -> Mutation {
        let (ttl, columns) = (self.kept_seconds, &self.columns);
        let ends = now.saturating_add(ttl).min(u32::MAX - 2);
        let uuid = change.ballot().to_uuid();
        let mut accepted = BytesMut::new();
        let origin;
        let mut cells: Vec<(ColumnId, Option<&[u8]>)> = match change {
            Change::Promise(_) => vec![(columns.promised, Some(&uuid))],
            Change::Accept(proposal) => {
                put_proposal(&mut accepted, proposal);
                let promised = (columns.promised, Some(&uuid[..]));
                vec![promised, (columns.accepted_under, Some(&uuid)), (columns.accepted, Some(&accepted))]
            }
            Change::Commit { proposal, drops } => {
                origin = proposal.origin.to_uuid();
                let mut cells = vec![(columns.committed, Some(&uuid[..])), (columns.origin, Some(&origin))];
                if *drops {
                    cells.extend([(columns.accepted_under, None), (columns.accepted, None)]);
                }
                cells
            }
        };
        cells.sort_by_key(|(id, _)| *id);
        let mut row = RowBuilder::new(&clustering_of(table), Liveness::NONE, DeletionTime::LIVE);
        for (id, value) in cells {
            row.cell(
                id,
                match value {
                    Some(value) => CellRef::expiring(timestamp, ttl, ends, value),
                    None => CellRef::tombstone(timestamp, now),
                },
            );
        }
        let mut mutation = MutationBuilder::new(self.table.id(), key.clone());
        mutation.row(row.finish());
        mutation.finish()
    }
}

/// What changes of a state.
#[derive(Debug, PartialEq)]
enum Change {
    Promise(Ballot),
    Accept(Box<Proposal>),
    Commit {
        proposal: Box<Proposal>,
        /// Is what was accepted last a part of it?
        drops: bool,
    },
}

impl Change {
    fn ballot(&self) -> Ballot {
        match self {
            Change::Promise(ballot) => *ballot,
            Change::Accept(proposal) | Change::Commit { proposal, .. } => proposal.ballot,
        }
    }
}

/// What a replica in that state answers, and how its state changes.
fn decide(state: State, phase: Phase, forgets: bool) -> (PaxosAnswer, Option<Change>) {
    let State { promised, promise } = state;
    // What a quorum has was promised by a quorum, whether this one was among them or not.
    let promised = promised.max(promise.committed);
    match phase {
        Phase::Prepare(ballot) if ballot.is_after(promised) => {
            (PaxosAnswer::Promised(promise), (!forgets).then_some(Change::Promise(ballot)))
        }
        Phase::Propose(proposal) if proposal.ballot == promised || proposal.ballot.is_after(promised) => {
            (PaxosAnswer::Done, Some(Change::Accept(proposal)))
        }
        Phase::Prepare(_) | Phase::Propose(_) => (PaxosAnswer::Refused(promised), None),
        Phase::Commit(proposal) if proposal.ballot.is_after(promise.committed) => {
            let drops = promise.accepted.is_some_and(|accepted| accepted.ballot <= proposal.ballot);
            (PaxosAnswer::Done, Some(Change::Commit { proposal, drops }))
        }
        Phase::Commit(_) => (PaxosAnswer::Done, None),
    }
}

/// The row of a table's partition: a `uuid`.
fn clustering_of(table: TableId) -> Clustering {
    let mut clustering = ClusteringBuilder::default();
    clustering.push(Some(table.0.as_bytes()));
    clustering.finish()
}

fn value(row: &Row, id: ColumnId) -> Option<&[u8]> {
    match row.column(id) {
        Some(ColumnData::Simple(cell)) => Some(cell.value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn ballot(micros: i64) -> Ballot {
        Ballot::new(micros, Uuid::from_u128(7))
    }

    fn proposal(micros: i64) -> Box<Proposal> {
        let ballot = ballot(micros);
        Box::new(Proposal { ballot, origin: ballot, planned_on: 1, mutation: None })
    }

    fn state(promised: i64, accepted: Option<i64>, committed: i64) -> State {
        let promise = Promise {
            accepted: accepted.map(proposal),
            committed: ballot(committed),
            origin: ballot(committed),
        };
        State { promised: ballot(promised), promise }
    }

    #[test]
    fn a_promise_is_kept() {
        let (answer, change) = decide(state(5, Some(4), 3), Phase::Prepare(ballot(6)), false);
        assert_eq!(answer, PaxosAnswer::Promised(state(5, Some(4), 3).promise));
        assert_eq!(change, Some(Change::Promise(ballot(6))));
        for phase in [Phase::Prepare(ballot(5)), Phase::Prepare(ballot(4)), Phase::Propose(proposal(4))] {
            let refused = (PaxosAnswer::Refused(ballot(5)), None);
            assert_eq!(decide(state(5, None, 3), phase, false), refused);
        }
        for accepted in [5, 6] {
            let (answer, change) = decide(state(5, None, 3), Phase::Propose(proposal(accepted)), false);
            assert_eq!((answer, change), (PaxosAnswer::Done, Some(Change::Accept(proposal(accepted)))));
        }
    }

    /// Both changes would have one timestamp, and the greater value would win instead of the later one.
    #[test]
    fn of_two_ballots_of_one_time_the_one_that_came_first_goes_first() {
        let other = Ballot::new(5, Uuid::max());
        assert!(other > ballot(5) && !other.is_after(ballot(5)));
        let refused = (PaxosAnswer::Refused(ballot(5)), None);
        assert_eq!(decide(state(5, None, 3), Phase::Prepare(other), false), refused);
        let proposed = Proposal { ballot: other, ..*proposal(5) };
        assert_eq!(decide(state(5, None, 3), Phase::Propose(Box::new(proposed)), false), refused);
    }

    #[test]
    fn what_is_committed_is_proposed_no_more() {
        let dropped = |state, micros| match decide(state, Phase::Commit(proposal(micros)), false) {
            (PaxosAnswer::Done, Some(Change::Commit { drops, .. })) => Some(drops),
            (PaxosAnswer::Done, None) => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(dropped(state(5, Some(5), 3), 5), Some(true));
        assert_eq!(dropped(state(6, Some(6), 3), 5), Some(false), "a later one was accepted");
        assert_eq!(dropped(state(6, None, 3), 5), Some(false));
        assert_eq!(dropped(state(6, Some(6), 5), 5), None, "it is known");
    }
}
