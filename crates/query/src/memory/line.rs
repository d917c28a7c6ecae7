//! A shard's memory for answers, and who stands in line for it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use super::room::{AnswerRoom, LargeAnswer, UntakenRoom};
use super::{OUTPUT_BYTES, PAGE_BYTES_MAX, READ_BYTES_MIN, ROOM_PART, SMALL_BYTES, SMALL_PART};

/// A shard's memory for answers. Belongs to its thread.
pub struct AnswerMemory {
    bytes_max: usize,
    /// All that rooms and answers not taken have. Written by the shard's thread alone.
    held_bytes: Arc<AtomicUsize>,
    /// Rooms whose requests will end by themselves.
    room_count: Cell<usize>,
    small: RefCell<VecDeque<Rc<Lane>>>,
    large: RefCell<VecDeque<Rc<Lane>>>,
    large_answer: Arc<LargeAnswer>,
}

/// The requests of one client that wait for room, in their order.
pub struct Lane {
    /// How large an answer is expected to be, from those before.
    expected_bytes: Cell<usize>,
    waiting: RefCell<VecDeque<Rc<Seat>>>,
    is_in_line: Cell<bool>,
    /// Does the client take no answers, so that it is given no room?
    is_held_back: Cell<bool>,
}

/// A request that waits for room.
struct Seat {
    bytes: usize,
    waker: RefCell<Waker>,
    /// Set when it is called.
    room: RefCell<Option<AnswerRoom>>,
    is_left: Cell<bool>,
}

impl std::fmt::Debug for AnswerMemory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "AnswerMemory({} of {})", self.held_bytes(), self.bytes_max)
    }
}

impl AnswerMemory {
    /// Memory of so many bytes on one shard; `large_answer` is shared by all shards of a node.
    pub fn new(bytes_max: usize, large_answer: Arc<LargeAnswer>) -> Rc<Self> {
        Rc::new(AnswerMemory {
            bytes_max,
            held_bytes: Arc::default(),
            room_count: Cell::new(0),
            small: RefCell::default(),
            large: RefCell::default(),
            large_answer,
        })
    }

    /// All that is held, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// The same, for other threads to look at.
    pub fn held_figure(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.held_bytes)
    }

    /// How much of a client's answers may be put together before it is sent: the less room there is, the less a client
    /// that does not read can keep.
    pub fn output_bytes(&self) -> usize {
        (self.left_bytes() / 8).min(OUTPUT_BYTES)
    }

    fn left_bytes(&self) -> usize {
        self.bytes_max.saturating_sub(self.held_bytes())
    }

    /// Does anybody wait for room?
    pub fn is_wanted(&self) -> bool {
        !self.small.borrow().is_empty() || !self.large.borrow().is_empty() || self.large_answer.is_wanted()
    }

    /// With how many bytes a page ends.
    pub(crate) fn page_bytes(&self) -> usize {
        (self.room_bytes_max() / 2).min(PAGE_BYTES_MAX)
    }

    /// The largest room.
    pub(super) fn room_bytes_max(&self) -> usize {
        (self.bytes_max / ROOM_PART).max(READ_BYTES_MIN)
    }

    pub(super) fn large_answer(&self) -> &Arc<LargeAnswer> {
        &self.large_answer
    }

    /// A room for a request of a client, if it need not wait for it. A request that expects so many bytes gets fewer
    /// where memory is short.
    pub fn try_room(self: &Rc<Self>, lane: &Lane, expected_bytes: usize) -> Option<AnswerRoom> {
        if lane.is_held_back.get() || !lane.waiting.borrow().is_empty() {
            return None;
        }
        let bytes = self.first_bytes(expected_bytes);
        let is_free = match bytes <= SMALL_BYTES {
            true => self.small.borrow().is_empty(),
            false => self.large.borrow().is_empty(),
        };
        (is_free && self.admits(bytes)).then(|| self.room(bytes))
    }

    /// A room for a request of a client, when it is its turn.
    ///
    /// # Cancel safety
    /// Dropped, its place in line is given up.
    pub async fn wait_for_room(self: &Rc<Self>, lane: &Rc<Lane>) -> AnswerRoom {
        let expected_bytes = lane.expected_bytes.get();
        if let Some(room) = self.try_room(lane, expected_bytes) {
            return room;
        }
        let seat = Rc::new(Seat {
            bytes: self.first_bytes(expected_bytes),
            waker: RefCell::new(Waker::noop().clone()),
            room: RefCell::default(),
            is_left: Cell::new(false),
        });
        let _leaves = Leaves(&seat);
        lane.waiting.borrow_mut().push_back(Rc::clone(&seat));
        self.line_up(lane);
        self.call();
        poll_fn(|context| match seat.room.borrow_mut().take() {
            Some(room) => Poll::Ready(room),
            None => {
                seat.waker.borrow_mut().clone_from(context.waker());
                Poll::Pending
            }
        })
        .await
    }

    /// A room for work that no client waits in line with: of the node itself, or of the program it is part of.
    pub fn room_of_its_own(self: &Rc<Self>) -> AnswerRoom {
        self.room(self.first_bytes(usize::MAX))
    }

    /// Counts what a client has not taken.
    pub fn hold_untaken(self: &Rc<Self>) -> UntakenRoom {
        UntakenRoom::new(Rc::clone(self))
    }

    /// A client that takes no answers is given no room; one that takes them again stands in line again.
    pub fn hold_back(self: &Rc<Self>, lane: &Rc<Lane>, is_held_back: bool) {
        if lane.is_held_back.replace(is_held_back) && !is_held_back {
            self.line_up(lane);
            self.call();
        }
    }

    /// What a request is given at first: what it expects, but no more than a page and than an eighth of what is left.
    fn first_bytes(&self, expected_bytes: usize) -> usize {
        expected_bytes.min(self.left_bytes() / 8).clamp(READ_BYTES_MIN, self.page_bytes().max(READ_BYTES_MIN))
    }

    /// Is there room for so much?
    fn admits(&self, bytes: usize) -> bool {
        let (held, nothing_ends) = (self.held_bytes(), self.room_count.get() == 0);
        if bytes <= SMALL_BYTES {
            return nothing_ends || held + bytes <= self.bytes_max;
        }
        held == 0 || held + bytes <= self.bytes_max_of_large()
    }

    /// Up to where rooms that are not small may fill the memory.
    fn bytes_max_of_large(&self) -> usize {
        self.bytes_max - self.bytes_max / SMALL_PART
    }

    /// May a room of so many bytes become larger by so many?
    pub(super) fn admits_more(&self, bytes: usize, more: usize) -> bool {
        bytes + more <= self.room_bytes_max() && self.held_bytes() + more <= self.bytes_max_of_large()
    }

    fn room(self: &Rc<Self>, bytes: usize) -> AnswerRoom {
        self.count_room();
        self.add(bytes);
        AnswerRoom::new(Rc::clone(self), bytes)
    }

    /// One more request will end by itself.
    pub(super) fn count_room(&self) {
        self.room_count.set(self.room_count.get() + 1);
    }

    pub(super) fn add(&self, bytes: usize) {
        // One writer: a load and a store are enough.
        self.held_bytes.store(self.held_bytes() + bytes, Ordering::Relaxed);
    }

    /// Something is given back; a room with it, if it was one.
    pub(super) fn give_back(self: &Rc<Self>, bytes: usize, room_count: usize) {
        let held = self.held_bytes();
        assert!(bytes <= held, "no more is given back than was taken: {bytes} of {held}");
        self.held_bytes.store(held - bytes, Ordering::Relaxed);
        self.room_count.set(self.room_count.get() - room_count);
        if bytes > 0 || room_count > 0 {
            self.call();
        }
    }

    /// Has a lane stand in line with the request that is its next.
    fn line_up(&self, lane: &Rc<Lane>) {
        if lane.is_in_line.get() || lane.is_held_back.get() {
            return;
        }
        let Some(bytes) = lane.next_bytes() else { return };
        lane.is_in_line.set(true);
        let line = if bytes <= SMALL_BYTES { &self.small } else { &self.large };
        line.borrow_mut().push_back(Rc::clone(lane));
    }

    /// Calls those that there is room for.
    fn call(self: &Rc<Self>) {
        self.call_line(&self.small);
        self.call_line(&self.large);
    }

    fn call_line(self: &Rc<Self>, line: &RefCell<VecDeque<Rc<Lane>>>) {
        loop {
            let next = {
                let line = line.borrow();
                let Some(lane) = line.front() else { return };
                lane.next_bytes().filter(|_| !lane.is_held_back.get())
            };
            if next.is_some_and(|bytes| !self.admits(bytes)) {
                return;
            }
            let Some(lane) = line.borrow_mut().pop_front() else { return };
            lane.is_in_line.set(false);
            if let Some(bytes) = next
                && let Some(seat) = lane.waiting.borrow_mut().pop_front()
            {
                *seat.room.borrow_mut() = Some(self.room(bytes));
                seat.waker.borrow().wake_by_ref();
            }
            self.line_up(&lane);
        }
    }
}

impl Default for Lane {
    fn default() -> Self {
        Lane {
            expected_bytes: Cell::new(SMALL_BYTES),
            waiting: RefCell::default(),
            is_in_line: Cell::default(),
            is_held_back: Cell::default(),
        }
    }
}

impl Lane {
    /// Learns how much an answer took: the next is expected to take a little more, or a little less than was expected
    /// before.
    pub fn learn(&self, answer_bytes: usize) {
        let expected_bytes = self.expected_bytes.get();
        let a_little_more = answer_bytes.saturating_add(answer_bytes / 4);
        self.expected_bytes.set(a_little_more.max(expected_bytes - expected_bytes.div_ceil(16)));
    }

    /// How much its next request waits for. Those that have left are forgotten.
    fn next_bytes(&self) -> Option<usize> {
        let mut waiting = self.waiting.borrow_mut();
        while waiting.front().is_some_and(|seat| seat.is_left.get()) {
            waiting.pop_front();
        }
        waiting.front().map(|seat| seat.bytes)
    }
}

/// Tells that a request waits no longer.
struct Leaves<'a>(&'a Rc<Seat>);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.is_left.set(true);
        // One that was called and did not come gives its room back.
        let room = self.0.room.borrow_mut().take();
        drop(room);
    }
}
