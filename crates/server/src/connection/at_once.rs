//! Statements about one row that are carried out as soon as their frame is seen.
//!
//! ```text
//!   frame ─ PlainExecute ─ point_statement ─┬─ write_at_once ─► done ──────────────────┬─► the connection's output
//!              │ unusual      │ not such    ├─ point_read ─► Reads ── point_reads ─► cells ┘
//!              │              │             │ not at once             │ not in memory
//!              └──────────────┴─────────────┴─────────────────────────┴──► a request as every other
//! ```
//!
//! Reads that came together are done together: what each has to wait for is memory, and the waits of
//! several go on at the same time ([`query::Engine::point_reads`]).

use std::ops::ControlFlow;

use protocol::{Flags, Frame, Opcode, PlainExecute, Response, ResponseEnvelope, Stage};
use query::{POINT_READS_MAX, PointQuery, PointRead, PointStatement};

use super::answer::{Described, Wanted};
use super::drive::Connection;
use crate::clients::PanicCount;
use crate::convert;

/// Reads of rows by their keys that were taken and not yet done.
#[derive(Default)]
pub(super) struct Reads {
    /// Invariant: as many of both.
    reads: Vec<PointRead>,
    asked: Vec<Asked>,
}

/// How a read is to be answered.
struct Asked {
    frame: Frame,
    described: Described,
}

/// What became of a frame.
pub(super) enum AtOnce {
    /// It was answered.
    Answered,
    /// It is a read, to be done with others.
    Read,
    /// It is for others to answer; nothing was done.
    Unusual(Frame),
}

impl Reads {
    /// Is there room for more?
    pub(super) fn is_full(&self) -> bool {
        self.reads.len() >= POINT_READS_MAX
    }

    pub(super) fn len(&self) -> usize {
        self.reads.len()
    }

    fn push(&mut self, read: PointRead, asked: Asked) {
        if self.reads.capacity() == 0 {
            self.reads.reserve(POINT_READS_MAX);
            self.asked.reserve(POINT_READS_MAX);
        }
        self.reads.push(read);
        self.asked.push(asked);
    }

    /// Leaves those of which the bit is not set.
    fn take_done(&mut self, done: u32) {
        let mut index = 0..;
        let mut is_left = || index.next().is_some_and(|index: u32| done >> index & 1 == 0);
        self.reads.retain(|_| is_left());
        let mut index = 0..;
        let mut is_left = || index.next().is_some_and(|index: u32| done >> index & 1 == 0);
        self.asked.retain(|_| is_left());
    }
}

impl Connection {
    /// Does and answers what needs no waiting, or takes it to `reads`.
    pub(super) fn answer_at_once(&mut self, frame: Frame, reads: &mut Reads) -> AtOnce {
        if self.stage != Stage::Ready {
            return AtOnce::Unusual(frame);
        }
        match self.point_statement(&frame) {
            Some((execute, PointStatement::Write(update))) => {
                let _counted = PanicCount(&self.server.clients);
                let consistency = convert::consistency(execute.consistency);
                let engine = &self.server.engine;
                if !engine.write_at_once(&update, execute.values, consistency, execute.timestamp) {
                    return AtOnce::Unusual(frame);
                }
                let done = ResponseEnvelope::from(Response::Void);
                self.encoder.append_response(frame.header.version, frame.header.stream, &done);
                self.client.count_request();
                AtOnce::Answered
            }
            Some((execute, PointStatement::Read(query))) => match self.point_read(execute, query) {
                Some((read, described)) => {
                    reads.push(read, Asked { frame, described });
                    AtOnce::Read
                }
                None => AtOnce::Unusual(frame),
            },
            None => AtOnce::Unusual(frame),
        }
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

    /// Does reads and answers them, until there is much to write; gives back the frames of those that have to
    /// be answered as every other request. To be called until none are left.
    pub(super) fn answer_reads(&mut self, reads: &mut Reads) -> Vec<Frame> {
        let _counted = PanicCount(&self.server.clients);
        let (encoder, most_bytes) = (&mut self.encoder, self.server.budget.output_bytes());
        let (mut shown, mut is_stopped) = (0u32, false);
        let asked = &reads.asked;
        self.server.engine.point_reads(&reads.reads, |index, row| {
            let Asked { frame, described } = &asked[index];
            let (version, stream) = (frame.header.version, frame.header.stream);
            encoder.append_with(version, stream, Opcode::Result, Flags::NONE, |out| {
                described.write_rows(out, version, None, |sink| row.write(sink));
            });
            shown |= 1 << index;
            is_stopped = encoder.pending_bytes() > most_bytes;
            if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        (0..shown.count_ones()).for_each(|_| self.client.count_request());
        reads.take_done(shown);
        if is_stopped {
            return Vec::new();
        }
        reads.reads.clear();
        reads.asked.drain(..).map(|asked| asked.frame).collect()
    }
}
