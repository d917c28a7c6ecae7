//! How answers go out: written as far as the socket takes them, kept until it takes more.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, Bytes};
use protocol::Encoder;
use query::{AnswerRoom, UntakenRoom};
use runtime::{ByteStream, Piece};

use super::drive::Connection;
use super::progress::Progress;

/// Of an answer that was encoded elsewhere so much is written before it is asked whether the turn has been long.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// Pieces that are written in one go.
const PIECES_MAX: usize = 16;

/// The encoder keeps so much output from one turn to the next, and copies it: more is set aside, once.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// What the client is to be sent.
pub(super) struct Output {
    pub(super) encoder: Encoder,
    /// What goes before what the encoder has: answers encoded elsewhere, what came before them, and much that the
    /// client has not taken.
    earlier: VecDeque<Bytes>,
    /// Answers that the client has not taken.
    untaken: UntakenRoom,
    /// Does the socket take no more for now?
    is_blocked: bool,
}

impl Output {
    pub(super) fn new(untaken: UntakenRoom) -> Self {
        Output { encoder: Encoder::server(), earlier: VecDeque::new(), untaken, is_blocked: false }
    }

    /// How much waits to be written.
    pub(super) fn bytes(&self) -> usize {
        self.earlier.iter().map(Bytes::len).sum::<usize>() + self.encoder.pending_bytes()
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Puts an answer that was encoded elsewhere.
    pub(super) fn put_encoded(&mut self, answer: Bytes) {
        let before = self.encoder.take();
        self.earlier.extend([before, answer].into_iter().filter(|bytes| !bytes.is_empty()));
    }

    /// Sets much that waits aside, so that it is not copied again with what comes.
    pub(super) fn set_aside(&mut self) {
        let output = self.encoder.output();
        if output.len() > OUTPUT_BYTES_MAX {
            self.earlier.push_back(Bytes::copy_from_slice(output));
            output.clear();
        }
    }

    /// What was put together in a room waits for the client now.
    pub(super) fn count_room(&mut self, room: AnswerRoom) {
        let bytes = self.bytes();
        self.untaken.take_over(room, bytes);
    }

    /// Counts what waits for the client.
    pub(super) fn count(&mut self) {
        let bytes = self.bytes();
        self.untaken.set(bytes);
    }

    /// Gives up what is left when the client is gone, piece by piece: it may be megabytes.
    pub(super) async fn put_away(mut self) {
        let mut piece = Piece::of_turn();
        while self.earlier.pop_front().is_some() {
            piece.give_way().await;
        }
    }

    /// Writes as much as the socket takes, unless it is known to take none. The rest is kept.
    fn write(&mut self, stream: &ByteStream, piece: &Piece, progress: &mut Progress) -> io::Result<()> {
        while !self.earlier.is_empty() && !self.is_blocked {
            // What a client takes as fast as it comes keeps others waiting all the same.
            if piece.is_long() {
                return Ok(());
            }
            self.write_earlier(stream, progress)?;
        }
        if self.is_blocked || self.encoder.pending_bytes() == 0 {
            return Ok(());
        }
        let output = self.encoder.output();
        let sent = write_some(stream, output)?;
        self.is_blocked = sent < output.len();
        if self.is_blocked {
            output.advance(sent)
        } else {
            output.clear()
        }
        progress.moved(sent);
        Ok(())
    }

    /// Writes what was set aside, several pieces in one go.
    fn write_earlier(&mut self, stream: &ByteStream, progress: &mut Progress) -> io::Result<()> {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let (mut count, mut offered) = (0, 0);
        for bytes in self.earlier.iter().take(PIECES_MAX) {
            let room = WRITE_BYTES_MAX - offered;
            let piece = &bytes[..bytes.len().min(room)];
            pieces[count] = IoSlice::new(piece);
            (count, offered) = (count + 1, offered + piece.len());
            if offered == WRITE_BYTES_MAX {
                break;
            }
        }
        let mut sent = unless_blocked(stream.try_write_vectored(&pieces[..count]))?;
        progress.moved(sent);
        self.is_blocked = sent < offered;
        while let Some(first) = self.earlier.front_mut() {
            let taken = sent.min(first.len());
            first.advance(taken);
            sent -= taken;
            if !first.is_empty() {
                break;
            }
            self.earlier.pop_front();
        }
        Ok(())
    }
}

impl Connection {
    /// Writes when there is much.
    pub(super) fn write_much(&mut self) -> io::Result<()> {
        if self.output.bytes() > self.server.answers().output_bytes() {
            self.write()?;
        }
        Ok(())
    }

    /// Writes as much as the socket takes. While it takes no more, the client is not read.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let was_blocked = self.output.is_blocked;
        self.output.write(&self.stream, &self.piece, &mut self.progress)?;
        if self.output.is_blocked != was_blocked {
            self.tell_blocked();
        }
        Ok(())
    }

    /// The socket takes more again.
    pub(super) fn unblock(&mut self) {
        self.output.is_blocked = false;
        self.tell_blocked();
    }

    /// While the socket takes no more, requests are given no room for further answers.
    fn tell_blocked(&mut self) {
        let is_blocked = self.output.is_blocked;
        self.pending.set_ending(!is_blocked);
        self.server.answers().hold_back(&self.session.lane, is_blocked);
    }
}

/// How much of it the socket takes now.
fn write_some(stream: &ByteStream, output: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < output.len() {
        match unless_blocked(stream.try_write(&output[sent..]))? {
            0 => break,
            count => sent += count,
        }
    }
    Ok(sent)
}

/// How much was taken; nothing of a socket that takes none now.
fn unless_blocked(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}
