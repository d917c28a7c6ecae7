//! Starting a node, and talking to it: CQL, where nothing else is asked for in version 4, which has no segments, and
//! bare HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use protocol::{
    CellReader, Consistency, Decoder, Encoder, Execute, Flags, Opcode, Prepare, Prepared, Query,
    QueryParameters, Request, RequestEnvelope, Response, ResponseEnvelope, Rows, Value as Bound, Values,
    Version,
};
use runtime::{MemoryDisk, Runtime, RuntimeOptions};
use serde_json::Value;
use server::{Limits, Server, ServerError, ServerOptions};
use storage::StorageOptions;
use tempfile::TempDir;

/// A running node, and the directory it has to itself.
pub(crate) struct Node {
    server: Option<Server>,
    directory: TempDir,
}

impl Node {
    pub(crate) fn start() -> Node {
        let directory = tempfile::tempdir().expect("directory");
        let server = Some(start(&directory));
        Node { server, directory }
    }

    /// A node that takes no more than this from its clients.
    pub(crate) fn with_limits(limits: Limits) -> Node {
        Node::try_with(|options| options.limits = limits).expect("a node")
    }

    /// A node with other options, if it starts with them.
    pub(crate) fn try_with(change: impl FnOnce(&mut ServerOptions)) -> Result<Node, ServerError> {
        Node::begin(|_| {}, change)
    }

    /// A node on a disk that fails when told, with other options of its storage.
    pub(crate) fn on_disk(disk: &MemoryDisk, change: impl FnOnce(&mut StorageOptions)) -> Node {
        let on_disk = |runtime: &mut Runtime| runtime.disk = std::sync::Arc::new(disk.clone());
        Node::begin(on_disk, |options| change(&mut options.storage)).expect("a node")
    }

    /// A node in another world and with other options, if it starts with them.
    pub(crate) fn begin(
        replace: impl FnOnce(&mut Runtime),
        change: impl FnOnce(&mut ServerOptions),
    ) -> Result<Node, ServerError> {
        let directory = tempfile::tempdir().expect("directory");
        let mut runtime = Runtime::real(RuntimeOptions::default()).expect("threads");
        replace(&mut runtime);
        let mut options = options(&directory);
        change(&mut options);
        let server = Some(Server::start(&runtime, options)?);
        Ok(Node { server, directory })
    }

    /// Lets go of a node that can not end well.
    pub(crate) fn abandon(mut self) {
        drop(self.server.take());
    }

    /// Stops the node and starts it again on the same data.
    pub(crate) fn restart(mut self) -> Node {
        stop(self.server.take());
        self.server = Some(start(&self.directory));
        self
    }

    /// Where its files are.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().expect("running")
    }

    pub(crate) fn client(&self) -> Client {
        self.client_with(&[])
    }

    /// A client that speaks another version.
    pub(crate) fn client_of(&self, version: Version) -> Client {
        Client::open(self.server().listen(), version, &[])
    }

    /// A client that says more in its STARTUP.
    pub(crate) fn client_with(&self, options: &[(&str, &str)]) -> Client {
        Client::open(self.server().listen(), Version::V4, options)
    }

    /// Status and body of a GET.
    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.http(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    }

    /// Status and body of a POST; without a body when it is empty.
    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let length = body.len();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        self.http(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }

    /// Bytes that requests and answers hold.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.get("/v1/info").1["requests"]["held_bytes"].as_u64().expect("a number")
    }

    /// What a turn held is given back right after its answers went out.
    pub(crate) fn await_nothing_held(&self) {
        let held: Vec<u64> = (0..1000).map(|_| self.held_bytes()).take_while(|bytes| *bytes > 0).collect();
        assert!(held.len() < 1000, "still {:?}", held.last());
    }

    /// Status and body of a request as written.
    pub(crate) fn http(&self, request: &str) -> (u16, Value) {
        let mut socket = TcpStream::connect(self.server().management().expect("a port")).expect("connect");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("timeout");
        socket.write_all(request.as_bytes()).expect("write");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("read");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned())))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        stop(self.server.take());
    }
}

fn start(directory: &TempDir) -> Server {
    let runtime = Runtime::real(RuntimeOptions::default()).expect("threads");
    Server::start(&runtime, options(directory)).expect("a node")
}

fn options(directory: &TempDir) -> ServerOptions {
    ServerOptions {
        storage: StorageOptions::new(directory.path(), 2, 64 << 20),
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        broadcast_rpc: None,
        management: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        management_token_file: None,
        memory_bytes: 64 << 20,
        shared_bytes: 64 << 20,
        cluster_name: "Test Cluster".into(),
        data_center: "datacenter1".into(),
        rack: "rack1".into(),
        ring: None,
        internode_secret_file: None,
        timeouts: Default::default(),
        limits: Limits::default(),
    }
}

fn stop(server: Option<Server>) {
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    if let Some(server) = server {
        let stopped = waiting.block_on(server.stop());
        // While a test fails, a second panic would hide why.
        assert!(std::thread::panicking() || stopped.is_ok(), "a clean stop: {stopped:?}");
    }
}

/// A connection that is past its handshake.
pub(crate) struct Client {
    socket: TcpStream,
    version: Version,
    decoder: Decoder,
    encoder: Encoder,
}

impl Client {
    fn open(address: SocketAddr, version: Version, more: &[(&str, &str)]) -> Client {
        let socket = TcpStream::connect(address).expect("connect");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("timeout");
        let (decoder, encoder) = (Decoder::client(64 << 20), Encoder::client());
        let mut client = Client { socket, version, decoder, encoder };
        let options = [("CQL_VERSION", "3.0.0"), ("DRIVER_NAME", "test")].iter().chain(more);
        let options = options.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let ready = client.call(Request::Startup(options).into());
        assert!(matches!(ready.response, Response::Ready), "{ready:?}");
        client.decoder.establish(version, None);
        client.encoder.establish(version, None);
        client
    }

    pub(crate) fn call(&mut self, request: RequestEnvelope) -> ResponseEnvelope {
        self.send(1, request);
        self.receive().1
    }

    /// Sends a request and does not wait.
    pub(crate) fn send(&mut self, stream: i16, request: RequestEnvelope) {
        let bytes = self.encoded(stream, request);
        self.send_bytes(&bytes);
    }

    /// The bytes of a request.
    pub(crate) fn encoded(&mut self, stream: i16, request: RequestEnvelope) -> Vec<u8> {
        self.encoder.append_request(self.version, stream, &request);
        self.encoder.take().to_vec()
    }

    /// Sends messages in one go, in one segment where there are such: each a request, or for `None` a QUERY that can
    /// not be read. Streams are counted from 0.
    pub(crate) fn send_with_malformed(
        &mut self,
        requests: impl IntoIterator<Item = Option<RequestEnvelope>>,
    ) {
        for (stream, request) in (0..).zip(requests) {
            match request {
                Some(request) => self.encoder.append_request(self.version, stream, &request),
                None => self.encoder.append_with(self.version, stream, Opcode::Query, Flags::NONE, |_| {}),
            }
        }
        let bytes = self.encoder.take();
        self.send_bytes(&bytes);
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("write");
    }

    /// Its end of the connection once more, for another thread.
    pub(crate) fn socket(&self) -> TcpStream {
        self.socket.try_clone().expect("a descriptor")
    }

    /// Where the client is, as the node sees it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("an address")
    }

    /// The next answer, and its stream.
    pub(crate) fn receive(&mut self) -> (i16, ResponseEnvelope) {
        self.receive_or_end().expect("the node closed the connection")
    }

    /// The same, or the end of the connection in order.
    pub(crate) fn receive_or_end(&mut self) -> Option<(i16, ResponseEnvelope)> {
        loop {
            if let Some(frame) = self.decoder.next_frame() {
                let frame = frame.expect("a frame");
                return Some((frame.header.stream, ResponseEnvelope::decode(&frame).expect("an answer")));
            }
            let buffer = self.decoder.read_buffer(4096);
            let start = buffer.len();
            buffer.resize(start + 4096, 0);
            let count = self.socket.read(&mut buffer[start..]).expect("read");
            buffer.truncate(start + count);
            if count == 0 {
                return None;
            }
        }
    }

    /// Has the node closed the connection? Waits for it.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.socket.read(&mut [0; 16]), Ok(0) | Err(_))
    }

    pub(crate) fn prepare(&mut self, text: &str) -> Prepared {
        let request = Request::Prepare(Prepare { query: text.into(), keyspace: None });
        match self.call(request.into()).response {
            Response::Prepared(prepared) => prepared,
            other => panic!("{text}: {other:?}"),
        }
    }

    pub(crate) fn query(&mut self, text: &str) -> Response {
        self.call(request(text).into()).response
    }

    /// Rows of a statement as text, a column from the next by a bar.
    pub(crate) fn rows(&mut self, text: &str) -> Vec<String> {
        match self.query(text) {
            Response::Rows(rows) => lines(&rows),
            other => panic!("{text}: {other:?}"),
        }
    }

    /// The same, page by page.
    pub(crate) fn pages(&mut self, text: &str, page_size: i32) -> Vec<String> {
        let mut all = Vec::new();
        let mut paging_state = None;
        loop {
            let levels = QueryParameters::at(Consistency::One);
            let parameters = QueryParameters { page_size: Some(page_size), paging_state, ..levels };
            let page = self.call(Request::Query(Query { query: text.into(), parameters }).into()).response;
            let Response::Rows(page) = page else { panic!("{text}: {page:?}") };
            all.extend(lines(&page));
            match page.paging_state {
                Some(next) => paging_state = Some(next),
                None => return all,
            }
        }
    }
}

pub(crate) fn request(text: &str) -> Request {
    Request::Query(Query { query: text.into(), parameters: QueryParameters::at(Consistency::One) })
}

/// Runs a prepared statement with these values.
pub(crate) fn execute(prepared: &Prepared, values: &[&[u8]]) -> RequestEnvelope {
    execute_at(Consistency::One, prepared, values)
}

/// The same at a level.
pub(crate) fn execute_at(level: Consistency, prepared: &Prepared, values: &[&[u8]]) -> RequestEnvelope {
    let values = Values::pack(values.iter().map(|value| Bound::Bytes(value)));
    let parameters = QueryParameters { values, ..QueryParameters::at(level) };
    let result_metadata_id = Some(prepared.result_metadata_id.clone());
    Request::Execute(Execute { id: prepared.id.clone(), result_metadata_id, parameters }).into()
}

fn lines(rows: &Rows) -> Vec<String> {
    let mut cells = CellReader::new(rows.cells.clone());
    let line = |_| {
        let cell = |column: &protocol::ColumnSpec| match cells.next_cell().expect("a cell").expect("whole") {
            None => "null".to_owned(),
            Some(value) if column.cql_type.native_name().is_some() => column.cql_type.to_text(&value),
            Some(value) => column.cql_type.to_cql_literal(&value),
        };
        rows.metadata.columns().iter().map(cell).collect::<Vec<_>>().join("|")
    };
    (0..rows.row_count).map(line).collect()
}
