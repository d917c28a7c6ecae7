//! Reads that visitors have begun, and left where they lacked something.
//!
//! ```text
//!   visitor, while the shard sleeps             the shard, awake again
//!   advance ─► Lack ─► leave ──┐            ┌─► take all ─► a task each: provide, advance, … ─► answer
//!                              └─ the list ─┘                                                     │
//!   waits for the answer ◄────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! What is left is no errand: it has `Rc`s of the shard, and never leaves it. The visitor keeps only the way on which
//! the answer comes, and sends a message that wakes the shard.
//!
//! What must hold:
//!
//! - Only who holds the shard touches the list: its own thread, or a visitor while that sleeps.
//! - A read that was left is taken once, and by the shard's own thread, which alone may wait for what it lacks. The
//!   shard takes all that were left whenever messages come, and whoever leaves one sends a message. So none stays with
//!   the memory that it has, also if nobody waits for it any more: then it is dropped when it is taken.
//! - Nothing is left with a shard that has ended.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use read::{LeftPage, LiveView, ReadCommand, ReadPage};
use runtime::caught_in;
use runtime::trace::{self, Trace};
use table::{TableError, TableStore};

use super::Shard;
use super::read::{Lack, Progress, Reading, cut_short};
use super::read_memory::RoomToRead;
use crate::StorageError;
use crate::reach::errand::{Answer, Reply, end_with_asker};

/// As many are left at most; who comes then sends an errand, which begins anew.
const LEFT_READS_MAX: usize = 64;

/// Reads that were left to the shard.
#[derive(Default)]
pub(crate) struct LeftReads {
    reads: RefCell<Vec<Left>>,
    /// How many the shard went on with.
    taken_count: Cell<u64>,
    has_ended: Cell<bool>,
}

/// A read that a visitor has begun.
pub(super) struct LeftRead {
    /// A table that was dropped meanwhile is not read.
    pub(super) store: Weak<TableStore>,
    pub(super) command: ReadCommand,
    pub(super) page: LeftPage,
    pub(super) progress: Progress<LiveView>,
    pub(super) lack: Lack,
    pub(super) room: RoomToRead,
}

/// One of those, and who waits for it.
struct Left {
    read: LeftRead,
    trace: Option<Trace>,
    reply: Reply<Result<ReadPage, StorageError>>,
}

impl LeftReads {
    /// Is there room for one more?
    pub(super) fn has_room(&self) -> bool {
        self.reads.borrow().len() < LEFT_READS_MAX
    }

    /// Leaves a read to the shard; the way on which its page comes.
    pub(super) fn leave(&self, read: LeftRead) -> Answer<Result<ReadPage, StorageError>> {
        assert!(!self.has_ended.get(), "nothing is left with a shard that has ended");
        assert!(self.has_room(), "a visitor looks for room before it leaves a read");
        let (reply, answer) = Answer::new();
        self.reads.borrow_mut().push(Left { read, trace: trace::current(), reply });
        answer
    }

    /// Has the shard go on with all that were left. To be called on its own thread.
    pub(crate) fn go_on(&self, shard: &Rc<Shard>) {
        let left = std::mem::take(&mut *self.reads.borrow_mut());
        for Left { read, trace, reply } in left {
            if !reply.is_closed() {
                self.taken_count.set(self.taken_count.get() + 1);
                // Boxed before others wrap it: each of them holds what it wraps twice, as given and as polled.
                let reading = Box::pin(trace::carry(trace, read.go_on(Rc::clone(shard))));
                runtime::spawn_local("errand", end_with_asker(caught_in(reading), reply));
            }
        }
    }

    /// How many the shard went on with.
    pub(super) fn taken_count(&self) -> u64 {
        self.taken_count.get()
    }

    /// Drops what was left last, of a shard that takes no messages and no visitors any more.
    pub(crate) fn end(&self) {
        self.has_ended.set(true);
        self.reads.borrow_mut().clear();
    }
}

impl LeftRead {
    async fn go_on(self, shard: Rc<Shard>) -> Result<ReadPage, StorageError> {
        let table = Arc::clone(&self.command.table);
        let words = || format!("a read of {}.{}", table.keyspace(), table.name());
        runtime::labelled_future(words, Box::pin(self.finish(&shard))).await
    }

    /// The page; by a read that begins anew, if a file was left out on the way.
    async fn finish(self, shard: &Shard) -> Result<ReadPage, StorageError> {
        let LeftRead { store, command, page, progress, lack, room } = self;
        let store = match store.upgrade() {
            Some(store) => store,
            None => return Err(TableError::NoTable { table: command.table.id() }.into()),
        };
        let page = page.take_up(&command);
        let mut reading = Reading::take_up(&shard.shared, &store, &command, page, progress);
        let outcome = reading.go_on_from(lack).await;
        let page = reading.end(&store, outcome)?;
        drop(room);
        match page {
            Some(page) => Ok(cut_short(&shard.shared, page)),
            None => Box::pin(shard.read(&command)).await,
        }
    }
}
