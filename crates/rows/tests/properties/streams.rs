//! Merged streams equal what a naive model says, both ways, within slices.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use rows::{
    Bound, BoundKind, CellRef, ClusteringBuilder, DeletionTime, LARGE_ROW_BYTES, Liveness, Marker,
    MergeCursor, MergeLack, PartitionHeader, PartitionKey, RangeTombstone, RangeTombstones, Row, RowBuilder,
    Slice, Slices, Step, Unfiltered, UnfilteredCursor, merge_rows,
};

use crate::given::{self, Place, all_places, clustering, comparator};

/// A partition as one source holds it.
#[derive(Clone, Debug)]
struct Part {
    deletion: DeletionTime,
    static_row: Option<Row>,
    rows: BTreeMap<Place, Row>,
    ranges: Vec<RangeTombstone>,
}

type Source = BTreeMap<u8, Part>;

fn source() -> impl Strategy<Value = Source> {
    let timestamps = given::any_timestamp;
    let rows = btree_map(given::place(), Just(()), 0..6).prop_flat_map(move |places| {
        let places: Vec<Place> = places.into_keys().collect();
        let rows: Vec<_> = places
            .iter()
            .map(|place| (Just(*place), given::row_at(*place, timestamps()).boxed()).boxed())
            .collect();
        rows.prop_map(|rows| rows.into_iter().collect::<BTreeMap<_, _>>())
    });
    let part = (
        given::deletion(timestamps()),
        option::of(given::static_row(timestamps())),
        rows,
        vec(given::range(timestamps()), 0..4),
    )
        .prop_map(|(deletion, static_row, rows, ranges)| Part { deletion, static_row, rows, ranges });
    btree_map(0..3u8, part, 0..3)
}

fn key(number: u8) -> PartitionKey {
    PartitionKey::new(vec![number].into())
}

/// What a source says step by step, asking now and then for bytes it lacks.
struct ListCursor {
    steps: VecDeque<Step<()>>,
    is_cold: bool,
    lacks: bool,
}

impl UnfilteredCursor for ListCursor {
    type Need = ();
    type Error = Infallible;

    fn step(&mut self) -> Result<Step<()>, Infallible> {
        self.lacks = self.is_cold && !self.lacks;
        if self.lacks {
            return Ok(Step::Need(()));
        }
        Ok(self.steps.pop_front().unwrap_or(Step::End))
    }
}

fn stands_before(row: &Row, marker: &Marker) -> bool {
    comparator().compare_to_bound(&row.clustering(), &marker.start_bound()).is_lt()
}

fn content(part: &Part, slices: &Slices, reversed: bool) -> Vec<Unfiltered> {
    let comparator = comparator();
    let mut ranges = RangeTombstones::new();
    part.ranges.iter().for_each(|range| ranges.insert(range.clone(), &comparator));
    let mut items = Vec::new();
    for slice in slices.as_slice() {
        let mut markers = VecDeque::from(ranges.markers(slice, &comparator));
        for place in all_places() {
            let Some(row) = part.rows.get(&place) else { continue };
            if !slice.contains(&comparator, &clustering(place)) {
                continue;
            }
            while markers.front().is_some_and(|marker| !stands_before(row, marker)) {
                items.extend(markers.pop_front().map(Unfiltered::Marker));
            }
            items.push(Unfiltered::Row(row.clone()));
        }
        items.extend(markers.into_iter().map(Unfiltered::Marker));
    }
    if reversed {
        items.reverse();
    }
    items
}

fn cursor(source: &Source, slices: &Slices, reversed: bool) -> ListCursor {
    let mut parts: Vec<_> = source.iter().map(|(number, part)| (key(*number), part)).collect();
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    let mut steps = VecDeque::new();
    for (key, part) in parts {
        steps.push_back(Step::Header(PartitionHeader {
            key,
            deletion: part.deletion,
            static_row: part.static_row.clone(),
        }));
        steps.extend(content(part, slices, reversed).into_iter().map(Step::Item));
    }
    ListCursor { steps, is_cold: true, lacks: false }
}

/// The merged stream, partition by partition; reversed content is turned round again.
fn merged(sources: &[Source], slices: &Slices, reversed: bool) -> Vec<(PartitionHeader, Vec<Unfiltered>)> {
    let cursors = sources.iter().map(|source| cursor(source, slices, reversed));
    let mut cursor = MergeCursor::new(given::table(), reversed, cursors);
    let mut partitions: Vec<(PartitionHeader, Vec<Unfiltered>)> = Vec::new();
    loop {
        let Ok(step) = cursor.step();
        match step {
            Step::Header(header) => partitions.push((header, Vec::new())),
            Step::Item(item) => partitions.last_mut().expect("items follow a header").1.push(item),
            Step::Need(MergeLack::Source(())) => {}
            Step::Need(MergeLack::Merged(versions)) => {
                cursor.merge_here(*versions);
            }
            Step::End => break,
        }
    }
    if reversed {
        partitions.iter_mut().for_each(|(_, items)| items.reverse());
    }
    partitions
}

fn covering(parts: &[&Part], place: Place) -> DeletionTime {
    let at = clustering(place);
    parts
        .iter()
        .flat_map(|part| &part.ranges)
        .filter(|range| range.slice.contains(&comparator(), &at))
        .fold(DeletionTime::LIVE, |winning, range| winning.max(range.deletion))
}

/// Rows and the range deletion at every place, as the stream tells them.
fn told(items: &[Unfiltered], place: Place) -> (Option<Row>, DeletionTime) {
    let at = clustering(place);
    let comparator = comparator();
    let mut in_force = DeletionTime::LIVE;
    let mut row = None;
    for item in items {
        match item {
            Unfiltered::Marker(marker) if comparator.compare_to_bound(&at, &marker.start_bound()).is_gt() => {
                in_force = marker.right;
            }
            Unfiltered::Marker(_) => {}
            Unfiltered::Row(found) if found.clustering() == at => row = Some(found.clone()),
            Unfiltered::Row(_) => {}
        }
    }
    (row, in_force)
}

fn check_order(items: &[Unfiltered]) {
    let comparator = comparator();
    let mut in_force = DeletionTime::LIVE;
    for two in items.windows(2) {
        let order = match (&two[0], &two[1]) {
            (Unfiltered::Row(a), Unfiltered::Row(b)) => comparator.compare(&a.clustering(), &b.clustering()),
            (Unfiltered::Row(a), Unfiltered::Marker(b)) => {
                comparator.compare_to_bound(&a.clustering(), &b.start_bound())
            }
            (Unfiltered::Marker(a), Unfiltered::Row(b)) => {
                comparator.compare_to_bound(&b.clustering(), &a.start_bound()).reverse()
            }
            (Unfiltered::Marker(a), Unfiltered::Marker(b)) => {
                comparator.compare_bounds(&a.start_bound(), &b.start_bound())
            }
        };
        assert!(order.is_lt(), "{two:?}");
    }
    for item in items {
        if let Unfiltered::Marker(marker) = item {
            assert_eq!(marker.left, in_force);
            in_force = marker.right;
        }
    }
    assert!(in_force.is_live(), "every range is closed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_merge_of_streams_equals_the_naive_model(
        sources in vec(source(), 1..5),
        slices in vec(given::slice(), 0..4),
        whole: bool,
        reversed: bool,
    ) {
        let comparator = comparator();
        let table = given::table();
        let slices = if whole { Slices::all() } else { Slices::new(slices, &comparator) };
        let partitions = merged(&sources, &slices, reversed);
        let numbers: BTreeSet<PartitionKey> =
            sources.iter().flat_map(|source| source.keys()).map(|number| key(*number)).collect();
        let keys: Vec<&PartitionKey> = partitions.iter().map(|(header, _)| &header.key).collect();
        prop_assert_eq!(keys, numbers.iter().collect::<Vec<_>>());
        for (header, items) in &partitions {
            let parts: Vec<&Part> =
                sources.iter().filter_map(|source| source.get(&header.key.bytes[0])).collect();
            let deletion = parts.iter().fold(DeletionTime::LIVE, |winning, part| winning.max(part.deletion));
            prop_assert_eq!(header.deletion, deletion);
            let statics: Vec<Row> = parts.iter().filter_map(|part| part.static_row.clone()).collect();
            prop_assert_eq!(&header.static_row, &merge_rows(&statics, deletion, &table));
            check_order(items);
            for place in all_places() {
                let at = clustering(place);
                let is_in = slices.as_slice().iter().any(|slice| slice.contains(&comparator, &at));
                let (row, in_force) = told(items, place);
                if !is_in {
                    prop_assert!(row.is_none() && in_force.is_live(), "{:?} is not in the slices", place);
                    continue;
                }
                let range = covering(&parts, place);
                let rows: Vec<Row> = parts.iter().filter_map(|part| part.rows.get(&place).cloned()).collect();
                prop_assert_eq!(row, merge_rows(&rows, deletion.max(range), &table), "{:?}", place);
                let expected = if range.supersedes(deletion) { range } else { DeletionTime::LIVE };
                prop_assert_eq!(in_force, expected, "{:?}", place);
            }
        }
    }
}

/// A range deletion of all from one number to another, by the first clustering column.
fn range_between(first: i32, last: i32, timestamp: i64) -> RangeTombstone {
    let bound = |kind, place: i32| {
        let mut prefix = ClusteringBuilder::new();
        prefix.push(Some(&place.to_be_bytes()));
        Bound { kind, prefix: prefix.finish() }
    };
    let start = bound(BoundKind::InclusiveStart, first);
    let slice = Slice { start, end: bound(BoundKind::ExclusiveEnd, last) };
    RangeTombstone { slice, deletion: DeletionTime { timestamp, local_deletion_time: 1 } }
}

#[test]
fn a_range_that_does_not_win_over_the_partition_is_not_told_beside_one_that_does() {
    let deletion = DeletionTime { timestamp: 5, local_deletion_time: 1 };
    let timestamps = [9, 4, 8];
    let ranges = (0..).zip(timestamps).map(|(first, timestamp)| range_between(first, first + 1, timestamp));
    let part = Part { deletion, static_row: None, rows: BTreeMap::new(), ranges: ranges.collect() };
    let source = Source::from([(1, part)]);
    for (reversed, source_count) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
        let sources = vec![source.clone(); source_count];
        let partitions = merged(&sources, &Slices::all(), reversed);
        let [(_, items)] = &partitions[..] else { panic!("{} partitions", partitions.len()) };
        check_order(items);
        let in_force = [0, 1, 2, 3].map(|up| told(items, (up, 0)).1.timestamp);
        assert_eq!(in_force, [9, i64::MIN, 8, i64::MIN], "{reversed} {source_count}");
    }
}

fn of_steps(steps: Vec<Step<()>>) -> ListCursor {
    ListCursor { steps: steps.into(), is_cold: true, lacks: false }
}

fn large_row(place: Place) -> Row {
    large_row_deleted(place, DeletionTime::LIVE)
}

fn large_row_deleted(place: Place, deletion: DeletionTime) -> Row {
    let mut row = RowBuilder::new(&clustering(place), Liveness::at(1), deletion);
    let cells = [CellRef::live(1, b"1").with_path(b"path")];
    row.value_of_row(given::TEXT, &vec![0; LARGE_ROW_BYTES]);
    row.complex(given::MAP, DeletionTime::LIVE, cells);
    row.finish()
}

#[test]
#[should_panic(expected = "all of a partition is merged before the next one")]
fn a_row_that_no_partition_begins_for_is_not_passed_over() {
    let row = Step::Item(Unfiltered::Row(large_row((0, 0))));
    let mut cursor = MergeCursor::new(given::table(), false, [of_steps(vec![row]), of_steps(vec![])]);
    while !matches!(cursor.step(), Ok(Step::End)) {}
}

#[test]
#[should_panic(expected = "versions of a row are merged to a row in their place")]
fn a_row_is_not_put_in_the_place_of_another() {
    let header = PartitionHeader { key: key(1), deletion: DeletionTime::LIVE, static_row: None };
    let rows = [1, 2].map(|timestamp| {
        let deletion = DeletionTime { timestamp, local_deletion_time: 1 };
        let row = RowBuilder::part_of(&large_row((0, 0)), Liveness::NONE, deletion).finish();
        of_steps(vec![Step::Header(header.clone()), Step::Item(Unfiltered::Row(row))])
    });
    let large = of_steps(vec![Step::Header(header), Step::Item(Unfiltered::Row(large_row((0, 0))))]);
    let mut cursor = MergeCursor::new(given::table(), false, rows.into_iter().chain([large]));
    while !matches!(cursor.step(), Ok(Step::Need(MergeLack::Merged(_)))) {}
    cursor.put_merged(Some(large_row((1, 1))));
}

#[test]
#[should_panic(expected = "a row is put back where one is lacking")]
fn a_row_that_nobody_lacked_is_not_put_among_the_others() {
    let mut cursor = MergeCursor::new(given::table(), false, [of_steps(vec![])]);
    cursor.put_merged(Some(large_row((1, 1))));
}

/// Is this row, the only one at its place, left to whoever drives the merge?
fn is_left(row: &Row, partition_deletion: DeletionTime, source_count: usize) -> bool {
    let next = RowBuilder::new(&clustering((9, 9)), Liveness::at(1), DeletionTime::LIVE).finish();
    let header = PartitionHeader { key: key(1), deletion: partition_deletion, static_row: None };
    let rows = [row.clone(), next].map(|row| Step::Item(Unfiltered::Row(row)));
    let source = of_steps([Step::Header(header)].into_iter().chain(rows).collect());
    let others = (1..source_count).map(|_| of_steps(vec![]));
    let sources = others.chain([source]).map(|source| ListCursor { is_cold: false, ..source });
    let mut cursor = MergeCursor::new(given::table(), false, sources);
    assert!(matches!(cursor.step(), Ok(Step::Header(_))));
    match cursor.step() {
        Ok(Step::Need(MergeLack::Merged(_))) => true,
        Ok(Step::Item(Unfiltered::Row(shown))) if shown.clustering() == row.clustering() => false,
        step => panic!("the row comes next: {step:?}"),
    }
}

#[test]
fn a_row_is_left_to_whoever_drives_the_merge_if_it_is_large_and_something_of_it_may_be_deleted() {
    let (live, old) = (DeletionTime::LIVE, DeletionTime { timestamp: 0, local_deletion_time: 1 });
    let small = RowBuilder::new(&clustering((0, 0)), Liveness::at(1), old).finish();
    for source_count in [1, 2] {
        let is_left = |row: &Row, deletion| is_left(row, deletion, source_count);
        assert!(!is_left(&large_row((0, 0)), live));
        assert!(is_left(&large_row((0, 0)), old));
        assert!(is_left(&large_row_deleted((0, 0), old), live));
        assert!(!is_left(&small, live) && !is_left(&small, old));
    }
}
