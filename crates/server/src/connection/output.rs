//! How answers go out: written as far as the socket takes them, kept until it takes more.

use std::io::{self, IoSlice};

use bytes::{Buf, Bytes};
use runtime::ByteStream;

use super::drive::Connection;

/// Of an answer that was encoded elsewhere so much is written before it is asked whether the turn has been long.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// Pieces that are written in one go.
const PIECES_MAX: usize = 16;

/// The encoder keeps so much output from one turn to the next, and copies it: more is set aside, once.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

impl Connection {
    /// How much output waits to be written.
    pub(super) fn output_bytes(&self) -> usize {
        self.earlier.iter().map(Bytes::len).sum::<usize>() + self.encoder.pending_bytes()
    }

    /// Sets much that waits aside, so that it is not copied again with what comes.
    pub(super) fn set_aside(&mut self) {
        let output = self.encoder.output();
        if output.len() > OUTPUT_BYTES_MAX {
            self.earlier.push_back(Bytes::copy_from_slice(output));
            output.clear();
        }
    }

    /// Does the socket take no more? Then requests are given no room for further answers.
    pub(super) fn set_blocked(&mut self, is_blocked: bool) {
        if is_blocked != self.is_blocked {
            self.is_blocked = is_blocked;
            self.pending.iter_mut().for_each(|pending| pending.held.set_ending(!is_blocked));
            self.server.answers().hold_back(&self.lane, is_blocked);
        }
    }

    /// Writes when there is much.
    pub(super) fn write_much(&mut self) -> io::Result<()> {
        if self.output_bytes() > self.server.answers().output_bytes() {
            self.write()?;
        }
        Ok(())
    }

    /// Writes as much as the socket takes. The rest is kept, and the client not read until it takes that.
    pub(super) fn write(&mut self) -> io::Result<()> {
        while !self.earlier.is_empty() && !self.is_blocked {
            // What a client takes as fast as it comes keeps others waiting all the same.
            if self.piece.is_long() {
                return Ok(());
            }
            self.write_earlier()?;
        }
        if self.is_blocked || self.encoder.pending_bytes() == 0 {
            return Ok(());
        }
        let output = self.encoder.output();
        let sent = write_some(&self.stream, output)?;
        let is_blocked = sent < output.len();
        if is_blocked {
            output.advance(sent)
        } else {
            output.clear()
        }
        self.progress.moved(sent);
        self.set_blocked(is_blocked);
        Ok(())
    }

    /// Writes what was set aside, several pieces in one go.
    fn write_earlier(&mut self) -> io::Result<()> {
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
        let mut sent = unless_blocked(self.stream.try_write_vectored(&pieces[..count]))?;
        self.progress.moved(sent);
        self.set_blocked(sent < offered);
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
