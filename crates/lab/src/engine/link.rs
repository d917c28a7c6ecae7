//! One connection under load: frames of version 4, many requests under way, nothing waits.
//!
//! Version 4 because its frames cost a client least; a server answers them as it does those of version 5.

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use protocol::{Consistency, Decoder, Encoder, Flags, Frame, Opcode, Version};

use crate::topology::Near;
use crate::workload::{Operation, Request};

/// The version that is spoken.
pub(super) const VERSION: Version = Version::V4;
/// A larger answer is a stream out of step.
const FRAME_BYTES_MAX: usize = 256 << 20;
const READ_BYTES: usize = 64 << 10;
/// So often before frames are taken out.
const READ_COUNT_MAX: usize = 16;
/// With so much to send, the server is behind: no more requests are put.
const OUT_BYTES_MAX: usize = 256 << 10;

/// Values, and no columns in the answer: those are known since the statement was prepared.
const VALUES_AND_NO_METADATA: u8 = 0x01 | 0x02;

/// An operation on a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnderWay {
    /// What it is.
    pub(super) operation: Operation,
    /// When it was due, in microseconds since the run began.
    pub(super) intended_us: u64,
    /// When its first request was put.
    pub(super) begun_us: u64,
}

/// A connection to a node.
#[derive(Debug)]
pub(crate) struct Link {
    socket: TcpStream,
    /// The node on the other side.
    pub(super) node: Near,
    /// Ids of the workload's statements.
    ids: Arc<Vec<Bytes>>,
    consistency: Consistency,
    decoder: Decoder,
    encoder: Encoder,
    free: Vec<i16>,
    /// By stream.
    under_way: Vec<Option<UnderWay>>,
    /// It broke, and why.
    broken: Option<io::Error>,
    /// It broke, and all that was under way on it was told to have failed.
    is_buried: bool,
}

impl Link {
    /// Over a socket behind its handshake.
    pub(crate) fn new(
        socket: std::net::TcpStream,
        node: &Near,
        ids: Arc<Vec<Bytes>>,
        consistency: Consistency,
        stream_count: i16,
    ) -> io::Result<Link> {
        socket.set_nonblocking(true)?;
        let mut decoder = Decoder::client(FRAME_BYTES_MAX);
        let mut encoder = Encoder::client();
        decoder.establish(VERSION, None);
        encoder.establish(VERSION, None);
        Ok(Link {
            socket: TcpStream::from_std(socket),
            node: node.clone(),
            ids,
            consistency,
            decoder,
            encoder,
            free: (0..stream_count).rev().collect(),
            under_way: vec![None; stream_count as usize],
            broken: None,
            is_buried: false,
        })
    }

    /// Has it wake whoever waits for events with this token.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.socket, token, Interest::READABLE | Interest::WRITABLE)
    }

    /// A stream on which an operation can begin, if there is one.
    pub(super) fn free_stream(&self) -> Option<i16> {
        let has_room = self.is_whole() && self.encoder.pending_bytes() < OUT_BYTES_MAX;
        self.free.last().copied().filter(|_| has_room)
    }

    /// Begins an operation on the stream that was said to be free.
    pub(super) fn begin(&mut self, stream: i16, under_way: UnderWay, request: &Request<'_>) {
        let free = self.free.pop();
        assert_eq!(free, Some(stream), "an operation begins on the free stream that was asked for");
        self.under_way[stream as usize] = Some(under_way);
        self.put(stream, request);
    }

    /// The operation of a stream goes on with another request.
    pub(super) fn go_on(&mut self, stream: i16, operation: Operation, request: &Request<'_>) {
        if let Some(under_way) = &mut self.under_way[stream as usize] {
            under_way.operation = operation;
        }
        self.put(stream, request);
    }

    /// What is under way on a stream, if the server may answer on it.
    pub(super) fn under_way(&self, stream: i16) -> Option<UnderWay> {
        self.under_way.get(usize::try_from(stream).ok()?).copied().flatten()
    }

    /// The operation of a stream is over.
    pub(super) fn end(&mut self, stream: i16) {
        let ended = self.under_way[stream as usize].take();
        assert!(ended.is_some(), "an operation ends once");
        self.free.push(stream);
    }

    /// It broke: nothing begins on it any more. Tells why, once.
    pub(super) fn bury(&mut self) -> Option<io::Error> {
        let error = self.broken.take()?;
        self.is_buried = true;
        Some(error)
    }

    /// Can it be used?
    fn is_whole(&self) -> bool {
        self.broken.is_none() && !self.is_buried
    }

    /// Has it broken?
    pub(super) fn is_buried(&self) -> bool {
        self.is_buried
    }

    /// All that is under way, which is forgotten.
    pub(super) fn take_all(&mut self) -> Vec<UnderWay> {
        let taken: Vec<UnderWay> = self.under_way.iter_mut().filter_map(Option::take).collect();
        self.free = (0..self.under_way.len() as i16).rev().collect();
        taken
    }

    /// Has it nothing under way?
    pub(super) fn is_idle(&self) -> bool {
        self.free.len() == self.under_way.len()
    }

    fn put(&mut self, stream: i16, request: &Request<'_>) {
        let id = &self.ids[request.statement];
        let (value_count, values) = request.values();
        let consistency = self.consistency.code();
        self.encoder.append_with(VERSION, stream, Opcode::Execute, Flags::NONE, |out| {
            out.put_u16(id.len() as u16);
            out.put_slice(id);
            out.put_u16(consistency);
            out.put_u8(VALUES_AND_NO_METADATA);
            out.put_u16(value_count);
            out.put_slice(values);
        });
    }

    /// Sends as much as the socket takes.
    pub(super) fn send(&mut self) {
        while self.is_whole() && self.encoder.pending_bytes() > 0 {
            let out = self.encoder.output();
            match self.socket.write(out) {
                Ok(sent) => out.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.broken = Some(error),
            }
        }
    }

    /// Takes in what has come, and tells whether there may be more: frames are to be taken out before that is asked
    /// for, also when it broke. Of a connection whose other side `is_closed` everything is read to its end.
    pub(super) fn receive(&mut self, is_closed: bool) -> bool {
        for _ in 0..READ_COUNT_MAX {
            if !self.is_whole() {
                return false;
            }
            let buffer = self.decoder.read_buffer(READ_BYTES);
            let start = buffer.len();
            buffer.resize(start + READ_BYTES, 0);
            let outcome = self.socket.read(&mut buffer[start..]);
            buffer.truncate(start + *outcome.as_ref().unwrap_or(&0));
            match outcome {
                Ok(0) => self.broken = Some(io::ErrorKind::UnexpectedEof.into()),
                // Less than was asked for: the socket is empty.
                Ok(received) if received < READ_BYTES && !is_closed => return false,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.broken = Some(error),
            }
        }
        true
    }

    /// The next frame that has come whole.
    ///
    /// # Errors
    /// The server's bytes are no frames: why.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, String> {
        self.decoder.next_frame().transpose().map_err(|error| error.error.message)
    }
}
