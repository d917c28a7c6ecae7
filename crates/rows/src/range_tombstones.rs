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
        self.0.splice(first..last, pieces);
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
