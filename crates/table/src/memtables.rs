//! What a table has in memory: one memtable that takes the writes, and those on their way to disk.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use commitlog::LogPosition;
use memtable::{Memtable, MemtableSlot, PartitionPlace, PartitionPlaces};
use rows::{Mutation, PartitionKey};
use runtime::{Plant, Plants};
use sstable::TableFile;
use types::Token;
use uuid::Uuid;

use crate::shared::Shared;

/// The memtables of a table.
pub struct Memtables {
    /// Takes the writes.
    active: RefCell<Rc<MemtableSlot>>,
    /// Its age counts from here, on the node's clock.
    active_since: Cell<Duration>,
    /// On their way to disk, in the order of the log, oldest first.
    frozen: RefCell<Vec<Frozen>>,
    /// The epoch of the schema at which the table was emptied last.
    truncated_at: Cell<u64>,
    /// Where in the log that was, if this run has done it.
    emptied_to: Cell<LogPosition>,
    plants: Plants,
}

/// A memtable on its way to disk.
#[derive(Clone)]
pub struct Frozen {
    /// Where cursors find it.
    pub slot: Rc<MemtableSlot>,
    /// Its contents.
    pub memtable: Arc<Memtable>,
    /// The log's end when it was frozen.
    pub(super) flushed_to: LogPosition,
    /// Its file (or that it needs none), when it was written and the manifest failed.
    pub(super) written: Option<Option<Arc<TableFile>>>,
}

impl Frozen {
    /// Its file, when that is not part of the table yet.
    fn written_id(&self) -> Option<Uuid> {
        self.written.as_ref()?.as_ref().map(|file| file.descriptor().id)
    }
}

impl Memtables {
    pub(super) fn new(active: Memtable, truncated_at: u64, now: Duration, plants: Plants) -> Self {
        Memtables {
            active: RefCell::new(MemtableSlot::active(active)),
            active_since: Cell::new(now),
            frozen: RefCell::new(Vec::new()),
            truncated_at: Cell::new(truncated_at),
            emptied_to: Cell::new(LogPosition::START),
            plants,
        }
    }

    /// The epoch of the schema at which the table was emptied last: what was planned on an earlier one is outdated.
    #[inline]
    pub fn truncated_at(&self) -> u64 {
        self.truncated_at.get()
    }

    /// From now on what was planned before that epoch is outdated.
    pub(super) fn outdate(&self, truncated_at: u64) {
        self.truncated_at.set(truncated_at.max(self.truncated_at.get()));
    }

    /// What stands in the log below that place was emptied, if not by an earlier run.
    pub fn emptied_to(&self) -> LogPosition {
        self.emptied_to.get()
    }

    /// What stands in the log below that place is emptied.
    pub(super) fn note_emptied(&self, position: LogPosition) {
        self.emptied_to.set(position.max(self.emptied_to.get()));
    }

    /// Those in which reads look, whatever way they go: the ones on their way to disk, oldest first, and the one that
    /// takes the writes.
    #[inline]
    pub fn for_reads(&self) -> (Ref<'_, [Frozen]>, Ref<'_, Rc<MemtableSlot>>) {
        let frozen = Ref::map(self.frozen.borrow(), |frozen| {
            let is_passed_over = self.plants.has(Plant::FrozenMemtablePassedOver);
            if is_passed_over { &frozen[..0] } else { &frozen[..] }
        });
        (frozen, self.active.borrow())
    }

    /// Those on their way to disk, oldest first.
    pub(super) fn frozen(&self) -> Ref<'_, [Frozen]> {
        Ref::map(self.frozen.borrow(), Vec::as_slice)
    }

    /// All of them, the newest last.
    fn all(&self) -> Vec<Rc<MemtableSlot>> {
        let mut slots: Vec<_> = self.frozen.borrow().iter().map(|frozen| Rc::clone(&frozen.slot)).collect();
        slots.push(Rc::clone(&self.active.borrow()));
        slots
    }

    /// Sums up what all of them have of something.
    pub(crate) fn sum(&self, of: fn(&Memtable) -> u64) -> u64 {
        self.all().iter().map(|slot| slot.with(of)).sum()
    }

    /// Bytes in all of them.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.all().iter().map(|slot| slot.with(Memtable::memory_bytes)).sum()
    }

    /// The tokens of all partitions in them. For a look at what a start has replayed, not for requests.
    pub fn tokens(&self) -> Vec<Token> {
        let all = self.all();
        let of_slot = |slot: &Rc<MemtableSlot>| {
            slot.with(|memtable| {
                memtable.partitions().map(|(header, _)| header.key.token).collect::<Vec<_>>()
            })
        };
        all.iter().flat_map(of_slot).collect()
    }

    /// The log position of the oldest write that no file has.
    pub(crate) fn first_position(&self) -> Option<LogPosition> {
        self.all().iter().filter_map(|slot| slot.with(Memtable::first_position)).min()
    }

    /// The oldest timestamp of any write in memory.
    pub(super) fn oldest_timestamp(&self) -> Option<i64> {
        let all = self.all();
        let full = all.iter().filter(|slot| !slot.with(Memtable::is_empty));
        full.map(|slot| slot.with(|memtable| memtable.encoding_stats().min_timestamp)).min()
    }

    /// Has no write come since the last freeze?
    #[inline]
    pub fn is_active_empty(&self) -> bool {
        self.active.borrow().with(Memtable::is_empty)
    }

    /// Does any wait to be written out?
    pub(crate) fn has_frozen(&self) -> bool {
        !self.frozen.borrow().is_empty()
    }

    /// Since when the active one counts as taking writes.
    #[inline]
    pub fn active_since(&self) -> Duration {
        self.active_since.get()
    }

    /// Has its age count from here.
    #[inline]
    pub fn rejuvenate(&self, now: Duration) {
        self.active_since.set(now);
    }

    /// Where the partitions of keys are in the active one.
    #[inline]
    pub fn places_of(&self, keys: &[&PartitionKey]) -> PartitionPlaces {
        self.active.borrow().with(|memtable| memtable.places_of(keys))
    }

    /// Merges a mutation into the active one; by how many bytes has it grown?
    #[inline]
    pub(super) fn apply(
        &self,
        mutation: &Mutation,
        position: Option<LogPosition>,
        place: Option<PartitionPlace>,
    ) -> usize {
        self.active.borrow().with_active(|memtable| {
            let before = memtable.memory_bytes();
            memtable.apply(mutation, position, place);
            assert!(memtable.memory_bytes() >= before, "a memtable never shrinks");
            memtable.memory_bytes() - before
        })
    }

    /// Has another take the writes from here on, which are those behind `log_end`. Not so when there were none since
    /// the last time: `false`.
    pub(super) fn freeze(&self, next: Memtable, log_end: LogPosition, now: Duration) -> bool {
        if self.is_active_empty() {
            return false;
        }
        let slot = self.active.replace(MemtableSlot::active(next));
        self.active_since.set(now);
        let memtable = slot.freeze();
        let frozen = Frozen { slot, memtable, flushed_to: log_end, written: None };
        let mut before = self.frozen.borrow_mut();
        let last = before.last().map(|last: &Frozen| last.flushed_to);
        assert!(last <= Some(frozen.flushed_to), "memtables are frozen in the order of the log");
        assert!(frozen.memtable.first_position() < Some(frozen.flushed_to), "its writes are below its place");
        before.push(frozen);
        drop(before);
        assert!(self.is_active_empty(), "the next memtable takes the writes from here on");
        true
    }

    /// Puts another in the place of an active one that is empty.
    pub(super) fn replace_empty(&self, next: Memtable, now: Duration) {
        assert!(self.is_active_empty(), "a memtable with writes is frozen, not replaced");
        self.active_since.set(now);
        *self.active.borrow_mut() = MemtableSlot::active(next);
    }

    /// The next to be written out.
    pub(super) fn oldest_frozen(&self) -> Option<Frozen> {
        self.frozen.borrow().first().cloned()
    }

    /// Keeps the file that the oldest was written to, for the next try to make it part of the table.
    pub(super) fn keep_written(&self, file: Option<Arc<TableFile>>) {
        if let Some(oldest) = self.frozen.borrow_mut().first_mut() {
            let file_of = |written: &Option<Arc<TableFile>>| written.as_ref().map(Arc::as_ptr);
            let is_same = oldest.written.as_ref().is_none_or(|before| file_of(before) == file_of(&file));
            // No test can break it: who finds a file writes no other.
            assert!(is_same, "a memtable is written to one file");
            oldest.written = Some(file);
        }
    }

    /// Files of frozen ones that are not part of the table yet.
    pub(super) fn written_ids(&self) -> Vec<Uuid> {
        self.frozen.borrow().iter().filter_map(Frozen::written_id).collect()
    }

    /// Lets go of frozen ones and of their memory; how many were they? Row by row it is given back by a
    /// background thread: of a hundred thousand rows that takes tens of milliseconds.
    pub(super) fn let_go(&self, shared: &Shared, goes: impl Fn(&Frozen) -> bool) -> usize {
        let mut gone = Vec::new();
        self.frozen.borrow_mut().retain(|frozen| {
            let stays = !goes(frozen);
            gone.extend((!stays).then(|| Arc::clone(&frozen.memtable)));
            stays
        });
        let gone_bytes: usize = gone.iter().map(|memtable| memtable.memory_bytes()).sum();
        let times = if self.plants.has(Plant::MemoryGivenBackTwice) { 2 } else { 1 };
        shared.give_back_memory(times * gone_bytes);
        let gone_count = gone.len();
        // Where nothing is done in the background any more, it is given back here.
        _ = shared.runtime.background.spawn("free memtables", Box::new(move || drop(gone)));
        gone_count
    }
}
