//! Requests that came together, by the way they take: plain ones wait for each other, full ones go by themselves.
//!
//! What a plain request has to wait for is memory, and the waits of several go on at the same time. So those that are
//! in the input together are done together, shard by shard ([`coordinator::Coordinator::plain_reads`]).

use std::cell::Cell;
use std::collections::VecDeque;
use std::thread::LocalKey;

use protocol::Frame;
use query::{PLAIN_BATCH_MAX, PlainRead, PlainWrite};
use stdx::index_set::IndexSet;

use super::remote::frame_bytes;
use super::request::{PlainRequest, ReadFrame, Way};

/// Frames of more than so many bytes are not gathered further: what is made of them takes memory too.
const BATCHED_BYTES: usize = 64 << 10;
const _: () = assert!(PLAIN_BATCH_MAX == storage::KEYS_TOGETHER, "what is gathered is done together");

/// An empty batch, whose memory nobody uses now.
type Spare<S, F> = Cell<PlainBatch<S, F>>;

thread_local! {
    /// Memory that the batches of one turn leave for those of the next, of whichever connection of the thread.
    static READS: Spare<PlainRead, ReadFrame> = const { Cell::new(PlainBatch::EMPTY) };
    static WRITES: Spare<PlainWrite, Frame> = const { Cell::new(PlainBatch::EMPTY) };
}

/// Requests that were taken and not yet begun. Memory is theirs for a turn only: most connections of many are idle.
#[derive(Default)]
pub(super) struct Batcher {
    reads: PlainBatch<PlainRead, ReadFrame>,
    writes: PlainBatch<PlainWrite, Frame>,
    full: VecDeque<Frame>,
    frame_bytes: usize,
}

/// Plain requests of one kind: the statements, and the frames that are answered.
pub(super) struct PlainBatch<S, F> {
    /// Invariant: as many of both.
    pub(super) statements: Vec<S>,
    pub(super) frames: Vec<F>,
}

impl<S, F> Default for PlainBatch<S, F> {
    fn default() -> Self {
        PlainBatch::EMPTY
    }
}

impl<S, F> PlainBatch<S, F> {
    const EMPTY: Self = PlainBatch { statements: Vec::new(), frames: Vec::new() };

    fn with_capacity(count: usize) -> Self {
        PlainBatch { statements: Vec::with_capacity(count), frames: Vec::with_capacity(count) }
    }

    fn push(&mut self, statement: S, frame: F) {
        if self.has_no_memory() {
            *self = PlainBatch::with_capacity(PLAIN_BATCH_MAX);
        }
        assert!(self.statements.len() < PLAIN_BATCH_MAX, "no more are gathered than are done together");
        self.statements.push(statement);
        self.frames.push(frame);
        assert_eq!(self.statements.len(), self.frames.len(), "as many of both");
    }

    fn has_no_memory(&self) -> bool {
        self.statements.capacity() == 0
    }

    /// Uses spare memory of the thread, unless it has some.
    fn borrow_from(&mut self, spare: &'static LocalKey<Spare<S, F>>) {
        if self.has_no_memory() {
            *self = spare.take();
        }
    }

    /// Leaves its memory, if it has some, to whichever comes next.
    fn leave_to(self, spare: &'static LocalKey<Spare<S, F>>) {
        if !self.has_no_memory() {
            spare.set(self);
        }
    }

    /// Takes out those that are done, and gives back those of each batch.
    pub(super) fn take_out(&mut self, done: IndexSet, batches: &[IndexSet]) -> Vec<Self> {
        let count = self.statements.len();
        assert_eq!(self.frames.len(), count, "every statement has a frame");
        let batched_count: usize = batches.iter().map(|batch| batch.len()).sum();
        assert!(done.len() + batched_count <= count, "a statement is done, or in one batch, or left");
        match batches {
            [batch] if batch.len() == count => return vec![std::mem::take(self)],
            [] if done.is_empty() => return Vec::new(),
            _ if done.len() == count => {
                self.statements.clear();
                self.frames.clear();
                return Vec::new();
            }
            _ => {}
        }
        let mut taken: Vec<Self> =
            batches.iter().map(|batch| PlainBatch::with_capacity(batch.len())).collect();
        let PlainBatch { statements, frames } = std::mem::take(self);
        for (index, (statement, frame)) in statements.into_iter().zip(frames).enumerate() {
            match batches.iter().position(|batch| batch.contains(index)) {
                Some(batch) => taken[batch].push(statement, frame),
                None if done.contains(index) => {}
                None => self.push(statement, frame),
            }
        }
        taken
    }
}

impl Batcher {
    /// Takes a request in.
    #[inline(always)]
    pub(super) fn add(&mut self, request: Way) {
        match request {
            Way::Plain(PlainRequest::Read(read, frame)) => {
                self.frame_bytes += frame.frame.body.len();
                self.reads.borrow_from(&READS);
                self.reads.push(read, frame);
            }
            Way::Plain(PlainRequest::Write(write, frame)) => {
                self.frame_bytes += frame.body.len();
                self.writes.borrow_from(&WRITES);
                self.writes.push(write, frame);
            }
            Way::Full(frame) => self.full.push_back(frame),
        }
    }

    /// Is it time to do the plain ones?
    pub(super) fn is_plain_due(&self) -> bool {
        self.reads.statements.len() >= PLAIN_BATCH_MAX
            || self.writes.statements.len() >= PLAIN_BATCH_MAX
            || self.frame_bytes >= BATCHED_BYTES
    }

    pub(super) fn len(&self) -> usize {
        self.reads.statements.len() + self.writes.statements.len() + self.full.len()
    }

    /// The next full one.
    pub(super) fn next_full(&mut self) -> Option<Frame> {
        self.full.pop_front()
    }

    /// Takes the plain ones out, to be done.
    pub(super) fn take_plain(&mut self) -> (PlainBatch<PlainRead, ReadFrame>, PlainBatch<PlainWrite, Frame>) {
        self.frame_bytes = 0;
        (std::mem::take(&mut self.reads), std::mem::take(&mut self.writes))
    }

    /// Takes back plain ones of which some are not done, and the memory of those that are.
    pub(super) fn put_back(
        &mut self,
        reads: PlainBatch<PlainRead, ReadFrame>,
        writes: PlainBatch<PlainWrite, Frame>,
    ) {
        assert!(self.reads.statements.is_empty() && self.writes.statements.is_empty(), "none came meanwhile");
        (self.reads, self.writes) = (reads, writes);
        self.frame_bytes = self.plain_frames().map(|frame| frame.body.len()).sum();
    }

    fn plain_frames(&self) -> impl Iterator<Item = &Frame> {
        self.writes.frames.iter().chain(self.reads.frames.iter().map(|read| &read.frame))
    }

    /// At the end of a turn: what is left over waits, and takes so many bytes.
    pub(super) fn settle(&mut self) -> usize {
        if self.len() == 0 {
            let Batcher { reads, writes, .. } = std::mem::take(self);
            reads.leave_to(&READS);
            writes.leave_to(&WRITES);
        }
        self.plain_frames().chain(&self.full).map(frame_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "no more are gathered than are done together")]
    fn a_batch_of_more_than_are_done_together_is_seen() {
        let mut batch = PlainBatch::default();
        (0..=PLAIN_BATCH_MAX).for_each(|number| batch.push(number, ()));
    }
}
