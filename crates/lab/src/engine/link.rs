//! One connection under load: frames of version 4, many requests under way, nothing waits.
//!
//! Version 4 because its frames cost a client least; a server answers them as it does those of version 5.
//!
//! A stream whose operation took too long is *forgotten*: it is free again once its late answer has come. A link that
//! broke is *buried*: it takes nothing more, and another one may take its place.

use std::io::{self, Read, Write};

use bytes::{Buf, BufMut, Bytes};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use protocol::{Consistency, Decoder, Encoder, Flags, Frame, Opcode, Version};

use crate::topology::Near;
use crate::workload::{Kept, Operation, Request};

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
    /// How often its request was asked again.
    pub(super) repeat_count: u32,
}

/// A stream: which answer it waits for.
#[derive(Clone, Copy, Debug)]
enum Stream {
    /// None.
    Free,
    /// That of an operation.
    Busy(UnderWay),
    /// One that came too late for its operation.
    Forgotten,
}

/// An answer on a stream on which nothing was asked.
#[derive(Debug)]
pub(super) struct NothingAsked;

/// With fewer under way, a node that takes its time is not yet slow.
const SLOW_COUNT: usize = 10;
/// Of a node that owes answers and has given none for so long, others are asked first, as the Java driver 4 does.
const SLOW_US: u64 = 200_000;

/// A connection to a node.
#[derive(Debug)]
pub(crate) struct Link {
    /// None of a link that is buried from the beginning.
    socket: Option<TcpStream>,
    /// The node on the other side.
    pub(super) node: Near,
    /// Ids of the workload's statements.
    ids: Vec<Bytes>,
    consistency: Consistency,
    decoder: Decoder,
    encoder: Encoder,
    free: Vec<i16>,
    streams: Vec<Stream>,
    /// What each stream has asked, where there are other nodes to ask it of.
    kept: Vec<Kept>,
    /// Streams with an operation.
    busy_count: usize,
    /// Streams that wait for an answer that is too late already.
    forgotten_count: usize,
    /// Since then it has owed an answer, while it owes any.
    silent_since_us: u64,
    /// All that has come in, as it came.
    received_bytes: u64,
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
        ids: Vec<Bytes>,
        consistency: Consistency,
        stream_count: i16,
    ) -> io::Result<Link> {
        socket.set_nonblocking(true)?;
        let socket = Some(TcpStream::from_std(socket));
        let link = Link::buried(node, stream_count);
        Ok(Link { socket, ids, consistency, is_buried: false, ..link })
    }

    /// In place of one that could not be made.
    pub(crate) fn buried(node: &Near, stream_count: i16) -> Link {
        let mut decoder = Decoder::client(FRAME_BYTES_MAX);
        let mut encoder = Encoder::client();
        decoder.establish(VERSION, None);
        encoder.establish(VERSION, None);
        Link {
            socket: None,
            node: node.clone(),
            ids: Vec::new(),
            consistency: Consistency::One,
            decoder,
            encoder,
            free: (0..stream_count).rev().collect(),
            streams: vec![Stream::Free; stream_count as usize],
            kept: Vec::new(),
            busy_count: 0,
            forgotten_count: 0,
            silent_since_us: 0,
            received_bytes: 0,
            broken: None,
            is_buried: true,
        }
    }

    /// Has it wake whoever waits for events with this token.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.socket {
            Some(socket) => registry.register(socket, token, Interest::READABLE | Interest::WRITABLE),
            None => Ok(()),
        }
    }

    /// A stream on which an operation can begin, if there is one.
    pub(super) fn free_stream(&self) -> Option<i16> {
        let has_room = self.is_whole() && self.encoder.pending_bytes() < OUT_BYTES_MAX;
        self.free.last().copied().filter(|_| has_room)
    }

    /// From now on it keeps what it asks, so that another node can be asked.
    pub(super) fn keep_requests(&mut self) {
        self.kept.resize_with(self.streams.len(), Kept::default);
    }

    /// What a stream has asked last, if that is kept.
    pub(super) fn kept(&self, stream: i16) -> Option<&Kept> {
        self.kept.get(stream as usize)
    }

    /// How many streams there are, free or not.
    pub(super) fn stream_count(&self) -> i16 {
        self.streams.len() as i16
    }

    /// Does it owe answers, and has given none for long?
    pub(super) fn is_slow(&self, now_us: u64) -> bool {
        self.busy_count + self.forgotten_count >= SLOW_COUNT
            && now_us.saturating_sub(self.silent_since_us) > SLOW_US
    }

    /// All that has come in.
    pub(super) fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Takes the place of another one, whose bytes count on.
    pub(super) fn take_place_of(&mut self, other: &Link) {
        self.received_bytes += other.received_bytes;
        if !other.kept.is_empty() {
            self.keep_requests();
        }
    }

    /// Begins an operation on the stream that was said to be free.
    pub(super) fn begin(&mut self, stream: i16, under_way: UnderWay, request: &Request<'_>, now_us: u64) {
        let free = self.free.pop();
        assert_eq!(free, Some(stream), "an operation begins on the free stream that was asked for");
        if self.busy_count + self.forgotten_count == 0 {
            self.silent_since_us = now_us;
        }
        self.streams[stream as usize] = Stream::Busy(under_way);
        self.busy_count += 1;
        self.put(stream, request);
    }

    /// The operation of a stream goes on with another request.
    pub(super) fn go_on(&mut self, stream: i16, operation: Operation, request: &Request<'_>) {
        if let Stream::Busy(under_way) = &mut self.streams[stream as usize] {
            (under_way.operation, under_way.repeat_count) = (operation, 0);
        }
        self.put(stream, request);
    }

    /// The request of a stream has failed, and is asked once more.
    pub(super) fn ask_again(&mut self, stream: i16, request: &Request<'_>, now_us: u64) {
        if let Stream::Busy(under_way) = &mut self.streams[stream as usize] {
            under_way.repeat_count += 1;
            // It has as long as the first time.
            under_way.begun_us = now_us;
        }
        self.put(stream, request);
    }

    /// What waits for the answer that has come on a stream; none if that came too late.
    ///
    /// # Errors
    /// Nothing was asked on that stream.
    pub(super) fn answered(&mut self, stream: i16, now_us: u64) -> Result<Option<UnderWay>, NothingAsked> {
        self.silent_since_us = now_us;
        let asked = usize::try_from(stream).ok().and_then(|index| self.streams.get_mut(index));
        match asked {
            Some(Stream::Busy(under_way)) => Ok(Some(*under_way)),
            Some(forgotten @ Stream::Forgotten) => {
                *forgotten = Stream::Free;
                self.forgotten_count -= 1;
                self.free.push(stream);
                Ok(None)
            }
            Some(Stream::Free) | None => Err(NothingAsked),
        }
    }

    /// The operation of a stream is over.
    pub(super) fn end(&mut self, stream: i16) {
        let ended = std::mem::replace(&mut self.streams[stream as usize], Stream::Free);
        assert!(matches!(ended, Stream::Busy(_)), "an operation ends once");
        self.busy_count -= 1;
        self.free.push(stream);
    }

    /// Gives up the operations that were begun before a time: their streams wait for late answers.
    pub(super) fn forget(&mut self, before_us: u64) -> Vec<UnderWay> {
        let mut forgotten = Vec::new();
        for stream in &mut self.streams {
            if let Stream::Busy(under_way) = *stream
                && under_way.begun_us < before_us
            {
                forgotten.push(under_way);
                *stream = Stream::Forgotten;
            }
        }
        self.busy_count -= forgotten.len();
        self.forgotten_count += forgotten.len();
        forgotten
    }

    /// It broke: nothing begins on it any more. Tells why, once.
    pub(super) fn bury(&mut self) -> Option<io::Error> {
        let error = self.broken.take()?;
        self.is_buried = true;
        self.socket = None;
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
        let stream_count = self.stream_count();
        let busy = |stream: &Stream| match stream {
            Stream::Busy(under_way) => Some(*under_way),
            Stream::Free | Stream::Forgotten => None,
        };
        let taken = self.streams.iter().filter_map(busy).collect();
        self.streams.fill(Stream::Free);
        self.free = (0..stream_count).rev().collect();
        (self.busy_count, self.forgotten_count) = (0, 0);
        taken
    }

    /// How many operations are under way on it.
    pub(super) fn busy_count(&self) -> usize {
        self.busy_count
    }

    /// Has it no operation under way?
    pub(super) fn is_idle(&self) -> bool {
        self.busy_count == 0
    }

    fn put(&mut self, stream: i16, request: &Request<'_>) {
        let id = &self.ids[request.statement];
        let (value_count, values) = request.values();
        let consistency = self.consistency.code();
        if let Some(kept) = self.kept.get_mut(stream as usize) {
            request.keep(kept);
        }
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
        while self.is_whole()
            && self.encoder.pending_bytes() > 0
            && let Some(socket) = &mut self.socket
        {
            let out = self.encoder.output();
            match socket.write(out) {
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
            let Some(socket) = &mut self.socket else { return false };
            let buffer = self.decoder.read_buffer(READ_BYTES);
            let start = buffer.len();
            buffer.resize(start + READ_BYTES, 0);
            let outcome = socket.read(&mut buffer[start..]);
            let received = *outcome.as_ref().unwrap_or(&0);
            buffer.truncate(start + received);
            self.received_bytes += received as u64;
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
