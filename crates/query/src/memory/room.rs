//! The room of one request, and how it grows.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::READ_BYTES_MIN;
use super::line::AnswerMemory;

/// A room that turns out too small becomes so many times as large: each time its read begins anew where it ended.
const GROWTH: usize = 4;

/// What one request may have in memory for its answer; given back when it is dropped.
#[derive(Debug)]
pub struct AnswerRoom {
    memory: Rc<AnswerMemory>,
    /// What is counted for it.
    bytes: usize,
    /// What it has gathered.
    used_bytes: usize,
    /// How large the row is that it last had to make room for.
    row_bytes: usize,
    /// What is counted for its statement beside.
    statement_bytes: usize,
    /// Has it the room for the largest answer?
    large: Option<LargeRoom>,
    /// Will its request end without anybody else's doing?
    is_ending: bool,
}

/// The room of a node for an answer that can not be given in pages: one at a time.
#[derive(Debug)]
pub struct LargeAnswer {
    bytes_max: usize,
    free: Arc<Semaphore>,
    waiting_count: AtomicUsize,
}

/// Given back when it is dropped.
#[derive(Debug)]
struct LargeRoom {
    _permit: OwnedSemaphorePermit,
    /// What the statement has of it, beside what it gathers.
    statement_bytes: usize,
}

/// Answers that a client has not taken; given back when it is dropped.
#[derive(Debug)]
pub struct UntakenRoom {
    memory: Rc<AnswerMemory>,
    bytes: usize,
    large: Option<LargeRoom>,
}

/// What there is room for in the next read of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadRoom {
    /// For so many bytes.
    Bytes(usize),
    /// For nothing: the page ends.
    PageIsFull,
    /// For nothing, although the answer can not be given in pages.
    TooMuch,
}

impl LargeAnswer {
    /// Room for an answer of so many bytes.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(LargeAnswer {
            bytes_max,
            free: Arc::new(Semaphore::new(1)),
            waiting_count: AtomicUsize::new(0),
        })
    }

    /// How many bytes of rows one answer may have.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Does anybody wait for it?
    pub(super) fn is_wanted(&self) -> bool {
        self.waiting_count.load(Ordering::Relaxed) > 0
    }

    async fn wait(&self) -> Option<LargeRoom> {
        let permit = match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let _counted = Counted::new(&self.waiting_count);
                // The semaphore is never closed.
                Arc::clone(&self.free).acquire_owned().await.ok()?
            }
        };
        Some(LargeRoom { _permit: permit, statement_bytes: 0 })
    }
}

/// One more, as long as it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AnswerRoom {
    pub(super) fn new(memory: Rc<AnswerMemory>, bytes: usize) -> Self {
        AnswerRoom {
            memory,
            bytes,
            used_bytes: 0,
            row_bytes: 0,
            statement_bytes: 0,
            large: None,
            is_ending: true,
        }
    }

    /// What it may gather, in bytes, as it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What it has gathered, in bytes.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// How many bytes an answer may have that can not be given in pages.
    pub(crate) fn answer_bytes_max(&self) -> usize {
        self.memory.large_answer().bytes_max()
    }

    /// With how many bytes a page ends.
    pub(crate) fn page_bytes(&self) -> usize {
        self.memory.page_bytes()
    }

    /// The request will gather nothing more, and nothing is left of what it has.
    pub(crate) fn release(&mut self) {
        self.count(0);
        self.large.take_if(|large| large.statement_bytes == 0);
    }

    /// What was gathered is gone, and something else comes in its place.
    pub(crate) fn begin_anew(&mut self) {
        self.used_bytes = 0;
    }

    /// Counts what was gathered, which may be more than there was room for: a value that was computed is there already.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.used_bytes += bytes;
        if self.large.is_none() && self.used_bytes > self.bytes {
            self.count(self.used_bytes);
        }
    }

    /// Room for the next read of an answer that is given in pages. `has_any`: something is on this page, so that it can
    /// end. One that needed the large room for a row is that row and what fits beside it.
    pub(crate) fn for_page(&mut self, has_any: bool) -> ReadRoom {
        let page_bytes = self.page_bytes();
        if has_any && (self.used_bytes >= page_bytes || self.large.is_some()) {
            return ReadRoom::PageIsFull;
        }
        if self.large.is_some() {
            return ReadRoom::Bytes(self.left_bytes().min(page_bytes.max(self.row_bytes)));
        }
        if self.is_scarce() && !self.grow((GROWTH * self.bytes).min(page_bytes)) && has_any {
            return ReadRoom::PageIsFull;
        }
        ReadRoom::Bytes(self.left_bytes().max(READ_BYTES_MIN))
    }

    /// Room for the next read of an answer that has to be given whole.
    pub(crate) async fn for_all(&mut self) -> ReadRoom {
        if self.large.is_none()
            && self.is_scarce()
            && !self.grow((GROWTH * self.bytes).min(self.memory.room_bytes_max()))
        {
            self.become_large().await;
        }
        match self.left_bytes() {
            0 => ReadRoom::TooMuch,
            bytes => ReadRoom::Bytes(bytes),
        }
    }

    /// Makes room for a row of so many bytes, which is the next of the answer. `false` when it is too large for any.
    pub(crate) async fn for_row(&mut self, row_bytes: usize) -> bool {
        self.row_bytes = row_bytes;
        let wanted = self.used_bytes.saturating_add(row_bytes);
        if self.large.is_none() && wanted > self.bytes && !self.grow(wanted) {
            self.become_large().await;
        }
        self.left_bytes() >= row_bytes
    }

    /// Makes room for so much more of its statement, beside what it gathers and as long as it lives. `false` when that
    /// is too large for any.
    pub(crate) async fn for_statement(&mut self, bytes: usize) -> bool {
        let before = self.large.as_ref().map_or(self.statement_bytes, |large| large.statement_bytes);
        if before + bytes > self.answer_bytes_max() {
            return false;
        }
        if self.large.is_none() && !self.memory.admits_more(self.bytes + before, bytes) {
            self.become_large().await;
        }
        match &mut self.large {
            Some(large) => large.statement_bytes += bytes,
            None => {
                self.statement_bytes += bytes;
                self.memory.add(bytes);
            }
        }
        true
    }

    fn left_bytes(&self) -> usize {
        let bytes = if self.large.is_some() { self.answer_bytes_max() } else { self.bytes };
        bytes.saturating_sub(self.used_bytes)
    }

    /// Is so little left that another read had better have more?
    fn is_scarce(&self) -> bool {
        self.left_bytes() < (self.bytes / 4).max(READ_BYTES_MIN)
    }

    /// Has room for so much in all, if that is free.
    fn grow(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 || !self.memory.admits_more(self.bytes, more) {
            return false;
        }
        self.count(bytes);
        true
    }

    /// Waits for the one large room. What it has gathered moves there.
    ///
    /// Meanwhile nobody waits for this request to end: who has the large room may be a client that takes no answers.
    async fn become_large(&mut self) {
        self.memory.give_back(0, 1);
        self.is_ending = false;
        self.large = self.memory.large_answer().wait().await;
        self.memory.count_room();
        self.is_ending = true;
        self.count(0);
        let statement_bytes = std::mem::take(&mut self.statement_bytes);
        self.memory.give_back(statement_bytes, 0);
        if let Some(large) = &mut self.large {
            large.statement_bytes = statement_bytes;
        }
    }

    fn count(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes > before {
            self.memory.add(bytes - before);
        } else {
            self.memory.give_back(before - bytes, 0);
        }
    }
}

impl Drop for AnswerRoom {
    fn drop(&mut self) {
        self.memory.give_back(self.bytes + self.statement_bytes, usize::from(self.is_ending));
    }
}

impl UntakenRoom {
    pub(super) fn new(memory: Rc<AnswerMemory>) -> Self {
        UntakenRoom { memory, bytes: 0, large: None }
    }

    /// So many bytes wait for the client now.
    pub fn set(&mut self, bytes: usize) {
        if bytes == 0 {
            self.large = None;
        }
        let bytes = if self.large.is_some() { 0 } else { bytes };
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes > before {
            self.memory.add(bytes - before);
        } else if bytes < before {
            self.memory.give_back(before - bytes, 0);
        }
    }

    /// An answer goes from its room to the client, for whom so many bytes wait with it.
    pub fn take_over(&mut self, mut room: AnswerRoom, bytes: usize) {
        if let Some(large) = room.large.take() {
            self.large = Some(large);
        }
        self.set(bytes);
    }
}

impl Drop for UntakenRoom {
    fn drop(&mut self) {
        self.set(0);
    }
}
