//! A client's connection: frames out, frames in, as a driver does it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use protocol::{
    Decoder, Encoder, Prepare, QueryParameters, Request, RequestEnvelope, Response, ResponseEnvelope, Text,
    Version,
};
use runtime::{ByteStream, Network};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// No answer of this workload is larger.
const FRAME_BYTES_MAX: usize = 16 << 20;
const READ_BYTES: usize = 4 << 10;
/// The stream of requests that are waited for by themselves.
const CALLING: i16 = 30_000;

/// Ids of what a client has prepared, by text. As with drivers they go from one connection to the next, and are good
/// until the node knows one no more.
pub(crate) type PreparedIds = Rc<RefCell<BTreeMap<String, Bytes>>>;

pub(crate) struct Connection {
    stream: ByteStream,
    version: Version,
    decoder: Decoder,
    encoder: Encoder,
    prepared: PreparedIds,
    /// Answers that came while another was waited for.
    early: VecDeque<(i16, Response)>,
}

impl Connection {
    /// Connects and says hello.
    pub(crate) async fn open(
        network: &Network,
        address: SocketAddr,
        version: Version,
        prepared: PreparedIds,
    ) -> io::Result<Self> {
        let stream = network.connect(address).await?;
        let (decoder, encoder) = (Decoder::client(FRAME_BYTES_MAX), Encoder::client());
        let early = VecDeque::new();
        let mut connection = Connection { stream, version, decoder, encoder, prepared, early };
        let options = vec![("CQL_VERSION".to_owned(), "3.0.0".to_owned())];
        match connection.call(Request::Startup(options)).await? {
            Response::Ready => {}
            other => return Err(io::Error::other(format!("STARTUP was answered {other:?}"))),
        }
        connection.decoder.establish(version, None);
        connection.encoder.establish(version, None);
        Ok(connection)
    }

    /// Puts a request to those that go out together.
    pub(crate) fn put(&mut self, stream: i16, request: impl Into<RequestEnvelope>) {
        self.encoder.append_request(self.version, stream, &request.into());
    }

    /// Sends what was put, in pieces of so many bytes.
    pub(crate) async fn send(&mut self, piece_bytes: usize) -> io::Result<()> {
        let output = self.encoder.take();
        for piece in output.chunks(piece_bytes) {
            let mut rest = piece;
            while !rest.is_empty() {
                let sent = poll_fn(|context| self.poll_exchange(rest, context)).await?;
                rest = &rest[sent..];
            }
        }
        Ok(())
    }

    /// Writes some bytes. Where there is no room, reads meanwhile: the node may wait for that.
    fn poll_exchange(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(sent) = Pin::new(&mut self.stream).poll_write(context, bytes) {
            return Poll::Ready(sent);
        }
        let mut room = [0; READ_BYTES];
        let mut buffer = ReadBuf::new(&mut room);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        if buffer.filled().is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.decoder.feed(buffer.filled());
        Poll::Ready(Ok(0))
    }

    /// The next answer, and its stream.
    pub(crate) async fn receive(&mut self) -> io::Result<(i16, Response)> {
        match self.early.pop_front() {
            Some(answer) => Ok(answer),
            None => self.receive_next().await,
        }
    }

    async fn receive_next(&mut self) -> io::Result<(i16, Response)> {
        loop {
            if let Some(frame) = self.decoder.next_frame() {
                let frame = frame.map_err(|error| io::Error::other(format!("{error:?}")))?;
                let envelope = ResponseEnvelope::decode(&frame).map_err(io::Error::other)?;
                return Ok((frame.header.stream, envelope.response));
            }
            let mut bytes = BytesMut::with_capacity(READ_BYTES);
            if self.stream.read_buf(&mut bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.decoder.feed(&bytes);
        }
    }

    /// Sends one request and waits for its answer.
    pub(crate) async fn call(&mut self, request: Request) -> io::Result<Response> {
        self.put(CALLING, request);
        self.send(usize::MAX).await?;
        loop {
            match self.receive_next().await? {
                (CALLING, response) => return Ok(response),
                other => self.early.push_back(other),
            }
        }
    }

    /// The id of a prepared statement; prepares it if need be. A statement that can not be prepared is an error.
    pub(crate) async fn prepare(&mut self, text: &str) -> io::Result<Bytes> {
        if let Some(id) = self.prepared.borrow().get(text).cloned() {
            return Ok(id);
        }
        let request = Request::Prepare(Prepare { query: Text::from(text), keyspace: None });
        match self.call(request).await? {
            Response::Prepared(prepared) => {
                self.prepared.borrow_mut().insert(text.to_owned(), prepared.id.clone());
                Ok(prepared.id)
            }
            other => Err(io::Error::other(format!("PREPARE {text}: {other:?}"))),
        }
    }

    /// Forgets what was prepared: the node has.
    pub(crate) fn forget_prepared(&self) {
        self.prepared.borrow_mut().clear();
    }
}

/// What goes with a statement of this workload.
pub(crate) fn parameters() -> QueryParameters {
    QueryParameters::at(protocol::Consistency::One)
}
