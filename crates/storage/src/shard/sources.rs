//! Where partitions may live: the memtables and files of a table, each a cursor, merged into one.

use std::convert::Infallible;
use std::rc::Rc;

use manifest::Scoped;
use memtable::{MemtableCursor, MemtableTarget};
use read::RowConsumer;
use rows::{MergeCursor, PartitionKey, RingRange, Slices, Step, UnfilteredCursor};
use sstable::{FileCursor, FileNeed, KeyHash, SstableError};

use super::fetch::HeldChunks;
use super::read::Reading;

impl<C: RowConsumer> Reading<'_, C> {
    pub(super) fn partition_cursor(&mut self, key: &PartitionKey, slices: &Slices) -> MergeCursor<Source> {
        let mut sources = self.in_memory(&MemtableTarget::Key(key.clone()), slices);
        let (files, hash) = (self.store.files(), KeyHash::of(&key.bytes));
        for file in files.for_reads().iter().filter(|file| files.may_show(file, key, hash)) {
            let chunks = Rc::clone(&self.progress.chunks);
            let cursor = file.partition_cursor(chunks, key, hash, slices, self.is_reversed());
            sources.push(Source::File(Box::new(Scoped::new(cursor, None))));
        }
        self.progress.note_places(sources.len());
        MergeCursor::new(self.store.table(), self.is_reversed(), sources)
    }

    pub(super) fn range_cursor(&mut self, range: &RingRange) -> MergeCursor<Source> {
        let slices = &self.command.slices;
        let mut sources = self.in_memory(&MemtableTarget::Range(range.clone()), slices);
        let files = self.store.files();
        for file in files.for_reads().iter() {
            let cursor = file.scan(Rc::clone(&self.progress.chunks), range, slices);
            sources.push(Source::File(Box::new(Scoped::new(cursor, files.scopes_of(file)))));
        }
        self.progress.note_places(sources.len());
        MergeCursor::new(self.store.table(), self.is_reversed(), sources)
    }

    fn in_memory(&self, target: &MemtableTarget, slices: &Slices) -> Vec<Source> {
        let (frozen, active) = self.store.memtables().for_reads();
        let (is_reversed, expected) = (self.is_reversed(), self.consumer.room().rows);
        let slots = frozen.iter().map(|frozen| &frozen.slot).chain([&*active]);
        let cursors = slots.map(|slot| {
            MemtableCursor::new(Rc::clone(slot), target.clone(), slices.clone(), is_reversed, expected)
        });
        cursors.map(|cursor| Source::Memory(Box::new(cursor))).collect()
    }
}

/// A place where a partition may live.
pub(super) enum Source {
    Memory(Box<MemtableCursor>),
    File(Box<Scoped<FileCursor<Rc<HeldChunks>>>>),
}

impl UnfilteredCursor for Source {
    type Need = FileNeed;
    type Error = SstableError;

    fn has_more_versions(&self) -> bool {
        match self {
            Source::File(cursor) => cursor.has_more_versions(),
            Source::Memory(cursor) => cursor.has_more_versions(),
        }
    }

    fn step(&mut self) -> Result<Step<FileNeed>, SstableError> {
        match self {
            Source::File(cursor) => cursor.step(),
            Source::Memory(cursor) => {
                let Ok(step) = cursor.step() as Result<Step<Infallible>, Infallible>;
                Ok(match step {
                    Step::Header(header) => Step::Header(header),
                    Step::Item(item) => Step::Item(item),
                    Step::End => Step::End,
                    Step::Need(never) => match never {},
                })
            }
        }
    }
}
