//! One connection in the loop: frames without waiting.

use std::io::{ErrorKind, Read, Write};

use mio::net::TcpStream;

use crate::Outcome;
use crate::frame::{self, Frame};

/// What was sent is cut off when it is so much.
const SENT_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 64 << 10;

/// A connection in an event loop.
pub(crate) struct Link {
    pub(crate) socket: TcpStream,
    received: Vec<u8>,
    out: Vec<u8>,
    /// Bytes before this offset have been sent.
    sent: usize,
    pub(crate) is_closed: bool,
}

impl Link {
    pub(crate) fn new(socket: TcpStream) -> Link {
        Link { socket, received: Vec::new(), out: Vec::new(), sent: 0, is_closed: false }
    }

    /// Reads all that is there; `heard` gets each whole frame and where answers go.
    pub(crate) fn receive(
        &mut self,
        scratch: &mut Vec<u8>,
        mut heard: impl FnMut(Frame<'_>, &mut Vec<u8>) -> Outcome<()>,
    ) -> Outcome<()> {
        scratch.resize(READ_BYTES, 0);
        loop {
            let count = match self.socket.read(scratch) {
                Ok(0) => {
                    self.is_closed = true;
                    return Ok(());
                }
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => {
                    self.is_closed = true;
                    return Ok(());
                }
            };
            // Whole frames are taken where they were read; only what is cut off is kept.
            if self.received.is_empty() {
                let taken = take(&scratch[..count], &mut self.out, &mut heard)?;
                self.received.extend_from_slice(&scratch[taken..count]);
            } else {
                self.received.extend_from_slice(&scratch[..count]);
                let taken = take(&self.received, &mut self.out, &mut heard)?;
                self.received.drain(..taken);
            }
            if count < READ_BYTES {
                return Ok(());
            }
        }
    }

    /// Sends what the socket takes now.
    pub(crate) fn send(&mut self) {
        while self.sent < self.out.len() && !self.is_closed {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_closed = true,
            }
        }
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        } else if self.sent > SENT_BYTES_MAX {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }
}

fn take(
    bytes: &[u8],
    out: &mut Vec<u8>,
    heard: &mut impl FnMut(Frame<'_>, &mut Vec<u8>) -> Outcome<()>,
) -> Outcome<usize> {
    let mut taken = 0;
    while let Some((frame, length)) = frame::first(&bytes[taken..])? {
        heard(frame, out)?;
        taken += length;
    }
    Ok(taken)
}
