//! Whose turn it is of those that always have more to do.
//!
//! A connection whose socket holds more than it reads in a turn has a *long* turn before it, and there may be ten
//! thousand such. If all were ready at the same time, a client that asks for one row would stand behind all of them. So
//! they take turns, one at a time, oldest first; whoever asks little goes between any two of them:
//!
//! ```text
//!   asks much  ──► line ──► one turn ──► back to the end of the line
//!   asks little ──────────► its turn, as soon as its request is there
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A shard's long turns, of which one goes on at a time.
#[derive(Debug, Default)]
pub(crate) struct LongTurns {
    is_taken: Cell<bool>,
    line: RefCell<VecDeque<Rc<Place>>>,
}

/// A connection's place in line, given up when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Option<(Rc<LongTurns>, Rc<Place>)>);

/// The turn that goes on; the next is called when it is dropped.
#[derive(Debug)]
pub(crate) struct LongTurn(Rc<LongTurns>);

#[derive(Debug)]
struct Place {
    waker: RefCell<Waker>,
    /// Set when it is called.
    turn: RefCell<Option<LongTurn>>,
}

impl LongTurns {
    /// Does a long turn go on, or wait?
    pub(crate) fn is_busy(&self) -> bool {
        self.is_taken.get()
    }

    /// Gives a connection its turn when it is called.
    pub(crate) fn poll_turn(
        self: &Rc<Self>,
        ticket: &mut Ticket,
        context: &mut Context<'_>,
    ) -> Poll<LongTurn> {
        if let Some((_, place)) = &ticket.0 {
            let turn = place.turn.borrow_mut().take();
            return match turn {
                Some(turn) => {
                    ticket.0 = None;
                    Poll::Ready(turn)
                }
                None => {
                    place.waker.borrow_mut().clone_from(context.waker());
                    Poll::Pending
                }
            };
        }
        if !self.is_taken.replace(true) {
            assert!(self.line.borrow().is_empty(), "nobody passes those in line");
            return Poll::Ready(LongTurn(Rc::clone(self)));
        }
        let place = Rc::new(Place { waker: RefCell::new(context.waker().clone()), turn: RefCell::default() });
        self.line.borrow_mut().push_back(Rc::clone(&place));
        ticket.0 = Some((Rc::clone(self), place));
        Poll::Pending
    }
}

impl Drop for LongTurn {
    fn drop(&mut self) {
        assert!(self.0.is_taken.get(), "one long turn goes on at a time");
        let next = self.0.line.borrow_mut().pop_front();
        match next {
            None => self.0.is_taken.set(false),
            Some(place) => {
                *place.turn.borrow_mut() = Some(LongTurn(Rc::clone(&self.0)));
                place.waker.borrow().wake_by_ref();
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some((turns, place)) = self.0.take() else { return };
        turns.line.borrow_mut().retain(|other| !Rc::ptr_eq(other, &place));
        // One that was called already calls the next.
        let turn = place.turn.borrow_mut().take();
        drop(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(turns: &Rc<LongTurns>, ticket: &mut Ticket) -> Option<LongTurn> {
        match turns.poll_turn(ticket, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_turn_goes_on_at_a_time_and_the_oldest_is_next() {
        let turns = Rc::new(LongTurns::default());
        let mut tickets: Vec<Ticket> = (0..4).map(|_| Ticket::default()).collect();
        let first = poll(&turns, &mut tickets[0]);
        assert!(first.is_some() && turns.is_busy());
        for ticket in &mut tickets[1..] {
            assert!(poll(&turns, ticket).is_none());
        }
        drop(first);
        assert!(poll(&turns, &mut tickets[2]).is_none(), "nobody passes the one before");
        // The one that was called goes away, and so does one that was not.
        tickets[1] = Ticket::default();
        let mut late = Ticket::default();
        assert!(poll(&turns, &mut late).is_none());
        drop(tickets.pop());
        let second = poll(&turns, &mut tickets[2]);
        assert!(second.is_some());
        drop(second);
        let last = poll(&turns, &mut late);
        assert!(last.is_some());
        drop(last);
        assert!(!turns.is_busy());
    }
}
