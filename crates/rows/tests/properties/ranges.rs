//! Range tombstones and slices behave as the sets of places they stand for.

use proptest::collection::vec;
use proptest::prelude::*;
use rows::{DeletionTime, Marker, RangeTombstone, RangeTombstones, Slice, Slices};

use crate::given::{self, Place, all_places, clustering, comparator};

fn covers(slice: &Slice, place: Place) -> bool {
    slice.contains(&comparator(), &clustering(place))
}

fn naive_covering(ranges: &[RangeTombstone], place: Place) -> DeletionTime {
    ranges
        .iter()
        .filter(|range| covers(&range.slice, place))
        .fold(DeletionTime::LIVE, |winning, range| winning.max(range.deletion))
}

fn laid_over(ranges: &[RangeTombstone]) -> RangeTombstones {
    let mut laid = RangeTombstones::new();
    for range in ranges {
        laid.insert(range.clone(), &comparator());
    }
    laid
}

fn places_in(slices: &Slices) -> Vec<Place> {
    let is_in = |place: &Place| slices.as_slice().iter().any(|slice| covers(slice, *place));
    all_places().into_iter().filter(is_in).collect()
}

#[test]
fn places_are_listed_in_clustering_order() {
    let comparator = comparator();
    assert!(
        all_places()
            .windows(2)
            .all(|two| comparator.compare(&clustering(two[0]), &clustering(two[1])).is_lt())
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn tombstones_laid_over_each_other_cover_as_the_naive_model(
        ranges in vec(given::range(given::any_timestamp()), 0..8),
    ) {
        let laid = laid_over(&ranges);
        for place in all_places() {
            let covering = laid.covering(&clustering(place), &comparator());
            prop_assert_eq!(covering, naive_covering(&ranges, place), "{:?}", place);
        }
    }

    #[test]
    fn tombstones_stay_sorted_and_apart(ranges in vec(given::range(given::any_timestamp()), 0..8)) {
        let (laid, comparator) = (laid_over(&ranges), comparator());
        let list: Vec<&RangeTombstone> = laid.iter().collect();
        for range in &list {
            prop_assert!(!range.slice.is_empty(&comparator));
            prop_assert!(range.slice.start.kind.is_start() && !range.slice.end.kind.is_start());
        }
        for two in list.windows(2) {
            prop_assert!(comparator.compare_bounds(&two[0].slice.end, &two[1].slice.start).is_le());
        }
    }

    #[test]
    fn markers_within_a_slice_tell_the_deletion_at_every_place(
        ranges in vec(given::range(given::any_timestamp()), 0..8),
        slice in given::slice(),
    ) {
        let comparator = comparator();
        prop_assume!(!slice.is_empty(&comparator));
        let markers = laid_over(&ranges).markers(&slice, &comparator);
        let mut before = DeletionTime::LIVE;
        for marker in &markers {
            prop_assert_eq!(marker.left, before);
            prop_assert_ne!(marker.left, marker.right);
            before = marker.right;
        }
        prop_assert!(before.is_live(), "every range is closed");
        for two in markers.windows(2) {
            prop_assert!(comparator.compare_bounds(&two[0].start_bound(), &two[1].start_bound()).is_lt());
        }
        for place in all_places().into_iter().filter(|place| covers(&slice, *place)) {
            let at = clustering(place);
            let passed = markers.iter().rfind(|marker| comparator.compare_to_bound(&at, &marker.start_bound()).is_gt());
            let told = passed.map_or(DeletionTime::LIVE, |marker| marker.right);
            prop_assert_eq!(told, naive_covering(&ranges, place), "{:?}", place);
        }
    }

    #[test]
    fn markers_taken_a_few_at_a_time_tell_the_same(
        ranges in vec(given::range(given::any_timestamp()), 0..8),
        slice in given::slice(),
        reversed: bool,
        range_count in 1..4usize,
    ) {
        let comparator = comparator();
        prop_assume!(!slice.is_empty(&comparator));
        let laid = laid_over(&ranges);
        let mut expected = laid.markers(&slice, &comparator);
        if reversed {
            expected.reverse();
        }
        let entered = |marker: &Marker| (marker.start_bound(), marker.entered(reversed));
        let expected: Vec<_> = expected.iter().map(entered).collect();
        let (mut told, mut inside, mut left) = (Vec::new(), DeletionTime::LIVE, Some(slice));
        while let Some(slice) = left {
            let (markers, rest) = laid.some_markers(&slice, reversed, range_count, &comparator);
            prop_assert!(markers.len() <= 2 * range_count);
            for (place, deletion) in markers.iter().map(entered) {
                // The edge at which a stretch begins may have come with the one before.
                if std::mem::replace(&mut inside, deletion) != deletion {
                    told.push((place, deletion));
                }
            }
            left = rest;
        }
        prop_assert_eq!(told, expected);
    }

    #[test]
    fn slices_hold_what_any_of_them_holds(slices in vec(given::slice(), 0..6)) {
        let comparator = comparator();
        let joined = Slices::new(slices.clone(), &comparator);
        let expected: Vec<Place> =
            all_places().into_iter().filter(|place| slices.iter().any(|slice| covers(slice, *place))).collect();
        prop_assert_eq!(places_in(&joined), expected);
        for two in joined.as_slice().windows(2) {
            prop_assert!(comparator.compare_bounds(&two[0].end, &two[1].start).is_lt());
        }
    }

    #[test]
    fn what_comes_after_a_row_is_the_rest_in_reading_direction(
        slices in vec(given::slice(), 1..6),
        last in given::place(),
        reversed: bool,
    ) {
        let comparator = comparator();
        let slices = Slices::new(slices, &comparator);
        let is_after = |place: &Place| {
            let order = comparator.compare(&clustering(*place), &clustering(last));
            if reversed { order.is_lt() } else { order.is_gt() }
        };
        let expected: Vec<Place> = places_in(&slices).into_iter().filter(is_after).collect();
        let rest = slices.after(&clustering(last), reversed, &comparator);
        prop_assert_eq!(places_in(&rest), expected);
    }
}
