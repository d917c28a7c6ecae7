//! One connection of a load: handshake and preparation while it blocks, then frames without waiting.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream as BlockingStream;

use mio::net::TcpStream;

use crate::Outcome;
use crate::frame::{self, ERROR, Frame, HEADER_BYTES, PREPARE, QUERY, READY, REQUEST_VERSION, STARTUP};
use crate::rows;

/// Requests wait here at most so long before the link counts as blocked by the server.
pub(crate) const OUT_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 64 << 10;

/// Talks while waiting: what comes before the load.
pub(crate) struct Talk(BlockingStream);

impl Talk {
    /// Connects and says hello.
    pub(crate) fn open(host: &str, port: u16) -> Outcome<Talk> {
        let socket = BlockingStream::connect((host, port))?;
        socket.set_nodelay(true)?;
        let mut talk = Talk(socket);
        let (opcode, body) = talk.ask(STARTUP, frame::put_startup)?;
        match opcode {
            READY => Ok(talk),
            ERROR => Err(format!("STARTUP: {:?}", frame::error_of(&body)).into()),
            _ => Err(format!("STARTUP is answered with opcode {opcode}").into()),
        }
    }

    /// Sends one request and waits for its answer.
    pub(crate) fn ask(&mut self, opcode: u8, body: impl FnOnce(&mut Vec<u8>)) -> Outcome<(u8, Vec<u8>)> {
        let mut bytes = Vec::new();
        frame::put(&mut bytes, REQUEST_VERSION, 0, opcode, body);
        self.0.write_all(&bytes)?;
        let mut header = [0; HEADER_BYTES];
        self.0.read_exact(&mut header)?;
        let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize;
        if length > frame::BODY_BYTES_MAX {
            return Err("an answer of more bytes than any has".into());
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((header[4], body))
    }

    /// Runs a statement.
    pub(crate) fn query(&mut self, text: &str) -> Outcome<()> {
        self.answer(text).map(|_| ())
    }

    /// Runs a statement that selects one column: its values.
    pub(crate) fn column(&mut self, text: &str) -> Outcome<Vec<Vec<u8>>> {
        rows::only_column(&self.answer(text)?)
    }

    fn answer(&mut self, text: &str) -> Outcome<Vec<u8>> {
        let (opcode, body) = self.ask(QUERY, |out| {
            frame::put_long_string(out, text);
            out.extend_from_slice(&[0, 1, 0]);
        })?;
        if opcode == ERROR { Err(format!("{text}: {:?}", frame::error_of(&body)).into()) } else { Ok(body) }
    }

    /// Prepares a statement: its id.
    pub(crate) fn prepare(&mut self, text: &str) -> Outcome<Vec<u8>> {
        let (opcode, body) = self.ask(PREPARE, |out| frame::put_long_string(out, text))?;
        if opcode == ERROR {
            return Err(format!("{text}: {:?}", frame::error_of(&body)).into());
        }
        let length = body.get(4..6).map(|bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])));
        let id = length.and_then(|length| body.get(6..6 + length));
        id.map(<[u8]>::to_vec).ok_or_else(|| "PREPARE is answered without an id".into())
    }

    /// From here on it does not wait.
    pub(crate) fn into_link(self) -> Outcome<Link> {
        self.0.set_nonblocking(true)?;
        Ok(Link::new(TcpStream::from_std(self.0)))
    }
}

/// A connection in an event loop.
pub(crate) struct Link {
    pub(crate) socket: TcpStream,
    received: Vec<u8>,
    pub(crate) out: Vec<u8>,
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
        } else if self.sent > OUT_BYTES_MAX {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Bytes that the socket has not taken yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.out.len() - self.sent
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
