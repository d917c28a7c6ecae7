//! One blocking connection: requests out, answers in, by stream.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::Bytes;
use protocol::{
    Consistency, Decoder, Encoder, Event, Execute, Prepare, Prepared, Query, QueryParameters, Request,
    RequestEnvelope, Response, ResponseEnvelope, Text, Values, Version,
};

use crate::ClientError;
use crate::answer::{Answer, unexpected};

/// Answers may be larger than what a server takes as a request.
const FRAME_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How much is asked of the socket at once.
const READ_BYTES: usize = 64 * 1024;
/// Requests are gathered until so much waits to be written.
const WRITE_BYTES: usize = 64 * 1024;
/// Events kept for whoever asks; older ones are dropped.
const EVENT_COUNT_MAX: usize = 1024;

/// How to connect.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Protocol version to speak.
    pub version: Version,
    /// User and password, if the server wants them.
    pub credentials: Option<(String, String)>,
    /// How long to wait for the connection.
    pub connect_timeout: Duration,
    /// How long to wait for an answer; `None` waits for ever.
    pub answer_timeout: Option<Duration>,
    /// Requests in flight at most (up to 32768).
    pub in_flight_max: usize,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            version: Version::CURRENT,
            credentials: None,
            connect_timeout: Duration::from_secs(5),
            answer_timeout: None,
            in_flight_max: 1024,
        }
    }
}

/// A connection that is past its handshake.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    version: Version,
    decoder: Decoder,
    encoder: Encoder,
    /// Streams that are free, the last one used next.
    free_streams: Vec<i16>,
    in_flight_max: usize,
    /// Answers that came while another was waited for.
    waiting: VecDeque<Answer>,
    events: VecDeque<Event>,
}

impl Connection {
    /// Connects and shakes hands.
    ///
    /// # Errors
    /// Nobody listens, or the server refuses.
    pub fn open(
        address: impl ToSocketAddrs + ToString,
        options: &ConnectOptions,
    ) -> Result<Connection, ClientError> {
        let socket = connect(&address, options.connect_timeout)
            .map_err(|source| ClientError::Connect { address: address.to_string(), source })?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(options.answer_timeout)?;
        let in_flight_max = options.in_flight_max.clamp(1, i16::MAX as usize);
        let mut connection = Connection {
            socket,
            version: options.version,
            decoder: Decoder::client(FRAME_BYTES_MAX),
            encoder: Encoder::client(),
            free_streams: (0..in_flight_max as i16).rev().collect(),
            in_flight_max,
            waiting: VecDeque::new(),
            events: VecDeque::new(),
        };
        connection.start(options)?;
        Ok(connection)
    }

    fn start(&mut self, options: &ConnectOptions) -> Result<(), ClientError> {
        let startup = [
            ("CQL_VERSION", "3.0.0"),
            ("DRIVER_NAME", "Peristyle tools"),
            ("DRIVER_VERSION", env!("CARGO_PKG_VERSION")),
        ];
        let startup = startup.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let answer = self.call(Request::Startup(startup))?.checked()?;
        self.decoder.establish(self.version, None);
        self.encoder.establish(self.version, None);
        match answer.envelope.response {
            Response::Ready => Ok(()),
            Response::Authenticate(authenticator) => self.authenticate(authenticator, options),
            other => Err(unexpected("READY", &other)),
        }
    }

    /// SASL PLAIN: an empty identity, the user, the password, each after a zero byte.
    fn authenticate(&mut self, authenticator: String, options: &ConnectOptions) -> Result<(), ClientError> {
        let Some((user, password)) = &options.credentials else {
            return Err(ClientError::Credentials { authenticator });
        };
        let token = Bytes::from(format!("\0{user}\0{password}"));
        match self.call(Request::AuthResponse(Some(token)))?.checked()?.envelope.response {
            Response::AuthSuccess(_) => Ok(()),
            other => Err(unexpected("AUTH_SUCCESS", &other)),
        }
    }

    /// The version spoken.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Requests that were sent and not yet received.
    pub fn in_flight(&self) -> usize {
        self.in_flight_max - self.free_streams.len()
    }

    /// Puts a request on its way and tells its stream. It may wait in a buffer until [`receive`]
    /// or [`flush`].
    ///
    /// [`receive`]: Connection::receive
    /// [`flush`]: Connection::flush
    ///
    /// # Errors
    /// Too many are in flight, or the connection broke.
    pub fn send(&mut self, request: impl Into<RequestEnvelope>) -> Result<i16, ClientError> {
        let Some(stream) = self.free_streams.pop() else {
            return Err(ClientError::TooManyInFlight { in_flight_max: self.in_flight_max });
        };
        self.encoder.append_request(self.version, stream, &request.into());
        if self.encoder.pending_bytes() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(stream)
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// The connection broke.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        if self.encoder.pending_bytes() > 0 {
            let output = self.encoder.take();
            self.socket.write_all(&output)?;
        }
        Ok(())
    }

    /// The next answer, whichever stream it is on. An ERROR is an answer here.
    ///
    /// # Errors
    /// The connection broke or the server's bytes make no sense.
    pub fn receive(&mut self) -> Result<Answer, ClientError> {
        self.flush()?;
        match self.waiting.pop_front() {
            Some(answer) => Ok(answer),
            None => self.read_answer(),
        }
    }

    /// Sends one request and waits for its answer; answers to others are kept.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    pub fn call(&mut self, request: impl Into<RequestEnvelope>) -> Result<Answer, ClientError> {
        let stream = self.send(request)?;
        self.flush()?;
        loop {
            let answer = self.read_answer()?;
            if answer.stream == stream {
                return Ok(answer);
            }
            self.waiting.push_back(answer);
        }
    }

    /// Runs a statement at consistency ONE, without values. An ERROR becomes an error.
    ///
    /// # Errors
    /// As [`Connection::receive`], and what the server says.
    pub fn query(&mut self, text: &str) -> Result<Answer, ClientError> {
        self.query_with(text, QueryParameters::at(Consistency::One))
    }

    /// Runs a statement. An ERROR becomes an error.
    ///
    /// # Errors
    /// As [`Connection::receive`], and what the server says.
    pub fn query_with(&mut self, text: &str, parameters: QueryParameters) -> Result<Answer, ClientError> {
        self.call(Request::Query(Query { query: Text::from(text), parameters }))?.checked()
    }

    /// Has a statement prepared.
    ///
    /// # Errors
    /// As [`Connection::receive`], and what the server says.
    pub fn prepare(&mut self, text: &str) -> Result<Prepared, ClientError> {
        self.call(Request::Prepare(Prepare { query: Text::from(text), keyspace: None }))?.prepared()
    }

    /// The request that runs a prepared statement with these values.
    pub fn execute_request(prepared: &Prepared, values: Values, consistency: Consistency) -> Request {
        Request::Execute(Execute {
            id: prepared.id.clone(),
            result_metadata_id: Some(prepared.result_metadata_id.clone()),
            parameters: QueryParameters { values, ..QueryParameters::at(consistency) },
        })
    }

    /// The socket, for who goes on with it in its own way; none if requests are in flight. The handshake is over, so
    /// both sides are between two frames.
    pub fn into_socket(self) -> Option<TcpStream> {
        (self.in_flight() == 0).then_some(self.socket)
    }

    /// Events that came meanwhile, oldest first.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.drain(..).collect()
    }

    /// Reads until a frame that is an answer is there.
    fn read_answer(&mut self) -> Result<Answer, ClientError> {
        loop {
            while let Some(frame) = self.decoder.next_frame() {
                let frame = frame.map_err(|error| ClientError::Server(error.error))?;
                let stream = frame.header.stream;
                let envelope = ResponseEnvelope::decode(&frame)?;
                match envelope.response {
                    Response::Event(event) => self.keep(event),
                    _ => {
                        if stream >= 0 {
                            self.free_streams.push(stream);
                        }
                        return Ok(Answer { stream, envelope });
                    }
                }
            }
            self.read()?;
        }
    }

    fn keep(&mut self, event: Event) {
        if self.events.len() == EVENT_COUNT_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn read(&mut self) -> Result<(), ClientError> {
        let buffer = self.decoder.read_buffer(READ_BYTES);
        let start = buffer.len();
        buffer.resize(start + READ_BYTES, 0);
        let outcome = self.socket.read(&mut buffer[start..]);
        buffer.truncate(start + *outcome.as_ref().unwrap_or(&0));
        match outcome? {
            0 => Err(ClientError::Closed { in_flight: self.in_flight() }),
            _ => Ok(()),
        }
    }
}

/// The first of the addresses that takes us.
#[expect(clippy::disallowed_methods, reason = "a tool lives outside the simulated world")]
fn connect(address: &impl ToSocketAddrs, timeout: Duration) -> std::io::Result<TcpStream> {
    let mut refusal = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(socket) => return Ok(socket),
            Err(error) => refusal = error,
        }
    }
    Err(refusal)
}
