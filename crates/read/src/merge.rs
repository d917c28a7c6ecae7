//! Answers of several replicas made one.
//!
//! An answer ends for its limits, in the midst of a partition or behind one. Behind that place its replica may have
//! what hides the rows that others told: so what is merged ends where the first of the answers does, and the next page
//! asks all of them for more.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::sync::Arc;

use rows::{
    Clustering, ClusteringComparator, MergeCursor, MergeLack, PartitionHeader, PartitionKey, Step,
    Unfiltered, UnfilteredCursor,
};

use crate::{Begun, Place, ReadCommand, ReadError, ReadTarget, RowConsumer, UnfilteredPage};

/// Gives what answers of several replicas make to a consumer, as far as all of them go. They are answers to one
/// command, of a range or of keys in the order of the ring, in which partitions are merged.
///
/// # Errors
/// As those of the consumer.
///
/// # Panics
/// When the command is of keys in another order.
pub fn merge_answers<C: RowConsumer>(
    command: &ReadCommand,
    answers: impl IntoIterator<Item = UnfilteredPage>,
    consumer: C,
) -> Result<C::Answer, ReadError> {
    assert!(command.is_in_ring_order(), "answers are merged in the order of the ring");
    let reversed = command.reversed && matches!(command.target, ReadTarget::Keys(_));
    let answers: Vec<UnfilteredPage> = answers.into_iter().collect();
    let mut merging =
        Merging { command, known: Known::of(command, reversed, &answers), consumer, open: None, begun: None };
    let cursors = answers.into_iter().map(UnfilteredPage::cursor);
    let mut merged = MergeCursor::new(command.table.clone(), reversed, cursors);
    let mut is_over = false;
    while !is_over {
        is_over = match next_step(&mut merged) {
            Step::Header(header) => merging.header(header)?,
            Step::Item(item) => merging.item(item)?,
            Step::Need(never) => match never {},
            Step::End => merging.end(),
        };
    }
    merging.leave_begun();
    Ok(merging.consumer.finish())
}

/// A merge on its way to a consumer. Each step says whether the answer is over by it.
struct Merging<'a, C> {
    command: &'a ReadCommand,
    known: Known,
    consumer: C,
    /// The partition that was begun, and the place in it to which it is known, if that is not all of it.
    open: Option<(PartitionKey, Option<Clustering>)>,
    /// The partition that was begun last.
    begun: Option<PartitionKey>,
}

impl<C: RowConsumer> Merging<'_, C> {
    fn header(&mut self, header: PartitionHeader) -> Result<bool, ReadError> {
        if self.leave_partition() {
            return Ok(true);
        }
        self.leave_begun();
        if !self.known.goes_to(&header.key) {
            return Ok(self.end());
        }
        self.begun = Some(header.key.clone());
        self.open = Some((header.key.clone(), self.known.place_in(&header.key).cloned()));
        let has_room = begin(self.command, header, &mut self.consumer)?;
        Ok(!has_room)
    }

    fn item(&mut self, item: Unfiltered) -> Result<bool, ReadError> {
        if !self.consumer.wants_more() {
            return Ok(false);
        }
        if let Some((_, Some(place))) = &self.open
            && self.known.is_behind(&item, place)
        {
            return Ok(self.leave_partition());
        }
        match item {
            Unfiltered::Marker(marker) => self.consumer.take_marker(marker),
            Unfiltered::Row(row) => match self.consumer.see(Place::Begun, row)? {
                Some(row) => self.consumer.take_row(row),
                None => Ok(false),
            },
        }
    }

    /// Ends the partition that was begun: the answer ends there, too, if more is wanted of it than is known.
    fn leave_partition(&mut self) -> bool {
        match self.open.take() {
            Some((key, Some(place))) if self.consumer.wants_more() => {
                self.consumer.end_at(&key, Some(&place));
                true
            }
            _ => self.consumer.end(),
        }
    }

    /// Ends the answer behind all that is known.
    fn end(&mut self) -> bool {
        if self.leave_partition() {
            return true;
        }
        if let Some(key) = &self.known.last {
            // One of which nothing was told may have more behind the place where that ended.
            let was_begun = self.begun.as_ref() == Some(key);
            let place = if was_begun { None } else { self.known.place_in(key) };
            self.consumer.end_at(key, place);
        }
        true
    }

    /// What was come upon since is told of the partition that was begun last, when that was asked for by its key.
    fn leave_begun(&mut self) {
        if let (ReadTarget::Keys(_), Some(key)) = (&self.command.target, &self.begun) {
            self.consumer.leave(key);
        }
    }
}

/// How far all of several answers go.
struct Known {
    comparator: ClusteringComparator,
    reversed: bool,
    /// The last partition that all answers go to; `None` when they go to the end.
    last: Option<PartitionKey>,
    /// Partitions that not all answers told whole, and the place to which all told them.
    places: Vec<(PartitionKey, Clustering)>,
}

impl Known {
    fn of(command: &ReadCommand, reversed: bool, answers: &[UnfilteredPage]) -> Known {
        let comparator = ClusteringComparator::new(Arc::clone(command.table.clustering_types()));
        let ends = || answers.iter().filter_map(|answer| answer.next.as_ref());
        let last = ends().map(|end| &end.key).min().cloned();
        let mut known = Known { comparator, reversed, last, places: Vec::new() };
        for end in ends() {
            end.clustering.iter().for_each(|place| known.cut(&end.key, place));
        }
        for partition in
            answers.iter().flat_map(|answer| &answer.partitions).filter(|partition| partition.is_cut)
        {
            let last = partition.last_row().map(|row| row.clustering());
            last.iter().for_each(|place| known.cut(&partition.header.key, place));
        }
        known
    }

    fn cut(&mut self, key: &PartitionKey, place: &Clustering) {
        match self.places.iter().position(|(known, _)| known == key) {
            None => self.places.push((key.clone(), place.clone())),
            Some(index) if self.order(place, &self.places[index].1).is_lt() => {
                self.places[index].1 = place.clone()
            }
            Some(_) => {}
        }
    }

    /// In reading direction.
    fn order(&self, one: &Clustering, other: &Clustering) -> Ordering {
        let order = self.comparator.compare(one, other);
        if self.reversed { order.reverse() } else { order }
    }

    fn goes_to(&self, key: &PartitionKey) -> bool {
        self.last.as_ref().is_none_or(|last| key <= last)
    }

    fn place_in(&self, key: &PartitionKey) -> Option<&Clustering> {
        self.places.iter().find(|(known, _)| known == key).map(|(_, place)| place)
    }

    fn is_behind(&self, item: &Unfiltered, place: &Clustering) -> bool {
        let order = match item {
            Unfiltered::Row(row) => {
                self.comparator.compare_encoded(row.encoded_clustering(), place.as_encoded())
            }
            Unfiltered::Marker(marker) => {
                self.comparator.compare_to_bound(place, &marker.start_bound()).reverse()
            }
        };
        if self.reversed { order.is_lt() } else { order.is_gt() }
    }
}

/// The next step of a merge, in which nothing is waited for.
fn next_step<C>(merged: &mut MergeCursor<C>) -> Step<Infallible>
where
    C: UnfilteredCursor<Need = Infallible, Error = Infallible>,
{
    loop {
        let Ok(step) = merged.step();
        match step {
            Step::Header(header) => return Step::Header(header),
            Step::Item(item) => return Step::Item(item),
            Step::End => return Step::End,
            Step::Need(MergeLack::Merged(versions)) => merged.merge_here(*versions),
            Step::Need(MergeLack::Source(never)) => match never {},
        }
    }
}

/// Begins a partition; `false` when there is no room for it.
fn begin<C: RowConsumer>(
    command: &ReadCommand,
    header: PartitionHeader,
    consumer: &mut C,
) -> Result<bool, ReadError> {
    let PartitionHeader { key, deletion, static_row } = header;
    let static_row = match static_row {
        Some(row) => consumer.see(Place::Key(&key), row)?,
        None => None,
    };
    let resumed = command.resumed_in(&key);
    consumer.begin(Begun { key, deletion, static_row, resumed })
}
