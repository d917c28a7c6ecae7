//! What a shard's connections may hold for their clients, and who waits until there is room.
//!
//! Everything that grows with what clients send or leave unread is counted here: requests that wait (for a
//! disk, for another shard), the buffers their frames lie in, frames that have come in part, answers that a
//! client has not taken. While there is room, whoever has something to read reads it. When there is none,
//! connections stand in line and are *not read*, so that TCP holds their clients back:
//!
//! ```text
//!   socket readable ──► room? ──yes──► a turn: read, answer, write ──► what is left over is counted
//!                         │no                                               │
//!                         └──► the line ◄──── called, oldest first ◄────────┘ room again
//! ```
//!
//! What must hold:
//!
//! - Whoever stands in line gets its turn: nobody passes it, and who is called has its room set aside.
//! - Nothing stands still. Requests and turns end by themselves and give back what they hold; while there are
//!   any, the line waits for them. When there are none, all is held by clients that do not read (so that their
//!   requests are not carried on either) or do not send the rest of a frame, and then one turn at a time is given
//!   beyond the budget.
//! - Who holds nothing does not stand in line for a small turn: it is counted, and given in any case.
//! - A frame of more than a few KiB has all of its room set aside before more of it is read, so that two that
//!   came in part never wait for each other. Beyond the budget there is one such frame at most.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

/// A turn reads at most so much from a socket.
pub(crate) const READ_BYTES: usize = 32 << 10;
/// Beyond the budget a turn reads this much, and a begun frame of so much needs no room set aside.
pub(crate) const READ_BYTES_MIN: usize = 4 << 10;
/// What a request holds beside its frame while it waits: its future. Its answer is counted by
/// [`query::AnswerMemory`].
const REQUEST_BYTES: usize = 4 << 10;
const _: () = assert!(READ_BYTES_MIN < READ_BYTES, "beyond the budget turns are smaller");

/// What can be told of a shard's budget from other threads.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    held_bytes: Arc<AtomicUsize>,
    waiting_count: AtomicUsize,
    overloaded_count: AtomicU64,
}

impl Figures {
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// The same, for other threads to look at.
    pub(crate) fn held_figure(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.held_bytes)
    }

    /// Connections in line.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting_count.load(Ordering::Relaxed)
    }

    /// Requests answered `Overloaded` without being carried out.
    pub(crate) fn overloaded_count(&self) -> u64 {
        self.overloaded_count.load(Ordering::Relaxed)
    }
}

/// A shard's share of the memory for requests.
pub(crate) struct Budget {
    bytes_max: usize,
    /// Written by the shard's thread alone.
    figures: Arc<Figures>,
    /// Requests and turns that hold something and will end.
    ending_count: Cell<usize>,
    /// Frames that have room set aside.
    frame_count: Cell<usize>,
    line: RefCell<VecDeque<Rc<Place>>>,
}

/// What a connection stands in line for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// To read once, and to begin what was read.
    Turn,
    /// To take in a frame of so many bytes.
    Frame(usize),
}

/// A connection's place in line, given up when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Option<(Rc<Budget>, Rc<Place>)>);

#[derive(Debug)]
struct Place {
    want: Cell<Want>,
    waker: RefCell<Waker>,
    /// Set when it is called.
    room: RefCell<Option<Held>>,
}

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Rc<Budget>,
    bytes: usize,
    until: Until,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// It ends by itself.
    Ended,
    /// A frame has come whole.
    Frame,
    /// A client takes what is its.
    Taken,
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Budget({} of {})", self.held_bytes(), self.bytes_max)
    }
}

impl Want {
    fn bytes(self) -> usize {
        match self {
            Want::Turn => READ_BYTES,
            Want::Frame(bytes) => bytes,
        }
    }
}

impl Budget {
    pub(crate) fn new(bytes_max: usize, figures: Arc<Figures>) -> Rc<Self> {
        Rc::new(Budget {
            bytes_max,
            figures,
            ending_count: Cell::new(0),
            frame_count: Cell::new(0),
            line: RefCell::default(),
        })
    }

    fn held_bytes(&self) -> usize {
        self.figures.held_bytes()
    }

    fn add(&self, bytes: usize) {
        // One writer: a load and a store are enough.
        self.figures.held_bytes.store(self.held_bytes() + bytes, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: usize) {
        let held_bytes = self.held_bytes();
        assert!(bytes <= held_bytes, "what is given back was counted");
        self.figures.held_bytes.store(held_bytes - bytes, Ordering::Relaxed);
    }

    /// Is there room for one more request?
    pub(crate) fn has_room(&self) -> bool {
        self.held_bytes() + REQUEST_BYTES <= self.bytes_max
    }

    /// May whoever comes have a turn at once?
    pub(crate) fn is_open(&self) -> bool {
        self.line.borrow().is_empty() && self.held_bytes() + READ_BYTES <= self.bytes_max
    }

    /// Does anybody wait for room?
    pub(crate) fn is_wanted(&self) -> bool {
        !self.line.borrow().is_empty()
    }

    /// How much a turn may read.
    pub(crate) fn read_bytes(&self) -> usize {
        if self.held_bytes() <= self.bytes_max { READ_BYTES } else { READ_BYTES_MIN }
    }

    /// Counts requests that wait, with their frames.
    pub(crate) fn hold_requests(self: &Rc<Self>, count: usize, frame_bytes: usize) -> Held {
        self.hold(frame_bytes + count * REQUEST_BYTES, Until::Ended)
    }

    /// Counts what waits for a client; see [`Held::set`].
    pub(crate) fn hold_for_client(self: &Rc<Self>) -> Held {
        self.hold(0, Until::Taken)
    }

    fn hold(self: &Rc<Self>, bytes: usize, until: Until) -> Held {
        self.add(bytes);
        self.count(until, 1);
        Held { budget: Rc::clone(self), bytes, until }
    }

    fn count(&self, until: Until, by: isize) {
        let counter = match until {
            Until::Ended => &self.ending_count,
            Until::Frame => &self.frame_count,
            Until::Taken => return,
        };
        let count = counter.get().checked_add_signed(by);
        counter.set(count.expect("what ends was begun"));
    }

    /// Counts a request that is refused.
    pub(crate) fn count_overloaded(&self) {
        let count = self.figures.overloaded_count();
        self.figures.overloaded_count.store(count + 1, Ordering::Relaxed);
    }

    /// Room for a small turn of a connection that holds nothing, which nobody stands in line for: clients that hold
    /// much and do not go on would keep it from those who ask for little. It comes beyond the budget; there is one for
    /// each connection.
    pub(crate) fn small_turn(self: &Rc<Self>) -> Held {
        self.hold(READ_BYTES_MIN, Until::Ended)
    }

    /// Gives a connection room for what it wants, when it is its turn.
    pub(crate) fn poll_room(
        self: &Rc<Self>,
        ticket: &mut Ticket,
        want: Want,
        context: &mut Context<'_>,
    ) -> Poll<Held> {
        let Some((_, place)) = &ticket.0 else {
            if self.line.borrow().is_empty() && self.admits(want) {
                return Poll::Ready(self.room_for(want));
            }
            let waker = RefCell::new(context.waker().clone());
            let place = Rc::new(Place { want: Cell::new(want), waker, room: RefCell::default() });
            ticket.0 = Some((Rc::clone(self), Rc::clone(&place)));
            self.line.borrow_mut().push_back(place);
            self.call();
            return self.poll_room(ticket, want, context);
        };
        let room = place.room.borrow_mut().take();
        if let Some(room) = room {
            assert_eq!(room.bytes(), place.want.get().bytes(), "who is called has the room it waited for");
            ticket.0 = None;
            return Poll::Ready(room);
        }
        place.want.set(want);
        place.waker.borrow_mut().clone_from(context.waker());
        Poll::Pending
    }

    fn room_for(self: &Rc<Self>, want: Want) -> Held {
        let until = match want {
            Want::Turn => Until::Ended,
            Want::Frame(_) => Until::Frame,
        };
        self.hold(want.bytes(), until)
    }

    /// Is there room for it, or nothing to wait for?
    fn admits(&self, want: Want) -> bool {
        if self.held_bytes() + want.bytes() <= self.bytes_max {
            return true;
        }
        let nothing_ends = self.ending_count.get() == 0;
        match want {
            Want::Turn => nothing_ends,
            Want::Frame(_) => nothing_ends && self.frame_count.get() == 0,
        }
    }

    /// Calls those at the head of the line that there is room for.
    fn call(self: &Rc<Self>) {
        while let Some(place) = self.next_in_line() {
            // Counted before it is woken, so that others find the room taken.
            *place.room.borrow_mut() = Some(self.room_for(place.want.get()));
            place.waker.borrow().wake_by_ref();
        }
        self.figures.waiting_count.store(self.line.borrow().len(), Ordering::Relaxed);
    }

    fn next_in_line(&self) -> Option<Rc<Place>> {
        let mut line = self.line.borrow_mut();
        if self.admits(line.front()?.want.get()) {
            return line.pop_front();
        }
        // A frame at the head that waits for another frame does not hold up turns, which keep no room.
        let is_turn = |place: &Rc<Place>| place.want.get() == Want::Turn;
        match self.ending_count.get() {
            0 => line.iter().position(is_turn).and_then(|index| line.remove(index)),
            _ => None,
        }
    }
}

/// Whoever holds anything holds the budget, too.
impl Drop for Budget {
    fn drop(&mut self) {
        assert_eq!(self.held_bytes(), 0, "all that was held was given back");
        assert_eq!((self.ending_count.get(), self.frame_count.get()), (0, 0), "all that was begun has ended");
    }
}

impl Ticket {
    /// Does it stand in line, or was it called?
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some((budget, place)) = self.0.take() else { return };
        // One that was called already gives its room back.
        let room = place.room.borrow_mut().take();
        if room.is_none() {
            budget.line.borrow_mut().retain(|other| !Rc::ptr_eq(other, &place));
            budget.call();
        }
    }
}

impl Held {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Does it end by itself, or does it wait for its client for now?
    pub(crate) fn set_ending(&mut self, is_ending: bool) {
        let until = if is_ending { Until::Ended } else { Until::Taken };
        if until == self.until {
            return;
        }
        self.budget.count(self.until, -1);
        self.budget.count(until, 1);
        self.until = until;
        self.budget.call();
    }

    /// It is so much now.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.budget.add(bytes - self.bytes);
        } else if bytes < self.bytes {
            self.budget.subtract(self.bytes - bytes);
            self.budget.call();
        }
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.subtract(self.bytes);
        self.budget.count(self.until, -1);
        self.budget.call();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;

    fn budget(kibibytes: usize) -> Rc<Budget> {
        Budget::new(kibibytes * KIB, Arc::default())
    }

    fn poll(budget: &Rc<Budget>, ticket: &mut Ticket, want: Want) -> Option<Held> {
        match budget.poll_room(ticket, want, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(held) => Some(held),
            Poll::Pending => None,
        }
    }

    #[test]
    fn what_was_not_counted_is_not_given_back() {
        let budget = budget(1);
        let said = |act: &dyn Fn()| runtime::caught(act).err().map(|panicked| panicked.what);
        let given_back = said(&|| budget.subtract(1));
        assert_eq!(given_back.as_deref(), Some("what is given back was counted"));
        assert_eq!(said(&|| budget.count(Until::Ended, -1)).as_deref(), Some("what ends was begun"));
    }

    #[test]
    fn who_holds_nothing_has_a_small_turn_and_requests_of_who_does_not_read_are_not_waited_for() {
        let budget = budget(100);
        let mut stuck = budget.hold_requests(1, 90 * KIB);
        let mut ticket = Ticket::default();
        assert!(poll(&budget, &mut ticket, Want::Turn).is_none(), "the request may end");
        let small = budget.small_turn();
        assert_eq!((small.bytes(), budget.held_bytes()), (READ_BYTES_MIN, 94 * KIB + READ_BYTES_MIN));
        drop(small);
        stuck.set_ending(false);
        let turn = poll(&budget, &mut ticket, Want::Turn);
        assert!(turn.is_some(), "nothing ends that it could wait for");
        drop(turn);
        stuck.set_ending(true);
        drop(stuck);
        assert_eq!((budget.held_bytes(), budget.ending_count.get()), (0, 0));
    }

    #[test]
    fn who_waits_is_called_in_order_as_requests_end() {
        let budget = budget(100);
        let mut requests: Vec<_> = (0..5).map(|_| budget.hold_requests(1, 12 * KIB)).collect();
        assert!(!budget.is_open());
        let mut tickets: Vec<Ticket> = (0..3).map(|_| Ticket::default()).collect();
        for ticket in &mut tickets {
            assert!(poll(&budget, ticket, Want::Turn).is_none());
        }
        assert_eq!(budget.figures.waiting_count(), 3);
        requests.truncate(3);
        let first = poll(&budget, &mut tickets[0], Want::Turn);
        assert!(first.is_some(), "40 KiB are free, a turn needs 32");
        assert!(poll(&budget, &mut tickets[1], Want::Turn).is_none());
        let mut late = Ticket::default();
        assert!(poll(&budget, &mut late, Want::Turn).is_none());
        drop(first);
        assert!(poll(&budget, &mut late, Want::Turn).is_none(), "nobody passes the line");
        assert!(poll(&budget, &mut tickets[1], Want::Turn).is_some());
        drop(tickets);
        assert!(poll(&budget, &mut late, Want::Turn).is_some(), "who goes away gives its turn to the next");
        drop((requests, late));
        assert_eq!(
            (budget.held_bytes(), budget.ending_count.get(), budget.figures.waiting_count()),
            (0, 0, 0)
        );
    }

    #[test]
    fn when_nothing_ends_turns_are_given_one_at_a_time() {
        let budget = budget(64);
        let mut unread = budget.hold_for_client();
        unread.set(500 * KIB);
        assert_eq!(budget.read_bytes(), READ_BYTES_MIN);
        let mut tickets: Vec<Ticket> = (0..3).map(|_| Ticket::default()).collect();
        let first = poll(&budget, &mut tickets[0], Want::Turn);
        assert!(first.is_some());
        assert!(poll(&budget, &mut tickets[1], Want::Turn).is_none());
        drop(first);
        let request = budget.hold_requests(1, KIB);
        let second = poll(&budget, &mut tickets[1], Want::Turn);
        assert!(second.is_some(), "it was called before the request began");
        drop(second);
        assert!(poll(&budget, &mut tickets[2], Want::Turn).is_none(), "a request will end");
        drop(request);
        assert!(poll(&budget, &mut tickets[2], Want::Turn).is_some());
    }

    #[test]
    fn beyond_the_budget_there_is_one_frame_and_turns_pass_those_that_wait_for_it() {
        let budget = budget(64);
        let (mut one, mut two, mut turn) = (Ticket::default(), Ticket::default(), Ticket::default());
        let first = poll(&budget, &mut one, Want::Frame(1000 * KIB));
        assert!(first.is_some(), "larger than the budget, and yet it is taken in");
        assert!(poll(&budget, &mut two, Want::Frame(1000 * KIB)).is_none());
        assert!(poll(&budget, &mut turn, Want::Turn).is_some());
        drop(first);
        assert!(poll(&budget, &mut two, Want::Frame(1000 * KIB)).is_some());
    }
}
