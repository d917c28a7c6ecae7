//! How bytes come in: read when there is room for what they ask, into memory that is lent.

use std::io;
use std::task::{Context, Poll, ready};

use protocol::Decoder;
use runtime::network::ReadHalf;

use super::ShardServer;
use super::backlog::Backlog;
use crate::budget::{Held, READ_BYTES, READ_BYTES_MIN, Ticket, Want};
use crate::long_turns::{self, LongTurn};

/// Of a long frame so much is read in one turn at most.
const READ_BYTES_MAX: usize = 1 << 20;

/// What a connection has to take, and what it waits for.
#[derive(Debug, Default)]
pub(super) struct Intake {
    ticket: Ticket,
    /// Room for this turn.
    turn: Option<Held>,
    /// Room for the frame that has come in part.
    frame: Option<Held>,
    /// Is the decoder's input lent?
    is_lent: bool,
    /// May there be complete frames that were not taken?
    has_frames: bool,
    /// Was there more than one turn takes?
    is_much: bool,
    /// The place in line of one that has much to do, and its turn.
    long_ticket: long_turns::Ticket,
    long_turn: Option<LongTurn>,
    backlog: Backlog,
    /// Does the connection hold nothing of the memory for requests and answers?
    holds_nothing: bool,
}

/// What came of a turn's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The client is gone.
    End,
    /// All that was in the socket, or frames that were there before.
    Some,
    /// So much that more may be in the socket.
    Much,
}

impl Intake {
    /// Is a frame under way that room was set aside for?
    pub(super) fn awaits_frame(&self) -> bool {
        self.frame.is_some()
    }

    pub(super) fn has_frames(&self) -> bool {
        self.has_frames
    }

    /// Gives its place in line up: what it stood there for is over, or can not be done now. One that was called
    /// and did not come would hold up all others.
    pub(super) fn leave_line(&mut self) {
        if self.ticket.is_waiting() {
            self.ticket = Ticket::default();
        }
        self.long_ticket = long_turns::Ticket::default();
    }

    /// Is it this connection's turn to take frames that it left before, unless others wait for theirs?
    pub(super) fn may_go_on(&self, server: &ShardServer) -> bool {
        self.has_frames && server.budget.is_open() && !server.long_turns.is_busy()
    }

    /// Not all frames were taken.
    pub(super) fn leaves_frames(&mut self, server: &ShardServer) {
        if !self.has_frames {
            self.backlog.read_at(server.pace());
        }
        self.has_frames = true;
        self.is_much = true;
    }

    /// Have requests waited for too long?
    pub(super) fn is_refusing(&self) -> bool {
        self.backlog.is_refusing()
    }

    /// Has the next request, on this stream?
    pub(super) fn refuses(&mut self, stream: i16) -> bool {
        self.backlog.refuses(stream)
    }

    /// All complete frames were taken.
    pub(super) fn is_emptied(&mut self) {
        self.has_frames = false;
    }

    /// The connection has no requests under way, and its client has taken all answers.
    pub(super) fn owes_nothing(&mut self, owes_nothing: bool) {
        self.holds_nothing = owes_nothing && !self.has_frames;
    }

    /// Waits until there is something to take and room for it, and reads.
    pub(super) fn poll(
        &mut self,
        reader: &mut ReadHalf<'_>,
        decoder: &mut Decoder,
        server: &ShardServer,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Received>> {
        let taken = self.poll_taken(reader, decoder, server, context);
        if taken.is_pending() {
            // Nobody waits for memory, or for bytes, while others wait for its turn to end.
            self.long_turn = None;
        }
        taken
    }

    fn poll_taken(
        &mut self,
        reader: &mut ReadHalf<'_>,
        decoder: &mut Decoder,
        server: &ShardServer,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Received>> {
        if self.has_frames {
            ready!(self.poll_long_turn(server, context));
            ready!(self.poll_turn(server, context));
            self.backlog.resumed(server.pace(), server.limits.request_wait);
            return Poll::Ready(Ok(Received::Some));
        }
        ready!(reader.poll_readable(context))?;
        ready!(self.poll_long_turn(server, context));
        let begun_bytes = decoder.begun_frame_bytes().filter(|bytes| *bytes > READ_BYTES_MIN);
        match begun_bytes {
            Some(_) if self.frame.is_some() => {}
            Some(bytes) => {
                let room = ready!(server.budget.poll_room(&mut self.ticket, Want::Frame(bytes), context));
                self.frame = Some(room);
            }
            None => ready!(self.poll_turn(server, context)),
        }
        let most = server.budget.read_bytes().min(self.turn.as_ref().map_or(READ_BYTES, Held::bytes));
        let read = match decoder.input().len() {
            0..=READ_BYTES_MIN => self.poll_lent(reader, decoder, server, most, context),
            _ => poll_own(reader, decoder, begun_bytes, most, context),
        };
        let Poll::Ready(read) = read else {
            self.turn = None;
            return Poll::Pending;
        };
        let (count, most) = read?;
        self.is_much = count == most;
        if count < most {
            self.backlog.emptied(count);
            return Poll::Ready(Ok(if count == 0 { Received::End } else { Received::Some }));
        }
        match reader.unread_bytes()? {
            0 => self.backlog.emptied(count),
            more => self.backlog.left(count, more, server.pace(), server.limits.request_wait),
        }
        Poll::Ready(Ok(Received::Much))
    }

    /// Waits for its turn if it has much to do.
    fn poll_long_turn(&mut self, server: &ShardServer, context: &mut Context<'_>) -> Poll<()> {
        if self.is_much && self.long_turn.is_none() {
            self.long_turn = Some(ready!(server.long_turns.poll_turn(&mut self.long_ticket, context)));
        }
        Poll::Ready(())
    }

    fn poll_turn(&mut self, server: &ShardServer, context: &mut Context<'_>) -> Poll<()> {
        // While nobody waits, there is nothing to set aside: a turn is over before anybody else has one.
        if self.holds_nothing {
            // It may stand there from before, and even be called, with room that nobody else has meanwhile.
            self.ticket = Ticket::default();
            self.turn = (!server.budget.is_open()).then(|| server.budget.small_turn());
        } else if self.ticket.is_waiting() || !server.budget.is_open() {
            self.turn = Some(ready!(server.budget.poll_room(&mut self.ticket, Want::Turn, context)));
        }
        Poll::Ready(())
    }

    /// Reads into the shard's buffer, behind the little that waits.
    fn poll_lent(
        &mut self,
        reader: &mut ReadHalf<'_>,
        decoder: &mut Decoder,
        server: &ShardServer,
        most: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(usize, usize)>> {
        let mut chunks = server.chunks.borrow_mut();
        let chunk = chunks.with_room(READ_BYTES_MIN + READ_BYTES);
        chunk.extend_from_slice(decoder.input());
        match reader.poll_read_some(chunk, most, context) {
            Poll::Ready(Ok(count)) => {
                decoder.replace_input(chunk.split());
                self.is_lent = true;
                Poll::Ready(Ok((count, most)))
            }
            other => {
                chunk.clear();
                other.map_ok(|count| (count, most))
            }
        }
    }

    /// Gives back what the turn needed; tells how many bytes wait that are not counted yet.
    pub(super) fn settle(&mut self, decoder: &mut Decoder) -> usize {
        (self.turn, self.long_turn) = (None, None);
        let waiting_bytes = decoder.held_bytes() + self.backlog.held_bytes();
        // A frame that has its room may have its memory, too.
        let is_too_large =
            self.frame.is_none() && decoder.input_capacity() > 2 * waiting_bytes + READ_BYTES_MIN;
        if self.is_lent || is_too_large {
            decoder.own_input();
            self.is_lent = false;
        }
        if let Some(frame) = &self.frame {
            if self.has_frames || decoder.begun_frame_bytes() == Some(frame.bytes()) {
                return waiting_bytes.saturating_sub(frame.bytes());
            }
            self.frame = None;
        }
        waiting_bytes
    }
}

/// Reads behind what waits, where that is much: no further than the end of the frame, if it is known.
fn poll_own(
    reader: &mut ReadHalf<'_>,
    decoder: &mut Decoder,
    begun_bytes: Option<usize>,
    most: usize,
    context: &mut Context<'_>,
) -> Poll<io::Result<(usize, usize)>> {
    decoder.reserve_frame();
    let waiting_bytes = decoder.input().len();
    // A frame may be long and its client slow: memory follows what was sent.
    let most = match begun_bytes {
        Some(bytes) if bytes > waiting_bytes => {
            (bytes - waiting_bytes).min(waiting_bytes.max(READ_BYTES)).min(READ_BYTES_MAX)
        }
        _ => most,
    };
    let buffer = decoder.read_buffer(most);
    reader.poll_read_some(buffer, most, context).map_ok(|count| (count, most))
}
