//! What the compactions of a shard have in common: the node's slots and rate, progress, history, figures.
//!
//! The history outlives the process, in a small file for each shard (`history/shard-<n>.json`). It is for people to
//! look at: where it can not be read or written, a warning is all. Of a shard that is no more after a change of their
//! number, it is forgotten.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use compaction::{
    ActiveCompaction, CompactionControl, CompactionKind, CompactionRecord, CompactionTotals, History,
};
use manifest::state_file::{read_state, write_state_below};
use runtime::Runtime;
use schema::Table;
use uuid::Uuid;

use crate::TableStore;
use crate::compaction::Active;

/// The compactions of a shard's tables.
pub struct Compactor {
    control: Arc<CompactionControl>,
    runtime: Runtime,
    /// What one merge may read ahead of all its inputs together.
    merge_bytes: usize,
    active: RefCell<Vec<Rc<Active>>>,
    /// Tasks that are begun, or are about to be, of each table.
    claims: RefCell<BTreeMap<TableName, u64>>,
    history: RefCell<History>,
    history_path: PathBuf,
    /// Held by whoever writes it down.
    history_turn: tokio::sync::Mutex<()>,
    totals: RefCell<CompactionTotals>,
}

/// How a table is told among what is pending.
type TableName = (String, String);

fn name_of(table: &Table) -> TableName {
    (table.keyspace().to_owned(), table.name().to_owned())
}

impl Compactor {
    /// Of a shard, with what it remembers in `history_path`; one merge may read `merge_bytes` ahead, of all its inputs
    /// together.
    pub fn new(
        control: Arc<CompactionControl>,
        runtime: &Runtime,
        history_path: PathBuf,
        merge_bytes: usize,
    ) -> Self {
        let read = read_state::<Vec<CompactionRecord>>(&*runtime.disk, &history_path);
        let records = read.unwrap_or_else(|error| {
            tracing::warn!(%error, "which compactions have ended before is not known");
            None
        });
        let history = History::of(records.unwrap_or_default(), runtime.clock.now_micros() / 1_000);
        Compactor {
            control,
            runtime: runtime.clone(),
            merge_bytes,
            active: RefCell::default(),
            claims: RefCell::default(),
            history: RefCell::new(history),
            history_path,
            history_turn: tokio::sync::Mutex::new(()),
            totals: RefCell::default(),
        }
    }

    /// Compactions that go on.
    pub fn active(&self) -> Vec<ActiveCompaction> {
        self.active.borrow().iter().map(|active| active.tell()).collect()
    }

    /// Compactions that ended in the last week, also before the start; the oldest first.
    pub fn history(&self) -> Vec<CompactionRecord> {
        self.history.borrow().records()
    }

    /// What compactions did since the start.
    pub fn totals(&self) -> CompactionTotals {
        let mut totals = self.totals.borrow().clone();
        for (name, claim_count) in &*self.claims.borrow() {
            *totals.pending.entry(name.clone()).or_default() += claim_count;
        }
        CompactionTotals {
            concurrent: self.control.slot_count() as u64,
            bytes_per_second: self.control.rate(),
            ..totals
        }
    }

    /// Stops compactions of these kinds that go on, or the one of that id; their inputs stay. How many were there?
    pub fn stop(&self, id: Option<Uuid>, kinds: &[CompactionKind]) -> usize {
        let active = self.active.borrow();
        let is_meant =
            |active: &&Rc<Active>| kinds.contains(&active.kind()) && id.is_none_or(|id| active.id() == id);
        active.iter().filter(is_meant).inspect(|active| active.stop()).count()
    }

    /// Bytes a second that all compactions of the node may read; 0 is without limit. One rate for all
    /// shards: it is enough to tell one of them.
    pub fn set_rate(&self, bytes_per_second: u64) {
        self.control.set_rate(bytes_per_second);
    }

    /// Slots and rate, which all shards share.
    pub fn control(&self) -> &CompactionControl {
        &self.control
    }

    /// What a merge may read ahead of each of so many inputs.
    pub(crate) fn input_bytes(&self, input_count: usize) -> usize {
        self.merge_bytes / input_count.max(1)
    }

    /// Stops those of a table.
    pub(crate) fn stop_those_of(&self, store: &TableStore) {
        self.active.borrow().iter().filter(|active| active.is_of(store)).for_each(|active| active.stop());
    }

    /// Bytes that those that go on are still to write.
    pub(crate) fn bytes_to_write(&self) -> u64 {
        self.active.borrow().iter().map(|active| active.bytes_to_write()).sum()
    }

    /// One more goes on.
    pub(crate) fn list(&self, active: Rc<Active>) {
        let mut listed = self.active.borrow_mut();
        // Who stops one by its id means one. No test can break it: ids are made of time and chance.
        assert!(listed.iter().all(|other| other.id() != active.id()), "a compaction goes on once");
        listed.push(active);
    }

    /// It goes on no more.
    pub(crate) fn unlist(&self, id: Uuid) {
        self.active.borrow_mut().retain(|other| other.id() != id);
    }

    /// Takes in how many tasks a table's strategy has beside those that are begun.
    pub(crate) fn note_pending(&self, table: &Table, count: u64) {
        let (name, pending) = (name_of(table), &mut self.totals.borrow_mut().pending);
        match count {
            0 => _ = pending.remove(&name),
            count => _ = pending.insert(name, count),
        }
    }

    /// What was left to do for a table is not any more: it is gone, or left alone.
    pub(crate) fn forget_pending(&self, table: &Table) {
        self.note_pending(table, 0);
    }

    /// A task of the table is taken on.
    pub(crate) fn claim(&self, table: &Table) {
        *self.claims.borrow_mut().entry(name_of(table)).or_default() += 1;
    }

    /// It is over.
    pub(crate) fn give_up(&self, table: &Table) {
        let (name, mut claims) = (name_of(table), self.claims.borrow_mut());
        match claims.get_mut(&name) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = claims.remove(&name),
        }
    }

    /// Counts one that was begun for nothing.
    pub(crate) fn note_aborted(&self) {
        self.totals.borrow_mut().aborted += 1;
    }

    /// Counts one that goes without some of its inputs, for want of room.
    pub(crate) fn note_reduced(&self, left_out_count: usize) {
        let mut totals = self.totals.borrow_mut();
        totals.reduced += 1;
        totals.left_out_files += left_out_count as u64;
    }

    /// Counts one that has replaced its inputs, of which some held nothing any more, and puts it into the history.
    pub(crate) fn note_done(&self, active: &Active, record: CompactionRecord, expired_count: u64) {
        self.history.borrow_mut().push(record);
        let mut totals = self.totals.borrow_mut();
        totals.completed += 1;
        totals.bytes += active.total_bytes();
        totals.compressed_bytes += active.total_compressed_bytes();
        totals.dropped_files += expired_count;
    }

    /// Writes down which have ended.
    pub(crate) async fn write_history(&self) {
        let _turn = self.history_turn.lock().await;
        let records = self.history();
        let (disk, path) = (Arc::clone(&self.runtime.disk), self.history_path.clone());
        let written = self.runtime.io.run(move || write_state_below(&*disk, &path, &records)).await;
        if let Err(error) = written {
            tracing::warn!(%error, "a compaction that has ended is forgotten at the next start");
        }
    }
}
