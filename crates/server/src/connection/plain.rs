//! Plain requests, done in the turn in which they came.

use std::ops::ControlFlow;

use protocol::Frame;
use query::{PlainRead, PlainWrite, RequestKind};
use stdx::index_set::IndexSet;

use super::batcher::PlainBatch;
use super::drive::Connection;
use super::request::{ReadFrame, Way};
use crate::clients::PanicCount;

/// A larger row is answered by a request of its own, which has to have room for it.
pub(super) const ROW_BYTES_MAX: usize = 64 << 10;

impl Connection {
    /// Does what was gathered and answers it, until there is much to write, or sends it to its shard; leaves what has
    /// to be answered as every other request. To be called until nothing is left.
    pub(super) fn do_plain(&mut self) {
        let server = std::rc::Rc::clone(&self.server);
        let _counted = PanicCount(&server.clients);
        let (mut reads, mut writes) = self.batcher.take_plain();
        self.do_writes(&mut writes);
        if self.do_reads(&mut reads).is_continue() {
            reads.statements.clear();
            reads.frames.drain(..).for_each(|read| self.batcher.add(Way::Full(read.frame)));
        }
        self.batcher.put_back(reads, writes);
    }

    /// Does and answers writes, or sends them to their shard.
    fn do_writes(&mut self, writes: &mut PlainBatch<PlainWrite, Frame>) {
        if writes.statements.is_empty() {
            return;
        }
        let begun = self.server.time();
        let (done, left) = self.server.engine.plain_writes(&writes.statements);
        self.server.engine.note_plain(RequestKind::Write, begun, done.len());
        self.server.ways.plain_writes.add(done.len());
        done.iter().for_each(|index| self.put_void(&writes.frames[index]));
        writes.take_out(done, &left).into_iter().for_each(|batch| self.write_remotely(batch));
    }

    /// Does and answers reads, until there is much to write: then there are more. Those of a shard that is at work are
    /// sent there; what is left are reads for others to answer.
    fn do_reads(&mut self, reads: &mut PlainBatch<PlainRead, ReadFrame>) -> ControlFlow<()> {
        if reads.statements.is_empty() {
            return ControlFlow::Continue(());
        }
        let (encoder, most_bytes) = (&mut self.output.encoder, self.server.answers().output_bytes());
        let (mut done, mut is_stopped) = (IndexSet::EMPTY, false);
        let (frames, begun) = (&reads.frames, self.server.time());
        let left = self.server.engine.plain_reads(&reads.statements, |index, row| {
            if row.byte_count() > ROW_BYTES_MAX {
                return ControlFlow::Continue(());
            }
            frames[index].append_answer(encoder, |sink| row.write(sink));
            done.insert(index);
            is_stopped = encoder.pending_bytes() > most_bytes;
            if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.server.engine.note_plain(RequestKind::Read, begun, done.len());
        (0..done.len()).for_each(|_| self.session.client.count_request());
        self.server.ways.plain_reads.add(done.len());
        reads.take_out(done, &left).into_iter().for_each(|batch| self.read_remotely(batch));
        if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
