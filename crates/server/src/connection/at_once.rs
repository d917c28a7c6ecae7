//! Statements about one row, carried out as soon as those that came with them are seen.
//!
//! ```text
//!   frame ─ PlainExecute ─ point_statement ─┬─ point_read ──┬─► Together ─┬─ point_writes ─► done ──┬─► output
//!              │ unusual      │ not such    └─ point_write ─┘             ├─ point_reads ─► cells ──┘
//!              │              │                  │ unusual                ├──► sent to their shard (`sent.rs`)
//!              │              │                  │                        │ not in memory
//!              └──────────────┴──────────────────┴────────────────────────┴──► a request as every other
//! ```
//!
//! What each has to wait for is memory, and the waits of several go on at the same time
//! ([`query::Engine::point_reads`]). So those that are in the input together are done together.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use protocol::{Encoder, Flags, Frame, Opcode, PlainExecute, Stage};
use query::{POINTS_MAX, PointQuery, PointRead, PointStatement, PointWrite};
use stdx::index_set::IndexSet;

use super::answer::{Described, Sink, Wanted};
use super::drive::Connection;
use super::sent::frame_bytes;
use crate::clients::PanicCount;
use crate::convert;

/// Frames of more than so many bytes are not gathered further: what is made of them takes memory too.
const GATHERED_BYTES: usize = 64 << 10;

/// A larger row is answered by a request of its own, which has to have room for it.
pub(super) const ROW_BYTES_MAX: usize = 64 << 10;
const _: () = assert!(POINTS_MAX == storage::KEYS_TOGETHER, "what is gathered is done together");

/// Reads and writes of rows by their keys that were taken and not yet done. Memory is theirs for a turn only:
/// most connections of many are idle.
#[derive(Default)]
pub(super) struct Together {
    reads: Gathered<PointRead, Asked>,
    writes: Gathered<PointWrite, Frame>,
    /// Frames that have turned out to be requests by themselves.
    alone: VecDeque<Frame>,
    frame_bytes: usize,
}

/// Statements of one kind, and what is needed to answer each.
pub(super) struct Gathered<S, A> {
    /// Invariant: as many of both.
    pub(super) statements: Vec<S>,
    pub(super) answers: Vec<A>,
}

/// How a read is to be answered.
pub(super) struct Asked {
    pub(super) frame: Frame,
    described: Described,
}

/// What became of a frame.
pub(super) enum AtOnce {
    /// It is done with those that were taken before.
    Taken,
    /// It is for others to answer; nothing was done.
    Unusual(Frame),
}

impl Asked {
    /// Appends the answer, whose rows are given to the sink and counted.
    pub(super) fn append_answer(&self, encoder: &mut Encoder, rows: impl FnOnce(&mut Sink<'_>) -> usize) {
        let (version, stream) = (self.frame.header.version, self.frame.header.stream);
        encoder.append_with(version, stream, Opcode::Result, Flags::NONE, |out| {
            self.described.write_rows(out, version, None, rows);
        });
    }
}

impl<S, A> Default for Gathered<S, A> {
    fn default() -> Self {
        Gathered::with_capacity(0)
    }
}

impl<S, A> Gathered<S, A> {
    fn with_capacity(count: usize) -> Self {
        Gathered { statements: Vec::with_capacity(count), answers: Vec::with_capacity(count) }
    }

    fn push(&mut self, statement: S, answer: A) {
        if self.statements.capacity() == 0 {
            *self = Gathered::with_capacity(POINTS_MAX);
        }
        self.statements.push(statement);
        self.answers.push(answer);
        assert_eq!(self.statements.len(), self.answers.len(), "as many of both");
    }

    /// Takes out those that are done, and gives back those of each group.
    fn take_out(&mut self, done: IndexSet, groups: &[IndexSet]) -> Vec<Self> {
        let count = self.statements.len();
        assert_eq!(self.answers.len(), count, "every statement has an answer");
        let grouped_count: usize = groups.iter().map(|group| group.len()).sum();
        assert!(done.len() + grouped_count <= count, "a statement is done, or in one group, or left");
        match groups {
            [group] if group.len() == count => return vec![std::mem::take(self)],
            [] if done.is_empty() => return Vec::new(),
            _ if done.len() == count => {
                self.statements.clear();
                self.answers.clear();
                return Vec::new();
            }
            _ => {}
        }
        let mut taken: Vec<Self> = groups.iter().map(|group| Gathered::with_capacity(group.len())).collect();
        let Gathered { statements, answers } = std::mem::take(self);
        for (index, (statement, answer)) in statements.into_iter().zip(answers).enumerate() {
            match groups.iter().position(|group| group.contains(index)) {
                Some(group) => taken[group].push(statement, answer),
                None if done.contains(index) => {}
                None => self.push(statement, answer),
            }
        }
        taken
    }
}

impl Together {
    /// Is it time to do them?
    pub(super) fn is_full(&self) -> bool {
        self.reads.statements.len() >= POINTS_MAX
            || self.writes.statements.len() >= POINTS_MAX
            || self.frame_bytes >= GATHERED_BYTES
    }

    pub(super) fn len(&self) -> usize {
        self.reads.statements.len() + self.writes.statements.len() + self.alone.len()
    }

    /// Leaves a frame to be a request by itself.
    pub(super) fn leave(&mut self, frame: Frame) {
        self.alone.push_back(frame);
    }

    /// The next frame that is a request by itself.
    pub(super) fn next_alone(&mut self) -> Option<Frame> {
        self.alone.pop_front()
    }

    /// At the end of a turn: what is left over waits, and takes so many bytes.
    pub(super) fn settle(&mut self) -> usize {
        if self.len() == 0 {
            *self = Together::default();
        }
        let gathered = self.writes.answers.iter().chain(self.reads.answers.iter().map(|asked| &asked.frame));
        gathered.chain(&self.alone).map(frame_bytes).sum()
    }
}

impl Connection {
    /// Takes a statement about one row to those that are done together.
    pub(super) fn gather(&mut self, frame: Frame) -> AtOnce {
        if self.stage != Stage::Ready {
            return AtOnce::Unusual(frame);
        }
        let frame_bytes = frame.body.len();
        match self.point_statement(&frame) {
            Some((execute, PointStatement::Write(update))) => {
                let consistency = convert::consistency(execute.consistency);
                let engine = &self.server.engine;
                match engine.point_write(&update, execute.values, consistency, execute.timestamp) {
                    Some(write) => self.together.writes.push(write, frame),
                    None => return AtOnce::Unusual(frame),
                }
            }
            Some((execute, PointStatement::Read(query))) => match self.point_read(execute, query) {
                Some((read, described)) => self.together.reads.push(read, Asked { frame, described }),
                None => return AtOnce::Unusual(frame),
            },
            None => return AtOnce::Unusual(frame),
        }
        self.together.frame_bytes += frame_bytes;
        AtOnce::Taken
    }

    fn point_statement<'f>(&self, frame: &'f Frame) -> Option<(PlainExecute<'f>, PointStatement)> {
        let execute = PlainExecute::of(frame)?;
        let statement = self.server.engine.point_statement(execute.id.try_into().ok()?)?;
        Some((execute, statement))
    }

    fn point_read(&self, mut execute: PlainExecute<'_>, query: PointQuery) -> Option<(PointRead, Described)> {
        let server = &self.server;
        let key = execute.values.next().filter(|_| execute.values.len() == 0)?;
        let wanted =
            Wanted { skip_metadata: execute.skip_metadata, known_metadata_id: execute.result_metadata_id };
        let described = server.metadata.describe(query.metadata_id(), query.columns(), wanted);
        let page_size = convert::page_size(execute.page_size);
        let consistency = convert::consistency(execute.consistency);
        let read = server.engine.point_read(query, execute.shared(key), consistency, page_size)?;
        Some((read, described))
    }

    /// Does what was gathered and answers it, until there is much to write, or sends it to its shard; leaves what has
    /// to be answered as every other request. To be called until nothing is left.
    pub(super) fn do_together(&mut self) {
        let server = std::rc::Rc::clone(&self.server);
        let _counted = PanicCount(&server.clients);
        let mut together = std::mem::take(&mut self.together);
        together.frame_bytes = 0;
        self.do_writes(&mut together.writes);
        if self.do_reads(&mut together.reads).is_continue() {
            together.reads.statements.clear();
            together.alone.extend(together.reads.answers.drain(..).map(|asked| asked.frame));
        }
        // What found no room meanwhile was left to be a request by itself.
        together.alone.append(&mut self.together.alone);
        self.together = together;
    }

    /// Does and answers writes, or sends them to their shard.
    fn do_writes(&mut self, writes: &mut Gathered<PointWrite, Frame>) {
        if writes.statements.is_empty() {
            return;
        }
        let (done, left) = self.server.engine.point_writes(&writes.statements);
        self.server.ways.writes_at_once.add(done.len());
        done.iter().for_each(|index| self.put_void(&writes.answers[index]));
        writes.take_out(done, &left).into_iter().for_each(|group| self.send_writes(group));
    }

    /// Does and answers reads, until there is much to write: then there are more. Those of a shard that is at work are
    /// sent there; what is left are reads for others to answer.
    fn do_reads(&mut self, reads: &mut Gathered<PointRead, Asked>) -> ControlFlow<()> {
        if reads.statements.is_empty() {
            return ControlFlow::Continue(());
        }
        let (encoder, most_bytes) = (&mut self.encoder, self.server.answers().output_bytes());
        let (mut done, mut is_stopped) = (IndexSet::EMPTY, false);
        let asked = &reads.answers;
        let left = self.server.engine.point_reads(&reads.statements, |index, row| {
            if row.byte_count() > ROW_BYTES_MAX {
                return ControlFlow::Continue(());
            }
            asked[index].append_answer(encoder, |sink| row.write(sink));
            done.insert(index);
            is_stopped = encoder.pending_bytes() > most_bytes;
            if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (0..done.len()).for_each(|_| self.client.count_request());
        self.server.ways.reads_at_once.add(done.len());
        reads.take_out(done, &left).into_iter().for_each(|group| self.send_reads(group));
        if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
