//! Who waits for which answer.
//!
//! A request has a place in a table, and its index is the request's id on the wire. The place is free again when the
//! answer was taken; a request that was given up keeps its place until the other side has answered or declined it, or
//! the connection has ended, so that a late answer is never taken for another one's.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use bytes::Bytes;

use super::counts::MessageCounts;
use super::outbox::Outbox;
use super::wire::WireError;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Nothing of it left this node: the other one knows nothing of it.
    #[error("nothing was sent: the other node can not be reached")]
    NotSent,
    /// It may have arrived, and been carried out.
    #[error("the connection ended before the answer came")]
    Broken,
    /// The other node dropped it, before or after it had begun.
    #[error("the other node declined the request")]
    Declined,
}

/// All who wait for answers of one peer. Cheap to clone; of one thread.
#[derive(Clone)]
pub(super) struct Waiters {
    table: Rc<RefCell<Table>>,
    counts: Arc<MessageCounts>,
}

#[derive(Default)]
struct Table {
    places: Vec<Place>,
    /// Indexes of free places.
    free: Vec<u32>,
}

enum Place {
    Free,
    /// Its message is in the frame with this number, of the connection that there is.
    Waiting {
        frame: u64,
        waker: Option<Waker>,
    },
    /// Nobody waits any more; the answer may still come.
    GivenUp,
    /// To be taken by who waits.
    Over(Result<Bytes, AskError>),
}

/// An answer that is waited for.
///
/// # Cancel safety
/// Dropped, the request is given up; the other side may carry it out all the same.
#[must_use = "an answer that nobody takes"]
pub struct Asked {
    waiters: Waiters,
    id: u32,
}

impl Waiters {
    /// Nobody waits yet. What becomes of their requests is counted there.
    pub(super) fn new(counts: Arc<MessageCounts>) -> Waiters {
        Waiters { table: Rc::default(), counts }
    }

    /// How many places are taken: of requests without an answer, and of answers that nobody has taken yet.
    pub(super) fn count(&self) -> usize {
        let table = self.table.borrow();
        table.places.len() - table.free.len()
    }

    /// Takes a place; its id.
    pub(super) fn begin(&self) -> u32 {
        let table = &mut *self.table.borrow_mut();
        let place = Place::Waiting { frame: u64::MAX, waker: None };
        match table.free.pop() {
            Some(id) => {
                table.places[id as usize] = place;
                id
            }
            None => {
                table.places.push(place);
                u32::try_from(table.places.len() - 1).expect("far fewer may wait")
            }
        }
    }

    /// Gives back a place whose message was not taken.
    pub(super) fn undo(&self, id: u32) {
        self.table.borrow_mut().release(id);
    }

    /// The message of this request is in this frame.
    pub(super) fn sent_in(&self, id: u32, in_frame: u64) -> Asked {
        match &mut self.table.borrow_mut().places[id as usize] {
            Place::Waiting { frame, .. } => *frame = in_frame,
            _ => unreachable!("nobody else knows the place"),
        }
        self.counts.note_asked();
        Asked { waiters: self.clone(), id }
    }

    /// An answer that is known already.
    pub(super) fn over(&self, outcome: AskError) -> Asked {
        let id = self.begin();
        self.table.borrow_mut().places[id as usize] = Place::Over(Err(outcome));
        self.counts.note_asked();
        self.counts.note_end(false);
        Asked { waiters: self.clone(), id }
    }

    /// The other side has answered, or declined.
    pub(super) fn answered(&self, id: u32, outcome: Result<Bytes, AskError>) -> Result<(), WireError> {
        let table = &mut *self.table.borrow_mut();
        let is_answered = outcome.is_ok();
        match table.places.get_mut(id as usize) {
            Some(place @ Place::Waiting { .. }) => place.end(outcome),
            Some(Place::GivenUp) => table.release(id),
            Some(Place::Free | Place::Over(_)) | None => return Err(WireError::NotAsked { id }),
        }
        self.counts.note_end(is_answered);
        Ok(())
    }

    /// The connection has ended, or there was none: nothing more comes.
    pub(super) fn ended(&self, outbox: &Outbox) {
        let table = &mut *self.table.borrow_mut();
        for (place, id) in table.places.iter_mut().zip(0..) {
            match place {
                Place::Waiting { frame, .. } => {
                    let outcome = if outbox.was_begun(*frame) { AskError::Broken } else { AskError::NotSent };
                    place.end(Err(outcome));
                    self.counts.note_end(false);
                }
                Place::GivenUp => {
                    *place = Place::Free;
                    table.free.push(id);
                    self.counts.note_end(false);
                }
                Place::Free | Place::Over(_) => {}
            }
        }
    }
}

impl Table {
    fn release(&mut self, id: u32) {
        self.places[id as usize] = Place::Free;
        self.free.push(id);
    }
}

impl Place {
    fn end(&mut self, outcome: Result<Bytes, AskError>) {
        if let Place::Waiting { waker: Some(waker), .. } = std::mem::replace(self, Place::Over(outcome)) {
            waker.wake();
        }
    }
}

impl Future for Asked {
    type Output = Result<Bytes, AskError>;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let table = &mut *self.waiters.table.borrow_mut();
        match &mut table.places[self.id as usize] {
            Place::Waiting { waker, .. } => {
                match waker {
                    Some(waker) => waker.clone_from(task.waker()),
                    None => *waker = Some(task.waker().clone()),
                }
                Poll::Pending
            }
            // The place stays until this value goes: nobody else may have it meanwhile.
            Place::Over(outcome) => Poll::Ready(std::mem::replace(outcome, Err(AskError::Declined))),
            Place::Free | Place::GivenUp => unreachable!("a place is kept for who waits"),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let table = &mut *self.waiters.table.borrow_mut();
        match &mut table.places[self.id as usize] {
            place @ Place::Waiting { .. } => *place = Place::GivenUp,
            Place::Over(_) => table.release(self.id),
            Place::Free | Place::GivenUp => unreachable!("a place is kept for who waits"),
        }
    }
}
