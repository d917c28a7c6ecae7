//! A replica's part in agreeing: what it has promised and accepted, in `system.paxos`.
//!
//! The row of a partition has the partition's own key, and so lies on the shard that owns the partition. It is read and
//! written under a claim ([`storage::Claim`]), and whatever is answered is on the disk before, also what was read.
//!
//! | column | has | its timestamp is that of |
//! |---|---|---|
//! | `in_progress_ballot` | the ballot that was promised last | it |
//! | `proposal_ballot`, `proposal` | what was accepted last; none once it is committed | its ballot |
//! | `most_recent_commit_at` | the last ballot that was committed | it |
//! | `most_recent_commit` | its ballot at first, and its timestamp | its ballot |
//!
//! No two ballots of one time are promised or accepted, so the later one of each stands whenever it is written. So who
//! is told that something is committed writes that down without a look at what stands there.
//!
//! What is accepted and not written yet is [`storage::Unsettled`].

use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use read::{ReadCommand, ReadPage, ReadTarget};
use rows::{
    CellRef, Clustering, ClusteringBuilder, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey,
    Row, RowBuilder,
};
use runtime::Plant;
use schema::{ColumnId, Schema, Table, TableId};
use storage::{Settles, Shard, ShardHandle, StorageError, Wait, outdated, unsettled};
use uuid::Uuid;

use crate::answer::Answer;
use crate::body::Reader;
use crate::committed::Committed;
use crate::failure::Failure;
use crate::fits::check_read;
use crate::operations::{OperationLog, value};
use crate::paxos::{
    Ballot, PaxosAnswer, PaxosRequest, Phase, Promise, Proposal, Proposing, Seen, proposal, put_proposal,
};
use crate::request::Wanted;
use crate::service::Sight;
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
    check_mutations(shard, request.mutations())?;
    let log = shard.local().with_schema(|schema| PaxosLog::of(schema, request.table))?;
    if !request.mutations().all(|mutation| mutation.table == request.table || log.operations.has(mutation)) {
        return Err(Failure::Other { what: "a change of another table".to_owned() });
    }
    log.carry_out(shard, planned_on, request).await
}

/// Reads and writes rows of `system.paxos`.
pub(crate) struct PaxosLog {
    pub(crate) table: Arc<Table>,
    columns: Columns,
    kept_seconds: u32,
    operations: OperationLog,
}

struct Columns {
    promised: ColumnId,
    accepted_under: ColumnId,
    accepted: ColumnId,
    committed: ColumnId,
    commit: ColumnId,
}

/// What a replica knows of a partition.
#[derive(Debug, Default)]
pub(crate) struct State {
    promised: Ballot,
    pub(crate) promise: Promise,
}

impl PaxosLog {
    /// For partitions of that table.
    pub(crate) fn of(schema: &Schema, table: TableId) -> Result<PaxosLog, Failure> {
        let of = schema.table_by_id(table).ok_or(Failure::NoTable { table })?;
        let missing = || Failure::Other { what: "there is no table system.paxos".to_owned() };
        let log = schema.table("system", "paxos").ok_or_else(missing)?;
        let id = |name: &str| log.column(name).map(|column| column.id).ok_or_else(missing);
        let columns = Columns {
            promised: id("in_progress_ballot")?,
            accepted_under: id("proposal_ballot")?,
            accepted: id("proposal")?,
            committed: id("most_recent_commit_at")?,
            commit: id("most_recent_commit")?,
        };
        let kept_seconds = of.options().gc_grace_seconds.max(KEPT_SECONDS_MIN);
        let operations = OperationLog::of(schema, table)?;
        Ok(PaxosLog { table: Arc::clone(log), columns, kept_seconds, operations })
    }

    async fn carry_out(
        &self,
        shard: &ShardHandle,
        planned_on: u64,
        request: PaxosRequest,
    ) -> Result<PaxosAnswer, Failure> {
        let PaxosRequest { table, key, phase } = request;
        let owner = shard.shards().owner(key.token);
        let failed = |error: StorageError| Failure::from(&error);
        // Mostly what is chosen comes before what is proposed next, and is written before that is looked at. Where it
        // does not, the replica has something else than what was read, and the next one is decided anew.
        let claim = shard.claim(owner, self.table.id(), &key).await.map_err(failed)?;
        // Whoever asks may know of a truncation behind which what was chosen before is not to be written any more.
        let leave_out_emptied = |proposal: &mut Proposal| {
            if outdated(shard.local(), table, proposal.planned_on).is_some() {
                proposal.leave_out(table);
            }
        };
        if let Phase::Write(mut proposal) = phase {
            leave_out_emptied(&mut proposal);
            let Proposal { ballot, mutations, .. } = *proposal;
            let micros = ballot.micros();
            if mutations.is_empty() {
                let settle = move |shard: Rc<Shard>| async move {
                    unsettled(&shard).note_written(table, &key, micros);
                };
                shard.on(owner, settle).await.map_err(failed)?;
            } else {
                // In any mode: who is told later that it is committed has it.
                let (write, wait) = ((mutations, Settles::Writes { table, micros }), Wait::Synced);
                shard.write_claimed(owner, Some(planned_on), write, claim, wait).await.map_err(failed)?;
            }
            return Ok(PaxosAnswer::Done);
        }
        let state = self.read(shard, table, &key).await?;
        let forgets = shard.local().runtime().plants.has(Plant::PromiseForgotten);
        let mut known = None;
        let (grounds, phase) = match phase {
            Phase::Propose(proposing) => {
                known = proposing.known.as_ref().map(|known| known.ballot.micros());
                (Some(self.grounds_of(&proposing)?), Phase::Propose(proposing))
            }
            phase => (None, phase),
        };
        let (answer, change) = match decide(state, phase, forgets) {
            (answer, Some(change)) => match self.objection(shard, table, &key, grounds).await? {
                None => (answer, Some(change)),
                Some(objection) => (objection, None),
            },
            decided => decided,
        };
        let Some(mut change) = change else {
            drop(claim);
            shard.claimed_settled(owner).await.map_err(failed)?;
            return Ok(answer);
        };
        let settles = match &change.accepted {
            Some(proposal) => Settles::Accepts {
                table,
                micros: proposal.ballot.micros(),
                origin: Uuid::from_bytes(proposal.origin.to_uuid()),
                has_changes: !proposal.mutations.is_empty(),
                known,
            },
            None => Settles::Nothing,
        };
        change.written.iter_mut().for_each(|written| leave_out_emptied(written));
        // One record: who knows that something is committed has it.
        let mut mutations: Vec<Mutation> = self.mutation(&key, table, &change, shard).into_iter().collect();
        mutations.extend(change.written.into_iter().flat_map(|proposal| proposal.mutations));
        let (write, wait) = ((mutations, settles), Wait::Synced);
        shard.write_claimed(owner, Some(planned_on), write, claim, wait).await.map_err(failed)?;
        Ok(answer)
    }

    fn grounds_of(&self, proposing: &Proposing) -> Result<Grounds, Failure> {
        let Proposing { proposal, seen, .. } = proposing;
        let operations = self.operations.told_by(&proposal.mutations)?;
        Ok(Grounds { seen: seen.clone(), origin: proposal.origin, operations })
    }

    /// What this node knows against what is proposed.
    async fn objection(
        &self,
        shard: &ShardHandle,
        table: TableId,
        key: &PartitionKey,
        grounds: Option<Grounds>,
    ) -> Result<Option<PaxosAnswer>, Failure> {
        let Some(Grounds { seen, origin, operations }) = grounds else { return Ok(None) };
        let plants = &shard.local().runtime().plants;
        let mut known = self.operations.read(shard, key, &operations).await?;
        known.retain(|operation| operation.origin != origin);
        if !known.is_empty() && !plants.has(Plant::OperationUncompared) {
            return Ok(Some(PaxosAnswer::Known(known)));
        }
        let is_seen = plants.has(Plant::SeenUncompared) || sees(shard, table, key, seen).await?;
        Ok((!is_seen).then_some(PaxosAnswer::Differs))
    }

    /// The state of a partition.
    async fn read(&self, shard: &ShardHandle, table: TableId, key: &PartitionKey) -> Result<State, Failure> {
        let command = self.command(key, table, shard.local().now_seconds());
        self.state_in(shard.read(shard.shards().owner(key.token), &command).await)
    }

    /// The state that was read by [`PaxosLog::command`].
    pub(crate) fn state_in(&self, page: Result<ReadPage, StorageError>) -> Result<State, Failure> {
        let page = page.map_err(|error| Failure::from(&error))?;
        let row = page.partitions.first().and_then(|partition| partition.rows.first());
        row.map_or_else(|| Ok(State::default()), |row| self.state(row))
    }

    /// What reads the state of a partition.
    pub(crate) fn command(&self, key: &PartitionKey, table: TableId, now: u32) -> ReadCommand {
        let target = ReadTarget::Keys(vec![key.clone()]);
        let mut command = ReadCommand::new(Arc::clone(&self.table), target, now);
        let slice = rows::Slice::prefix(clustering_of(table));
        let comparator = rows::ClusteringComparator::new(Arc::clone(self.table.clustering_types()));
        command.slices = rows::Slices::new(vec![slice], &comparator);
        command
    }

    /// The state that a row tells of.
    pub(crate) fn state(&self, row: &Row) -> Result<State, Failure> {
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
        let (origin, timestamp) = match value(row, self.columns.commit) {
            None => (Ballot::default(), 0),
            Some(commit) => {
                let (origin, timestamp) = commit.split_at_checked(16).ok_or_else(damaged)?;
                let origin = origin.try_into().ok().and_then(Ballot::of_uuid).ok_or_else(damaged)?;
                (origin, i64::from_be_bytes(timestamp.try_into().map_err(|_| damaged())?))
            }
        };
        let (promised, committed) = (ballot(self.columns.promised)?, ballot(self.columns.committed)?);
        Ok(State { promised, promise: Promise { accepted, committed, origin, timestamp } })
    }

    /// What changes the state of a partition, written now; `None` when nothing of it changes.
    pub(crate) fn mutation(
        &self,
        key: &PartitionKey,
        table: TableId,
        change: &Change,
        shard: &ShardHandle,
    ) -> Option<Mutation> {
        let Change { promised, accepted, committed, written: _ } = change;
        let columns = &self.columns;
        let mut cells: Vec<(ColumnId, Ballot, Option<Vec<u8>>)> = Vec::new();
        if let Some(promised) = promised {
            cells.push((columns.promised, *promised, Some(promised.to_uuid().to_vec())));
        }
        if let Some(committed) = committed {
            let Committed { ballot, origin, timestamp } = committed;
            cells.push((columns.committed, *ballot, Some(ballot.to_uuid().to_vec())));
            let commit = [&origin.to_uuid()[..], &timestamp.to_be_bytes()].concat();
            cells.push((columns.commit, *ballot, Some(commit)));
        }
        match (accepted, committed) {
            (Some(proposal), _) => {
                let mut encoded = BytesMut::new();
                put_proposal(&mut encoded, proposal);
                cells.push((
                    columns.accepted_under,
                    proposal.ballot,
                    Some(proposal.ballot.to_uuid().to_vec()),
                ));
                cells.push((columns.accepted, proposal.ballot, Some(encoded.to_vec())));
            }
            // And all that was accepted before.
            (None, Some(Committed { ballot, .. })) => {
                cells.extend([columns.accepted_under, columns.accepted].map(|id| (id, *ballot, None)));
            }
            (None, None) => {}
        }
        if cells.is_empty() {
            return None;
        }
        cells.sort_by_key(|(id, ..)| *id);
        let now = shard.local().now_seconds();
        let ends = now.saturating_add(self.kept_seconds).min(u32::MAX - 2);
        let has_changes = accepted.as_ref().is_some_and(|proposal| !proposal.mutations.is_empty());
        let mut row = RowBuilder::new(&clustering_of(table), Liveness::NONE, DeletionTime::LIVE);
        for (id, ballot, value) in &cells {
            let timestamp = ballot.micros();
            let is_accepted = [columns.accepted_under, columns.accepted].contains(id);
            row.cell(
                *id,
                match value {
                    // Its client may have been told: it stays until it is written.
                    Some(value) if is_accepted && has_changes => CellRef::live(timestamp, value),
                    Some(value) => CellRef::expiring(timestamp, self.kept_seconds, ends, value),
                    None => CellRef::tombstone(timestamp, now),
                },
            );
        }
        let mut mutation = MutationBuilder::new(self.table.id(), key.clone());
        mutation.row(row.finish());
        Some(mutation.finish())
    }
}

/// What a proposal takes for granted.
struct Grounds {
    /// This is what is read.
    seen: Vec<Seen>,
    /// Of these operations nothing has come yet but by this proposal, as it was proposed at first.
    origin: Ballot,
    operations: Vec<Uuid>,
}

/// What changes of a state, and what is written with it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Change {
    promised: Option<Ballot>,
    accepted: Option<Box<Proposal>>,
    committed: Option<Committed>,
    /// What was chosen, and is not known to be written here.
    written: Option<Box<Proposal>>,
}

impl Change {
    /// Something that is written here is committed.
    pub(crate) fn commits(committed: Committed) -> Change {
        Change { committed: Some(committed), ..Change::default() }
    }
}

/// What a replica in that state answers, and how its state changes.
fn decide(state: State, phase: Phase, forgets: bool) -> (PaxosAnswer, Option<Change>) {
    let State { promised, promise } = state;
    // What a quorum has was promised by a quorum, whether this one was among them or not.
    let promised = promised.max(promise.committed);
    match phase {
        Phase::Prepare(ballot) if ballot.is_after(promised) => {
            let change = Change { promised: Some(ballot), ..Change::default() };
            (PaxosAnswer::Promised(promise), (!forgets).then_some(change))
        }
        Phase::Propose(proposing) if may_accept(promised, proposing.proposal.ballot) => {
            let Proposing { proposal, next, known, .. } = proposing;
            let known = known.filter(|known| known.ballot != promise.committed);
            // What is later known to be committed may have come without what came before.
            let committed = known.as_ref().map(|known| Committed::from(&**known));
            let committed = committed.filter(|known| known.ballot > promise.committed);
            let (promised, accepted) = (Some(next), Some(proposal));
            (PaxosAnswer::Done, Some(Change { promised, accepted, committed, written: known }))
        }
        Phase::Prepare(_) | Phase::Propose(_) => (PaxosAnswer::Refused(promised), None),
        Phase::Write(_) => unreachable!("what is chosen is written whatever the state is"),
    }
}

fn may_accept(promised: Ballot, ballot: Ballot) -> bool {
    ballot == promised || ballot.is_after(promised)
}

/// Does this node read the same of a partition as whoever has decided?
async fn sees(
    shard: &ShardHandle,
    table: TableId,
    key: &PartitionKey,
    seen: Vec<Seen>,
) -> Result<bool, Failure> {
    for one in seen {
        let other = |_| Failure::Other { what: "a read that makes no sense".to_owned() };
        let read = one.request().map_err(other)?;
        if !read.is_of(table, key) {
            return Err(Failure::Other { what: "a read of another partition".to_owned() });
        }
        let of = shard.local().with_schema(|schema| schema.table_by_id(table).cloned());
        let of = of.ok_or(Failure::NoTable { table })?;
        check_read(&read, &of)?;
        match crate::service::look(shard, Wanted::Digest, Sight::Now, read.into_command(of)).await {
            Answer::Digest(digest) if digest == one.digest => {}
            Answer::Failed(failure) => return Err(failure),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The row of a table's partition: a `uuid`.
fn clustering_of(table: TableId) -> Clustering {
    let mut clustering = ClusteringBuilder::default();
    clustering.push(Some(table.0.as_bytes()));
    clustering.finish()
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
        Box::new(Proposal { ballot, origin: ballot, planned_on: 1, timestamp: micros, mutations: Vec::new() })
    }

    fn propose(micros: i64) -> Phase {
        let (proposal, next, seen) = (proposal(micros), ballot(micros).next(), Vec::new());
        Phase::Propose(Proposing { proposal, next, known: None, seen })
    }

    fn accepted(micros: i64) -> Change {
        let (promised, accepted) = (Some(ballot(micros).next()), Some(proposal(micros)));
        Change { promised, accepted, ..Change::default() }
    }

    fn state(promised: i64, accepted: Option<i64>, committed: i64) -> State {
        let promise = Promise {
            accepted: accepted.map(proposal),
            committed: ballot(committed),
            origin: ballot(committed),
            timestamp: committed,
        };
        State { promised: ballot(promised), promise }
    }

    #[test]
    fn a_promise_is_kept() {
        let (answer, change) = decide(state(5, Some(4), 3), Phase::Prepare(ballot(6)), false);
        assert_eq!(answer, PaxosAnswer::Promised(state(5, Some(4), 3).promise));
        assert_eq!(change, Some(Change { promised: Some(ballot(6)), ..Change::default() }));
        for phase in [Phase::Prepare(ballot(5)), Phase::Prepare(ballot(4)), propose(4)] {
            let refused = (PaxosAnswer::Refused(ballot(5)), None);
            assert_eq!(decide(state(5, None, 3), phase, false), refused);
        }
        for micros in [5, 6] {
            let (answer, change) = decide(state(5, None, 3), propose(micros), false);
            assert_eq!((answer, change), (PaxosAnswer::Done, Some(accepted(micros))));
        }
        // What was accepted is followed by the next of the same node, and by nobody who has not asked.
        assert!(matches!(decide(state(6, Some(5), 3), propose(6), false), (PaxosAnswer::Done, Some(_))));
        let refused = (PaxosAnswer::Refused(ballot(6)), None);
        assert_eq!(decide(state(6, Some(5), 3), Phase::Prepare(ballot(6)), false), refused);
    }

    /// Both changes would have one timestamp, and the greater value would win instead of the later one.
    #[test]
    fn of_two_ballots_of_one_time_the_one_that_came_first_goes_first() {
        let other = Ballot::new(5, Uuid::max());
        assert!(other > ballot(5) && !other.is_after(ballot(5)));
        let refused = (PaxosAnswer::Refused(ballot(5)), None);
        assert_eq!(decide(state(5, None, 3), Phase::Prepare(other), false), refused);
        let proposal = Box::new(Proposal { ballot: other, ..*proposal(5) });
        let proposing = Proposing { proposal, next: other.next(), known: None, seen: Vec::new() };
        assert_eq!(decide(state(5, None, 3), Phase::Propose(proposing), false), refused);
    }

    /// Else nobody might have it: of what was chosen a replica may have no more than that it was accepted.
    #[test]
    fn what_is_known_to_be_chosen_is_written_before_it_is_forgotten() {
        let proposing = |known| {
            let (proposal, next, seen) = (proposal(6), ballot(7), Vec::new());
            Phase::Propose(Proposing { proposal, next, known, seen })
        };
        let changed =
            |committed| match decide(state(6, Some(5), committed), proposing(Some(proposal(5))), false) {
                (PaxosAnswer::Done, Some(change)) => change,
                other => panic!("{other:?}"),
            };
        let change = changed(3);
        let committed = Committed { ballot: ballot(5), origin: ballot(5), timestamp: 5 };
        assert_eq!((change.written, change.committed), (Some(proposal(5)), Some(committed)));
        assert_eq!(change.accepted, Some(proposal(6)));
        assert_eq!(changed(5), accepted(6), "it is written already");
        let change = changed(6);
        assert_eq!((change.written, change.committed), (Some(proposal(5)), None), "it may have come without");
    }
}
