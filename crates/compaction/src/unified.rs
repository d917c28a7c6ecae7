//! Unified compaction: levels by density, merges where files overlap, results cut along the ring.
//!
//! The *density* of a file is its size by the share of the ring it covers. Levels are ranges of
//! density, each `fanout` times as dense as the one below. In a level, files are merged where more of
//! them than the level's threshold share a token; what comes out is cut at fixed bounds of the ring, the
//! finer, the denser it is, so that later compactions are independent of each other.
//!
//! ```text
//!   level 1   ▇▇▇▇▇▇▇▇┆▇▇▇▇▇▇▇▇┆▇▇▇▇▇▇▇▇┆▇▇▇▇▇▇▇▇   cut in four
//!   level 0   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
//!             ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒   four overlap: T4 merges them
//!             ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
//! ```

use super::facts::total_bytes;
use super::options::Named;
use super::overlaps::{Set, buckets, overlap_sets};
use super::unified_options::UnifiedOptions;
use super::{Choice, FileFacts, Memory, Split, Task};

/// A file that covers less of the ring than this says nothing about density.
const COVERAGE_MIN: f64 = 3.552_713_678_800_501e-15;
/// Enough for any disk.
const LEVELS_MAX: usize = 64;

/// The strategy with its options.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unified {
    options: UnifiedOptions,
    /// How often files that are fully expired are looked for.
    pub(crate) expired_check_ms: u64,
}

/// Files of about one density.
struct Level<'a> {
    index: usize,
    files: Vec<&'a FileFacts>,
}

impl Unified {
    pub(crate) fn of(named: Named<'_>) -> Self {
        let options = UnifiedOptions::of(named);
        Unified { expired_check_ms: options.expired_check_ms, options }
    }

    pub(crate) fn choose(&self, free: &[&FileFacts], expired: &[&FileFacts], memory: &mut Memory) -> Choice {
        let is_expired = |file: &FileFacts| expired.iter().any(|other| other.id == file.id);
        let living: Vec<&FileFacts> = free.iter().copied().filter(|file| !is_expired(file)).collect();
        let mut pending = 0;
        let mut best: Option<(usize, Vec<&FileFacts>)> = None;
        for level in self.levels(living, memory.flush_bytes) {
            let Some((overlap, files, tasks)) = self.pick(&level, memory) else { continue };
            pending += tasks;
            if best.as_ref().is_none_or(|(most, _)| overlap > *most) {
                best = Some((overlap, files));
            }
        }
        let task = match best {
            Some((_, files)) => {
                let mut task = self.task(&files);
                task.inputs.extend(expired.iter().map(|file| file.id));
                Some(task)
            }
            None if expired.is_empty() => None,
            None => Some(Task::of(expired)),
        };
        Choice { pending: pending.max(usize::from(task.is_some())), task }
    }

    /// A merge of these files, cut as their density together asks for.
    pub(crate) fn task(&self, files: &[&FileFacts]) -> Task {
        Task { split: Split::Parts(self.options.parts(combined_density(files))), ..Task::of(files) }
    }

    /// One merge for each run of files that overlap.
    pub(crate) fn major(&self, group: &[&FileFacts]) -> Vec<Task> {
        let mut runs: Vec<Set> = Vec::new();
        for set in overlap_sets(group) {
            match runs.last_mut() {
                Some(run) if set.iter().any(|index| run.contains(index)) => {
                    let new: Set = set.into_iter().filter(|index| !run.contains(index)).collect();
                    run.extend(new);
                }
                _ => runs.push(set),
            }
        }
        let files = |run: Set| run.into_iter().map(|index| group[index]).collect::<Vec<_>>();
        runs.into_iter().map(|run| self.task(&files(run))).collect()
    }

    fn levels<'a>(&self, mut files: Vec<&'a FileFacts>, flush_bytes: f64) -> Vec<Level<'a>> {
        files.sort_by(|a, b| density(a).total_cmp(&density(b)).then(a.id.cmp(&b.id)));
        let mut max = self.options.first_level_max(flush_bytes);
        let mut levels = vec![Level { index: 0, files: Vec::new() }];
        for file in files {
            while density(file) >= max && levels.len() < LEVELS_MAX {
                max = self.options.next_level_max(levels.len(), max);
                levels.push(Level { index: levels.len(), files: Vec::new() });
            }
            if let Some(level) = levels.last_mut() {
                level.files.push(file);
            }
        }
        levels
    }

    /// What to merge of a level: how many files overlap there, the files, and how many tasks wait.
    fn pick<'a>(&self, level: &Level<'a>, memory: &mut Memory) -> Option<(usize, Vec<&'a FileFacts>, usize)> {
        let sets = overlap_sets(&level.files);
        let most = sets.iter().map(Vec::len).max()?;
        let threshold = self.options.threshold(level.index);
        if most < threshold {
            return None;
        }
        let buckets = buckets(threshold, self.options.inclusion, &sets);
        let overlap = |bucket: &std::ops::Range<usize>| sets[bucket.clone()].iter().map(Vec::len).max();
        let pending = buckets.iter().filter_map(overlap).map(|overlap| overlap / threshold).sum();
        let fullest: Vec<_> = buckets.iter().filter(|bucket| overlap(bucket) == Some(most)).collect();
        memory.turn = memory.turn.wrapping_add(1);
        let bucket = fullest.get(memory.turn % fullest.len().max(1))?;
        let count = self.pick_size(level.index, most);
        let (taken, files) = match count {
            None => (most, all_of(&level.files, &sets[(*bucket).clone()])),
            Some(count) => (count, oldest(&level.files, &sets[(*bucket).clone()], count)),
        };
        Some((taken, files, pending))
    }

    /// How many files that overlap are merged, of so many; `None` for all of them.
    fn pick_size(&self, level: usize, overlap: usize) -> Option<usize> {
        let fanout = self.options.fanout(level);
        let files_max = self.options.files_max(fanout);
        if overlap <= fanout {
            return None;
        }
        if overlap <= fanout.saturating_mul(self.options.fanout(level + 1)) || files_max == fanout {
            return (overlap > files_max).then_some(files_max);
        }
        // Late: as many as make up a whole level, as if each step had been done.
        let limit = files_max.min(overlap);
        let (mut count, mut next, mut at) = (fanout, fanout, level);
        while next <= limit {
            count = next;
            at += 1;
            next = next.saturating_mul(self.options.fanout(at));
        }
        Some(if self.options.scaling(level) < 0 { count * (limit / count) } else { count })
    }
}

/// All files of some sets, by age.
fn all_of<'a>(files: &[&'a FileFacts], sets: &[Set]) -> Vec<&'a FileFacts> {
    let mut indexes: Vec<usize> = sets.iter().flatten().copied().collect();
    indexes.sort_by_key(|index| (files[*index].max_timestamp, files[*index].id));
    indexes.dedup();
    indexes.into_iter().map(|index| files[index]).collect()
}

/// The oldest files, until one more would make some set have more than `limit` of them.
fn oldest<'a>(files: &[&'a FileFacts], sets: &[Set], limit: usize) -> Vec<&'a FileFacts> {
    let mut counts = vec![0usize; sets.len()];
    let mut taken = Vec::new();
    for file in all_of(files, sets) {
        for (count, set) in counts.iter_mut().zip(sets) {
            *count += usize::from(set.iter().any(|index| files[*index].id == file.id));
        }
        if counts.iter().any(|count| *count > limit) {
            break;
        }
        taken.push(file);
    }
    taken
}

/// The share of the ring from one token to another.
fn span(first: types::Token, last: types::Token) -> f64 {
    (i128::from(last.0) - i128::from(first.0) + 1) as f64 / 2f64.powi(64)
}

/// Bytes by the share of the ring a file covers. Few partitions seldom reach the ends of what their file
/// was meant to cover; the span is taken as much larger as it is on average.
fn density(file: &FileFacts) -> f64 {
    let count = file.partition_count as f64;
    let span = span(file.first, file.last) * (count + 1.0) / (count - 1.0).max(f64::MIN_POSITIVE);
    let covered = if span >= COVERAGE_MIN { span.min(1.0) } else { 1.0 };
    file.data_bytes as f64 / covered
}

fn combined_density(files: &[&FileFacts]) -> f64 {
    let bytes = total_bytes(files) as f64;
    let ends = files.iter().map(|file| file.first).min().zip(files.iter().map(|file| file.last).max());
    let Some((first, last)) = ends else { return 0.0 };
    match span(first, last) {
        span if span >= COVERAGE_MIN => bytes / span,
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::facts::testing::*;
    use proptest::prelude::*;

    fn unified(options: &[(&str, &str)]) -> Settings {
        settings("UnifiedCompactionStrategy", options)
    }

    fn of_sizes(sizes_mb: &[u64]) -> Vec<FileFacts> {
        (0..).zip(sizes_mb).map(|(number, mb)| file(number, mb * MB)).collect()
    }

    fn check(options: &[(&str, &str)], sizes_mb: &[u64], expected: Option<&[u128]>) {
        let options = [options, &[("flush_size_override", "10MiB")]].concat();
        assert_eq!(chosen(&unified(&options), &of_sizes(sizes_mb)).as_deref(), expected, "{sizes_mb:?}");
    }

    #[test]
    fn tiers_merge_when_as_many_as_the_fanout_overlap() {
        // T4 and flushes of 10 MB: level 0 ends at 10 · (1 - 0.9/4) · 4 = 31 MB, level 1 at 124 MB.
        check(&[], &[10, 10, 10], None);
        check(&[], &[10, 10, 10, 10], Some(&[0, 1, 2, 3]));
        check(&[], &[10, 10, 10, 40], None);
        check(&[], &[40, 40, 40, 40, 10, 10], Some(&[0, 1, 2, 3]));
        // The more overlap, the sooner; of the same, the lower level.
        check(&[], &[40, 40, 40, 40, 10, 10, 10, 10], Some(&[4, 5, 6, 7]));
        check(&[], &[40, 40, 40, 40, 40, 10, 10, 10, 10], Some(&[0, 1, 2, 3, 4]));
    }

    #[test]
    fn levels_merge_two_at_once() {
        check(&[("scaling_parameters", "L4")], &[10, 10], Some(&[0, 1]));
        check(&[("scaling_parameters", "N")], &[10, 10], Some(&[0, 1]));
        check(&[("scaling_parameters", "L4")], &[10, 40], None);
    }

    #[test]
    fn very_late_compactions_take_what_makes_a_whole_level() {
        let count = |options: &[(&str, &str)], files: usize| {
            let options = [options, &[("flush_size_override", "10MiB")]].concat();
            chosen(&unified(&options), &of_sizes(&vec![10; files])).map_or(0, |chosen| chosen.len())
        };
        // The cases of Cassandra's own description.
        assert_eq!(count(&[], 55), 16);
        assert_eq!(count(&[("scaling_parameters", "L4")], 55), 48);
        assert_eq!(count(&[], 16), 16);
        assert_eq!(count(&[("max_sstables_to_compact", "8")], 12), 8);
        assert_eq!(count(&[("max_sstables_to_compact", "8")], 55), 4);
    }

    #[test]
    fn parts_of_the_ring_are_compacted_apart() {
        let half = i64::MAX / 2;
        let files: Vec<FileFacts> = (0..4)
            .map(|number| part(number, 0, 5 * MB, 0, half))
            .chain((4..8).map(|number| part(number, 0, 5 * MB, half + 1, i64::MAX)))
            .collect();
        let chosen = chosen(&unified(&[]), &files).expect("four overlap in each");
        assert!(chosen == [0, 1, 2, 3] || chosen == [4, 5, 6, 7], "{chosen:?}");
        assert_eq!(unified(&[]).major(&files, false).len(), 2);
    }

    #[test]
    fn results_are_cut_by_density() {
        let files = of_sizes(&[800, 800, 800, 800]);
        let task = unified(&[]).choose(picture(&files), &mut Memory::default()).task.expect("four");
        assert_eq!(task.split, Split::Parts(4));
        let small = of_sizes(&[10, 10, 10, 10]);
        let task = unified(&[]).choose(picture(&small), &mut Memory::default()).task.expect("four");
        assert_eq!(task.split, Split::Parts(1));
    }

    #[test]
    fn one_partition_is_as_dense_as_it_is_large() {
        let lone = FileFacts { partition_count: 1, ..part(1, 0, MB, 7, 7) };
        assert_eq!(density(&lone), MB as f64);
        assert_eq!(density(&file(1, MB)), MB as f64);
        let quarter = part(1, 0, MB, 0, i64::MAX / 2);
        assert!((density(&quarter) / (4.0 * MB as f64) - 1.0).abs() < 0.01);
    }

    proptest! {
        #[test]
        fn it_comes_to_an_end(sizes in proptest::collection::vec(1u64..3_000, 0..80), scaling in "[TL][2-9]|N") {
            let settings = unified(&[("scaling_parameters", &scaling), ("min_sstable_size", "0B")]);
            let mut files = of_sizes(&sizes);
            let mut memory = Memory::default();
            for round in 0.. {
                prop_assert!(round < 200, "it does not end");
                let Some(task) = settings.choose(picture(&files), &mut memory).task else { break };
                prop_assert!(task.inputs.len() >= 2);
                let bytes: u64 =
                    files.iter().filter(|file| task.inputs.contains(&file.id)).map(|file| file.data_bytes).sum();
                files.retain(|file| !task.inputs.contains(&file.id));
                files.push(file(1_000 + round, bytes));
            }
        }
    }
}
