//! The handle a shard's sessions hold.

use std::sync::Arc;

use rows::Mutation;
use schema::{Schema, TableId, Transformation};
use storage::{ReadCommand, ReadPage};

use crate::CoordinatorError;

/// How many replicas must answer. On a lone node any level but `EACH_QUORUM`-style data-centre
/// rules comes to the same one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Cassandra's levels by their names")]
pub enum Consistency {
    Any, One, Two, Three, Quorum, All, LocalQuorum, EachQuorum, Serial, LocalSerial, LocalOne,
}

/// Carries reads and writes. Belongs to one shard; clone it freely there.
#[derive(Clone)]
pub struct Coordinator {}

#[allow(missing_docs, clippy::unused_async, unused_variables, reason = "signatures first: the storage floor is being built")]
impl Coordinator {
    /// The schema now in force.
    pub fn schema(&self) -> Arc<Schema> { unreachable!() }
    /// A timestamp in µs that no other write of this node has or had, later than all before.
    pub fn next_timestamp(&self) -> i64 { unreachable!() }
    /// Seconds since 1970.
    pub fn now_seconds(&self) -> u32 { unreachable!() }
    /// Milliseconds since 1970.
    pub fn now_millis(&self) -> i64 { unreachable!() }
    /// A version 1 UUID, unique on this node.
    pub fn time_uuid(&self) -> uuid::Uuid { unreachable!() }
    /// A version 4 UUID.
    pub fn random_uuid(&self) -> uuid::Uuid { unreachable!() }
    /// Writes independent mutations: one statement, or an unlogged batch. Several for one partition are atomic together.
    pub async fn write(&self, mutations: Vec<Mutation>, consistency: Consistency) -> Result<(), CoordinatorError> { unreachable!() }
    /// Writes a logged batch: all of it or, should the node die before it answers, all or nothing.
    pub async fn write_logged_batch(&self, mutations: Vec<Mutation>, consistency: Consistency) -> Result<(), CoordinatorError> { unreachable!() }
    /// Reads one page.
    pub async fn read(&self, command: ReadCommand, consistency: Consistency) -> Result<ReadPage, CoordinatorError> { unreachable!() }
    /// Empties a table.
    pub async fn truncate(&self, table: TableId) -> Result<(), CoordinatorError> { unreachable!() }
    /// Commits one change of the schema planned against `based_on`; the schema afterwards. When the
    /// schema has moved on, `SchemaMoved`: plan again against [`Coordinator::schema`].
    pub async fn change_schema(&self, change: Transformation, based_on: u64) -> Result<Arc<Schema>, CoordinatorError> { unreachable!() }
}
