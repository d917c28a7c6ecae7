//! Do the rows and markers of a partition rise? A merge takes it for granted of what it reads, and promises it of what
//! it writes.

use std::sync::Arc;

use rows::{ClusteringComparator, Step, Unfiltered, UnfilteredCursor};
use schema::Table;
use sstable::{ChunkSource, Component, FileCursor, SstableError};

/// Looks at the items of one partition after the other.
pub(super) struct Rising {
    comparator: ClusteringComparator,
    /// The item before, in the partition that goes on.
    last: Option<Unfiltered>,
}

impl Rising {
    pub(super) fn new(table: &Table) -> Self {
        Rising { comparator: ClusteringComparator::new(Arc::clone(table.clustering_types())), last: None }
    }

    /// Another partition begins.
    pub(super) fn begin_partition(&mut self) {
        self.last = None;
    }

    /// Takes the next item; is it behind the one before?
    pub(super) fn is_behind(&mut self, item: &Unfiltered) -> bool {
        let last = self.last.replace(item.clone());
        last.is_none_or(|last| last.place_to(item, &self.comparator).is_lt())
    }
}

/// A cursor over a file whose items must rise. These are bytes from a disk: that they do not is damage.
pub(super) struct Ordered<S: ChunkSource> {
    cursor: FileCursor<S>,
    rising: Rising,
}

impl<S: ChunkSource> Ordered<S> {
    pub(super) fn new(cursor: FileCursor<S>, table: &Table) -> Self {
        Ordered { cursor, rising: Rising::new(table) }
    }
}

impl<S: ChunkSource> UnfilteredCursor for Ordered<S> {
    type Need = <FileCursor<S> as UnfilteredCursor>::Need;
    type Error = SstableError;

    fn step(&mut self) -> Result<Step<Self::Need>, SstableError> {
        let offset = self.cursor.position();
        let step = self.cursor.step()?;
        match &step {
            Step::Header(_) => self.rising.begin_partition(),
            Step::Item(item) if !self.rising.is_behind(item) => {
                let path = self.cursor.file().descriptor().path(Component::Data);
                return Err(SstableError::Damaged { path, offset, what: "rows do not rise" });
            }
            Step::Item(_) | Step::Need(_) | Step::End => {}
        }
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use rows::{
        Clustering, ClusteringBuilder, DeletionTime, Liveness, Marker, RingRange, RowBuilder, Slice, Slices,
    };
    use schema::{ClusteringOrder, ColumnKind, TableBuilder, TableId};
    use sstable::DirectChunks;
    use types::CqlType;

    use super::*;

    fn table(order: ClusteringOrder) -> Table {
        let table = TableBuilder::new(TableId(uuid::Uuid::from_u128(1)), "k", "t")
            .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
            .column("c", ColumnKind::Clustering(0, order), CqlType::Int);
        table.build().expect("a sound table")
    }

    fn row(c: i32) -> Unfiltered {
        let mut clustering = ClusteringBuilder::new();
        clustering.push(Some(&c.to_be_bytes()));
        let clustering: Clustering = clustering.finish();
        Unfiltered::Row(RowBuilder::new(&clustering, Liveness::at(1), DeletionTime::LIVE).finish())
    }

    #[test]
    fn a_file_whose_rows_do_not_rise_is_damaged() {
        let job = super::super::testing::job();
        let ascending = Arc::new(table(ClusteringOrder::Asc));
        // Each partition begins anew.
        let partitions = [1, 2].map(|key| (super::super::testing::header(key), vec![row(1), row(2)]));
        let file = super::super::testing::file(&job, &ascending, partitions);
        let damage = |table: &Table| {
            let cursor = file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all());
            let mut ordered = Ordered::new(cursor, table);
            loop {
                match ordered.step() {
                    Ok(Step::End) => return None,
                    Ok(_) => {}
                    Err(SstableError::Damaged { what, .. }) => return Some(what),
                    Err(error) => panic!("{error}"),
                }
            }
        };
        assert_eq!(damage(&ascending), None);
        assert_eq!(damage(&table(ClusteringOrder::Desc)), Some("rows do not rise"));
    }

    #[test]
    fn items_rise_in_the_order_of_the_table_and_each_partition_begins_anew() {
        for (order, rows) in [(ClusteringOrder::Asc, [1, 2, 2, 1]), (ClusteringOrder::Desc, [2, 1, 1, 2])] {
            let mut rising = Rising::new(&table(order));
            let deletion = DeletionTime { timestamp: 1, local_deletion_time: 1 };
            assert!(rising.is_behind(&Unfiltered::Marker(Marker::at(&Slice::ALL.start, deletion))));
            let seen = rows.map(|c| rising.is_behind(&row(c)));
            assert_eq!(seen, [true, true, false, false], "{order:?}");
            rising.begin_partition();
            assert!(rising.is_behind(&row(0)));
        }
    }
}
