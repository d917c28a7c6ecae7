//! Those who wait for one sync.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::error::CommitLogError;

type Outcome = Result<(), CommitLogError>;

/// The records between two syncs, and who waits for them.
#[derive(Debug, Default)]
pub(crate) struct Group {
    outcome: RefCell<Option<Outcome>>,
    wakers: RefCell<Vec<Waker>>,
}

impl Group {
    /// Tells everybody how it went.
    pub(crate) fn finish(&self, outcome: Outcome) {
        *self.outcome.borrow_mut() = Some(outcome);
        for waker in self.wakers.take() {
            waker.wake();
        }
    }
}

/// Waits until a record is durable, in the sense of the log's sync mode.
///
/// # Cancel safety
/// Dropping it changes nothing: the record is synced with its group.
#[derive(Debug)]
pub struct Synced {
    state: State,
}

#[derive(Debug)]
enum State {
    Done(Outcome),
    Waiting { group: Rc<Group>, registered: Option<usize> },
}

impl Synced {
    pub(crate) fn done(outcome: Outcome) -> Synced {
        Synced { state: State::Done(outcome) }
    }

    pub(crate) fn waiting(group: Rc<Group>) -> Synced {
        Synced { state: State::Waiting { group, registered: None } }
    }
}

impl Future for Synced {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        match &mut self.state {
            State::Done(outcome) => Poll::Ready(outcome.clone()),
            State::Waiting { group, registered } => {
                if let Some(outcome) = &*group.outcome.borrow() {
                    return Poll::Ready(outcome.clone());
                }
                let mut wakers = group.wakers.borrow_mut();
                match registered.and_then(|index| wakers.get_mut(index)) {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => {
                        *registered = Some(wakers.len());
                        wakers.push(context.waker().clone());
                    }
                }
                Poll::Pending
            }
        }
    }
}
