//! Leveled compaction: levels, each ten times as large as the one below, of files that share no token.
//!
//! ```text
//!   L0  ▒▒▒▒▒▒▒▒▒▒  ▒▒▒▒▒▒▒▒▒   flushed, may overlap
//!   L1  ▇▇ ▇▇▇ ▇▇ ▇▇ ▇▇▇▇       at most 10 files' worth; with those of L0 that overlap, they become new L1
//!   L2  ▇ ▇▇ ▇▇ ▇ ▇▇ ▇▇▇ ▇▇     at most 100; a file of L1 goes up with those of L2 that it overlaps
//! ```
//!
//! The highest level that is too full goes first. When L0 has more than 32 files, it is compacted by
//! size first, for the sake of reads.

use super::facts::total_bytes;
use super::generations::{Generations, overlapping};
use super::options::Named;
use super::size_tiered::SizeTiered;
use super::tombstones::TombstoneOptions;
use super::{Choice, FileFacts, LEVEL_COUNT, Memory, Picture, Split, Task};

/// Files in L0 above which they are compacted by size.
const L0_FILES_MAX: usize = 32;
/// Compactions after which a level that had no part in any is drawn in.
const STARVED_ROUNDS: u32 = 25;

/// The strategy with its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Leveled {
    file_bytes: u64,
    fanout: u32,
    single_uplevel: bool,
    by_size: SizeTiered,
}

impl Leveled {
    pub(crate) fn of(named: Named<'_>) -> Self {
        Leveled {
            // Statements give whole numbers only; the simulator has smaller files.
            file_bytes: (named.number("sstable_size_in_mb", 160.0f64) * 1_048_576.0).max(1.0) as u64,
            fanout: named.number("fanout_size", 10u32).max(1),
            single_uplevel: named.is_true("single_sstable_uplevel"),
            by_size: SizeTiered::of(named),
        }
    }

    /// Bytes a level should have at most.
    fn level_bytes(&self, level: usize) -> u64 {
        level_bytes(level, self.file_bytes, self.fanout)
    }

    pub(crate) fn choose(
        &self,
        group: &[&FileFacts],
        picture: Picture<'_>,
        tombstones: &TombstoneOptions,
        memory: &mut Memory,
    ) -> Choice {
        let levels = Generations::of(group);
        let task = self.candidates(&levels, memory).or_else(|| self.rotten(&levels, picture, tombstones));
        if let Some(task) = &task {
            remember(&levels, group, task, memory);
        }
        Choice { task, pending: self.estimate(&levels) }
    }

    fn candidates(&self, levels: &Generations<'_>, memory: &mut Memory) -> Option<Task> {
        let by_size = self.l0_by_size(levels);
        for level in (1..LEVEL_COUNT).rev() {
            let free: Vec<&FileFacts> =
                levels.level(level).iter().copied().filter(|file| file.is_free()).collect();
            let score = total_bytes(&free) as f64 / self.level_bytes(level) as f64;
            if score <= 1.001 || level == LEVEL_COUNT - 1 {
                continue;
            }
            if by_size.is_some() {
                return by_size;
            }
            let behind = memory.last_compacted[level].or_else(|| levels.last_of_newest(level + 1));
            if let Some(mut files) = up_from(levels, level, behind) {
                let next = self.next_level(levels, &files);
                self.add_starved(levels, next, &mut files, memory);
                return Some(self.task(&files, next));
            }
        }
        match self.l0_candidates(levels) {
            Some(files) => Some(self.task(&files, self.next_level(levels, &files))),
            None => by_size,
        }
    }

    fn task(&self, files: &[&FileFacts], level: usize) -> Task {
        Task {
            level: u32::try_from(level).unwrap_or(0),
            split: Split::Bytes(self.file_bytes),
            is_move: self.single_uplevel && files.len() == 1,
            ..Task::of(files)
        }
    }

    fn l0_by_size(&self, levels: &Generations<'_>) -> Option<Task> {
        let l0 = levels.level(0);
        if l0.len() <= L0_FILES_MAX {
            return None;
        }
        let free: Vec<&FileFacts> = l0.iter().copied().filter(|file| file.is_free()).collect();
        self.by_size.most_interesting(self.by_size.buckets(&free)).map(|bucket| Task::of(&bucket))
    }

    /// Files of L0, the oldest and what they overlap, with the files of L1 that overlap them when there
    /// is a file's worth.
    fn l0_candidates<'a>(&self, levels: &Generations<'a>) -> Option<Vec<&'a FileFacts>> {
        let l0 = levels.level(0);
        let busy: Vec<&FileFacts> = l0.iter().copied().filter(|file| file.is_busy).collect();
        let mut remaining: Vec<&FileFacts> = l0.to_vec();
        remaining.sort_by_key(|file| (file.max_timestamp, file.id));
        let mut candidates: Vec<&FileFacts> = Vec::new();
        while let Some(oldest) = remaining.first().copied() {
            let (together, rest): (Vec<&FileFacts>, Vec<&FileFacts>) =
                remaining.iter().partition(|file| file.overlaps(oldest));
            if together.iter().any(|file| file.is_busy) {
                remaining.remove(0);
                continue;
            }
            remaining = rest;
            candidates.extend(together.into_iter().filter(|file| overlapping(&busy, &[file]).is_empty()));
            if candidates.len() > self.by_size.max_threshold {
                candidates.sort_by_key(|file| (file.max_timestamp, file.id));
                candidates.truncate(self.by_size.max_threshold);
                break;
            }
        }
        if total_bytes(&candidates) > self.file_bytes {
            let l1 = overlapping(&candidates, levels.level(1));
            if l1.iter().any(|file| file.is_busy) || !overlapping(&candidates, &busy).is_empty() {
                return None;
            }
            candidates.extend(l1);
        }
        (candidates.len() >= 2).then_some(candidates)
    }

    fn next_level(&self, levels: &Generations<'_>, files: &[&FileFacts]) -> usize {
        let places = || files.iter().map(|file| levels.place(file));
        let (min, max) = (places().min().unwrap_or(0), places().max().unwrap_or(0));
        match (min, max) {
            (0, 0) if total_bytes(files) < self.file_bytes => 0,
            _ if min == max => (max + 1).min(LEVEL_COUNT - 1),
            _ => max,
        }
    }

    /// A level that has had no part in any compaction for long gives a file that lies within the span of
    /// what is compacted.
    fn add_starved<'a>(
        &self,
        levels: &Generations<'a>,
        target: usize,
        files: &mut Vec<&'a FileFacts>,
        memory: &mut Memory,
    ) {
        memory.rounds.iter_mut().skip(1).for_each(|rounds| *rounds = rounds.saturating_add(1));
        memory.rounds[target] = 0;
        let Some(highest) = (1..LEVEL_COUNT).rev().find(|level| !levels.level(*level).is_empty()) else {
            return;
        };
        if memory.rounds[highest] <= STARVED_ROUNDS {
            return;
        }
        let (first, last) =
            (files.iter().map(|file| file.first).min(), files.iter().map(|file| file.last).max());
        let is_inside =
            |file: &&&FileFacts| Some(file.first) >= first && Some(file.last) <= last && file.is_free();
        if let Some(file) = levels.level(highest).iter().find(is_inside)
            && first != last
            && !files.iter().any(|other| other.id == file.id)
        {
            files.push(file);
        }
    }

    /// One file of the highest level that is full of tombstones.
    fn rotten(
        &self,
        levels: &Generations<'_>,
        picture: Picture<'_>,
        tombstones: &TombstoneOptions,
    ) -> Option<Task> {
        (0..LEVEL_COUNT).rev().find_map(|level| {
            let mut worth = tombstones.worth(levels.level(level), picture);
            worth.sort_by(|a, b| b.droppable_ratio.total_cmp(&a.droppable_ratio));
            let file = worth.first()?;
            let split = Split::Bytes(self.file_bytes);
            Some(Task { level: u32::try_from(level).unwrap_or(0), split, ..Task::tombstones(file) })
        })
    }

    fn estimate(&self, levels: &Generations<'_>) -> usize {
        let over = |level: usize| {
            let allowed = (self.level_bytes(level) as f64 * 1.001) as u64;
            total_bytes(levels.level(level)).saturating_sub(allowed).div_ceil(self.file_bytes)
        };
        let tasks: u64 = (0..LEVEL_COUNT).map(over).sum();
        let l0 = levels.level(0).len();
        let by_size = if l0 > self.by_size.max_threshold { l0 / self.by_size.max_threshold } else { 0 };
        usize::try_from(tasks).unwrap_or(usize::MAX).saturating_add(by_size)
    }

    /// Everything, laid out in levels anew.
    pub(crate) fn major(&self, group: &[&FileFacts]) -> Task {
        let split = Split::Levels { bytes: self.file_bytes, fanout: self.fanout };
        Task { level: 1, split, ..Task::of(group) }
    }

    /// One file stays in its level; several become one in L0.
    pub(crate) fn user_defined(&self, files: &[&FileFacts]) -> Task {
        match files {
            [file] if file.level > 0 => {
                Task { level: file.level, split: Split::Bytes(self.file_bytes), ..Task::of(files) }
            }
            _ => Task::of(files),
        }
    }
}

/// Bytes a level should have at most.
pub(crate) fn level_bytes(level: usize, file_bytes: u64, fanout: u32) -> u64 {
    match level {
        0 => file_bytes.saturating_mul(4),
        _ => (f64::from(fanout).powi(i32::try_from(level).unwrap_or(i32::MAX)) * file_bytes as f64) as u64,
    }
}

/// The next file of a level whose turn it is, with those of the next level that it overlaps.
fn up_from<'a>(
    levels: &Generations<'a>,
    level: usize,
    behind: Option<types::Token>,
) -> Option<Vec<&'a FileFacts>> {
    levels.from(level, behind).find_map(|file| {
        let mut files = vec![file];
        files.extend(overlapping(&[file], levels.level(level + 1)));
        files.iter().all(|file| file.is_free()).then_some(files)
    })
}

fn remember(levels: &Generations<'_>, group: &[&FileFacts], task: &Task, memory: &mut Memory) {
    let inputs = group.iter().filter(|file| task.inputs.contains(&file.id));
    let lowest = inputs.clone().map(|file| levels.place(file)).min().unwrap_or(0);
    let last = inputs.filter(|file| levels.place(file) == lowest).map(|file| file.last).max();
    memory.last_compacted[lowest] = last;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::facts::testing::*;
    use proptest::prelude::*;

    fn leveled(options: &[(&str, &str)]) -> Settings {
        let options = [&[("sstable_size_in_mb", "10")], options].concat();
        settings("LeveledCompactionStrategy", &options)
    }

    fn task(settings: &Settings, files: &[FileFacts]) -> Option<Task> {
        settings.choose(picture(files), &mut Memory::default()).task
    }

    #[test]
    fn small_files_stay_in_l0_and_become_one() {
        let task = task(&leveled(&[]), &[file(1, MB), file(2, MB)]).expect("two files");
        assert_eq!((task.level, task.inputs.len()), (0, 2));
        assert_eq!(chosen(&leveled(&[]), &[file(1, 100 * MB)]), None);
    }

    #[test]
    fn a_files_worth_goes_to_l1_with_what_it_overlaps_there() {
        let files = [
            part(1, 0, 6 * MB, 0, 50),
            part(2, 0, 6 * MB, 10, 60),
            part(3, 1, 10 * MB, 40, 70),
            part(4, 1, 10 * MB, 71, 90),
        ];
        let task = task(&leveled(&[]), &files).expect("12 MB in L0");
        assert_eq!(chosen(&leveled(&[]), &files), Some(vec![1, 2, 3]));
        assert_eq!((task.level, task.split), (1, Split::Bytes(10 * MB)));
    }

    #[test]
    fn the_highest_level_that_is_too_full_goes_first_and_takes_turns() {
        // 11 files of 10 MB in L1, where ten are allowed; one of L2 overlaps the first two.
        let mut files: Vec<FileFacts> =
            (0..11).map(|at| part(at as u128, 1, 10 * MB, at * 10, at * 10 + 9)).collect();
        files.push(part(50, 2, 10 * MB, 5, 15));
        files.push(file(60, MB));
        files.push(file(61, MB));
        let settings = leveled(&[]);
        let mut memory = Memory::default();
        let mut turn = || settings.choose(picture(&files), &mut memory).task.expect("L1 is full");
        // The newest file of L2 ends at 15: the next of L1 begins behind it.
        let numbers = |task: Task| task.inputs.iter().map(|id| id.as_u128()).collect::<Vec<_>>();
        assert_eq!(numbers(turn()), [2]);
        assert_eq!(numbers(turn()), [3]);
        assert_eq!(turn().level, 2);
    }

    #[test]
    fn one_file_moves_up_without_being_read_where_that_is_wanted() {
        let files: Vec<FileFacts> =
            (0..11).map(|at| part(at as u128, 1, 10 * MB, at * 10, at * 10 + 9)).collect();
        assert!(!task(&leveled(&[]), &files).expect("full").is_move);
        assert!(task(&leveled(&[("single_sstable_uplevel", "true")]), &files).expect("full").is_move);
    }

    #[test]
    fn l0_far_behind_is_compacted_by_size_first() {
        let mut files: Vec<FileFacts> = (0..40).map(|number| file(number, 20 * MB)).collect();
        files.extend((0..20).map(|at| part(100 + at as u128, 1, 10 * MB, at * 10, at * 10 + 9)));
        let task = task(&leveled(&[]), &files).expect("40 files in L0");
        assert_eq!((task.level, task.split, task.inputs.len()), (0, Split::Whole, 32));
    }

    #[test]
    fn a_busy_file_is_left_alone_with_what_it_overlaps() {
        let mut files =
            vec![part(1, 0, 20 * MB, 0, 50), part(2, 0, 20 * MB, 0, 50), part(3, 1, 10 * MB, 0, 5)];
        files[2].is_busy = true;
        assert_eq!(chosen(&leveled(&[]), &files), None);
        files[2].is_busy = false;
        files[0].is_busy = true;
        assert_eq!(chosen(&leveled(&[]), &files), None);
    }

    proptest! {
        /// Whatever is done, levels above the 0th never overlap and it comes to an end.
        #[test]
        fn choices_keep_levels_apart_and_end(
            spans in proptest::collection::vec((0i64..1_000, 1i64..400, 1u64..40), 1..30)
        ) {
            let settings = leveled(&[]);
            let mut files: Vec<FileFacts> = (1..).zip(&spans)
                .map(|(number, (first, width, mb))| part(number, 0, mb * MB, *first, first + width)).collect();
            let mut memory = Memory::default();
            let mut next = 1_000u128;
            for round in 0.. {
                prop_assert!(round < 500, "it does not end");
                let Some(task) = settings.choose(picture(&files), &mut memory).task else { break };
                let (inputs, kept): (Vec<_>, Vec<_>) =
                    files.into_iter().partition(|file| task.inputs.contains(&file.id));
                prop_assert_eq!(inputs.len(), task.inputs.len());
                files = kept;
                let refs: Vec<&FileFacts> = inputs.iter().collect();
                let (first, last) = (inputs.iter().map(|f| f.first.0).min(), inputs.iter().map(|f| f.last.0).max());
                let (first, last) = (first.expect("inputs"), last.expect("inputs"));
                let count = match task.split {
                    Split::Bytes(bytes) => total_bytes(&refs).div_ceil(bytes).min((last - first + 1) as u64),
                    _ => 1,
                }.max(1) as i64;
                let width = (last - first + 1) / count;
                for at in 0..count {
                    let end = if at == count - 1 { last } else { first + (at + 1) * width - 1 };
                    let bytes = total_bytes(&refs) / count as u64;
                    files.push(part(next, task.level, bytes, first + at * width, end));
                    next += 1;
                }
                let all: Vec<&FileFacts> = files.iter().collect();
                let levels = Generations::of(&all);
                for file in &files {
                    prop_assert_eq!(levels.place(file), file.level as usize);
                }
            }
        }
    }
}
