//! Remote batches: plain requests whose shard is at work, or that wait for the disk, go there together.
//!
//! ```text
//!   Batcher ──┬─ done in their turn ────────────────────────────────────────────────────► output
//!             └─ batch of a shard ─► pending ─► its thread: rows as cells ─► pending ─┬─► output
//!                       ▲                             or writes, durable              │
//!                       └────────────── what was too much for one answer ─────────────┼─► a request by itself
//! ```
//!
//! A message to another thread costs more than a read from memory, so a batch is one message and one answer, and
//! the other thread touches what lies cold in memory: the row, and not only its place.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::time::Duration;

use bytes::BytesMut;
use protocol::{Frame, HEADER_BYTES, Response, ResponseEnvelope};
use query::{AnswerRoom, PlainRead, PlainRow, PlainWrite, PlainWritten, QueryError, RequestKind};
use runtime::Plant;
use stdx::index_set::IndexSet;

use super::answer::Cells;
use super::batcher::PlainBatch;
use super::drive::Connection;
use super::failed;
use super::pending::Done;
use super::plain::ROW_BYTES_MAX;
use super::request::{ReadFrame, Way};
use crate::convert;

/// A shard that is asked for rows goes on until it has so much, however little room there is.
const SEEN_BYTES_MIN: usize = 4 << 10;
const _: () = assert!(SEEN_BYTES_MIN <= ROW_BYTES_MAX, "it ends after a row that is large");

/// A batch of reads that came back.
pub(super) struct RemoteReads {
    frames: Vec<ReadFrame>,
    begun: Duration,
    /// Or why all of them failed.
    seen: Result<Seen, QueryError>,
    /// For what was seen.
    room: AnswerRoom,
}

/// A batch of writes that came back.
pub(super) struct RemoteWrites {
    frames: Vec<Frame>,
    begun: Duration,
    written: PlainWritten,
}

/// Rows as their shard has encoded them, one after the other.
#[derive(Default)]
struct Seen {
    cells: BytesMut,
    rows: Vec<SeenRow>,
    /// Was there too much for one answer?
    is_stopped: bool,
}

/// What one read saw.
struct SeenRow {
    /// Of the read in its batch.
    index: usize,
    row_count: usize,
    /// Where its cells end, and those of the next row begin.
    cells_end: usize,
}

impl Seen {
    fn add(&mut self, index: usize, row: PlainRow<'_>) {
        let row_count = row.write(&mut Cells(&mut self.cells));
        self.rows.push(SeenRow { index, row_count, cells_end: self.cells.len() });
    }
}

impl RemoteReads {
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }
}

impl RemoteWrites {
    /// May some go on?
    pub(super) fn is_doubtful(&self) -> bool {
        !self.written.doubtful.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }
}

impl Connection {
    /// Has the shard of a batch read it.
    pub(super) fn read_remotely(&mut self, batch: PlainBatch<PlainRead, ReadFrame>) {
        let PlainBatch { statements, frames } = batch;
        let (count, frame_bytes) = (frames.len(), frames.iter().map(|read| frame_bytes(&read.frame)).sum());
        let expected_bytes = self.server.answers().output_bytes().max(SEEN_BYTES_MIN);
        let Some(room) = self.server.answers().try_room(&self.session.lane, expected_bytes) else {
            // Each of them waits for it.
            return frames.into_iter().for_each(|read| self.batcher.add(Way::Full(read.frame)));
        };
        self.server.ways.remote_reads.add(count);
        let begun = self.server.time();
        let most_bytes = room.bytes();
        let seen = Seen { rows: Vec::with_capacity(count), ..Seen::default() };
        let reading = self.server.engine.remote_reads(statements, seen, move |seen, index, row| {
            if row.byte_count() > ROW_BYTES_MAX {
                return ControlFlow::Continue(());
            }
            seen.add(index, row);
            seen.is_stopped = seen.cells.len() > most_bytes;
            if seen.is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let done = async move {
            let seen = reading.await.map(Option::unwrap_or_default);
            Done::Reads(RemoteReads { frames, begun, seen, room })
        };
        self.await_batch(count, frame_bytes, Box::pin(done));
    }

    /// Has the shard of a batch write it.
    pub(super) fn write_remotely(&mut self, batch: PlainBatch<PlainWrite, Frame>) {
        let PlainBatch { statements, frames } = batch;
        let (count, frame_bytes) = (frames.len(), frames.iter().map(frame_bytes).sum());
        self.server.ways.remote_writes.add(count);
        let begun = self.server.time();
        let writing = self.server.engine.remote_writes(statements);
        let done = async move { Done::Writes(RemoteWrites { frames, begun, written: writing.await }) };
        // They are answered with a few bytes.
        self.await_batch(count, frame_bytes, Box::pin(done));
    }

    /// Keeps a batch until it is done.
    fn await_batch(&mut self, count: usize, frame_bytes: usize, done: Pin<Box<dyn Future<Output = Done>>>) {
        let held = self.hold(count, frame_bytes);
        self.pending.push_batch(count, held, done);
    }

    /// Answers a batch of reads: all of them by an error, if their shard has not answered.
    pub(super) fn put_reads(&mut self, reads: RemoteReads) {
        let RemoteReads { frames, begun, seen, room } = reads;
        self.note_slow_frames(frames.iter().map(|read| &read.frame), begun);
        // Those that were not seen are asked again.
        let answered_count = seen.as_ref().map_or(frames.len(), |seen| seen.rows.len());
        self.server.engine.note_plain(RequestKind::Read, begun, answered_count);
        match seen {
            Ok(seen) => self.put_all_seen(frames, seen, room),
            Err(error) => frames.iter().for_each(|read| self.put_failure(&read.frame, error.clone())),
        }
    }

    /// Answers the reads that were seen. The others are asked again together if there was too much to see, and else
    /// each becomes a request by itself.
    fn put_all_seen(&mut self, frames: Vec<ReadFrame>, seen: Seen, room: AnswerRoom) {
        let Seen { cells, rows, is_stopped } = seen;
        let (mut answered, mut begin) = (IndexSet::EMPTY, 0);
        for row in rows {
            assert!(begin <= row.cells_end, "cells lie in the order of their rows");
            assert!(!answered.contains(row.index), "a read is answered once");
            let is_swapped = self.server.tracer.coordinator.has_planted(Plant::AnswersSwapped);
            let index = if is_swapped { frames.len() - 1 - row.index } else { row.index };
            self.put_seen(&frames[index], &cells[begin..row.cells_end], row.row_count);
            answered.insert(row.index);
            begin = row.cells_end;
        }
        self.output.count_room(room);
        let left = frames.into_iter().enumerate().filter(|(index, _)| !answered.contains(*index));
        for (_, ReadFrame { frame, .. }) in left {
            let may_ask_again = is_stopped && !self.batcher.is_plain_due();
            let request = if may_ask_again { self.way_of(frame) } else { Way::Full(frame) };
            self.batcher.add(request);
        }
    }

    fn put_seen(&mut self, read: &ReadFrame, cells: &[u8], row_count: usize) {
        read.append_answer(&mut self.output.encoder, |sink| {
            sink.put_encoded(cells);
            row_count
        });
        self.session.client.count_request();
    }

    /// Answers a batch of writes. Those of which nothing was written become requests by themselves.
    pub(super) fn put_writes(&mut self, writes: RemoteWrites) {
        let RemoteWrites { frames, begun, written: PlainWritten { done, doubtful, error } } = writes;
        self.note_slow_frames(frames.iter(), begun);
        self.server.engine.note_plain(RequestKind::Write, begun, done.union(doubtful).len());
        assert!(done.union(doubtful).len() == done.len() + doubtful.len(), "a write is answered once");
        assert_eq!(doubtful.is_empty(), error.is_none(), "a doubtful write has a reason");
        for (index, frame) in frames.into_iter().enumerate() {
            match &error {
                _ if done.contains(index) => self.put_void(&frame),
                Some(error) if doubtful.contains(index) => self.put_failure(&frame, error.clone()),
                _ => self.batcher.add(Way::Full(frame)),
            }
        }
    }

    /// Answers a write.
    pub(super) fn put_void(&mut self, frame: &Frame) {
        let envelope = ResponseEnvelope::from(Response::Void);
        if self.server.tracer.coordinator.has_planted(Plant::AnsweredTwice) {
            self.output.encoder.append_response(frame.header.version, frame.header.stream, &envelope);
        }
        self.output.encoder.append_response(frame.header.version, frame.header.stream, &envelope);
        self.session.client.count_request();
    }

    fn put_failure(&mut self, frame: &Frame, error: QueryError) {
        // It was parsed when its way was chosen.
        let error = match self.decoder.decode_request(frame) {
            Ok(envelope) => {
                let session = self.session.state.borrow();
                failed::report(&self.server, session.keyspace.as_deref(), &envelope.request, error.into())
            }
            Err(_) => convert::error(error),
        };
        self.output.encoder.append_error(frame.header.version, frame.header.stream, &error);
        self.session.client.count_request();
    }
}

/// What a frame takes that is kept.
pub(super) fn frame_bytes(frame: &Frame) -> usize {
    HEADER_BYTES + frame.body.len()
}
