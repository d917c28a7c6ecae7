//! Statements about one row whose shard is at work, or that wait for the disk: they go there together.
//!
//! ```text
//!   Together ─┬─ done at once ──────────────────────────────────────────────────────────► output
//!             └─ group of a shard ─► pending ─► its thread: rows as cells ─► pending ─┬─► output
//!                                                            writes, durable          └─► a request by itself
//! ```
//!
//! A message to another thread costs more than a read from memory, so a group is one message and one answer, and
//! the other thread touches what lies cold in memory: the row, and not only its place.

use std::ops::ControlFlow;

use bytes::BytesMut;
use protocol::{Flags, Frame, HEADER_BYTES, Opcode, Response, ResponseEnvelope};
use query::{PointRead, PointRow, PointSet, PointWrite};

use super::answer::Cells;
use super::at_once::{Asked, Gathered};
use super::drive::{Connection, Done};

/// A group of reads that came back.
pub(super) struct SentReads {
    asked: Vec<Asked>,
    seen: Seen,
}

/// A group of writes that came back.
pub(super) struct SentWrites {
    frames: Vec<Frame>,
    /// The first so many are written.
    written_count: usize,
}

/// Rows as their shard has encoded them, one after the other.
#[derive(Default)]
struct Seen {
    cells: BytesMut,
    rows: Vec<SeenRow>,
}

/// What one read saw.
struct SeenRow {
    /// Of the read in its group.
    index: usize,
    row_count: usize,
    /// Where its cells end, and those of the next row begin.
    cells_end: usize,
}

impl Seen {
    fn add(&mut self, index: usize, row: PointRow<'_>) {
        let row_count = row.write(&mut Cells(&mut self.cells));
        self.rows.push(SeenRow { index, row_count, cells_end: self.cells.len() });
    }
}

impl SentReads {
    pub(super) fn len(&self) -> usize {
        self.asked.len()
    }
}

impl SentWrites {
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }
}

impl Connection {
    /// Has the shard of a group read it.
    pub(super) fn send_reads(&mut self, group: Gathered<PointRead, Asked>) {
        let Gathered { statements, answers: asked } = group;
        let frame_bytes = asked.iter().map(|asked| frame_bytes(&asked.frame)).sum();
        let most_bytes = self.server.budget.output_bytes();
        let seen = Seen { cells: BytesMut::new(), rows: Vec::with_capacity(asked.len()) };
        let reading = self.server.engine.send_point_reads(statements, seen, move |seen, index, row| {
            seen.add(index, row);
            if seen.cells.len() > most_bytes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let count = asked.len();
        let done = async move { Done::Reads(SentReads { asked, seen: reading.await.unwrap_or_default() }) };
        self.await_done(count, frame_bytes, Box::pin(done));
    }

    /// Has the shard of a group write it.
    pub(super) fn send_writes(&mut self, group: Gathered<PointWrite, Frame>) {
        let Gathered { statements, answers: frames } = group;
        let frame_bytes = frames.iter().map(frame_bytes).sum();
        let writing = self.server.engine.send_point_writes(statements);
        let count = frames.len();
        let done = async move { Done::Writes(SentWrites { frames, written_count: writing.await }) };
        self.await_done(count, frame_bytes, Box::pin(done));
    }

    /// Answers a group of reads; what was not seen becomes a request by itself.
    pub(super) fn put_reads(&mut self, reads: SentReads) {
        let SentReads { asked, seen: Seen { cells, rows } } = reads;
        let (mut answered, mut begin) = (PointSet::default(), 0);
        for row in rows {
            let Asked { frame, described } = &asked[row.index];
            let (version, stream) = (frame.header.version, frame.header.stream);
            let of_row = &cells[begin..row.cells_end];
            self.encoder.append_with(version, stream, Opcode::Result, Flags::NONE, |out| {
                described.write_rows(out, version, None, |sink| {
                    sink.encoded(of_row);
                    row.row_count
                });
            });
            self.client.count_request();
            answered.insert(row.index);
            begin = row.cells_end;
        }
        let left = asked.into_iter().enumerate().filter(|(index, _)| !answered.contains(*index));
        left.for_each(|(_, asked)| self.take_whole(Ok(asked.frame)));
    }

    /// Answers a group of writes; what was not written becomes a request by itself.
    pub(super) fn put_writes(&mut self, writes: SentWrites) {
        let SentWrites { mut frames, written_count } = writes;
        let left = frames.split_off(written_count);
        frames.iter().for_each(|frame| self.put_void(frame));
        left.into_iter().for_each(|frame| self.take_whole(Ok(frame)));
    }

    /// Answers a write.
    pub(super) fn put_void(&mut self, frame: &Frame) {
        let envelope = ResponseEnvelope::from(Response::Void);
        self.encoder.append_response(frame.header.version, frame.header.stream, &envelope);
        self.client.count_request();
    }
}

/// What a frame takes that is kept.
pub(super) fn frame_bytes(frame: &Frame) -> usize {
    HEADER_BYTES + frame.body.len()
}
