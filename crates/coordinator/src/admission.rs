//! The door to the shards: may a table be read and written at a level?
//!
//! Every read and write, plain or full, takes [`Coordinator::shards_for`] to its shards, and that takes what only an
//! admission gives. [`Coordinator::shard`] is for other work, and for this crate alone.

use rows::Mutation;
use schema::{Schema, TableId};
use storage::ShardHandle;

use crate::{Consistency, Coordinator, CoordinatorError};

/// Says that somebody was admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted(());

impl Admitted {
    /// A logged batch that is found recorded was admitted before it was recorded.
    pub(crate) fn as_recorded() -> Self {
        Admitted(())
    }

    /// The ring has replicas enough; this node's own part goes to its shards.
    pub(crate) fn by_ring() -> Self {
        Admitted(())
    }
}

impl Coordinator {
    /// Are there replicas enough of a table for that level?
    ///
    /// # Errors
    /// `Unavailable`.
    pub(crate) fn admit(
        &self,
        table: TableId,
        consistency: Consistency,
    ) -> Result<Admitted, CoordinatorError> {
        // Of a local keyspace there is one replica.
        let of_table = |schema: &Schema| schema.replication_factor(table).unwrap_or(1);
        let factor = || self.shard().local().with_schema(of_table);
        if self.seat().is_some_and(|seat| seat.is_left_out() && seat.is_on_ring(table)) {
            // What it has is nobody's replica any more, and it has no way to those that are.
            let (consistency, required) = (consistency.name(), consistency.required(factor));
            return Err(CoordinatorError::Unavailable { consistency, required, alive: 0 });
        }
        consistency.check(factor)?;
        Ok(Admitted(()))
    }

    /// Are there replicas enough for these?
    ///
    /// # Errors
    /// `Unavailable`.
    pub(crate) fn admit_all<'m>(
        &self,
        mutations: impl IntoIterator<Item = &'m Mutation>,
        consistency: Consistency,
    ) -> Result<Admitted, CoordinatorError> {
        let mut last = None;
        for mutation in mutations {
            if last.replace(mutation.table) != Some(mutation.table) {
                self.admit(mutation.table, consistency)?;
            }
        }
        Ok(Admitted(()))
    }

    /// The way to the shards for reads and writes.
    #[inline]
    pub(crate) fn shards_for(&self, _admitted: Admitted) -> &ShardHandle {
        self.shard()
    }
}
