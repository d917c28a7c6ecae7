//! Compactions of one file, for the tombstones in it.

use super::options::Named;
use super::{FileFacts, Picture, fully_expired};

/// When a file is worth rewriting for its tombstones alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TombstoneOptions {
    threshold: f64,
    /// The file must be that old: an estimate may be wrong, and must not be followed again and again.
    interval_ms: u64,
    /// Overlaps are not looked at.
    is_unchecked: bool,
    is_off: bool,
}

impl TombstoneOptions {
    /// `is_off_unless_asked`: the strategy does it only when one of the options is given.
    pub(crate) fn of(named: Named<'_>, is_off_unless_asked: bool) -> Self {
        let names =
            ["unchecked_tombstone_compaction", "tombstone_compaction_interval", "tombstone_threshold"];
        let is_asked = names.iter().filter_map(|name| named.text(name)).any(|text| text != "false");
        TombstoneOptions {
            threshold: named.number("tombstone_threshold", 0.2),
            interval_ms: named.number("tombstone_compaction_interval", 86_400u64).saturating_mul(1_000),
            is_unchecked: named.is_true("unchecked_tombstone_compaction"),
            is_off: is_off_unless_asked && !is_asked,
        }
    }

    /// Is enough of the file tombstones that can be expected to go?
    pub(crate) fn is_worth_it(&self, file: &FileFacts, picture: Picture<'_>) -> bool {
        if self.is_off
            || picture.now_ms < file.created_ms.saturating_add(self.interval_ms)
            || file.droppable_ratio <= self.threshold
        {
            return false;
        }
        let overlaps: Vec<&FileFacts> =
            picture.all.iter().filter(|other| other.id != file.id && other.overlaps(file)).collect();
        self.is_unchecked
            || overlaps.is_empty()
            || !fully_expired(&[file], picture, false).is_empty()
            || share_alone(file, &overlaps) * file.droppable_ratio > self.threshold
    }

    /// Those of the files that are worth it.
    pub(crate) fn worth<'a>(&self, files: &[&'a FileFacts], picture: Picture<'_>) -> Vec<&'a FileFacts> {
        files.iter().copied().filter(|file| file.is_free() && self.is_worth_it(file, picture)).collect()
    }
}

/// The share of a file's tokens that no other has.
fn share_alone(file: &FileFacts, others: &[&FileFacts]) -> f64 {
    let width = |first: i64, last: i64| (i128::from(last) - i128::from(first) + 1).max(0) as f64;
    let mut spans: Vec<(i64, i64)> =
        others.iter().map(|other| (other.first.0.max(file.first.0), other.last.0.min(file.last.0))).collect();
    spans.sort_unstable();
    let mut covered = 0.0;
    let mut reached: Option<i64> = None;
    for (first, last) in spans {
        let first = reached.map_or(first, |reached| first.max(reached.saturating_add(1)));
        if first <= last {
            covered += width(first, last);
        }
        reached = Some(reached.map_or(last, |reached| reached.max(last)));
    }
    (1.0 - covered / width(file.first.0, file.last.0)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing::*;
    use std::collections::BTreeMap;

    fn options(pairs: &[(&str, &str)]) -> TombstoneOptions {
        let map: BTreeMap<String, String> =
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        TombstoneOptions::of(Named(&map), false)
    }

    #[test]
    fn a_file_is_rewritten_for_tombstones_that_can_go() {
        let rotten = FileFacts { droppable_ratio: 0.5, ..part(1, 0, MB, 0, 99) };
        let check = |options: &TombstoneOptions, others: &[FileFacts], expected: bool| {
            let all: Vec<FileFacts> = [std::slice::from_ref(&rotten), others].concat();
            assert_eq!(options.is_worth_it(&all[0], picture(&all)), expected, "{others:?}");
        };
        let plain = options(&[]);
        check(&plain, &[], true);
        check(&plain, &[part(2, 0, MB, 100, 200)], true);
        // Half of it is alone: 0.5 of 0.5 is above 0.2; a fifth of it is not.
        check(&plain, &[part(2, 0, MB, 50, 200)], true);
        check(&plain, &[part(2, 0, MB, 20, 60), part(3, 0, MB, 50, 99)], false);
        check(&options(&[("unchecked_tombstone_compaction", "true")]), &[part(2, 0, MB, 0, 99)], true);
        check(&options(&[("tombstone_threshold", "0.5")]), &[], false);
        check(&options(&[("tombstone_compaction_interval", "1800000000")]), &[], false);
    }
}
