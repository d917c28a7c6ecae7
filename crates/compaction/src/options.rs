//! A table's compaction options, as strategies need them. They were checked when the table was made, so
//! what can not be read here is taken as if it was not given.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use schema::CompactionOptions;

use super::leveled::Leveled;
use super::size_tiered::SizeTiered;
use super::time_window::TimeWindow;
use super::tombstones::TombstoneOptions;
use super::unified::Unified;
use super::{Choice, FileFacts, Memory, Picture, Repair, Split, Task};

/// Options by name.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a>(pub(crate) &'a BTreeMap<String, String>);

impl<'a> Named<'a> {
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn number<T: FromStr>(self, name: &str, default: T) -> T {
        self.text(name).and_then(|text| text.trim().parse().ok()).unwrap_or(default)
    }

    pub(crate) fn is_true(self, name: &str) -> bool {
        self.text(name).is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    /// Bytes such as `100MiB`.
    pub(crate) fn bytes(self, name: &str, default: u64) -> u64 {
        self.text(name).and_then(human_bytes).map_or(default, |bytes| bytes as u64)
    }
}

/// `1.5GiB`, `5000`, `2 kB`.
fn human_bytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let text = text.strip_suffix('B').unwrap_or(text);
    let (text, base) = text.strip_suffix('i').map_or((text, 1000.0f64), |text| (text, 1024.0));
    let power = text.chars().last().and_then(|unit| "kMGTPE".find(unit)).map(|at| at + 1);
    let power = power.or_else(|| text.ends_with('K').then_some(1));
    let number = if power.is_some() { &text[..text.len() - 1] } else { text };
    let number: f64 = number.trim().parse().ok()?;
    Some(number * base.powi(i32::try_from(power.unwrap_or(0)).unwrap_or(0)))
}

/// One of the strategies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Strategy {
    SizeTiered(SizeTiered),
    Leveled(Leveled),
    TimeWindow(TimeWindow),
    Unified(Unified),
}

/// How a table is compacted.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Does the table want to be compacted in the background?
    pub is_enabled: bool,
    /// Tombstones stay in files that were not repaired.
    pub only_purge_repaired: bool,
    pub(crate) strategy: Strategy,
    tombstones: TombstoneOptions,
}

impl Settings {
    /// What a table's options say.
    pub fn of(options: &CompactionOptions) -> Self {
        let named = Named(&options.options);
        let class = options.class.rsplit('.').next().unwrap_or_default();
        let strategy = match class {
            "LeveledCompactionStrategy" => Strategy::Leveled(Leveled::of(named)),
            "TimeWindowCompactionStrategy" => Strategy::TimeWindow(TimeWindow::of(named)),
            "UnifiedCompactionStrategy" => Strategy::Unified(Unified::of(named)),
            _ => Strategy::SizeTiered(SizeTiered::of(named)),
        };
        Settings {
            is_enabled: !named.text("enabled").is_some_and(|text| text.eq_ignore_ascii_case("false")),
            only_purge_repaired: named.is_true("only_purge_repaired_tombstones"),
            tombstones: TombstoneOptions::of(named, matches!(strategy, Strategy::TimeWindow(_))),
            strategy,
        }
    }

    /// What to do next, and how much there is. Files of one state of repair are looked at together;
    /// of several such groups, the one with most to do comes first.
    pub fn choose(&self, picture: Picture<'_>, memory: &mut Memory) -> Choice {
        let states: BTreeSet<Repair> = picture.all.iter().map(|file| file.repair).collect();
        let mut best = Choice::default();
        let mut pending = 0;
        let looks_for_expired = !states.is_empty() && self.is_expired_check_due(picture.now_ms, memory);
        let (mut expired_state_count, mut best_has_expired) = (0, false);
        for state in states {
            let group: Vec<&FileFacts> =
                picture.all.iter().filter(|file| file.repair == state && !file.is_suspect).collect();
            let expired = if looks_for_expired { self.expired_among(&group, picture) } else { Vec::new() };
            let has_expired = !expired.is_empty();
            expired_state_count += usize::from(has_expired);
            let choice = self.choose_among(picture, &group, &expired, memory);
            pending += choice.pending;
            let is_better = (has_expired, choice.pending) > (best_has_expired, best.pending);
            if choice.task.is_some() && (best.task.is_none() || is_better) {
                (best, best_has_expired) = (choice, has_expired);
            }
        }
        // Those that were passed over now are looked for again at once.
        if looks_for_expired && expired_state_count == usize::from(best_has_expired) {
            memory.expired_checked_ms = Some(picture.now_ms);
        }
        best.pending = pending;
        best.task = best.task.map(|task| task.checked(picture.all));
        best
    }

    /// Is it time to look for files that hold nothing any more?
    fn is_expired_check_due(&self, now_ms: u64, memory: &mut Memory) -> bool {
        let (checked, every_ms) = match &self.strategy {
            Strategy::SizeTiered(_) | Strategy::Leveled(_) => return false,
            Strategy::TimeWindow(strategy) => (memory.expired_checked_ms, strategy.expired_check_ms),
            // Cassandra looks for the first time when the interval is over once.
            Strategy::Unified(strategy) => {
                (Some(*memory.expired_checked_ms.get_or_insert(now_ms)), strategy.expired_check_ms)
            }
        };
        checked.is_none_or(|checked| now_ms.saturating_sub(checked) > every_ms)
    }

    fn expired_among<'a>(&self, group: &[&'a FileFacts], picture: Picture<'a>) -> Vec<&'a FileFacts> {
        let free: Vec<&FileFacts> = group.iter().copied().filter(|file| file.is_free()).collect();
        super::fully_expired(&free, picture, self.only_purge_repaired)
    }

    fn choose_among(
        &self,
        picture: Picture<'_>,
        group: &[&FileFacts],
        expired: &[&FileFacts],
        memory: &mut Memory,
    ) -> Choice {
        let free: Vec<&FileFacts> = group.iter().copied().filter(|file| file.is_free()).collect();
        match &self.strategy {
            Strategy::SizeTiered(strategy) => strategy.choose(&free, picture, &self.tombstones),
            Strategy::Leveled(strategy) => strategy.choose(group, picture, &self.tombstones, memory),
            Strategy::TimeWindow(strategy) => {
                strategy.choose(&free, expired, picture, &self.tombstones, memory)
            }
            Strategy::Unified(strategy) => strategy.choose(&free, expired, memory),
        }
    }

    /// A compaction of all files, one task for each state of repair (and, where the strategy keeps
    /// parts of the ring apart, for each of these).
    pub fn major(&self, all: &[FileFacts], split_output: bool) -> Vec<Task> {
        let states: BTreeSet<Repair> = all.iter().map(|file| file.repair).collect();
        let groups = states.into_iter().map(|state| -> Vec<&FileFacts> {
            all.iter().filter(|file| file.repair == state && file.is_free()).collect()
        });
        let groups = groups.filter(|group| !group.is_empty());
        groups
            .flat_map(|group| match &self.strategy {
                Strategy::SizeTiered(_) if split_output => {
                    vec![Task { split: Split::Halves, ..Task::of(&group) }]
                }
                Strategy::SizeTiered(_) | Strategy::TimeWindow(_) => vec![Task::of(&group)],
                Strategy::Leveled(strategy) => vec![strategy.major(&group)],
                Strategy::Unified(strategy) => strategy.major(&group),
            })
            .map(|task| task.checked(all))
            .collect()
    }

    /// A compaction of files that somebody named.
    pub fn user_defined(&self, files: &[&FileFacts]) -> Vec<Task> {
        let states: BTreeSet<Repair> = files.iter().map(|file| file.repair).collect();
        let groups = states.into_iter().map(|state| -> Vec<&FileFacts> {
            files.iter().copied().filter(|file| file.repair == state && file.is_free()).collect()
        });
        groups
            .filter(|group| !group.is_empty())
            .map(|group| match &self.strategy {
                Strategy::Leveled(strategy) => strategy.user_defined(&group),
                Strategy::Unified(strategy) => strategy.task(&group),
                Strategy::SizeTiered(_) | Strategy::TimeWindow(_) => Task::of(&group),
            })
            .map(|task| task.checked(files.iter().copied()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::testing::*;

    #[test]
    fn sizes_are_read_as_cassandra_reads_them() {
        for (text, bytes) in
            [("1GiB", 1u64 << 30), ("100MiB", 100 << 20), ("5000", 5000), ("2 kB", 2000), ("0.5MiB", 1 << 19)]
        {
            assert_eq!(human_bytes(text).map(|bytes| bytes as u64), Some(bytes), "{text}");
        }
        assert_eq!(human_bytes("many"), None);
    }

    #[test]
    fn files_of_different_states_of_repair_are_never_merged() {
        let states = [Repair::Unrepaired, Repair::Repaired, Repair::Pending(uuid::Uuid::from_u128(5))];
        let files: Vec<_> = (0..12)
            .map(|number| FileFacts { repair: states[number as usize % 3], ..file(number, 10 * MB) })
            .collect();
        for class in ["SizeTiered", "Leveled", "TimeWindow", "Unified"] {
            let settings = settings(&format!("{class}CompactionStrategy"), &[("sstable_size_in_mb", "5")]);
            let task = settings.choose(picture(&files), &mut Memory::default()).task;
            let mut tasks = settings.major(&files, false);
            assert_eq!(tasks.len(), 3, "{class}");
            tasks.extend(settings.user_defined(&files.iter().collect::<Vec<_>>()));
            tasks.push(task.expect("there are four files of each state"));
            for task in tasks {
                let of = |id: &uuid::Uuid| files.iter().find(|file| file.id == *id).expect("known").repair;
                let states: BTreeSet<Repair> = task.inputs.iter().map(of).collect();
                assert_eq!(states.len(), 1, "{class}: {task:?}");
            }
        }
    }

    #[test]
    fn a_table_may_ask_not_to_be_compacted() {
        assert!(!settings("SizeTieredCompactionStrategy", &[("enabled", "false")]).is_enabled);
        assert!(settings("SizeTieredCompactionStrategy", &[]).is_enabled);
    }
}
