//! What there is to choose from: the files of a table, as its strategy sees them at one moment.

use std::cmp::Reverse;
use std::rc::Rc;
use std::sync::Arc;

use compaction::{
    CompactionKind, CompactionRequest, FileFacts, Picture, Settings, Split, Task, fully_expired,
};
use schema::Table;
use sstable::TableFile;
use uuid::Uuid;

use super::rewrite::is_as_asked;
use crate::TableStore;

/// The files of a table at one moment, and what is known of each.
pub(super) struct Survey<'a> {
    store: &'a TableStore,
    table: Arc<Table>,
    settings: Settings,
    /// Tombstones of before this second may go.
    gc_before: u32,
    files: Rc<Vec<Arc<TableFile>>>,
    /// In the order of the files.
    facts: Vec<FileFacts>,
}

impl<'a> Survey<'a> {
    pub(super) fn of(store: &'a TableStore) -> Self {
        let (table, files) = (store.table(), store.files.all());
        let gc_before = store.shared.gc_before(&table);
        let facts = files.iter().map(|file| FileFacts::of(file.summary(), gc_before)).collect();
        let facts = store.compaction.mark(facts);
        let settings = Settings::of(&table.options().compaction);
        Survey { store, table, settings, gc_before, files, facts }
    }

    fn picture(&self) -> Picture<'_> {
        let clock = &self.store.shared.runtime.clock;
        Picture {
            all: &self.facts,
            now_ms: u64::try_from(clock.now_micros() / 1_000).unwrap_or(0),
            gc_before: self.gc_before,
            memtable_timestamp_min: self.store.oldest_beside_files(),
        }
    }

    /// What the strategy wants done now.
    pub(super) fn choose(&self) -> Option<Task> {
        let choice = self.store.compaction.remember(|memory| self.settings.choose(self.picture(), memory));
        self.store.shared.compactor.note_pending(&self.table, choice.pending as u64);
        choice.task
    }

    /// The tasks that fulfil a request.
    pub(super) fn requested(&self, request: &CompactionRequest) -> Vec<Task> {
        let is_wanted = |file: &&FileFacts| {
            let in_range = |(first, last)| file.first <= last && first <= file.last;
            request.tokens.is_none_or(in_range)
                && request.files.as_ref().is_none_or(|files| files.contains(&file.id))
        };
        let tasks = if request.tokens.is_none() && request.files.is_none() {
            let mut tasks = self.settings.major(&self.facts, request.split_output);
            tasks.retain(|task| self.is_of_use(task));
            tasks
        } else {
            self.settings.user_defined(&self.facts.iter().filter(is_wanted).collect::<Vec<_>>())
        };
        let major = |task| Task { kind: CompactionKind::MajorCompaction, ..task };
        tasks.into_iter().map(major).collect()
    }

    /// One file that would come out as it is need not be written again.
    fn is_of_use(&self, task: &Task) -> bool {
        let [only] = task.inputs.as_slice() else { return true };
        let may_be_cut = matches!(task.split, Split::Parts(parts) if parts > 1);
        self.files.iter().any(|file| {
            file.descriptor().id == *only
                && (may_be_cut
                    || !self.store.shared.owns_all(file)
                    || file.summary().droppable_tombstone_ratio(self.gc_before) > 0.0
                    || !file.is_compressed_as(&self.store.compression()))
        })
    }

    /// Tasks to write files anew that are wanted and free, the largest first: it is the last that compaction comes by.
    pub(super) fn rewrites(&self, is_wanted: impl Fn(&TableFile, &FileFacts) -> bool) -> Vec<Task> {
        let all = self.files.iter().zip(&self.facts);
        let all = all.filter(|(file, facts)| facts.is_free() && is_wanted(file, facts));
        let mut wanted: Vec<&FileFacts> = all.map(|(_, facts)| facts).collect();
        wanted.sort_by_key(|facts| Reverse(facts.data_bytes));
        wanted.into_iter().map(Task::rewrite).collect()
    }

    /// A task to write a file anew that is not as the table asks, if there is one of no more than so many bytes.
    pub(super) fn next_rewrite(&self, bytes_max: u64) -> Option<Task> {
        let rewriting = self.store.compaction.rewriting();
        let is_due = |file: &TableFile, facts: &FileFacts| {
            !rewriting.leaves_alone(facts.id)
                && !is_as_asked(&self.table, file)
                && file.summary().uncompressed_bytes <= bytes_max
        };
        self.rewrites(is_due).into_iter().next()
    }

    /// Splits inputs into those that hold nothing any more and those that must be merged.
    pub(super) fn without_expired(
        &self,
        inputs: Vec<Arc<TableFile>>,
    ) -> (Vec<Arc<TableFile>>, Vec<Arc<TableFile>>) {
        let is_input = |facts: &&FileFacts| inputs.iter().any(|file| file.descriptor().id == facts.id);
        let inside: Vec<&FileFacts> = self.facts.iter().filter(is_input).collect();
        let expired = fully_expired(&inside, self.picture(), self.settings.only_purge_repaired);
        let expired: Vec<Uuid> = expired.iter().map(|facts| facts.id).collect();
        inputs.into_iter().partition(|file| expired.contains(&file.descriptor().id))
    }
}
