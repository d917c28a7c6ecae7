//! A frame as a request: plain, or full.
//!
//! ```text
//!   frame ─ PlainExecute ─ plain_statement ─┬─ plain_read ──┬─► plain ─► batcher ─► done in this turn, or remote
//!              │            │               └─ plain_write ─┤
//!              └────────────┴───────────────────────────────┴─► full: a future, an answer, an error that is told
//! ```
//!
//! A plain one is a prepared statement about one row by its key, of which there is no more to do or to say. Both ways
//! ask `coordinator` for the same: whether the plan is current, whether the level is admitted, and who owns the key.

use protocol::{Encoder, Flags, Frame, Opcode, PlainExecute, Stage};
use query::{PlainQuery, PlainRead, PlainStatement, PlainWrite};

use super::answer::{Described, Sink, Wanted};
use super::drive::Connection;
use crate::convert;

/// A request, by the way it takes.
#[expect(clippy::large_enum_variant, reason = "it lives for a moment, and a box would be one for each read")]
pub(super) enum Way {
    /// It is done with others that came with it, most of them in their turn.
    Plain(PlainRequest),
    /// It is carried out by itself.
    Full(Frame),
}

/// A prepared statement about one row, which is done without a future of its own.
pub(super) enum PlainRequest {
    Read(PlainRead, ReadFrame),
    Write(PlainWrite, Frame),
}

/// The frame of a read, and how it is to be answered.
pub(super) struct ReadFrame {
    pub(super) frame: Frame,
    described: Described,
}

impl ReadFrame {
    /// Appends the answer, whose rows are given to the sink and counted.
    pub(super) fn append_answer(&self, encoder: &mut Encoder, rows: impl FnOnce(&mut Sink<'_>) -> usize) {
        let (version, stream) = (self.frame.header.version, self.frame.header.stream);
        encoder.append_with(version, stream, Opcode::Result, Flags::NONE, |out| {
            self.described.write_rows(out, version, None, rows);
        });
    }
}

impl Connection {
    /// Which way a frame takes.
    #[inline(always)]
    pub(super) fn way_of(&self, frame: Frame) -> Way {
        if self.stage != Stage::Ready {
            return Way::Full(frame);
        }
        match self.plain_statement(&frame) {
            Some((execute, PlainStatement::Write(update))) => {
                let consistency = convert::consistency(execute.consistency);
                let engine = &self.server.engine;
                match engine.plain_write(&update, execute.values, consistency, execute.timestamp) {
                    Some(write) => Way::Plain(PlainRequest::Write(write, frame)),
                    None => Way::Full(frame),
                }
            }
            Some((execute, PlainStatement::Read(query))) => match self.plain_read(execute, query) {
                Some((read, described)) => {
                    Way::Plain(PlainRequest::Read(read, ReadFrame { frame, described }))
                }
                None => Way::Full(frame),
            },
            None => Way::Full(frame),
        }
    }

    fn plain_statement<'f>(&self, frame: &'f Frame) -> Option<(PlainExecute<'f>, PlainStatement)> {
        let execute = PlainExecute::of(frame)?;
        let statement = self.server.engine.plain_statement(execute.id.try_into().ok()?)?;
        Some((execute, statement))
    }

    fn plain_read(&self, mut execute: PlainExecute<'_>, query: PlainQuery) -> Option<(PlainRead, Described)> {
        let server = &self.server;
        let key = execute.values.next().filter(|_| execute.values.len() == 0)?;
        let wanted =
            Wanted { skip_metadata: execute.skip_metadata, known_metadata_id: execute.result_metadata_id };
        let described = server.metadata.describe(query.metadata_id(), query.columns(), wanted);
        let page_size = convert::page_size(execute.page_size);
        let consistency = convert::consistency(execute.consistency);
        let read = server.engine.plain_read(query, execute.shared(key), consistency, page_size)?;
        Some((read, described))
    }
}
