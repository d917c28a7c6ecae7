//! What replicas have written of what they had agreed on, and need not tell any more.
//!
//! ```text
//!   chosen ─► written on the disks of a quorum ─► committed: who has written it forgets that it has accepted it
//! ```
//!
//! Whoever has proposed it tells that by the way, with what is proposed next or some moments later. A replica that does
//! not hear it tells whoever asks for a promise that it has accepted it, and it is made good once more, which changes
//! nothing.

use std::rc::Rc;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use read::{ReadCommand, ReadTarget};
use rows::{PartitionKey, RingRange, Row};
use schema::TableId;
use storage::{Shard, ShardHandle, StorageError, Unit, unsettled};
use uuid::Uuid;

use crate::agreeing::{Change, PaxosLog, State};
use crate::answer::Written;
use crate::body::{BodyError, Reader, put_key};
use crate::failure::Failure;
use crate::paxos::{Ballot, Proposal, ballot, put_ballot};

/// What is committed: a quorum has written it, durably.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its ballot.
    pub ballot: Ballot,
    /// The one under which it was at first.
    pub origin: Ballot,
    /// Its timestamp, in µs.
    pub timestamp: i64,
}

/// That of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedIn {
    /// The table.
    pub table: TableId,
    /// The partition.
    pub key: PartitionKey,
    /// What is committed last.
    pub committed: Committed,
}

impl From<&Proposal> for Committed {
    fn from(Proposal { ballot, origin, timestamp, .. }: &Proposal) -> Committed {
        Committed { ballot: *ballot, origin: *origin, timestamp: *timestamp }
    }
}

impl CommittedIn {
    pub(crate) fn put(&self, out: &mut BytesMut) {
        let Committed { ballot, origin, timestamp } = self.committed;
        out.put_slice(self.table.0.as_bytes());
        put_key(out, &self.key);
        put_ballot(out, ballot);
        put_ballot(out, origin);
        out.put_i64_le(timestamp);
    }

    pub(crate) fn read(reader: &mut Reader) -> Result<CommittedIn, BodyError> {
        let (table, key) = (TableId(reader.uuid("table id")?), reader.key()?);
        let (ballot, origin) = (ballot(reader)?, ballot(reader)?);
        let committed = Committed { ballot, origin, timestamp: reader.i64("timestamp")? };
        Ok(CommittedIn { table, key, committed })
    }
}

/// Writes down what is committed, of what this node has written. It needs not be on the disk: who does not know it has
/// it made good once more.
pub async fn note_committed(shard: &ShardHandle, committed: Vec<CommittedIn>) -> Written {
    let mut written = Written::default();
    for owner in 0..shard.shards().count() {
        let is_of_owner = |index: &usize| shard.shards().owner(committed[*index].key.token) == owner;
        let indexes: Vec<usize> = (0..committed.len()).filter(is_of_owner).collect();
        if indexes.is_empty() {
            continue;
        }
        match note_on(shard, owner, indexes.iter().map(|index| committed[*index].clone()).collect()).await {
            Ok(()) => indexes.iter().for_each(|index| written.done.insert(*index)),
            Err(failure) => written.failure = Some(failure),
        }
    }
    written
}

async fn note_on(shard: &ShardHandle, owner: usize, committed: Vec<CommittedIn>) -> Result<(), Failure> {
    let mut notes = Vec::new();
    for CommittedIn { table, key, committed } in &committed {
        let log = shard.local().with_schema(|schema| PaxosLog::of(schema, *table));
        // Where its table is gone, so is all that was agreed on.
        let Ok(log) = log else { continue };
        notes.extend(log.mutation(key, *table, &Change::commits(*committed), shard));
    }
    // It may have come to be accepted behind the write.
    let settle = move |shard: Rc<Shard>| async move {
        let settled = committed.iter().map(|one| (one.table, &one.key, one.committed.ballot.micros()));
        settled.for_each(|(table, key, micros)| unsettled(&shard).note_written(table, key, micros));
    };
    let failed = |error: StorageError| Failure::from(&error);
    shard.on(owner, settle).await.map_err(failed)?;
    if notes.is_empty() {
        return Ok(());
    }
    let outcomes = shard.write_units(owner, None, Unit::Each, notes).await;
    outcomes.error.map_or(Ok(()), |error| Err(failed(error)))
}

/// Finds what an earlier run of this shard has accepted and may not have written.
///
/// # Errors
/// The log of agreements can not be read.
pub async fn recall_accepted(shard: &Rc<Shard>) -> Result<(), Failure> {
    let now = shard.now_seconds();
    let log = shard.with_schema(|schema| schema.table("system", "paxos").map(Arc::clone));
    let Some(log) = log else { return Ok(()) };
    let mut command = ReadCommand::new(log, ReadTarget::Range(RingRange::ALL), now);
    loop {
        let page = shard.read(&command).await.map_err(|error| Failure::from(&error))?;
        for partition in &page.partitions {
            for row in &partition.rows {
                match accepted_in(shard, row) {
                    Ok(Some(of)) => of.add_to(shard, &partition.key),
                    Ok(None) => {}
                    // Whoever wants to agree on that partition is told so, too.
                    Err(failure) => {
                        tracing::error!(%failure, "what this node has accepted of a partition is not known")
                    }
                }
            }
        }
        match page.next {
            Some(next) => command.resume = Some(next),
            None => break,
        }
    }
    unsettled(shard).note_known();
    Ok(())
}

/// Before rows of these partitions are read, while it is not known yet what an earlier run has left: looks for it.
///
/// # Errors
/// The log of agreements can not be read.
pub(crate) async fn recall_accepted_of(
    shard: &Shard,
    table: TableId,
    keys: &[PartitionKey],
) -> Result<(), Failure> {
    let log = shard.with_schema(|schema| PaxosLog::of(schema, table))?;
    for key in keys {
        let command = log.command(key, table, shard.now_seconds());
        let state = log.state_in(shard.read(&command).await)?;
        if let Some(accepted) = Accepted::of(table, state) {
            accepted.add_to(shard, key);
        }
    }
    Ok(())
}

/// Changes that were accepted and are not known to be committed.
#[derive(Clone, Copy)]
struct Accepted {
    table: TableId,
    ballot: Ballot,
    origin: Ballot,
}

impl Accepted {
    /// Those of a partition that is in that state.
    fn of(table: TableId, state: State) -> Option<Accepted> {
        let committed = state.promise.committed;
        let accepted = state.promise.accepted.filter(|accepted| accepted.ballot > committed)?;
        let Proposal { ballot, origin, .. } = *accepted;
        (!accepted.mutations.is_empty()).then_some(Accepted { table, ballot, origin })
    }

    fn add_to(self, shard: &Shard, key: &PartitionKey) {
        let origin = Uuid::from_bytes(self.origin.to_uuid());
        unsettled(shard).add(self.table, key, self.ballot.micros(), origin);
    }
}

/// What a row tells of that.
fn accepted_in(shard: &Shard, row: &Row) -> Result<Option<Accepted>, Failure> {
    let damaged = || Failure::Other { what: "a row of system.paxos can not be read".to_owned() };
    let clustering = row.clustering();
    let of = clustering.components().next().flatten().and_then(|bytes| Uuid::from_slice(bytes).ok());
    let table = TableId(of.ok_or_else(damaged)?);
    // Of one that is gone there is nothing to write.
    let Ok(of) = shard.with_schema(|schema| PaxosLog::of(schema, table)) else { return Ok(None) };
    Ok(Accepted::of(table, of.state(row)?))
}
