//! Batches that were begun in one turn are answered together.
//!
//! Reads and writes that a client sent together go to other shards and nodes as batches of their own, and come back at
//! different moments. A client that is answered in two lots sends what comes next in two lots, these come apart again,
//! and in the end every message carries a few requests. So the answers to a batch wait for the rest of its party: at
//! most as long as the batch itself has taken, so that no answer comes after twice its time, and never long.
//!
//! Where the rest is late, because it waits for a disk and the others do not, waiting is of no use. Then the next
//! parties are not waited for: twice as many each time, and half as many after one that came in time.

use std::rc::{Rc, Weak};
use std::time::Duration;

use tokio::time::Instant;

/// Answers that are there wait for others so long at most.
const WAIT_MAX: Duration = Duration::from_millis(20);
/// Parties that are not waited for after the rest of one was late, at most.
const PASSED_MAX: u32 = 1024;

/// Batches of one turn, as long as they wait: each holds it.
pub(super) struct Party {
    begun: Instant,
}

impl Party {
    pub(super) fn begin() -> Rc<Party> {
        Rc::new(Party { begun: Instant::now() })
    }
}

/// What is left of a party of which one batch is done.
#[derive(Default)]
pub(super) struct Rest {
    /// Who is waited for, and until when.
    awaited: Option<(Weak<Party>, Instant)>,
    /// So many parties are not waited for.
    passed_count: u32,
    /// And so many after the next one that is late.
    passed_next: u32,
}

impl Rest {
    /// A batch is done that was of this party.
    pub(super) fn one_is_done(&mut self, party: Rc<Party>) {
        let is_last = Rc::strong_count(&party) == 1;
        match &self.awaited {
            Some((awaited, _)) if awaited.as_ptr() == Rc::as_ptr(&party) => {
                if is_last {
                    self.awaited = None;
                    self.passed_next /= 2;
                }
            }
            Some(_) => {}
            None if is_last => {}
            None if self.passed_count > 0 => self.passed_count -= 1,
            None => {
                let now = Instant::now();
                let took = now.duration_since(party.begun);
                self.awaited = Some((Rc::downgrade(&party), now + took.min(WAIT_MAX)));
            }
        }
    }

    /// When it is late, if it is awaited.
    pub(super) fn late_at(&self) -> Option<Instant> {
        self.awaited.as_ref().map(|(_, late_at)| *late_at)
    }

    /// It is late.
    pub(super) fn give_up(&mut self) {
        self.awaited = None;
        self.passed_next = (2 * self.passed_next).clamp(1, PASSED_MAX);
        self.passed_count = self.passed_next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A_WHILE: Duration = Duration::from_micros(300);

    /// A party of two, of which one is done after a while; gives the other.
    async fn half_done(rest: &mut Rest) -> Rc<Party> {
        half_done_after(A_WHILE, rest).await
    }

    async fn half_done_after(took: Duration, rest: &mut Rest) -> Rc<Party> {
        let one = Party::begin();
        let other = Rc::clone(&one);
        tokio::time::advance(took).await;
        rest.one_is_done(one);
        other
    }

    /// Parties that are not waited for before one is; and what is left of that one.
    async fn passed(rest: &mut Rest) -> (usize, Rc<Party>) {
        let mut count = 0;
        loop {
            let other = half_done(rest).await;
            if rest.late_at().is_some() {
                return (count, other);
            }
            rest.one_is_done(other);
            count += 1;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_waits_for_the_others_of_its_turn_as_long_as_it_took() {
        let mut rest = Rest::default();
        rest.one_is_done(Party::begin());
        assert!(rest.late_at().is_none(), "there are no others");
        let other = half_done(&mut rest).await;
        assert_eq!(rest.late_at(), Some(Instant::now() + A_WHILE));
        rest.one_is_done(Party::begin());
        drop(half_done(&mut rest).await);
        assert_eq!(rest.late_at(), Some(Instant::now()), "another party changes nothing");
        rest.one_is_done(other);
        assert!(rest.late_at().is_none());
        let _other = half_done_after(2 * WAIT_MAX, &mut rest).await;
        assert_eq!(rest.late_at(), Some(Instant::now() + WAIT_MAX), "and not long");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_late_is_waited_for_more_and_more_seldom_until_it_comes_in_time() {
        let mut rest = Rest::default();
        for expected in [0, 1, 2, 4, 8] {
            let (count, other) = passed(&mut rest).await;
            assert_eq!(count, expected);
            rest.give_up();
            rest.one_is_done(other);
        }
        let (count, in_time) = passed(&mut rest).await;
        assert_eq!(count, 16);
        rest.one_is_done(in_time);
        let (count, late) = passed(&mut rest).await;
        assert_eq!(count, 0, "the one before came in time");
        rest.give_up();
        rest.one_is_done(late);
        assert_eq!(passed(&mut rest).await.0, 16, "twice half as many");
    }
}
