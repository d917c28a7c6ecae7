//! Requests of a connection that wait: for the disk, for another shard, for room.
//!
//! What they hold is given back when they are done. That of a write which is answered late, and of all whose client
//! goes away, counts on until the writes have ended that may go on ([`LateWrites`]).

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use protocol::Version;
use query::AnswerRoom;
use runtime::Piece;
use tokio::time::Instant;

use super::answer::Answer;
use super::late_writes::LateWrites;
use super::party::{Party, Rest};
use super::remote::{RemoteReads, RemoteWrites};
use crate::budget::Held;

/// The answer to a request, on its stream, and the room that it has in memory.
pub(super) type Answered = (i16, Version, Answer, AnswerRoom);

/// What requests that waited have come to.
pub(super) enum Done {
    Answer(Answered),
    Reads(RemoteReads),
    Writes(RemoteWrites),
}

impl Done {
    /// Is it a write that may go on?
    fn is_late_write(&self) -> bool {
        match self {
            Done::Answer((_, _, answer, _)) => answer.is_write_timeout(),
            Done::Reads(_) => false,
            Done::Writes(writes) => writes.is_doubtful(),
        }
    }

    /// How many requests.
    fn len(&self) -> usize {
        match self {
            Done::Answer(_) => 1,
            Done::Reads(reads) => reads.len(),
            Done::Writes(writes) => writes.len(),
        }
    }
}

/// All that wait.
pub(super) struct Pending {
    waiting: FuturesUnordered<Waiting>,
    request_count: usize,
    late_writes: Rc<LateWrites>,
    /// Batches of this turn.
    party: Option<Rc<Party>>,
    /// What batches that are done wait for.
    rest: Rest,
}

/// Requests that wait, one by itself or several together, and what they hold meanwhile.
struct Waiting {
    done: Pin<Box<dyn Future<Output = Done>>>,
    /// Given away with the outcome.
    held: Option<Held>,
    /// If it is a batch, those that it was begun with.
    party: Option<Rc<Party>>,
}

impl Future for Waiting {
    type Output = (Done, Option<Held>, Option<Rc<Party>>);

    /// Many may be ready to go on: those that the turn is too long for go on in the next.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if Piece::of_turn().is_long() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let done = ready!(self.done.as_mut().poll(context));
        Poll::Ready((done, self.held.take(), self.party.take()))
    }
}

impl Pending {
    /// None; `late_writes` takes what those hold that may go on when they are done.
    pub(super) fn new(late_writes: Rc<LateWrites>) -> Self {
        let (waiting, request_count) = (FuturesUnordered::new(), 0);
        Pending { waiting, request_count, late_writes, party: None, rest: Rest::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many requests wait.
    pub(super) fn request_count(&self) -> usize {
        self.request_count
    }

    /// Keeps a request until it is done.
    pub(super) fn push(&mut self, held: Held, done: Pin<Box<dyn Future<Output = Done>>>) {
        self.keep(1, Waiting { done, held: Some(held), party: None });
    }

    /// Keeps so many requests until they are done together.
    pub(super) fn push_batch(
        &mut self,
        request_count: usize,
        held: Held,
        done: Pin<Box<dyn Future<Output = Done>>>,
    ) {
        let party = Rc::clone(self.party.get_or_insert_with(Party::begin));
        self.keep(request_count, Waiting { done, held: Some(held), party: Some(party) });
    }

    fn keep(&mut self, request_count: usize, waiting: Waiting) {
        self.waiting.push(waiting);
        self.request_count += request_count;
        self.check();
    }

    /// What comes now was not begun with what came before.
    pub(super) fn end_party(&mut self) {
        self.party = None;
    }

    /// When the rest of a party is late of which a batch is done, if that is awaited.
    pub(super) fn rest_late_at(&self) -> Option<Instant> {
        self.rest.late_at()
    }

    /// The rest is late.
    pub(super) fn give_up_rest(&mut self) {
        self.rest.give_up();
    }

    /// Those that are done next, when they are.
    ///
    /// # Cancel safety
    /// None are lost.
    pub(super) async fn next(&mut self) -> Option<Done> {
        let (done, held, party) = self.waiting.next().await?;
        self.take_out(&done);
        if let Some(party) = party {
            self.rest.one_is_done(party);
        }
        if done.is_late_write() {
            self.late_writes.hold(held);
        }
        Some(done)
    }

    /// Those that are done next, if they are.
    pub(super) fn next_now(&mut self) -> Option<Done> {
        self.next().now_or_never().flatten()
    }

    fn take_out(&mut self, done: &Done) {
        assert!(done.len() <= self.request_count, "what is done was waited for");
        self.request_count -= done.len();
        self.check();
    }

    /// Each that waits is one request or several.
    fn check(&self) {
        assert!(self.waiting.len() <= self.request_count, "requests that wait are counted");
        assert_eq!(self.waiting.is_empty(), self.request_count == 0, "and no others are");
    }

    /// Will they end by themselves? Not while their client takes no answers.
    pub(super) fn set_ending(&mut self, is_ending: bool) {
        let held = self.waiting.iter_mut().filter_map(|waiting| waiting.held.as_mut());
        held.for_each(|held| held.set_ending(is_ending));
    }

    /// Gives them up: of hundreds, piece by piece.
    pub(super) async fn put_away(self) {
        let mut piece = Piece::of_turn();
        for Waiting { done, held, .. } in self.waiting {
            drop(done);
            self.late_writes.hold(held);
            piece.give_way().await;
        }
    }
}
