//! The loop of one connection: read, answer, write.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use protocol::{
    Decoder, Encoder, ErrorKind, ErrorResponse, Event, EventKind, Fate, Frame, FrameError, Request,
    RequestEnvelope, Response, ResponseEnvelope, Stage, StartupOptions, Version, supported_options,
};
use query::SessionState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::broadcast;

use super::ShardServer;
use super::answer::Answer;
use super::handle::Job;
use crate::clients::Registration;

/// Room for one read from the socket.
const READ_BYTES: usize = 32 * 1024;
/// Output is written out when it has grown to this, even if more requests are at hand: so much a client
/// that does not read can keep waiting, outside of what is counted as in flight.
const WRITE_BYTES: usize = 64 * 1024;

/// An answer on its way.
type Pending = Pin<Box<dyn Future<Output = (i16, Version, Answer)>>>;

struct Connection {
    server: Rc<ShardServer>,
    stream: TcpStream,
    decoder: Decoder,
    encoder: Encoder,
    stage: Stage,
    session: Rc<RefCell<SessionState>>,
    client: Rc<Registration>,
    pending: FuturesUnordered<Pending>,
    events: Option<broadcast::Receiver<Event>>,
    registered: Vec<EventKind>,
    is_closing: bool,
}

/// Serves a client until it goes away or breaks the protocol.
pub(crate) async fn serve_connection(stream: TcpStream, server: Rc<ShardServer>, id: u32) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let peer = stream.peer_addr()?;
    let mut connection = Connection {
        decoder: Decoder::server(server.limits.frame_bytes).with_connection_id(id),
        encoder: Encoder::server(),
        stage: Stage::default(),
        session: Rc::default(),
        client: Rc::new(server.clients.enter(peer)),
        pending: FuturesUnordered::new(),
        events: None,
        registered: Vec::new(),
        is_closing: false,
        server,
        stream,
    };
    connection.drive().await
}

impl Connection {
    async fn drive(&mut self) -> io::Result<()> {
        loop {
            self.take_frames().await?;
            while let Some(Some((stream, version, answer))) = self.pending.next().now_or_never() {
                self.put(stream, version, answer);
                self.write_much().await?;
            }
            self.put_events();
            self.write().await?;
            if self.is_closing && self.pending.is_empty() {
                return Ok(());
            }
            if !self.wait().await? {
                return Ok(());
            }
        }
    }

    /// Waits for something to do; `false` when the client is gone.
    async fn wait(&mut self) -> io::Result<bool> {
        let may_read = !self.is_closing && self.pending.len() < self.server.limits.requests_per_connection;
        let has_pending = !self.pending.is_empty();
        tokio::select! {
            biased;
            done = self.pending.next(), if has_pending => {
                if let Some((stream, version, answer)) = done {
                    self.put(stream, version, answer);
                }
                Ok(true)
            }
            event = next_event(&mut self.events) => {
                self.put_event(event);
                Ok(true)
            }
            read = self.stream.read_buf(self.decoder.read_buffer(READ_BYTES)), if may_read => Ok(read? > 0),
        }
    }

    /// Takes all frames that are complete. Requests that can be answered from memory are, at once.
    async fn take_frames(&mut self) -> io::Result<()> {
        while !self.is_closing && self.pending.len() < self.server.limits.requests_per_connection {
            let Some(frame) = self.decoder.next_frame() else { break };
            let request = frame.and_then(|frame| {
                let envelope = self.decoder.decode_request(&frame)?;
                Ok((frame, envelope))
            });
            match request {
                Ok((frame, envelope)) => self.take_request(&frame, envelope),
                Err(error) => self.put_frame_error(&error),
            }
            self.write_much().await?;
        }
        Ok(())
    }

    fn take_request(&mut self, frame: &Frame, envelope: RequestEnvelope) {
        let (version, stream) = (frame.header.version, frame.header.stream);
        self.client.count_request();
        if let Err(error) = self.stage.check(frame.header.opcode) {
            self.encoder.append_error(version, stream, &ErrorResponse::protocol(error.to_string()));
            self.is_closing |= self.stage == Stage::Startup;
            return;
        }
        match &envelope.request {
            Request::Startup(options) => self.start(version, stream, options),
            Request::Options => self.put(stream, version, Response::Supported(supported_options()).into()),
            Request::AuthResponse(_) => self.put(stream, version, Response::AuthSuccess(None).into()),
            Request::Register(kinds) => {
                self.events.get_or_insert_with(|| self.server.events.subscribe());
                self.registered.extend_from_slice(kinds);
                self.put(stream, version, Response::Ready.into());
            }
            _ => {
                let bytes = frame.body.len() + protocol::HEADER_BYTES;
                self.begin(version, stream, envelope, bytes);
            }
        }
    }

    fn start(&mut self, version: Version, stream: i16, options: &[(String, String)]) {
        match StartupOptions::check(options, version) {
            Ok(options) => {
                self.client.started(version, &options);
                self.decoder.establish(version, options.compression);
                self.encoder.establish(version, options.compression);
                self.decoder.set_ready();
                self.stage = Stage::Ready;
                self.put(stream, version, Response::Ready.into());
            }
            Err(error) => {
                self.decoder.establish(version, None);
                self.encoder.establish(version, None);
                self.encoder.append_error(version, stream, &ErrorResponse::protocol(error.to_string()));
            }
        }
    }

    /// Begins a request; most are over after one poll.
    fn begin(&mut self, version: Version, stream: i16, envelope: RequestEnvelope, bytes: usize) {
        let Some(admission) = self.server.admit(bytes) else {
            let error = ErrorResponse::new(
                ErrorKind::Overloaded,
                "Server is in overloaded state: too many bytes of requests in flight",
            );
            return self.encoder.append_error(version, stream, &error);
        };
        let job = Job {
            server: Rc::clone(&self.server),
            session: Rc::clone(&self.session),
            client: Rc::clone(&self.client),
            envelope,
            uses_metadata_ids: version.uses_segments(),
        };
        let mut pending: Pending = Box::pin(async move {
            let answer = job.run().await;
            drop(admission);
            (stream, version, answer)
        });
        // One that is not over is polled again by `pending`, which is when it learns whom to wake.
        match pending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready((stream, version, answer)) => self.put(stream, version, answer),
            Poll::Pending => self.pending.push(pending),
        }
    }

    fn put(&mut self, stream: i16, version: Version, answer: Answer) {
        // A client that changes the schema hears of it before it gets its answer, as from Cassandra.
        self.put_events();
        answer.encode(&mut self.encoder, version, stream);
    }

    fn put_frame_error(&mut self, error: &FrameError) {
        if error.fate != Fate::CloseSilently {
            self.encoder.append_frame_error(error);
        }
        self.is_closing |= error.fate != Fate::GoOn;
    }

    fn put_events(&mut self) {
        while let Some(receiver) = &mut self.events {
            match receiver.try_recv() {
                Ok(event) => self.put_event(Some(event)),
                Err(broadcast::error::TryRecvError::Lagged(missed)) => {
                    tracing::warn!(missed, "a client is too slow for its events");
                }
                Err(_) => return,
            }
        }
    }

    fn put_event(&mut self, event: Option<Event>) {
        let (Some(event), Some(version)) = (event, self.decoder.version()) else { return };
        if self.registered.contains(&event.kind()) {
            let envelope = ResponseEnvelope::from(Response::Event(event));
            self.encoder.append_response(version, -1, &envelope);
        }
    }

    /// Writes when there is much: who does not read its answers is waited for, with the rest of them
    /// counted as in flight.
    async fn write_much(&mut self) -> io::Result<()> {
        if self.encoder.pending_bytes() > WRITE_BYTES {
            self.write().await?;
        }
        Ok(())
    }

    async fn write(&mut self) -> io::Result<()> {
        if self.encoder.pending_bytes() > 0 {
            let mut output = self.encoder.take();
            self.stream.write_all_buf(&mut output).await?;
        }
        Ok(())
    }
}

/// The next event; never, for a client that did not register.
async fn next_event(events: &mut Option<broadcast::Receiver<Event>>) -> Option<Event> {
    match events {
        None => poll_fn(|_| Poll::Pending).await,
        Some(receiver) => loop {
            match receiver.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(missed)) => {
                    tracing::warn!(missed, "a client is too slow for its events");
                }
                Err(broadcast::error::RecvError::Closed) => return poll_fn(|_| Poll::Pending).await,
            }
        },
    }
}
