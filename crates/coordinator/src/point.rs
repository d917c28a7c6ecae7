//! Reading one row by its key at once.

use rows::Row;
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
}
