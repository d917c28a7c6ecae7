//! What came of operations that their clients gave ids: in `system.operations`.
//!
//! The rows of a partition's operations have the partition's own key, and so lie on the shard that owns it. They are
//! written with the changes, as a part of what was proposed. So a quorum has them as soon as it has the changes.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use read::{PartitionRows, ReadCommand, ReadTarget};
use rows::{
    CellRef, Clustering, ClusteringBuilder, ClusteringComparator, ColumnData, DeletionTime, Liveness,
    Mutation, MutationBuilder, PartitionKey, Row, RowBuilder, Slice, Slices,
};
use schema::{ColumnId, Schema, Table, TableId};
use storage::ShardHandle;
use uuid::Uuid;

use crate::body::{BodyError, Reader, put_bytes};
use crate::failure::Failure;
use crate::paxos::{Ballot, ballot, put_ballot};

/// How long an id is taken after the time that stands in it, in seconds.
pub const OPERATION_WINDOW_SECONDS: u32 = 5 * 60;

/// How long an outcome is kept, in seconds: longer than its id is taken by any node, though their clocks differ.
const KEPT_SECONDS: u32 = 2 * OPERATION_WINDOW_SECONDS;

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The client's name for it: a `timeuuid`.
    pub id: Uuid,
    /// The ballot under which it was proposed at first: none on a node that is alone.
    pub origin: Ballot,
    /// What was decided, as whoever carries out statements writes it.
    pub outcome: Bytes,
}

impl Operation {
    pub(crate) fn put(&self, out: &mut BytesMut) {
        out.put_slice(self.id.as_bytes());
        put_ballot(out, self.origin);
        put_bytes(out, &self.outcome);
    }

    pub(crate) fn read(reader: &mut Reader) -> Result<Operation, BodyError> {
        let (id, origin) = (reader.uuid("operation")?, ballot(reader)?);
        Ok(Operation { id, origin, outcome: reader.bytes("outcome")? })
    }
}

/// Reads and writes rows of `system.operations`, of the partitions of a table.
pub struct OperationLog {
    log: Arc<Table>,
    origin: ColumnId,
    outcome: ColumnId,
    of: TableId,
}

impl OperationLog {
    /// That of a table.
    ///
    /// # Errors
    /// There is no `system.operations`.
    pub fn of(schema: &Schema, of: TableId) -> Result<OperationLog, Failure> {
        let missing = || Failure::Other { what: "there is no table system.operations".to_owned() };
        let log = Arc::clone(schema.table("system", "operations").ok_or_else(missing)?);
        let id = |name: &str| log.column(name).map(|column| column.id).ok_or_else(missing);
        let (origin, outcome) = (id("origin")?, id("outcome")?);
        Ok(OperationLog { log, origin, outcome, of })
    }

    /// Does a mutation tell of operations?
    pub(crate) fn has(&self, mutation: &Mutation) -> bool {
        mutation.table == self.log.id()
    }

    /// What the shard's node knows of those operations of a partition.
    ///
    /// # Errors
    /// They can not be read.
    pub async fn read(
        &self,
        shard: &ShardHandle,
        key: &PartitionKey,
        ids: &[Uuid],
    ) -> Result<Vec<Operation>, Failure> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let command = self.command(key, ids);
        let page = shard.read(shard.shards().owner(key.token), &command).await;
        let page = page.map_err(|error| Failure::from(&error))?;
        self.operations(&page.partitions)
    }

    /// What reads operations, also those that this node's clock takes to have ended: others may still take their ids.
    fn command(&self, key: &PartitionKey, ids: &[Uuid]) -> ReadCommand {
        let target = ReadTarget::Keys(vec![key.clone()]);
        let slices = ids.iter().map(|id| Slice::prefix(self.place(*id))).collect();
        let comparator = ClusteringComparator::new(Arc::clone(self.log.clustering_types()));
        ReadCommand {
            slices: Slices::new(slices, &comparator),
            ..ReadCommand::new(Arc::clone(&self.log), target, 0)
        }
    }

    fn operations(&self, partitions: &[PartitionRows]) -> Result<Vec<Operation>, Failure> {
        let rows = partitions.iter().flat_map(|partition| &*partition.rows);
        let operation = |row: &Row| {
            let clustering = row.clustering();
            let id = clustering.components().nth(1)??.try_into().ok().map(Uuid::from_bytes)?;
            let origin = Ballot::of_uuid(value(row, self.origin)?.try_into().ok()?)?;
            let outcome = Bytes::copy_from_slice(value(row, self.outcome)?);
            Some(Operation { id, origin, outcome })
        };
        let damaged = || Failure::Other { what: "a row of system.operations can not be read".to_owned() };
        rows.map(|row| operation(row).ok_or_else(damaged)).collect()
    }

    /// What tells of operations of a partition, to be written at that timestamp in µs, and now in seconds; `None` of no
    /// operations.
    pub fn mutation(
        &self,
        key: &PartitionKey,
        operations: &[Operation],
        (timestamp, now): (i64, u32),
    ) -> Option<Mutation> {
        if operations.is_empty() {
            return None;
        }
        let ends = now.saturating_add(KEPT_SECONDS).min(u32::MAX - 2);
        let mut mutation = MutationBuilder::new(self.log.id(), key.clone());
        for operation in operations {
            let mut row = RowBuilder::new(&self.place(operation.id), Liveness::NONE, DeletionTime::LIVE);
            let origin = operation.origin.to_uuid();
            let mut cells = [(self.origin, &origin[..]), (self.outcome, &operation.outcome[..])];
            cells.sort_unstable_by_key(|(id, _)| *id);
            for (id, value) in cells {
                row.cell(id, CellRef::expiring(timestamp, KEPT_SECONDS, ends, value));
            }
            mutation.row(row.finish());
        }
        Some(mutation.finish())
    }

    /// The operations that a proposal's changes tell of.
    ///
    /// # Errors
    /// They make no sense.
    pub(crate) fn told_by<'m>(
        &self,
        mutations: impl IntoIterator<Item = &'m Mutation>,
    ) -> Result<Vec<Uuid>, Failure> {
        let rows = mutations.into_iter().filter(|mutation| self.has(mutation)).flat_map(|one| &one.rows);
        let id = |row: &Row| {
            let clustering = row.clustering();
            let mut parts = clustering.components();
            let is_of_it = parts.next()? == Some(self.of.0.as_bytes());
            parts.next()??.try_into().ok().map(Uuid::from_bytes).filter(|_| is_of_it)
        };
        let no_sense = || Failure::Other { what: "an operation of another table".to_owned() };
        rows.map(|row| id(row).ok_or_else(no_sense)).collect()
    }

    fn place(&self, id: Uuid) -> Clustering {
        let mut clustering = ClusteringBuilder::default();
        clustering.push(Some(self.of.0.as_bytes())).push(Some(id.as_bytes()));
        clustering.finish()
    }
}

/// The value of a column that has one.
pub(crate) fn value(row: &Row, id: ColumnId) -> Option<&[u8]> {
    match row.column(id) {
        Some(ColumnData::Simple(cell)) => Some(cell.value),
        _ => None,
    }
}
