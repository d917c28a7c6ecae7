//! One blocking connection: handshake, then one request after the other.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::answer::{self, Answer, Response};
use super::{WireError, segment};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Protects against a server that announces a frame we could never hold.
const FRAME_BYTES_MAX: usize = 1 << 29;
/// A frame's flag.
const CUSTOM_PAYLOAD: u8 = 0x04;

/// A value to bind, in its native bytes.
#[derive(Debug, Clone)]
pub(crate) enum BoundValue {
    Null,
    Unset,
    Bytes(Vec<u8>),
}

/// What goes with a QUERY or an EXECUTE.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) consistency: u16,
    pub(crate) values: Vec<(Option<String>, BoundValue)>,
    pub(crate) page_size: Option<i32>,
    pub(crate) paging_state: Option<Vec<u8>>,
    pub(crate) serial_consistency: Option<u16>,
    pub(crate) timestamp: Option<i64>,
    pub(crate) keyspace: Option<String>,
    pub(crate) now_in_seconds: Option<i32>,
    /// The id of the operation, for the custom payload of what is executed.
    pub(crate) operation: Option<[u8; 16]>,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            consistency: 1,
            values: Vec::new(),
            page_size: None,
            paging_state: None,
            serial_consistency: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
            operation: None,
        }
    }
}

/// A connection that is past its handshake.
pub(crate) struct Connection {
    socket: TcpStream,
    version: u8,
    segmented: bool,
    /// Payload received in segments and not yet read as frames.
    received: Vec<u8>,
}

impl Connection {
    /// Connects to `address` and speaks protocol `version` (3, 4 or 5).
    pub(crate) fn open(address: &str, version: u8) -> Result<Connection, WireError> {
        Connection::open_within(address, version, ANSWER_TIMEOUT)
    }

    /// As [`Connection::open`]; neither the handshake nor a later answer may take longer than `time`.
    pub(crate) fn open_within(address: &str, version: u8, time: Duration) -> Result<Connection, WireError> {
        let connect = TcpStream::connect(address);
        let socket = connect.map_err(|source| WireError::Connect { address: address.to_owned(), source })?;
        socket.set_read_timeout(Some(time))?;
        socket.set_nodelay(true)?;
        let mut connection = Connection { socket, version, segmented: false, received: Vec::new() };
        let mut body = Vec::new();
        body.extend_from_slice(&1u16.to_be_bytes());
        put_string(&mut body, "CQL_VERSION");
        put_string(&mut body, "3.0.0");
        match connection.exchange(0x01, &body)?.answer {
            Answer::Ready => {}
            other => return Err(WireError::Handshake(format!("{other:?}"))),
        }
        connection.segmented = version >= 5;
        Ok(connection)
    }

    /// Sends a statement as text.
    pub(crate) fn query(&mut self, text: &str, request: &Request) -> Result<Response, WireError> {
        let mut body = Vec::new();
        put_long_string(&mut body, text);
        self.put_request(&mut body, request);
        self.exchange(0x07, &body)
    }

    /// Has a statement prepared.
    pub(crate) fn prepare(&mut self, text: &str, keyspace: Option<&str>) -> Result<Response, WireError> {
        let mut body = Vec::new();
        put_long_string(&mut body, text);
        if self.version >= 5 {
            body.extend_from_slice(&u32::from(keyspace.is_some()).to_be_bytes());
            if let Some(keyspace) = keyspace {
                put_string(&mut body, keyspace);
            }
        }
        self.exchange(0x09, &body)
    }

    /// Runs a prepared statement.
    pub(crate) fn execute(
        &mut self,
        id: &[u8],
        result_id: &[u8],
        request: &Request,
    ) -> Result<Response, WireError> {
        let mut body = Vec::new();
        if let Some(operation) = &request.operation {
            body.extend_from_slice(&1u16.to_be_bytes());
            put_string(&mut body, "operation-id");
            put_bytes(&mut body, operation);
        }
        put_short_bytes(&mut body, id);
        if self.version >= 5 {
            put_short_bytes(&mut body, result_id);
        }
        self.put_request(&mut body, request);
        let flags = if request.operation.is_some() { CUSTOM_PAYLOAD } else { 0 };
        self.send_flagged(1, flags, 0x0a, &body)?;
        self.receive()
    }

    fn put_request(&self, body: &mut Vec<u8>, request: &Request) {
        body.extend_from_slice(&request.consistency.to_be_bytes());
        let named = request.values.iter().any(|(name, _)| name.is_some());
        let flags = [
            (0x01, !request.values.is_empty()),
            (0x04, request.page_size.is_some()),
            (0x08, request.paging_state.is_some()),
            (0x10, request.serial_consistency.is_some()),
            (0x20, request.timestamp.is_some()),
            (0x40, named),
            (0x80, request.keyspace.is_some()),
            (0x100, request.now_in_seconds.is_some()),
        ];
        let flags = flags.iter().filter(|(_, set)| *set).fold(0u32, |all, (bit, _)| all | bit);
        match self.version {
            5 => body.extend_from_slice(&flags.to_be_bytes()),
            _ => body.push(flags.to_be_bytes()[3]),
        }
        if !request.values.is_empty() {
            body.extend_from_slice(&length_u16(request.values.len()).to_be_bytes());
        }
        for (name, value) in &request.values {
            if let Some(name) = name {
                put_string(body, name);
            }
            match value {
                BoundValue::Null => body.extend_from_slice(&(-1i32).to_be_bytes()),
                BoundValue::Unset => body.extend_from_slice(&(-2i32).to_be_bytes()),
                BoundValue::Bytes(bytes) => put_bytes(body, bytes),
            }
        }
        if let Some(page_size) = request.page_size {
            body.extend_from_slice(&page_size.to_be_bytes());
        }
        if let Some(state) = &request.paging_state {
            put_bytes(body, state);
        }
        if let Some(serial) = request.serial_consistency {
            body.extend_from_slice(&serial.to_be_bytes());
        }
        if let Some(timestamp) = request.timestamp {
            body.extend_from_slice(&timestamp.to_be_bytes());
        }
        if let Some(keyspace) = &request.keyspace {
            put_string(body, keyspace);
        }
        if let Some(now) = request.now_in_seconds {
            body.extend_from_slice(&now.to_be_bytes());
        }
    }

    fn exchange(&mut self, opcode: u8, body: &[u8]) -> Result<Response, WireError> {
        self.send(1, opcode, body)?;
        self.receive()
    }

    /// Sends a statement as text and does not wait for its answer.
    pub(crate) fn send_query(&mut self, stream: u16, text: &str, request: &Request) -> Result<(), WireError> {
        let mut body = Vec::new();
        put_long_string(&mut body, text);
        self.put_request(&mut body, request);
        self.send(stream, 0x07, &body)
    }

    /// Sends any frame, right or wrong, and does not wait for its answer.
    pub(crate) fn send(&mut self, stream: u16, opcode: u8, body: &[u8]) -> Result<(), WireError> {
        self.send_flagged(stream, 0, opcode, body)
    }

    fn send_flagged(&mut self, stream: u16, flags: u8, opcode: u8, body: &[u8]) -> Result<(), WireError> {
        let [high, low] = stream.to_be_bytes();
        let mut frame = vec![self.version, flags, high, low, opcode];
        put_bytes(&mut frame, body);
        match self.segmented {
            false => self.socket.write_all(&frame)?,
            true => self.socket.write_all(&segment::wrap(&frame))?,
        }
        Ok(())
    }

    /// Has the server closed it, while nobody waited for an answer?
    pub(crate) fn is_closed(&self) -> bool {
        if self.socket.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = self.socket.peek(&mut [0]);
        let is_open = match peeked {
            Ok(count) => count > 0,
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        };
        self.socket.set_nonblocking(false).is_err() || !is_open
    }

    /// The socket, for whoever goes on by himself.
    pub(crate) fn into_socket(self) -> TcpStream {
        self.socket
    }

    /// How long the socket may neither take nor give anything.
    pub(crate) fn set_patience(&self, time: Duration) -> Result<(), WireError> {
        self.socket.set_write_timeout(Some(time))?;
        Ok(self.socket.set_read_timeout(Some(time))?)
    }

    /// The next answer, whatever request it is for.
    pub(crate) fn receive(&mut self) -> Result<Response, WireError> {
        let header = self.read_bytes(9)?;
        let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(WireError::Unknown { what: "frame length", got: i64::from(u32::MAX) });
        }
        let body = self.read_bytes(length)?;
        answer::parse(self.version, header[1], header[4], &body)
    }

    fn read_bytes(&mut self, count: usize) -> Result<Vec<u8>, WireError> {
        if !self.segmented {
            let mut bytes = vec![0; count];
            self.socket.read_exact(&mut bytes)?;
            return Ok(bytes);
        }
        while self.received.len() < count {
            let payload = segment::read(&mut self.socket)?;
            self.received.extend_from_slice(&payload);
        }
        let rest = self.received.split_off(count);
        Ok(std::mem::replace(&mut self.received, rest))
    }
}

fn length_u16(length: usize) -> u16 {
    u16::try_from(length).expect("scripts hold short strings and few values")
}

fn put_string(body: &mut Vec<u8>, text: &str) {
    put_short_bytes(body, text.as_bytes());
}

fn put_short_bytes(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend_from_slice(&length_u16(bytes.len()).to_be_bytes());
    body.extend_from_slice(bytes);
}

fn put_long_string(body: &mut Vec<u8>, text: &str) {
    put_bytes(body, text.as_bytes());
}

fn put_bytes(body: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("requests of a script are far below 4 GiB");
    body.extend_from_slice(&length.to_be_bytes());
    body.extend_from_slice(bytes);
}
