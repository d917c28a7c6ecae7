//! Reading and writing one row by its key at once.

use rows::{Mutation, Row};
use storage::PointRead;

use crate::{Consistency, Coordinator};

impl Coordinator {
    /// Shows the live row of a partition of a table without clustering columns, or that there is none.
    /// `None` when that cannot be told without waiting, or not with that consistency: [`Coordinator::read`]
    /// does what is to be done then.
    pub fn point_read<T: Send>(
        &self,
        read: PointRead<'_>,
        consistency: Consistency,
        show: impl FnOnce(Option<&Row>) -> T + Send,
    ) -> Option<T> {
        consistency.check(self.replication_factor(read.table.id())).ok()?;
        let owner = self.shard.shards().owner(read.key.token);
        self.shard.point_read(owner, read, show)
    }

    /// As [`Coordinator::write`] of one mutation, if that needs no waiting and the consistency can be had;
    /// else `false`, and nothing was written.
    pub fn write_at_once(&self, mutation: &Mutation, consistency: Consistency) -> bool {
        consistency.check(self.replication_factor(mutation.table)).is_ok()
            && self.shard.write_at_once(self.shard.shards().owner(mutation.key.token), mutation)
    }
}
