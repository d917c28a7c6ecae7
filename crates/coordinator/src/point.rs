//! Reading and writing rows by their keys at once.

use std::ops::ControlFlow;

use rows::{Mutation, Row};
use schema::TableId;
use storage::PointReads;
use types::Token;

use crate::{Consistency, Coordinator};

impl Coordinator {
    /// Can a table be read and written with that consistency?
    pub fn admits(&self, table: TableId, consistency: Consistency) -> bool {
        consistency.check(self.replication_factor(table)).is_ok()
    }

    /// How many shards there are.
    pub fn shard_count(&self) -> usize {
        self.shard.shards().count()
    }

    /// The shard that owns the keys of a token.
    pub fn owner(&self, token: Token) -> usize {
        self.shard.shards().owner(token)
    }

    /// Shows the live rows of partitions of a table without clustering columns, each by the index of its key, or
    /// that there is none; until it is told to stop. All are of that owner. [`Coordinator::read`] is for
    /// those that are not shown, and for a consistency that is not admitted.
    pub fn point_reads(
        &self,
        owner: usize,
        reads: PointReads<'_>,
        show: impl FnMut(usize, Option<&Row>) -> ControlFlow<()> + Send,
    ) {
        self.shard.point_reads(owner, reads, show);
    }

    /// As [`Coordinator::write`] of each mutation by itself, if that needs no waiting; tells those that were written.
    /// All are of that owner, and the consistency is admitted. The others are for [`Coordinator::write`].
    pub fn write_at_once(&self, owner: usize, mutations: &[&Mutation], tell: impl FnMut(usize) + Send) {
        self.shard.write_at_once(owner, mutations, tell);
    }
}
