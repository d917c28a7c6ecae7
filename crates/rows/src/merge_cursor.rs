//! Several streams of partitions merged into one: for reads, scans and compaction alike.
//!
//! 1. Every source keeps its next step at the head. A source that lacks bytes stops the merge
//!    until they are there: the order of what others hold is not known before.
//! 2. Between partitions, the least key goes next; all sources that begin with it are *in* the
//!    partition, their headers merged.
//! 3. Inside, the least place goes next: rows of one clustering become one row; markers of one
//!    place become one marker, when the winning range deletion really changes there.
//! 4. What the deletion in force hides (partition or range) is left out on the way.
//!
//! To merge versions of a large row is long work, which is left to whoever drives the merge ([`MergeLack::Merged`]): it
//! may have it done on another thread.

use std::cmp::Ordering;
use std::sync::Arc;

use schema::Table;

use crate::{
    Bound, ClusteringComparator, DeletionTime, Marker, PartitionHeader, Row, RowVersions, Step, Unfiltered,
    UnfilteredCursor, merge_row, merge_rows,
};

/// Merges cursors over the same table, all in the same direction.
pub struct MergeCursor<C: UnfilteredCursor> {
    table: Arc<Table>,
    comparator: ClusteringComparator,
    reversed: bool,
    sources: Vec<Source<C>>,
    /// Deletion of the current partition.
    partition_deletion: DeletionTime,
    /// The range deletion told to the reader and still in force; live when none.
    range_deletion: DeletionTime,
    scratch: Vec<Row>,
    large: Large,
}

/// What a merge lacks to go on.
#[derive(Debug)]
pub enum MergeLack<N> {
    /// What a source needs.
    Source(N),
    /// What these versions of a large row make, to be [put](MergeCursor::put_merged) back. Boxed, since every step has
    /// room for it.
    Merged(Box<RowVersions>),
}

/// A large row that the merge has come to.
enum Large {
    None,
    Versions(Box<RowVersions>),
    /// What they made, until the next step.
    Merged(Row),
}

/// Is a row without other versions long work all the same?
fn is_long_to_merge(row: &Row, active: DeletionTime) -> bool {
    row.is_large() && !(active.is_live() && row.deletion().is_live())
}

struct Source<C: UnfilteredCursor> {
    cursor: C,
    head: Head,
    /// Is it in the current partition?
    is_in: bool,
    /// Its own range deletion in force.
    open: DeletionTime,
}

impl<C: UnfilteredCursor> Source<C> {
    /// Takes the other versions of the row that was taken.
    fn take_versions(&mut self, versions: &mut Vec<Row>) -> Result<(), C::Error> {
        while self.cursor.has_more_versions() {
            match self.cursor.step()? {
                Step::Item(Unfiltered::Row(row)) => versions.push(row),
                _ => unreachable!("another version is there"),
            }
        }
        Ok(())
    }
}

enum Head {
    Unread,
    Header(PartitionHeader),
    Item(Unfiltered),
    End,
}

impl<C: UnfilteredCursor> MergeCursor<C> {
    /// Merges those sources; `reversed` tells in which direction they read inside partitions.
    pub fn new(table: Arc<Table>, reversed: bool, sources: impl IntoIterator<Item = C>) -> Self {
        let source = |cursor| Source { cursor, head: Head::Unread, is_in: false, open: DeletionTime::LIVE };
        MergeCursor {
            comparator: ClusteringComparator::new(Arc::clone(table.clustering_types())),
            table,
            reversed,
            sources: sources.into_iter().map(source).collect(),
            partition_deletion: DeletionTime::LIVE,
            range_deletion: DeletionTime::LIVE,
            scratch: Vec::new(),
            large: Large::None,
        }
    }

    /// Reads heads until all are known, or one source lacks bytes.
    fn fill(&mut self) -> Result<Option<C::Need>, C::Error> {
        for source in &mut self.sources {
            if matches!(source.head, Head::Unread) {
                source.head = match source.cursor.step()? {
                    Step::Need(need) => return Ok(Some(need)),
                    Step::Header(header) => Head::Header(header),
                    Step::Item(item) => Head::Item(item),
                    Step::End => Head::End,
                };
            }
        }
        Ok(None)
    }

    /// The only source: what it gives is in order as it comes, and needs no head.
    fn step_alone(&mut self) -> Result<Step<MergeLack<C::Need>>, C::Error> {
        loop {
            let [source] = &mut *self.sources else { return Ok(Step::End) };
            match source.cursor.step()? {
                Step::Header(mut header) => {
                    self.partition_deletion = header.deletion;
                    source.open = DeletionTime::LIVE;
                    self.range_deletion = DeletionTime::LIVE;
                    let static_row = header.static_row.take();
                    header.static_row = static_row.and_then(|row| merge_row(row, header.deletion));
                    return Ok(Step::Header(header));
                }
                Step::Item(Unfiltered::Row(row)) => {
                    // Ranges that do not win over the partition's deletion were never told.
                    let active = self.partition_deletion.max(self.range_deletion);
                    if source.cursor.has_more_versions() || is_long_to_merge(&row, active) {
                        let mut versions = vec![row];
                        source.take_versions(&mut versions)?;
                        self.leave(versions, active);
                        return Ok(self.step_large());
                    }
                    if let Some(row) = merge_row(row, active) {
                        return Ok(Step::Item(Unfiltered::Row(row)));
                    }
                }
                Step::Item(Unfiltered::Marker(marker)) => {
                    let entered = marker.entered(self.reversed);
                    let wins = entered.supersedes(self.partition_deletion);
                    let after = if wins { entered } else { DeletionTime::LIVE };
                    let before = std::mem::replace(&mut self.range_deletion, after);
                    let (left, right) = if self.reversed { (after, before) } else { (before, after) };
                    if before != after {
                        return Ok(Step::Item(Unfiltered::Marker(Marker { left, right, ..marker })));
                    }
                }
                Step::Need(need) => return Ok(Step::Need(MergeLack::Source(need))),
                Step::End => return Ok(Step::End),
            }
        }
    }

    fn next_header(&mut self) -> Option<PartitionHeader> {
        let heads = self.sources.iter().filter_map(|source| {
            let is_left = matches!(source.head, Head::Item(_));
            assert!(!is_left, "all of a partition is merged before the next one");
            if let Head::Header(header) = &source.head { Some(&header.key) } else { None }
        });
        let key = heads.min()?.clone();
        let mut deletion = DeletionTime::LIVE;
        self.scratch.clear();
        for source in &mut self.sources {
            source.is_in = matches!(&source.head, Head::Header(header) if header.key == key);
            source.open = DeletionTime::LIVE;
            if !source.is_in {
                continue;
            }
            if let Head::Header(header) = std::mem::replace(&mut source.head, Head::Unread) {
                deletion = deletion.max(header.deletion);
                self.scratch.extend(header.static_row);
            }
        }
        self.partition_deletion = deletion;
        self.range_deletion = DeletionTime::LIVE;
        let static_row = merge_rows(&self.scratch, deletion, &self.table);
        Some(PartitionHeader { key, deletion, static_row })
    }

    /// Which in-partition sources hold the least place; empty when the partition is over.
    fn least(&self) -> Option<usize> {
        let mut best: Option<(usize, &Unfiltered)> = None;
        for (index, source) in self.sources.iter().enumerate() {
            let (true, Head::Item(item)) = (source.is_in, &source.head) else { continue };
            if best.is_none_or(|(_, least)| self.order(item, least).is_lt()) {
                best = Some((index, item));
            }
        }
        best.map(|(index, _)| index)
    }

    fn order(&self, left: &Unfiltered, right: &Unfiltered) -> Ordering {
        let order = left.place_to(right, &self.comparator);
        if self.reversed { order.reverse() } else { order }
    }

    fn open_deletion(&self) -> DeletionTime {
        let opened = self.sources.iter().filter(|source| source.is_in).map(|source| source.open);
        let open = opened.fold(DeletionTime::LIVE, DeletionTime::max);
        if open.supersedes(self.partition_deletion) { open } else { DeletionTime::LIVE }
    }

    /// Takes all heads at the least place. `None` when nothing of it is left.
    fn next_item(&mut self, least: usize) -> Result<Option<Unfiltered>, C::Error> {
        let Head::Item(first) = std::mem::replace(&mut self.sources[least].head, Head::Unread) else {
            unreachable!("the least head is an item");
        };
        Ok(match first {
            Unfiltered::Row(row) => self.merge_row(row, least)?.map(Unfiltered::Row),
            Unfiltered::Marker(marker) => self.merge_marker(marker, least).map(Unfiltered::Marker),
        })
    }

    fn merge_row(&mut self, first: Row, least: usize) -> Result<Option<Row>, C::Error> {
        self.scratch.clear();
        self.sources[least].take_versions(&mut self.scratch)?;
        for index in least + 1..self.sources.len() {
            let source = &self.sources[index];
            let same = matches!(&source.head, Head::Item(Unfiltered::Row(other)) if source.is_in
                && self.comparator.compare_encoded(other.encoded_clustering(), first.encoded_clustering()).is_eq());
            if same
                && let Head::Item(Unfiltered::Row(other)) =
                    std::mem::replace(&mut self.sources[index].head, Head::Unread)
            {
                self.scratch.push(other);
                self.sources[index].take_versions(&mut self.scratch)?;
            }
        }
        let active = self.partition_deletion.max(self.open_deletion());
        if self.scratch.is_empty() && !is_long_to_merge(&first, active) {
            return Ok(merge_row(first, active));
        }
        self.scratch.push(first);
        if self.scratch.iter().any(Row::is_large) {
            let rows = std::mem::take(&mut self.scratch);
            self.leave(rows, active);
            return Ok(None);
        }
        Ok(merge_rows(&self.scratch, active, &self.table))
    }

    /// Merges the versions that it [gave](MergeLack::Merged) here and now, for whoever has no other thread for that.
    pub fn merge_here(&mut self, versions: RowVersions) {
        let row = versions.merge(&self.table);
        self.put_merged(row);
    }

    /// Takes what versions of a large row make, which was [lacking](MergeLack::Merged).
    ///
    /// # Panics
    /// When nothing was lacking, or a row of another place.
    pub fn put_merged(&mut self, row: Option<Row>) {
        let Large::Versions(versions) = &self.large else {
            unreachable!("a row is put back where one is lacking")
        };
        let is_of = |row: &Row| {
            versions.rows.iter().any(|version| version.encoded_clustering() == row.encoded_clustering())
        };
        assert!(row.as_ref().is_none_or(is_of), "versions of a row are merged to a row in their place");
        self.large = row.map_or(Large::None, Large::Merged);
    }

    /// The step that a large row is waiting for.
    fn step_large(&mut self) -> Step<MergeLack<C::Need>> {
        match std::mem::replace(&mut self.large, Large::None) {
            Large::None => unreachable!("a large row was met"),
            Large::Merged(row) => Step::Item(Unfiltered::Row(row)),
            Large::Versions(versions) => {
                self.large = Large::Versions(versions.clone());
                Step::Need(MergeLack::Merged(versions))
            }
        }
    }

    /// Leaves versions of a large row to be merged.
    fn leave(&mut self, rows: Vec<Row>, active: DeletionTime) {
        self.large = Large::Versions(Box::new(RowVersions { deletion: active, rows: rows.into() }));
    }

    fn merge_marker(&mut self, first: Marker, least: usize) -> Option<Marker> {
        let place: Bound = first.start_bound();
        self.sources[least].open = first.entered(self.reversed);
        for source in &mut self.sources[least + 1..] {
            let same = matches!(&source.head, Head::Item(Unfiltered::Marker(other)) if source.is_in
                && self.comparator.compare_bounds(&other.start_bound(), &place).is_eq());
            if same
                && let Head::Item(Unfiltered::Marker(other)) =
                    std::mem::replace(&mut source.head, Head::Unread)
            {
                source.open = other.entered(self.reversed);
            }
        }
        let (before, after) = (self.range_deletion, self.open_deletion());
        self.range_deletion = after;
        let (left, right) = if self.reversed { (after, before) } else { (before, after) };
        (before != after).then_some(Marker { prefix: first.prefix, is_before: first.is_before, left, right })
    }
}

impl<C: UnfilteredCursor> UnfilteredCursor for MergeCursor<C> {
    type Need = MergeLack<C::Need>;
    type Error = C::Error;

    fn step(&mut self) -> Result<Step<MergeLack<C::Need>>, C::Error> {
        if !matches!(self.large, Large::None) {
            return Ok(self.step_large());
        }
        if self.sources.len() == 1 {
            return self.step_alone();
        }
        loop {
            if let Some(need) = self.fill()? {
                return Ok(Step::Need(MergeLack::Source(need)));
            }
            if let Some(least) = self.least() {
                match self.next_item(least)? {
                    Some(item) => return Ok(Step::Item(item)),
                    None if !matches!(self.large, Large::None) => return Ok(self.step_large()),
                    None => continue,
                }
            }
            return Ok(self.next_header().map_or(Step::End, Step::Header));
        }
    }
}
