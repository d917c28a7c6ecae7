//! Many short waits of one thread behind one timer.
//!
//! A timer that is due before all others were when the thread last went to sleep costs two system calls: tokio writes
//! to a descriptor of its own, and the thread wakes for nothing. A request that waits a millisecond for its answer
//! would set such a timer every time, and take it back nearly every time. Here all of them share one, which is left to
//! ring when nobody waits for it any more.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use tokio::time::{Instant, sleep_until};

use crate::spawn_local;

/// Rings for all who wait with it. Cheap to clone; of one thread.
#[derive(Clone, Default)]
pub struct Alarm(Rc<State>);

#[derive(Default)]
struct State {
    /// Who waits, by when to wake them and a number of their own.
    waiting: RefCell<BTreeMap<(Instant, u64), Waker>>,
    last_number: Cell<u64>,
    /// When it rings next; `None` when nobody waits.
    rings_at: Cell<Option<Instant>>,
}

/// Nothing came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late;

impl fmt::Debug for Alarm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { waiting, rings_at, .. } = &*self.0;
        formatter
            .debug_struct("Alarm")
            .field("waiting", &waiting.borrow().len())
            .field("rings_at", rings_at)
            .finish()
    }
}

impl Alarm {
    /// What the future gives, or [`Late`] if it has not by then.
    ///
    /// # Cancel safety
    /// That of the future.
    pub async fn timeout_at<F: Future>(&self, deadline: Instant, future: F) -> Result<F::Output, Late> {
        let mut future = pin!(future);
        let mut place: Option<Place<'_>> = None;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            match &place {
                None if deadline <= Instant::now() => return Poll::Ready(Err(Late)),
                None => place = Some(Place::take(self, deadline, context.waker())),
                Some(place) if place.has_rung() => return Poll::Ready(Err(Late)),
                Some(place) => place.wake(context.waker()),
            }
            Poll::Pending
        })
        .await
    }

    /// Rings then, unless it rings before.
    fn set(&self, deadline: Instant) {
        let rings_at = &self.0.rings_at;
        if rings_at.get().is_none_or(|rings_at| deadline < rings_at) {
            rings_at.set(Some(deadline));
            spawn_local("alarm", self.clone().ring_from(deadline));
        }
    }

    /// Rings then, and as long as others wait.
    async fn ring_from(self, mut when: Instant) {
        loop {
            sleep_until(when).await;
            // Another task has been started, which rings earlier.
            if self.0.rings_at.get() != Some(when) {
                return;
            }
            self.ring();
            let next = self.0.waiting.borrow().first_key_value().map(|((deadline, _), _)| *deadline);
            self.0.rings_at.set(next);
            match next {
                Some(next) => when = next,
                None => return,
            }
        }
    }

    /// Wakes all whose time is over.
    fn ring(&self) {
        let now = Instant::now();
        let mut waiting = self.0.waiting.borrow_mut();
        let later = waiting.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut *waiting, later);
        drop(waiting);
        due.into_values().for_each(Waker::wake);
    }
}

/// The place of one who waits, given back when it is dropped.
struct Place<'a> {
    state: &'a State,
    key: (Instant, u64),
}

impl<'a> Place<'a> {
    fn take(alarm: &'a Alarm, deadline: Instant, waker: &Waker) -> Place<'a> {
        let state = &*alarm.0;
        let number = state.last_number.get() + 1;
        state.last_number.set(number);
        let key = (deadline, number);
        state.waiting.borrow_mut().insert(key, waker.clone());
        alarm.set(deadline);
        Place { state, key }
    }

    fn has_rung(&self) -> bool {
        !self.state.waiting.borrow().contains_key(&self.key)
    }

    /// Who polls now is woken.
    fn wake(&self, waker: &Waker) {
        if let Some(waiting) = self.state.waiting.borrow_mut().get_mut(&self.key) {
            waiting.clone_from(waker);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.state.waiting.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::task::LocalSet;
    use tokio::time::sleep;

    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Runs a test on one thread in virtual time.
    fn run(test: impl AsyncFnOnce(Alarm)) {
        let builder = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = builder.expect("a runtime");
        runtime.block_on(LocalSet::new().run_until(async { test(Alarm::default()).await }));
    }

    fn is_set(alarm: &Alarm) -> bool {
        alarm.0.rings_at.get().is_some()
    }

    #[test]
    fn what_does_not_come_is_late_at_its_deadline_whoever_else_waits() {
        run(async |alarm| {
            let begun = Instant::now();
            let late = [30, 10, 20, 10].map(async |after| {
                let deadline = begun + after * MILLISECOND;
                assert_eq!(alarm.timeout_at(deadline, pending::<()>()).await, Err(Late));
                (after, begun.elapsed())
            });
            for (after, elapsed) in join_all(late).await {
                assert_eq!(elapsed, after * MILLISECOND);
            }
            assert!(!is_set(&alarm) && alarm.0.waiting.borrow().is_empty());
        });
    }

    #[test]
    fn what_comes_in_time_is_given_and_nobody_waits_any_more() {
        run(async |alarm| {
            let deadline = Instant::now() + 10 * MILLISECOND;
            assert_eq!(alarm.timeout_at(deadline, ready(7)).await, Ok(7));
            assert!(!is_set(&alarm), "it did not wait at all");
            assert_eq!(alarm.timeout_at(deadline, sleep(3 * MILLISECOND)).await, Ok(()));
            assert!(is_set(&alarm) && alarm.0.waiting.borrow().is_empty(), "it is left to ring");
            assert_eq!(alarm.timeout_at(deadline, pending::<()>()).await, Err(Late));
            assert_eq!(Instant::now(), deadline);
            assert!(!is_set(&alarm));
        });
    }

    #[test]
    fn a_deadline_that_is_over_is_late_unless_there_is_something_already() {
        run(async |alarm| {
            assert_eq!(alarm.timeout_at(Instant::now(), ready(7)).await, Ok(7));
            assert_eq!(alarm.timeout_at(Instant::now(), pending::<()>()).await, Err(Late));
            assert!(!is_set(&alarm));
        });
    }

    #[test]
    fn one_that_is_given_up_leaves_its_place_to_nobody() {
        run(async |alarm| {
            let begun = Instant::now();
            let given_up = alarm.timeout_at(begun + 5 * MILLISECOND, pending::<()>());
            let waiting = alarm.timeout_at(begun + 9 * MILLISECOND, pending::<()>());
            let first = async {
                tokio::select! { biased; _ = given_up => unreachable!(), () = sleep(2 * MILLISECOND) => {} }
                assert_eq!(alarm.0.waiting.borrow().len(), 1);
            };
            let ((), second) = futures_util::future::join(first, waiting).await;
            assert_eq!((second, begun.elapsed()), (Err(Late), 9 * MILLISECOND));
        });
    }
}
