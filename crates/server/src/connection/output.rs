//! How answers go out: written as far as the socket takes them, kept until it takes more.

use std::io;

use bytes::{Buf, Bytes};
use tokio::net::TcpStream;

use super::drive::Connection;

/// Of an answer that was encoded elsewhere so much is written before it is asked whether the turn has been long.
const WRITE_BYTES_MAX: usize = 1 << 20;

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
        if self.is_blocked || self.output_bytes() == 0 {
            return Ok(());
        }
        while let Some(first) = self.earlier.front_mut() {
            // What a client takes as fast as it comes keeps others waiting all the same.
            if self.piece.is_long() {
                return Ok(());
            }
            let asked = first.len().min(WRITE_BYTES_MAX);
            let sent = write_some(&self.stream, &first[..asked])?;
            first.advance(sent);
            self.progress.moved(sent);
            if sent < asked {
                self.set_blocked(true);
                return Ok(());
            }
            if first.is_empty() {
                self.earlier.pop_front();
            }
        }
        let output = self.encoder.output();
        let sent = write_some(&self.stream, output)?;
        self.progress.moved(sent);
        let is_blocked = sent < output.len();
        if is_blocked {
            output.advance(sent)
        } else {
            output.clear()
        }
        self.set_blocked(is_blocked);
        Ok(())
    }
}

/// How much of it the socket takes now.
fn write_some(stream: &TcpStream, output: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < output.len() {
        match stream.try_write(&output[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
