//! Where partitions may live: the memtables and files of a table, each a cursor, merged into one.

use std::convert::Infallible;
use std::rc::Rc;

use manifest::Scoped;
use memtable::{MemtableCursor, MemtableSlot, MemtableTarget};
use read::RowConsumer;
use rows::{MergeCursor, PartitionKey, RingRange, Slices, Step, UnfilteredCursor};
use sstable::{FileCursor, FileNeed, KeyHash, SstableError};

use super::fetch::HeldChunks;
use super::read::Reading;

impl<C: RowConsumer> Reading<'_, C> {
    pub(super) fn partition_cursor(&mut self, key: &PartitionKey, slices: &Slices) -> MergeCursor<Source> {
        let mut sources = Vec::new();
        for slot in self.store.memtables().all() {
            let target = MemtableTarget::Key(key.clone());
            sources.push(self.memory(slot, target, slices));
        }
        let (files, hash) = (self.store.files(), KeyHash::of(&key.bytes));
        for file in files.all().iter().filter(|file| files.may_show(file, key, hash)) {
            let chunks = Rc::clone(&self.progress.chunks);
            let cursor = file.partition_cursor(chunks, key, hash, slices, self.is_reversed());
            sources.push(Source::File(Box::new(Scoped::new(cursor, None))));
        }
        self.progress.note_places(sources.len());
        MergeCursor::new(self.store.table(), self.is_reversed(), sources)
    }

    fn memory(&self, slot: Rc<MemtableSlot>, target: MemtableTarget, slices: &Slices) -> Source {
        let expected = self.consumer.room().rows;
        Source::Memory(Box::new(MemtableCursor::new(
            slot,
            target,
            slices.clone(),
            self.is_reversed(),
            expected,
        )))
    }

    pub(super) fn range_cursor(&mut self, range: &RingRange) -> MergeCursor<Source> {
        let slices = &self.command.slices;
        let mut sources = Vec::new();
        for slot in self.store.memtables().all() {
            let target = MemtableTarget::Range(range.clone());
            sources.push(self.memory(slot, target, slices));
        }
        for file in self.store.files().all().iter() {
            let cursor = file.scan(Rc::clone(&self.progress.chunks), range, slices);
            sources.push(Source::File(Box::new(Scoped::new(cursor, self.store.files().scopes_of(file)))));
        }
        self.progress.note_places(sources.len());
        MergeCursor::new(self.store.table(), self.is_reversed(), sources)
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
