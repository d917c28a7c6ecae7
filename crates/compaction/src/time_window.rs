//! Time-window compaction: files by the time of their newest write, and no merge across windows.
//!
//! ```text
//!   window    10:00      11:00      12:00 (newest)
//!   files     ▇ (one)    ▇ (one)    ▒ ▒▒ ▒ ▒     merged by size until the window is over, then to one
//! ```

use std::collections::BTreeMap;

use super::options::Named;
use super::size_tiered::SizeTiered;
use super::tombstones::TombstoneOptions;
use super::{Choice, FileFacts, Memory, Picture, Task};

/// The strategy with its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeWindow {
    window_seconds: i64,
    /// What the table's timestamps count.
    resolution: Resolution,
    /// How often files that are fully expired are looked for.
    pub(crate) expired_check_ms: u64,
    by_size: SizeTiered,
}

/// What a timestamp counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Resolution {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Resolution {
    fn millis(self, timestamp: i64) -> i64 {
        match self {
            Resolution::Seconds => timestamp.saturating_mul(1_000),
            Resolution::Millis => timestamp,
            Resolution::Micros => timestamp / 1_000,
            Resolution::Nanos => timestamp / 1_000_000,
        }
    }
}

impl TimeWindow {
    pub(crate) fn of(named: Named<'_>) -> Self {
        let unit = match named.text("compaction_window_unit") {
            Some("MINUTES") => 60,
            Some("HOURS") => 3_600,
            _ => 86_400,
        };
        TimeWindow {
            window_seconds: named.number("compaction_window_size", 1i64).max(1).saturating_mul(unit),
            resolution: match named.text("timestamp_resolution") {
                Some("SECONDS") => Resolution::Seconds,
                Some("MILLISECONDS") => Resolution::Millis,
                Some("NANOSECONDS") => Resolution::Nanos,
                _ => Resolution::Micros,
            },
            expired_check_ms: named
                .number("expired_sstable_check_frequency_seconds", 600u64)
                .saturating_mul(1_000),
            by_size: SizeTiered::of(named),
        }
    }

    /// Where a file's window begins, ms since 1970.
    fn window(&self, file: &FileFacts) -> i64 {
        let seconds = self.resolution.millis(file.max_timestamp) / 1_000;
        (seconds - seconds % self.window_seconds).saturating_mul(1_000)
    }

    pub(crate) fn choose(
        &self,
        free: &[&FileFacts],
        expired: &[&FileFacts],
        picture: Picture<'_>,
        tombstones: &TombstoneOptions,
        memory: &mut Memory,
    ) -> Choice {
        let is_expired = |file: &FileFacts| expired.iter().any(|other| other.id == file.id);
        let living: Vec<&FileFacts> = free.iter().copied().filter(|file| !is_expired(file)).collect();
        let mut windows: BTreeMap<i64, Vec<&FileFacts>> = BTreeMap::new();
        for file in &living {
            windows.entry(self.window(file)).or_default().push(file);
        }
        let newest = windows.keys().next_back().copied().unwrap_or(0);
        memory.window_max = memory.window_max.max(newest);
        let (files, pending) = self.newest_due(&windows, memory.window_max);
        let task = match files {
            Some(files) => Some(Task::of(&files)),
            None => {
                let worth = tombstones.worth(&living, picture);
                worth.into_iter().min_by_key(|file| file.data_bytes).map(Task::tombstones)
            }
        };
        let gone = || expired.iter().map(|file| file.id);
        let task = match task {
            Some(mut task) => {
                task.inputs.extend(gone());
                Some(task)
            }
            None if expired.is_empty() => None,
            None => Some(Task::merge(gone().collect())),
        };
        Choice { pending: pending.max(usize::from(task.is_some())), task }
    }

    /// The newest window that has something to merge.
    fn newest_due<'a>(
        &self,
        windows: &BTreeMap<i64, Vec<&'a FileFacts>>,
        newest: i64,
    ) -> (Option<Vec<&'a FileFacts>>, usize) {
        let SizeTiered { min_threshold, max_threshold, .. } = self.by_size;
        let mut chosen = None;
        let mut pending = 0;
        for (window, files) in windows.iter().rev() {
            let due = if files.len() >= min_threshold && *window >= newest {
                self.by_size.most_interesting(self.by_size.buckets(files))
            } else if files.len() >= 2 && *window < newest {
                let mut files = files.clone();
                files.sort_by_key(|file| (file.data_bytes, file.id));
                files.truncate(max_threshold);
                Some(files)
            } else {
                None
            };
            if due.is_some() {
                let remaining = files.len().saturating_sub(max_threshold);
                pending += 1 + if remaining > min_threshold { remaining.div_ceil(max_threshold) } else { 0 };
                chosen = chosen.or(due);
            }
        }
        (chosen, pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Repair;
    use crate::Settings;
    use crate::facts::testing::*;

    const MINUTE: i64 = 60_000_000;

    fn at(number: u128, minute: i64) -> FileFacts {
        let timestamp = minute * MINUTE + 5;
        FileFacts { min_timestamp: timestamp, max_timestamp: timestamp, ..file(number, MB) }
    }

    fn windows(options: &[(&str, &str)]) -> Settings {
        let unit = [("compaction_window_unit", "MINUTES"), ("compaction_window_size", "10")];
        settings("TimeWindowCompactionStrategy", &[&unit, options].concat())
    }

    fn check(files: &[FileFacts], expected: Option<&[u128]>) {
        assert_eq!(chosen(&windows(&[]), files).as_deref(), expected);
    }

    #[test]
    fn the_newest_window_is_merged_by_size_and_older_ones_to_one_file() {
        check(&[at(1, 20), at(2, 21), at(3, 29)], None);
        check(&[at(1, 20), at(2, 21), at(3, 29), at(4, 25)], Some(&[1, 2, 3, 4]));
        check(&[at(1, 20), at(2, 21), at(3, 30)], Some(&[1, 2]));
        // Of several older windows, the newest.
        check(&[at(1, 1), at(2, 2), at(3, 11), at(4, 12), at(5, 40)], Some(&[3, 4]));
        check(&[at(1, 1), at(2, 11), at(3, 21)], None);
    }

    #[test]
    fn a_window_is_over_once_a_newer_was_seen() {
        let settings = windows(&[]);
        let mut memory = Memory::default();
        let all = [at(1, 1), at(2, 2), at(3, 11)];
        let first = settings.choose(picture(&all), &mut memory).task.expect("two in an old window");
        assert_eq!(first.inputs.len(), 2);
        // The newer file is gone; the old window is old all the same.
        assert!(settings.choose(picture(&all[..2]), &mut memory).task.is_some());
    }

    #[test]
    fn expired_files_go_at_once_and_then_only_now_and_then() {
        let dead = |number| FileFacts { max_local_deletion_time: 5, ..at(number, 1) };
        let files = [dead(1), at(3, 30), at(4, 40)];
        let settings = windows(&[]);
        let mut memory = Memory::default();
        let task = settings.choose(picture(&files), &mut memory).task.expect("one is dead");
        assert_eq!(task.inputs, [files[0].id]);
        assert_eq!(settings.choose(picture(&files), &mut memory).task, None);
        let later = Picture { now_ms: picture(&files).now_ms + 600_001, ..picture(&files) };
        assert!(settings.choose(later, &mut memory).task.is_some());
    }

    #[test]
    fn expired_files_of_each_state_of_repair_go() {
        let dead = |number, repair| FileFacts { max_local_deletion_time: 5, repair, ..at(number, 1) };
        let files = [dead(1, Repair::Unrepaired), dead(2, Repair::Repaired)];
        let (settings, mut memory) = (windows(&[]), Memory::default());
        let first = settings.choose(picture(&files), &mut memory).task.expect("one is dead");
        let (gone, left): (Vec<_>, Vec<_>) =
            files.iter().cloned().partition(|file| first.inputs.contains(&file.id));
        assert_eq!((gone.len(), left.len()), (1, 1));
        let later = Picture { now_ms: picture(&left).now_ms + 600_001, ..picture(&left) };
        assert_eq!(settings.choose(later, &mut memory).task.expect("so is the other").inputs, [left[0].id]);
        // Where another state has files that live, too.
        let beside = [dead(2, Repair::Repaired), at(3, 30)];
        let task = settings.choose(picture(&beside), &mut Memory::default()).task;
        assert_eq!(task.expect("dead").inputs, [beside[0].id]);
    }

    #[test]
    fn tombstones_alone_are_no_reason_unless_asked() {
        let rotten = [FileFacts { droppable_ratio: 0.9, ..at(1, 1) }];
        assert_eq!(chosen(&windows(&[]), &rotten), None);
        assert_eq!(chosen(&windows(&[("tombstone_threshold", "0.2")]), &rotten), Some(vec![1]));
    }

    #[test]
    fn timestamps_are_read_in_the_resolution_of_the_table() {
        let seconds = |number, seconds| FileFacts { max_timestamp: seconds, ..file(number, MB) };
        let settings = windows(&[("timestamp_resolution", "SECONDS")]);
        assert_eq!(chosen(&settings, &[seconds(1, 10), seconds(2, 20), seconds(3, 601)]), Some(vec![1, 2]));
    }

    proptest::proptest! {
        #[test]
        fn a_merge_is_within_one_window(minutes in proptest::collection::vec(0i64..200, 0..50)) {
            let files: Vec<FileFacts> = (0..).zip(&minutes).map(|(number, minute)| at(number, *minute)).collect();
            if let Some(chosen) = chosen(&windows(&[]), &files) {
                let windows: std::collections::BTreeSet<i64> =
                    chosen.iter().map(|number| minutes[*number as usize] / 10).collect();
                proptest::prop_assert_eq!(windows.len(), 1);
            }
        }
    }
}
