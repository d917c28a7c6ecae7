//! Thousands of connections, each with up to a thousand requests outstanding, that take their answers or never do.
//!
//! No client that measures is like that, so `bench` has none of it. One thread goes round all sockets, which do not
//! wait: it puts requests as long as there are streams and room, and takes what has come.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::report::Failure;
use crate::wire::{Answer, Connection};

const VERSION: u8 = 4;
const HEADER_BYTES: usize = 9;
const EXECUTE: u8 = 0x0a;
const ERROR: u8 = 0x00;
/// `Overloaded` among the error codes.
const OVERLOADED: [u8; 4] = [0, 0, 0x10, 0x01];
/// Requests wait here at most so long before a connection counts as full.
const OUT_BYTES_MAX: usize = 16 << 10;
const READ_BYTES: usize = 64 << 10;
const ROW_BYTES: usize = 1000;
/// When no socket took or gave anything.
const REST: Duration = Duration::from_millis(1);

/// What each of the crowd asks of the table `rows` of `xtask/workloads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Rows of 1 KB.
    Reads,
    /// The same, written.
    Writes,
}

/// Who comes.
pub(crate) struct Crowd<'a> {
    pub(crate) address: &'a str,
    pub(crate) keyspace: &'a str,
    pub(crate) row_count: u64,
    pub(crate) connections: u64,
    /// Requests outstanding of each connection.
    pub(crate) window: u64,
    pub(crate) asks: Asks,
    pub(crate) takes_answers: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) begun: u64,
    pub(crate) answered: u64,
    pub(crate) overloaded: u64,
    pub(crate) errors: u64,
    /// Connections that the server closed.
    pub(crate) closed: u64,
    pub(crate) first_error: Option<String>,
}

impl Crowd<'_> {
    /// Asks until `is_over`.
    pub(crate) fn act(&self, is_over: impl Fn() -> bool) -> Result<Outcome, Failure> {
        let id = self.prepare()?;
        let mut links = Vec::new();
        while (links.len() as u64) < self.connections && !is_over() {
            links.push(Link::open(self)?);
        }
        let (mut outcome, mut scratch, mut row) = (Outcome::default(), vec![0; READ_BYTES], 0);
        while !is_over() {
            let mut has_moved = false;
            for link in links.iter_mut().filter(|link| !link.is_closed) {
                while let Some(stream) = link.free_stream() {
                    row = (row + 1) % self.row_count;
                    self.put(&mut link.out, stream, &id, row);
                    outcome.begun += 1;
                }
                has_moved |= link.send();
                if self.takes_answers {
                    has_moved |= link.receive(&mut scratch, &mut outcome);
                }
                outcome.closed += u64::from(link.is_closed);
            }
            if !has_moved {
                std::thread::sleep(REST);
            }
        }
        Ok(outcome)
    }

    /// The id of the statement, the same on all connections.
    fn prepare(&self) -> Result<Vec<u8>, Failure> {
        let table = format!("{}.rows", self.keyspace);
        let text = match self.asks {
            Asks::Reads => format!("SELECT * FROM {table} WHERE y_id = ?"),
            Asks::Writes => format!("INSERT INTO {table} (y_id, field0) VALUES (?, ?)"),
        };
        match Connection::open(self.address, VERSION)?.prepare(&text, None)?.answer {
            Answer::Prepared(prepared) => Ok(prepared.id),
            other => Err(Failure::new(format!("{text}: {other:?}"))),
        }
    }

    fn put(&self, out: &mut Vec<u8>, stream: u16, id: &[u8], row: u64) {
        let key = format!("user{row:020}");
        let value = [b'x'; ROW_BYTES];
        let values: &[&[u8]] = match self.asks {
            Asks::Reads => &[key.as_bytes()],
            Asks::Writes => &[key.as_bytes(), &value],
        };
        let [high, low] = stream.to_be_bytes();
        out.extend_from_slice(&[VERSION, 0, high, low, EXECUTE, 0, 0, 0, 0]);
        let start = out.len();
        out.extend_from_slice(&(id.len() as u16).to_be_bytes());
        out.extend_from_slice(id);
        // At ONE, with values.
        out.extend_from_slice(&[0, 1, 1]);
        out.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for value in values {
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            out.extend_from_slice(value);
        }
        let length = (out.len() - start) as u32;
        out[start - 4..start].copy_from_slice(&length.to_be_bytes());
    }
}

/// One of the crowd.
struct Link {
    socket: TcpStream,
    out: Vec<u8>,
    /// Of an answer that has not come whole.
    received: Vec<u8>,
    free: Vec<u16>,
    is_closed: bool,
}

impl Link {
    fn open(crowd: &Crowd<'_>) -> Result<Link, Failure> {
        let socket = Connection::open(crowd.address, VERSION)?.into_socket();
        socket.set_nonblocking(true)?;
        let free = (0..crowd.window.min(1 << 15) as u16).rev().collect();
        Ok(Link { socket, out: Vec::new(), received: Vec::new(), free, is_closed: false })
    }

    fn free_stream(&mut self) -> Option<u16> {
        if self.out.len() < OUT_BYTES_MAX { self.free.pop() } else { None }
    }

    /// Sends what the socket takes: has it taken something?
    fn send(&mut self) -> bool {
        if self.out.is_empty() {
            return false;
        }
        match self.socket.write(&self.out) {
            Ok(sent) => {
                self.out.drain(..sent);
                sent > 0
            }
            Err(error) => self.lost(&error),
        }
    }

    /// Takes what has come: was there something?
    fn receive(&mut self, scratch: &mut [u8], outcome: &mut Outcome) -> bool {
        match self.socket.read(scratch) {
            Ok(0) => {
                self.is_closed = true;
                false
            }
            Ok(count) => {
                self.received.extend_from_slice(&scratch[..count]);
                let mut taken = 0;
                while let Some(frame) = whole_frame(&self.received[taken..]) {
                    taken += frame.len();
                    self.free.push(u16::from_be_bytes([frame[2], frame[3]]));
                    outcome.count(frame);
                }
                self.received.drain(..taken);
                true
            }
            Err(error) => self.lost(&error),
        }
    }

    /// Nothing moved; a socket that is merely not ready is not lost.
    fn lost(&mut self, error: &std::io::Error) -> bool {
        self.is_closed = !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
        false
    }
}

impl Outcome {
    fn count(&mut self, frame: &[u8]) {
        self.answered += 1;
        let body = &frame[HEADER_BYTES..];
        match frame[4] {
            ERROR if body.starts_with(&OVERLOADED) => self.overloaded += 1,
            ERROR => {
                self.errors += 1;
                // Behind the code and the length.
                let text = String::from_utf8_lossy(body.get(6..).unwrap_or_default());
                self.first_error.get_or_insert_with(|| text.into_owned());
            }
            _ => {}
        }
    }
}

/// The first frame of some bytes, if it is whole.
fn whole_frame(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32::from_be_bytes(*bytes.get(5..)?.first_chunk()?) as usize;
    bytes.get(..HEADER_BYTES + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_whole_frame_and_answers_are_counted_by_their_kind() {
        let crowd = Crowd {
            address: "",
            keyspace: "crowd",
            row_count: 1,
            connections: 1,
            window: 1,
            asks: Asks::Writes,
            takes_answers: true,
        };
        let mut out = Vec::new();
        crowd.put(&mut out, 7, b"id", 3);
        assert_eq!(whole_frame(&out).map(<[u8]>::len), Some(out.len()));
        assert!(whole_frame(&out[..out.len() - 1]).is_none());
        let mut outcome = Outcome::default();
        outcome.count(&[0x84, 0, 0, 7, ERROR, 0, 0, 0, 6, 0, 0, 0x10, 0x01, 0, 0]);
        outcome.count(&[0x84, 0, 0, 7, ERROR, 0, 0, 0, 7, 0, 0, 0, 0, 0, 1, b'x']);
        outcome.count(&[0x84, 0, 0, 7, 8, 0, 0, 0, 0]);
        assert_eq!((outcome.answered, outcome.overloaded, outcome.errors), (3, 1, 1));
        assert_eq!(outcome.first_error.as_deref(), Some("x"));
    }
}
