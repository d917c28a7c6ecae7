//! What one end of a connection has to say and has not said yet.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context as TaskContext, Waker};

use bytes::{Buf, Bytes, BytesMut};
use tokio::time::Instant;

use super::ages::Ages;
use super::room::{Part, Room};
use super::{Met, Node};
use crate::encoder::{BodyTooLong, Encoder};
use crate::message::{Kind, Stamp};

/// What is counted for a request that came and is not answered, beside its bytes: its task, and what it reads first.
const REQUEST_BYTES: usize = 1 << 10;

/// Messages on their way into a stream. Cheap to clone; of one thread.
#[derive(Clone)]
pub(super) struct Outbox(Rc<RefCell<State>>);

/// When a frame got its first message, and what the sender says of that moment.
#[derive(Clone, Copy)]
struct Opened {
    at: Instant,
    stamp: Stamp,
}

struct State {
    node: Rc<dyn Node>,
    encoder: Encoder,
    /// `None` before there is a connection.
    ages: Option<Ages>,
    /// `None` while no frame is open.
    opened: Option<Opened>,
    /// Frames that were sealed and are not wholly handed over, the oldest first.
    sealed: VecDeque<Bytes>,
    sealed_bytes: usize,
    /// So many frames were begun to be handed over: what is in them may have arrived.
    begun: u64,
    /// Requests that came on this connection and are not answered, and their bytes.
    under_way: (usize, usize),
    /// What all of that comes to.
    part: Part,
    /// Wakes the connection's task when there is something to send.
    waker: Option<Waker>,
    /// The connection has ended: nothing is kept any more.
    is_closed: bool,
}

impl Outbox {
    pub(super) fn new(node: Rc<dyn Node>) -> Outbox {
        let (encoder, part) = (Encoder::new(false), node.bounds().room.part());
        Outbox(Rc::new(RefCell::new(State {
            node,
            encoder,
            ages: None,
            opened: None,
            sealed: VecDeque::new(),
            sealed_bytes: 0,
            begun: 0,
            under_way: (0, 0),
            part,
            waker: None,
            is_closed: false,
        })))
    }

    /// What it has goes to whom was met.
    pub(super) fn connect(&self, met: &Met) {
        let state = &mut *self.0.borrow_mut();
        state.encoder.compress(met.established.is_compressing);
        state.ages = Some(Ages::since(met.since));
    }

    /// A frame has come: when was it opened?
    pub(super) fn hear(&self, stamp: Stamp) -> Instant {
        self.0.borrow_mut().ages.as_mut().map_or_else(Instant::now, |ages| ages.take_in(stamp))
    }

    /// Writes a message into the open frame; the number of that frame. What is written may not use the outbox.
    pub(super) fn push(&self, kind: Kind, write: impl FnOnce(&mut BytesMut)) -> Result<u64, BodyTooLong> {
        let state = &mut *self.0.borrow_mut();
        if state.is_closed {
            return Ok(state.encoder.frame_number());
        }
        if state.encoder.is_full() {
            state.seal();
        }
        let now = Instant::now();
        let opened = state.opened.unwrap_or_else(|| state.open(now));
        state.encoder.push(kind.asked_behind(now.saturating_duration_since(opened.at)), write)?;
        state.opened = Some(opened);
        state.count();
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        Ok(state.encoder.frame_number())
    }

    /// Forgets what was not sent, and takes no more: the connection has ended.
    pub(super) fn close(&self) {
        let state = &mut *self.0.borrow_mut();
        state.is_closed = true;
        state.seal();
        state.sealed.clear();
        state.sealed_bytes = 0;
        state.count();
    }

    /// Bytes that were not handed over.
    pub(super) fn unsent_bytes(&self) -> usize {
        let state = self.0.borrow();
        state.sealed_bytes + state.encoder.open_bytes()
    }

    /// May this connection hold more than it does?
    pub(super) fn has_room(&self) -> bool {
        self.0.borrow().part.has_room()
    }

    /// What all connections hold together.
    pub(super) fn room(&self) -> Room {
        self.0.borrow().part.room().clone()
    }

    /// How many requests came and are not answered, and their bytes.
    pub(super) fn under_way(&self) -> (usize, usize) {
        self.0.borrow().under_way
    }

    /// A request came.
    pub(super) fn note_begun(&self, bytes: usize) {
        let state = &mut *self.0.borrow_mut();
        let (count, all_bytes) = state.under_way;
        state.under_way = (count + 1, all_bytes + bytes);
        state.count();
    }

    /// A request has its answer, or will have none. Its end is pushed before, which wakes the connection's task.
    pub(super) fn note_ended(&self, bytes: usize) {
        let state = &mut *self.0.borrow_mut();
        let (count, all_bytes) = state.under_way;
        state.under_way = (count - 1, all_bytes - bytes);
        state.count();
    }

    /// May a message of the frame with this number have arrived?
    pub(super) fn was_begun(&self, frame: u64) -> bool {
        frame < self.0.borrow().begun
    }

    /// What is to be handed over next; `None` when there is nothing, and then the task will be woken.
    pub(super) fn next(&self, task: &TaskContext<'_>) -> Option<Bytes> {
        let state = &mut *self.0.borrow_mut();
        if state.sealed.is_empty() {
            state.seal();
        }
        if state.sealed.is_empty() {
            state.waker = Some(task.waker().clone());
        }
        state.sealed.front().cloned()
    }

    /// So much of what [`Outbox::next`] gave was handed over.
    pub(super) fn advance(&self, bytes: usize) {
        let state = &mut *self.0.borrow_mut();
        let waiting = state.sealed.len() as u64;
        let frame = state.sealed.front_mut().expect("something was handed over");
        // The oldest sealed frame has now been begun.
        state.begun = state.encoder.frame_number() - waiting + 1;
        frame.advance(bytes);
        if frame.is_empty() {
            state.sealed.pop_front();
        }
        state.sealed_bytes -= bytes;
        state.count();
    }
}

impl State {
    /// A frame gets its first message now. It may be a while until it is sealed: when what was sealed before is gone.
    fn open(&self, now: Instant) -> Opened {
        Opened { at: now, stamp: self.ages.as_ref().map_or(Stamp::default(), |ages| ages.stamp(now)) }
    }

    fn seal(&mut self) {
        let Some(opened) = self.opened.take() else { return };
        let sealed = self.encoder.seal(self.node.context(), opened.stamp);
        let frame = sealed.expect("a frame that was opened has a message");
        self.sealed_bytes += frame.len();
        self.sealed.push_back(frame);
        self.count();
    }

    fn count(&mut self) {
        let (count, bytes) = self.under_way;
        self.part.hold(self.sealed_bytes + self.encoder.open_bytes() + bytes + count * REQUEST_BYTES);
    }
}
