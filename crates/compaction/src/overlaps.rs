//! Where files overlap: sets of files that share a token, along the ring.

use super::FileFacts;

/// How files beside an overlap are drawn into it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Inclusion {
    None,
    Single,
    Transitive,
}

/// A set of files, as indexes into a list.
pub(crate) type Set = Vec<usize>;

/// The fewest sets such that files that share no token are in no set together, and all files that share
/// some one token are together in one. A file is in sets that follow each other.
///
/// ```text
///   A ├────┤         sets: A B D
///   B   ├─────┤            B C D
///   C       ├────┤
///   D  ├───────┤
/// ```
pub(crate) fn overlap_sets(files: &[&FileFacts]) -> Vec<Set> {
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|index| (files[*index].first, files[*index].last, files[*index].id));
    let mut sets = Vec::new();
    let mut active: Set = Vec::new();
    for index in order {
        let starts_after = |other: &usize| files[index].first > files[*other].last;
        if active.iter().any(starts_after) {
            sets.push(active.clone());
            active.retain(|other| !starts_after(other));
        }
        active.push(index);
    }
    if !active.is_empty() {
        sets.push(active);
    }
    sets
}

/// Runs of sets that each have a set of `threshold` files or more, with the neighbours that the method
/// draws in.
pub(crate) fn buckets(threshold: usize, method: Inclusion, sets: &[Set]) -> Vec<std::ops::Range<usize>> {
    let shares = |a: &[usize], b: &[usize]| a.iter().any(|index| b.contains(index));
    let mut buckets = Vec::new();
    let mut end_before = 0;
    let mut at = 0;
    while at < sets.len() {
        if sets[at].len() < threshold {
            at += 1;
            continue;
        }
        let (mut start, mut end) = (at, at + 1);
        if method != Inclusion::None {
            let mut target = sets[at].clone();
            let take = |set: &Set, target: &mut Set| {
                if method == Inclusion::Transitive {
                    target.extend(set);
                }
            };
            while start > end_before && shares(&sets[start - 1], &target) {
                start -= 1;
                take(&sets[start], &mut target);
            }
            while end < sets.len() && shares(&sets[end], &target) {
                take(&sets[end], &mut target);
                end += 1;
            }
        }
        assert!(end_before <= start && start < end, "a set is in one bucket");
        buckets.push(start..end);
        end_before = end;
        at = end;
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing::*;
    use proptest::prelude::*;

    fn sets(spans: &[(i64, i64)]) -> Vec<Set> {
        let files: Vec<FileFacts> =
            (0..).zip(spans).map(|(number, (first, last))| part(number, 0, 1, *first, *last)).collect();
        let mut sets = overlap_sets(&files.iter().collect::<Vec<_>>());
        sets.iter_mut().for_each(|set| set.sort_unstable());
        sets
    }

    fn one(range: std::ops::Range<usize>) -> Vec<std::ops::Range<usize>> {
        std::iter::once(range).collect()
    }

    #[test]
    fn the_drawing_holds() {
        assert_eq!(sets(&[(0, 3), (2, 7), (6, 9), (1, 8)]), [vec![0, 1, 3], vec![1, 2, 3]]);
        assert_eq!(sets(&[(0, 1), (2, 3)]), [vec![0], vec![1]]);
        assert!(sets(&[]).is_empty());
    }

    #[test]
    fn neighbours_are_drawn_in_as_the_method_says() {
        let sets = [vec![0, 1], vec![1, 2, 3], vec![3, 4], vec![4, 5], vec![6]];
        assert_eq!(buckets(3, Inclusion::None, &sets), one(1..2));
        assert_eq!(buckets(3, Inclusion::Single, &sets), one(0..3));
        assert_eq!(buckets(3, Inclusion::Transitive, &sets), one(0..4));
        assert_eq!(buckets(2, Inclusion::None, &sets), [0..1, 1..2, 2..3, 3..4]);
    }

    proptest! {
        #[test]
        fn sets_hold_what_shares_a_token_and_nothing_else(
            spans in proptest::collection::vec((0i64..60, 0i64..20), 0..20)
        ) {
            let spans: Vec<(i64, i64)> = spans.into_iter().map(|(first, width)| (first, first + width)).collect();
            let sets = sets(&spans);
            for token in 0..80 {
                let here = (0..spans.len()).filter(|at| (spans[*at].0..=spans[*at].1).contains(&token));
                let here: Vec<usize> = here.collect();
                prop_assert!(here.is_empty() || sets.iter().any(|set| here.iter().all(|at| set.contains(at))));
            }
            for set in &sets {
                for a in set {
                    prop_assert!(set.iter().all(|b| spans[*a].0 <= spans[*b].1 && spans[*b].0 <= spans[*a].1));
                }
            }
        }
    }
}
