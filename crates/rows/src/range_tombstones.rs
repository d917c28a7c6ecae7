//! The range deletions of one partition in memory: sorted, never overlapping.

use std::cmp::Ordering;

use crate::{Bound, ClusteringComparator, DeletionTime, Marker, Slice};

/// A deletion of everything between two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// What it covers.
    pub slice: Slice,
    /// When.
    pub deletion: DeletionTime,
}

/// Range tombstones of one partition.
///
/// Invariant: sorted; each non-empty; the end of one is not beyond the start of the next; where
/// two were laid over each other, the winning deletion stands.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RangeTombstones(Vec<RangeTombstone>);

impl RangeTombstones {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In clustering order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &RangeTombstone> {
        self.0.iter()
    }

    /// Lays one more over those there are.
    pub fn insert(&mut self, new: RangeTombstone, comparator: &ClusteringComparator) {
        if new.slice.is_empty(comparator) || new.deletion.is_live() {
            return;
        }
        let order = |a: &Bound, b: &Bound| comparator.compare_bounds(a, b);
        let first = self.0.partition_point(|old| order(&old.slice.end, &new.slice.start).is_le());
        let last = self.0.partition_point(|old| order(&old.slice.start, &new.slice.end).is_lt());
        assert!(first <= last, "a range ends behind where it begins");
        let mut pieces: Vec<RangeTombstone> = Vec::with_capacity(last - first + 2);
        let mut push = |start: &Bound, end: &Bound, deletion: DeletionTime| {
            let slice = Slice { start: as_start(start), end: as_end(end) };
            if slice.is_empty(comparator) {
                return;
            }
            match pieces.last_mut() {
                Some(piece)
                    if piece.deletion == deletion && order(&piece.slice.end, &slice.start).is_eq() =>
                {
                    piece.slice.end = slice.end;
                }
                _ => pieces.push(RangeTombstone { slice, deletion }),
            }
        };
        let mut reached = new.slice.start.clone();
        for old in &self.0[first..last] {
            push(&old.slice.start, least(&old.slice.end, &reached, comparator), old.deletion);
            push(&reached, &old.slice.start, new.deletion);
            let from = greatest(&reached, &old.slice.start, comparator).clone();
            let to = least(&old.slice.end, &new.slice.end, comparator).clone();
            push(&from, &to, old.deletion.max(new.deletion));
            push(greatest(&old.slice.start, &to, comparator), &old.slice.end, old.deletion);
            reached = greatest(&reached, &to, comparator).clone();
        }
        push(&reached, &new.slice.end, new.deletion);
        let end = first + pieces.len();
        self.0.splice(first..last, pieces);
        assert!(self.are_apart(first, end, comparator), "ranges of a partition do not overlap");
    }

    /// Does none of those ranges overlap the one before it or the one after it?
    fn are_apart(&self, first: usize, end: usize, comparator: &ClusteringComparator) -> bool {
        let around = &self.0[first.saturating_sub(1)..(end + 1).min(self.0.len())];
        around.is_sorted_by(|a, b| comparator.compare_bounds(&a.slice.end, &b.slice.start).is_le())
    }

    /// The deletion that covers a clustering, or live.
    pub fn covering(
        &self,
        clustering: &crate::Clustering,
        comparator: &ClusteringComparator,
    ) -> DeletionTime {
        let index = self.0.partition_point(|t| comparator.compare_to_bound(clustering, &t.slice.end).is_gt());
        match self.0.get(index) {
            Some(found) if comparator.compare_to_bound(clustering, &found.slice.start).is_gt() => {
                found.deletion
            }
            _ => DeletionTime::LIVE,
        }
    }

    /// The edges within a slice, in clustering order: ranges are cut to it, and neighbours that
    /// touch share one marker.
    pub fn markers(&self, slice: &Slice, comparator: &ClusteringComparator) -> Vec<Marker> {
        edges(self.within(slice, comparator), slice, comparator)
    }

    /// The edges of so many ranges within a slice as a reader comes to them, and the rest of the slice, if there are
    /// more. An edge at which the rest begins may come with both.
    pub fn some_markers(
        &self,
        slice: &Slice,
        reversed: bool,
        range_count: usize,
        comparator: &ClusteringComparator,
    ) -> (Vec<Marker>, Option<Slice>) {
        assert!(range_count > 0, "reading some of the ranges gets on");
        let within = self.within(slice, comparator);
        let Some(left_count) = within.len().checked_sub(range_count).filter(|count| *count > 0) else {
            let mut markers = edges(within, slice, comparator);
            if reversed {
                markers.reverse();
            }
            return (markers, None);
        };
        let mut rest = slice.clone();
        let (taken, next) = match reversed {
            false => {
                let (taken, left) = within.split_at(range_count);
                rest.start = as_start(&left[0].slice.start);
                (taken, &left[0])
            }
            true => {
                let (left, taken) = within.split_at(left_count);
                rest.end = as_end(&left[left_count - 1].slice.end);
                (taken, &left[left_count - 1])
            }
        };
        let mut markers = edges(taken, slice, comparator);
        if reversed {
            markers.reverse();
        }
        // What touches the last range is entered there.
        if let Some(last) = markers.last_mut() {
            let place = if reversed { as_start(&rest.end) } else { rest.start.clone() };
            if comparator.compare_bounds(&last.start_bound(), &place).is_eq() {
                *(if reversed { &mut last.left } else { &mut last.right }) = next.deletion;
            }
            if last.left == last.right {
                markers.pop();
            }
        }
        (markers, Some(rest))
    }

    /// The ranges that have a part in a slice.
    fn within(&self, slice: &Slice, comparator: &ClusteringComparator) -> &[RangeTombstone] {
        let order = |a: &Bound, b: &Bound| comparator.compare_bounds(a, b);
        let first = self.0.partition_point(|range| order(&range.slice.end, &slice.start).is_le());
        let behind = &self.0[first..];
        &behind[..behind.partition_point(|range| order(&range.slice.start, &slice.end).is_lt())]
    }
}

/// The edges of ranges, cut to a slice.
fn edges(ranges: &[RangeTombstone], slice: &Slice, comparator: &ClusteringComparator) -> Vec<Marker> {
    let mut markers: Vec<Marker> = Vec::new();
    for tombstone in ranges {
        let start = as_start(greatest(&tombstone.slice.start, &slice.start, comparator));
        let end = as_end(least(&tombstone.slice.end, &slice.end, comparator));
        match markers.last_mut() {
            Some(last) if comparator.compare_bounds(&last.end_bound(), &start).is_eq() => {
                last.right = tombstone.deletion;
                if last.left == last.right {
                    // The same deletion goes on: no edge.
                    markers.pop();
                }
            }
            _ => markers.push(Marker::at(&start, tombstone.deletion)),
        }
        markers.push(Marker::at(&end, tombstone.deletion));
    }
    markers
}

fn as_start(bound: &Bound) -> Bound {
    let kind = if bound.kind.is_start() { bound.kind } else { bound.kind.inverted() };
    Bound { kind, prefix: bound.prefix.clone() }
}

fn as_end(bound: &Bound) -> Bound {
    let kind = if bound.kind.is_start() { bound.kind.inverted() } else { bound.kind };
    Bound { kind, prefix: bound.prefix.clone() }
}

fn least<'a>(a: &'a Bound, b: &'a Bound, comparator: &ClusteringComparator) -> &'a Bound {
    if comparator.compare_bounds(a, b) == Ordering::Greater { b } else { a }
}

fn greatest<'a>(a: &'a Bound, b: &'a Bound, comparator: &ClusteringComparator) -> &'a Bound {
    if comparator.compare_bounds(a, b) == Ordering::Less { b } else { a }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use types::CqlType;

    use super::*;
    use crate::{BoundKind, ClusteringBuilder};

    fn bound(kind: BoundKind, place: i32) -> Bound {
        let mut prefix = ClusteringBuilder::new();
        prefix.push(Some(&place.to_be_bytes()));
        Bound { kind, prefix: prefix.finish() }
    }

    fn range(first: i32, last: i32, timestamp: i64) -> RangeTombstone {
        let start = bound(BoundKind::InclusiveStart, first);
        let slice = Slice { start, end: bound(BoundKind::InclusiveEnd, last) };
        RangeTombstone { slice, deletion: DeletionTime { timestamp, local_deletion_time: 1 } }
    }

    fn of_ints() -> ClusteringComparator {
        ClusteringComparator::new(Arc::from([(CqlType::Int, false)]))
    }

    #[test]
    #[should_panic(expected = "a range ends behind where it begins")]
    fn a_range_that_ends_before_it_begins_is_seen_by_the_next_one() {
        let mut ranges = RangeTombstones(vec![range(9, 1, 1)]);
        ranges.insert(range(5, 5, 2), &of_ints());
    }

    #[test]
    #[should_panic(expected = "ranges of a partition do not overlap")]
    fn ranges_that_overlap_are_seen_by_the_next_one() {
        let mut ranges = RangeTombstones(vec![range(1, 9, 1), range(3, 4, 2)]);
        ranges.insert(range(2, 2, 3), &of_ints());
    }

    #[test]
    #[should_panic(expected = "reading some of the ranges gets on")]
    fn a_reader_that_would_never_come_to_the_end_of_the_ranges_is_seen() {
        RangeTombstones(vec![range(1, 2, 1)]).some_markers(&Slice::ALL, false, 0, &of_ints());
    }
}
