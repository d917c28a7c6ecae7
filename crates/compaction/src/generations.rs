//! Files by level. In every level but the 0th no two share a token.

use types::Token;

use super::{FileFacts, LEVEL_COUNT};

/// The files of a table by level; those of the levels above the 0th in ring order.
pub(crate) struct Generations<'a> {
    levels: [Vec<&'a FileFacts>; LEVEL_COUNT],
}

impl<'a> Generations<'a> {
    /// A file that would share tokens with another of its level (it may have been brought in from
    /// elsewhere) counts as one of the 0th.
    pub(crate) fn of(files: &[&'a FileFacts]) -> Self {
        let mut levels: [Vec<&FileFacts>; LEVEL_COUNT] = Default::default();
        let (mut files, file_count) = (files.to_vec(), files.len());
        files.sort_by_key(|file| (file.first, file.last, file.id));
        for file in files {
            let level = level_of(file);
            let overlaps = levels[level].last().is_some_and(|before: &&FileFacts| before.last >= file.first);
            levels[if overlaps { 0 } else { level }].push(file);
        }
        let count: usize = levels.iter().map(Vec::len).sum();
        assert_eq!(count, file_count, "a file is in one level");
        Generations { levels }
    }

    /// The files of a level.
    pub(crate) fn level(&self, level: usize) -> &[&'a FileFacts] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// In which level a file counts.
    pub(crate) fn place(&self, file: &FileFacts) -> usize {
        let level = level_of(file);
        let is_there = self.levels[level].iter().any(|other| other.id == file.id);
        if is_there { level } else { 0 }
    }

    /// The files of a level, beginning behind the token and going round.
    pub(crate) fn from(&self, level: usize, behind: Option<Token>) -> impl Iterator<Item = &'a FileFacts> {
        let files = self.level(level);
        let start = behind.and_then(|token| files.iter().position(|file| file.first > token)).unwrap_or(0);
        files[start..].iter().chain(&files[..start]).copied().collect::<Vec<_>>().into_iter()
    }

    /// Where the last compaction into a level ended, as far as the files tell: at the end of the newest.
    pub(crate) fn last_of_newest(&self, level: usize) -> Option<Token> {
        self.level(level).iter().max_by_key(|file| file.created_ms).map(|file| file.last)
    }
}

fn level_of(file: &FileFacts) -> usize {
    (file.level as usize).min(LEVEL_COUNT - 1)
}

/// Those of the files that share a token with the span of some others: what would overlap the result
/// of merging these.
pub(crate) fn overlapping<'a>(span_of: &[&FileFacts], files: &[&'a FileFacts]) -> Vec<&'a FileFacts> {
    let first = span_of.iter().map(|file| file.first).min();
    let last = span_of.iter().map(|file| file.last).max();
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    files.iter().copied().filter(|file| file.first <= last && first <= file.last).collect()
}
