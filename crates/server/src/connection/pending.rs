//! Requests of a connection that wait: for the disk, for another shard, for room.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use protocol::Version;
use query::AnswerRoom;
use runtime::Piece;

use super::answer::Answer;
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
#[derive(Default)]
pub(super) struct Pending {
    waiting: FuturesUnordered<Waiting>,
    request_count: usize,
}

/// Requests that wait, one by itself or several together, and what they hold meanwhile.
struct Waiting {
    done: Pin<Box<dyn Future<Output = Done>>>,
    held: Held,
}

impl Future for Waiting {
    type Output = Done;

    /// Many may be ready to go on: those that the turn is too long for go on in the next.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Done> {
        if Piece::of_turn().is_long() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.done.as_mut().poll(context)
    }
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many requests wait.
    pub(super) fn request_count(&self) -> usize {
        self.request_count
    }

    /// Keeps so many requests until they are done.
    pub(super) fn push(
        &mut self,
        request_count: usize,
        held: Held,
        done: Pin<Box<dyn Future<Output = Done>>>,
    ) {
        self.waiting.push(Waiting { done, held });
        self.request_count += request_count;
        self.check();
    }

    /// Those that are done next, when they are.
    ///
    /// # Cancel safety
    /// None are lost.
    pub(super) async fn next(&mut self) -> Option<Done> {
        let done = self.waiting.next().await?;
        self.take_out(&done);
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
        self.waiting.iter_mut().for_each(|waiting| waiting.held.set_ending(is_ending));
    }

    /// Gives them up: of hundreds, piece by piece.
    pub(super) async fn put_away(self) {
        let mut piece = Piece::of_turn();
        for waiting in self.waiting {
            drop(waiting);
            piece.give_way().await;
        }
    }
}
