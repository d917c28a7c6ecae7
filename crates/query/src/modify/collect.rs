//! Changes of several statements gathered into one mutation for each partition.

use std::sync::Arc;

use rows::{
    DeletionTime, Mutation, MutationBuilder, MutationMemory, PartitionKey, RangeTombstone, Row, merge_rows,
};
use runtime::Io;
use schema::{Table, TableId};
use types::Token;

use crate::QueryError;
use crate::error::refuse;
use crate::terms::are_long;

/// Mutations of one statement or batch, one for each partition of each table, in the order met.
#[derive(Default)]
pub(crate) struct Changes {
    /// Several may be of one partition, until the end.
    changes: Vec<Change>,
    /// For mutations of one row: for each shard its own, since counts of who holds it are dear to share.
    memory: Vec<MutationMemory>,
    /// What IN has made of the statements: bytes of rows that one value was written to several times.
    spread_bytes: usize,
    /// The tables of the partitions in parts.
    tables: Vec<Arc<Table>>,
}

/// What changes in one partition.
enum Change {
    /// One row, as it will be written.
    Row(Mutation),
    Parts(Partition),
}

/// Changes of one partition, put together part by part.
pub(crate) struct Partition {
    table: TableId,
    key: PartitionKey,
    deletion: DeletionTime,
    /// Versions of the static row.
    static_rows: Vec<Row>,
    rows: Vec<Row>,
    ranges: Vec<RangeTombstone>,
}

/// Most bytes that IN may make of the values of a request: four times the largest frame.
const SPREAD_BYTES_MAX: usize = 64 << 20;

/// Of a mutation of one row, what is not a value.
const MUTATION_HEAD_BYTES: usize = 80;

impl Changes {
    /// With room for mutations of so many rows, which have values of so many bytes in all.
    pub(crate) fn of_rows(row_count: usize, value_bytes: usize, shard_count: usize) -> Changes {
        let bytes = value_bytes + row_count * MUTATION_HEAD_BYTES;
        let memory = || MutationMemory::new(bytes / shard_count);
        Changes {
            changes: Vec::with_capacity(row_count),
            memory: std::iter::repeat_with(memory).take(shard_count).collect(),
            spread_bytes: 0,
            tables: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Counts a row that is one of several a statement writes the same to.
    ///
    /// # Errors
    /// They have become too many bytes.
    pub(super) fn count_spread(&mut self, bytes: usize) -> Result<(), QueryError> {
        self.spread_bytes += bytes;
        if self.spread_bytes > SPREAD_BYTES_MAX {
            refuse!("The rows that IN names would take more than the {SPREAD_BYTES_MAX} bytes that they may");
        }
        Ok(())
    }

    /// Memory for mutations of partitions of that shard, if it was foreseen.
    pub(crate) fn memory(&mut self, shard: usize) -> Option<&mut MutationMemory> {
        self.memory.get_mut(shard)
    }

    /// Notes a table of which there are changes.
    pub(crate) fn note(&mut self, table: &Arc<Table>) {
        if self.tables.iter().all(|known| known.id() != table.id()) {
            self.tables.push(Arc::clone(table));
        }
    }

    /// The changes of that partition.
    pub(crate) fn partition(&mut self, table: &Arc<Table>, key: &PartitionKey) -> &mut Partition {
        self.note(table);
        // A statement mostly goes on in the partition it is at.
        if self.changes.last().is_none_or(|change| change.place() != (key, table.id())) {
            self.changes.push(Change::Parts(Partition::new(table.id(), key.clone())));
        }
        let last = self.changes.len() - 1;
        self.changes[last].parts()
    }

    /// Adds a mutation of one row of a table without clustering columns, which is [noted](Changes::note).
    pub(crate) fn add_row(&mut self, mutation: Mutation) {
        debug_assert!(mutation.rows.len() == 1 && mutation.static_row.is_none(), "one row");
        self.changes.push(Change::Row(mutation));
    }

    /// The mutations; partitions that nothing changed in are left out. Those of long rows are put together on another
    /// thread, and of each row there is one version: a memtable would merge them one by one.
    pub(crate) async fn finish(self, io: &Io) -> Vec<Mutation> {
        if are_long(self.changes.iter().map(Change::row_bytes).sum()) {
            // Boxed, so that the many others need no room for it.
            return Box::pin(io.run(move || self.mutations(true))).await;
        }
        self.mutations(false)
    }

    fn mutations(mut self, are_merged: bool) -> Vec<Mutation> {
        for (first, other) in self.repeated() {
            let other = self.changes[other].take();
            self.changes[first].parts().append(other);
        }
        let table = |id| self.tables.iter().find(|table| table.id() == id);
        let mutation = |change| match change {
            Change::Row(mutation) => Some(mutation),
            Change::Parts(partition) => {
                let table = table(partition.table);
                partition.finish(table.map(|table| &**table), are_merged)
            }
        };
        self.changes.into_iter().filter_map(mutation).collect()
    }

    /// Those of a partition that was met before, in the order met; each behind the first of that partition.
    fn repeated(&self) -> Vec<(usize, usize)> {
        let token = |(index, change): (usize, &Change)| (change.place().0.token, index);
        let mut order: Vec<(Token, usize)> = self.changes.iter().enumerate().map(token).collect();
        order.sort_unstable();
        if order.windows(2).all(|two| two[0].0 != two[1].0) {
            return Vec::new();
        }
        let place = |(_, index): &(Token, usize)| self.changes[*index].place();
        order.sort_by(|one, other| place(one).cmp(&place(other)));
        let partitions = order.chunk_by(|one, other| place(one) == place(other));
        partitions.flat_map(|same| same[1..].iter().map(|other| (same[0].1, other.1))).collect()
    }
}

impl Change {
    fn place(&self) -> (&PartitionKey, TableId) {
        match self {
            Change::Row(mutation) => (&mutation.key, mutation.table),
            Change::Parts(partition) => (&partition.key, partition.table),
        }
    }

    fn row_bytes(&self) -> usize {
        let rows: &mut dyn Iterator<Item = &Row> = match self {
            Change::Row(mutation) => &mut mutation.rows.iter(),
            Change::Parts(partition) => &mut partition.rows.iter().chain(&partition.static_rows),
        };
        rows.map(|row| row.as_encoded().len()).sum()
    }

    /// In parts, for more to come.
    fn parts(&mut self) -> &mut Partition {
        if let Change::Row(mutation) = self {
            let mut parts = Partition::new(mutation.table, mutation.key.clone());
            parts.rows = std::mem::take(&mut mutation.rows).into_vec();
            *self = Change::Parts(parts);
        }
        match self {
            Change::Parts(partition) => partition,
            Change::Row(..) => unreachable!("taken apart above"),
        }
    }

    /// What changes, so that nothing is left of it here.
    fn take(&mut self) -> Partition {
        let parts = self.parts();
        let nothing = Partition::new(parts.table, parts.key.clone());
        std::mem::replace(parts, nothing)
    }
}

impl Partition {
    fn new(table: TableId, key: PartitionKey) -> Partition {
        let (static_rows, rows, ranges) = (Vec::new(), Vec::new(), Vec::new());
        Partition { table, key, deletion: DeletionTime::LIVE, static_rows, rows, ranges }
    }

    pub(super) fn delete(&mut self, deletion: DeletionTime) {
        self.deletion = self.deletion.max(deletion);
    }

    pub(super) fn add_static(&mut self, row: Row) {
        self.static_rows.push(row);
    }

    pub(super) fn add_row(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(super) fn add_range(&mut self, range: RangeTombstone) {
        self.ranges.push(range);
    }

    /// Adds what changed later.
    fn append(&mut self, mut later: Partition) {
        self.delete(later.deletion);
        self.static_rows.append(&mut later.static_rows);
        self.rows.append(&mut later.rows);
        self.ranges.append(&mut later.ranges);
    }

    fn finish(self, table: Option<&Table>, is_merged: bool) -> Option<Mutation> {
        let nothing = self.deletion.is_live()
            && self.static_rows.is_empty()
            && self.rows.is_empty()
            && self.ranges.is_empty();
        if nothing {
            return None;
        }
        let mut builder = MutationBuilder::new(self.table, self.key);
        if !self.deletion.is_live() {
            builder.partition_deletion(self.deletion);
        }
        let merge = |rows: &[Row]| match (rows, table) {
            ([one], _) => Some(one.clone()),
            (rows, Some(table)) => merge_rows(rows, DeletionTime::LIVE, table),
            (_, None) => unreachable!("the table of a partition in parts is known"),
        };
        if !self.static_rows.is_empty()
            && let Some(row) = merge(&self.static_rows)
        {
            builder.static_row(row);
        }
        let mut rows = self.rows;
        if is_merged && rows.len() > 1 {
            rows.sort_by(|one, other| one.encoded_clustering().cmp(other.encoded_clustering()));
            let same = |one: &Row, other: &Row| one.encoded_clustering() == other.encoded_clustering();
            rows = rows.chunk_by(same).filter_map(merge).collect();
        }
        for row in rows {
            builder.row(row);
        }
        for range in self.ranges {
            builder.range(range);
        }
        Some(builder.finish())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rows::{CellRef, Liveness, RowBuilder};
    use schema::ColumnId;

    use super::*;

    const TABLES: [TableId; 2] = [TableId(uuid::Uuid::from_u128(1)), TableId(uuid::Uuid::from_u128(2))];

    fn write(out: Vec<u8>, value: u8) -> RowBuilder {
        let mut row = RowBuilder::appending(out, b"", Liveness::at(1), DeletionTime::LIVE);
        row.cell(ColumnId(1), CellRef::live(1, &[value]));
        row
    }

    /// A batch of rows with these tables, keys and values.
    fn mutations(rows: &[(usize, u8, u8)]) -> Vec<Mutation> {
        let mut changes = Changes::of_rows(rows.len(), 10, 2);
        for (table, key, value) in rows {
            let place = (Token::of(&[*key]), &[*key][..]);
            let memory = changes.memory(usize::from(key % 2)).expect("of that shard");
            let mutation = memory.mutation_of_row(TABLES[*table], place, 30, |out| write(out, *value));
            changes.add_row(mutation);
        }
        changes.mutations(false)
    }

    /// A mutation of one partition of these values.
    fn mutation(table: usize, key: u8, values: &[u8]) -> Mutation {
        let mut builder =
            MutationBuilder::new(TABLES[table], PartitionKey::new(Bytes::copy_from_slice(&[key])));
        for value in values {
            builder.row(write(Vec::new(), *value).finish());
        }
        builder.finish()
    }

    #[test]
    fn rows_of_a_partition_are_taken_together_in_their_order_where_the_first_was_met() {
        let rows = [(0, 5, 1), (0, 1, 2), (1, 5, 3), (0, 5, 4), (0, 2, 5), (1, 5, 6), (0, 5, 7)];
        let expected =
            [mutation(0, 5, &[1, 4, 7]), mutation(0, 1, &[2]), mutation(1, 5, &[3, 6]), mutation(0, 2, &[5])];
        assert_eq!(mutations(&rows), expected);
    }

    #[test]
    fn one_key_in_two_tables_is_two_partitions() {
        assert_eq!(mutations(&[(1, 5, 1), (0, 5, 2)]), [mutation(1, 5, &[1]), mutation(0, 5, &[2])]);
    }

    #[test]
    fn what_changes_nothing_is_left_out() {
        let mut changes = Changes::default();
        let key = PartitionKey::new(Bytes::from_static(b"k"));
        changes.changes.push(Change::Parts(Partition::new(TABLES[0], key)));
        assert!(changes.mutations(false).is_empty());
        assert!(mutations(&[]).is_empty());
    }
}
