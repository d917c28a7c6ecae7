//! Changes of a partition that are not written yet, as a read would show them.

use std::sync::Arc;

use memtable::Memtable;
use read::{
    LivePage, ReadCommand, ReadPage, TombstoneThresholds, UnfilteredPage, UnfilteredPartition, merge_answers,
};
use rows::{ClusteringComparator, Mutation, Slices, Unfiltered};
use schema::Table;

use crate::StorageError;
use crate::shard::Shard;

/// Changes of one partition that are not written yet.
pub struct Overlay(Memtable);

impl Overlay {
    /// None yet, of a partition of that table.
    pub fn new(table: Arc<Table>) -> Overlay {
        Overlay(Memtable::new(table))
    }

    /// Puts a change over those before.
    ///
    /// # Panics
    /// When it is of another table.
    pub fn add(&mut self, mutation: &Mutation) {
        self.0.apply(mutation, None, None);
    }

    /// As [`Shard::read`] of one key of that shard, with these changes over it.
    ///
    /// # Errors
    /// As [`Shard::read`].
    ///
    /// # Panics
    /// When the command reads backwards, or is of keys in another order than the ring's.
    pub async fn read(&self, shard: &Shard, command: &ReadCommand) -> Result<ReadPage, StorageError> {
        assert!(!command.reversed, "what lies over it comes in the rows' order");
        let own = shard.read_unfiltered(command).await?;
        // Those were counted already.
        let live = LivePage::new(command, TombstoneThresholds::NONE);
        Ok(merge_answers(command, [own, self.page(command)], live)?)
    }

    /// What they are of what a command reads.
    fn page(&self, command: &ReadCommand) -> UnfilteredPage {
        let comparator = ClusteringComparator::new(Arc::clone(command.table.clustering_types()));
        let slices = slices_left(command, &comparator);
        let is_asked_for = |item: &Unfiltered| match item {
            Unfiltered::Row(row) => {
                let clustering = row.clustering();
                slices.as_slice().iter().any(|slice| slice.contains(&comparator, &clustering))
            }
            // One of a range beyond what is asked for hides nothing of it.
            Unfiltered::Marker(_) => true,
        };
        let partitions = self.0.partitions().map(|(header, items)| UnfilteredPartition {
            header,
            items: items.filter(is_asked_for).collect(),
            is_cut: false,
        });
        UnfilteredPage { partitions: partitions.collect(), ..UnfilteredPage::default() }
    }
}

/// What is still to be read of a partition.
fn slices_left(command: &ReadCommand, comparator: &ClusteringComparator) -> Slices {
    match command.resume.as_ref().and_then(|position| position.clustering.as_ref()) {
        Some(last) => command.slices.after(last, false, comparator),
        None => command.slices.clone(),
    }
}
