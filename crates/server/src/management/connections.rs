//! Who is connected to the port: so many at once, and for how long.
//!
//! ```text
//!   accepted ──> waits ──(a whole request is there)──> it is carried out ──(the answer is there)──> waits ──> …
//!                  └── for `wait` at most, or until another connection needs the place
//! ```
//!
//! A connection waits for the rest of a request, for the next one, or for its client to take the answer. One that
//! has waited for long is closed, whatever for. While a request is carried out, which may take hours (a compaction),
//! it is not. When as many connections are there as may be, a new one takes the place of the one that has waited
//! longest: nobody keeps others out by doing nothing. There is always one that waits, since fewer requests are
//! carried out at once.
//!
//! Clients of CQL and table files may take every descriptor that the process can have; whoever looks after the node
//! must come in then, too. So the port keeps some spare ones, and gives one back whenever there is none for a
//! connection.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use runtime::{ByteStream, Listener};
use rustix::io::Errno;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::answer::Refusal;
use super::guard::Guard;
use super::request::whole;

/// Descriptors that are kept for connections of the port.
const SPARE_COUNT: usize = 4;
/// How long nothing is accepted when there is no descriptor at all.
const RETRY: Duration = Duration::from_millis(50);

/// What those who ask may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortLimits {
    /// Connections at the same time.
    pub(super) connection_count: usize,
    /// Requests that are carried out at the same time. Invariant: less than `connection_count`.
    pub(super) request_count: usize,
    /// How long a connection may be there without a request that is carried out.
    pub(super) wait: Duration,
    /// Bytes of a request's first line and headers.
    pub(super) head_bytes: usize,
    /// Bytes of a request's body: names of tables and files.
    pub(super) body_bytes: usize,
}

impl Default for PortLimits {
    fn default() -> PortLimits {
        PortLimits {
            connection_count: 64,
            request_count: 32,
            wait: Duration::from_secs(30),
            head_bytes: 16 << 10,
            body_bytes: 1 << 20,
        }
    }
}

/// What all connections share.
pub(super) struct Port {
    guard: Guard,
    router: TowerToHyperService<Router>,
    limits: PortLimits,
    /// Requests that are being carried out.
    request_count: Cell<usize>,
}

impl Port {
    pub(super) fn new(guard: Guard, router: Router, limits: PortLimits) -> Port {
        assert!(limits.request_count < limits.connection_count, "one connection waits at least");
        Port { guard, router: TowerToHyperService::new(router), limits, request_count: Cell::new(0) }
    }

    /// Accepts connections, and serves them. Never ends; dropped, it closes all of them.
    pub(super) async fn serve(self, listener: Listener) {
        let mut connections = Connections {
            port: Rc::new(self),
            tasks: JoinSet::new(),
            open: Vec::new(),
            spare: Vec::with_capacity(SPARE_COUNT),
        };
        connections.keep_spare(&listener);
        loop {
            tokio::select! {
                biased;
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => connections.begin(stream),
                    Err(error) => {
                        connections.make_room(&error).await;
                        // The room is for the connection that is to be accepted, not for a spare descriptor.
                        continue;
                    }
                },
                Some(_) = connections.tasks.join_next() => {}
            }
            connections.open.retain(|open| !open.task.is_finished());
            connections.keep_spare(&listener);
        }
    }

    /// Serves a connection until its client goes, or has waited for too long.
    async fn converse(self: Rc<Self>, stream: ByteStream, waiting: Rc<Waiting>) {
        let (port, since) = (&*self, &*waiting);
        let service = service_fn(move |request| async move {
            let answer = port.answer(request, since).await;
            Ok::<Response, Infallible>(answer.unwrap_or_else(IntoResponse::into_response))
        });
        let mut http = http1::Builder::new();
        // `Waiting` measures the time of a head, together with all else that takes time.
        http.max_header_size(self.limits.head_bytes).header_read_timeout(None);
        tokio::select! {
            biased;
            ended = http.serve_connection(TokioIo::new(stream), service) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection of the management port ended");
                }
            }
            () = waiting.for_longer_than(self.limits.wait) => {}
        }
    }

    async fn answer(
        &self,
        request: axum::http::Request<Incoming>,
        waiting: &Waiting,
    ) -> Result<Response, Refusal> {
        self.guard.check(&request)?;
        let request = whole(request, self.limits.body_bytes).await?;
        let _place = self.enter(waiting)?;
        let Ok(answer) = self.router.call(request).await;
        Ok(answer)
    }

    /// A place for one more request, until it is dropped.
    fn enter<'a>(&'a self, waiting: &'a Waiting) -> Result<RequestPlace<'a>, Refusal> {
        let count = self.request_count.get();
        if count >= self.limits.request_count {
            return Err(Refusal::busy(format!("{count} requests are being carried out, and no more may be")));
        }
        self.request_count.set(count + 1);
        waiting.0.set(None);
        Ok(RequestPlace { request_count: &self.request_count, waiting })
    }
}

/// A request's place among those that are carried out, given back however it ends.
struct RequestPlace<'a> {
    request_count: &'a Cell<usize>,
    waiting: &'a Waiting,
}

impl Drop for RequestPlace<'_> {
    fn drop(&mut self) {
        self.request_count.set(self.request_count.get() - 1);
        self.waiting.0.set(Some(Instant::now()));
    }
}

/// Since when a connection waits; `None` while a request of it is carried out.
struct Waiting(Cell<Option<Instant>>);

impl Waiting {
    async fn for_longer_than(&self, limit: Duration) {
        loop {
            let end = self.0.get().unwrap_or_else(Instant::now) + limit;
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

/// A connection that is there.
struct Open {
    waiting: Rc<Waiting>,
    task: AbortHandle,
}

struct Connections {
    port: Rc<Port>,
    /// One for each connection.
    tasks: JoinSet<()>,
    /// Invariant: no more than may be, the oldest first.
    open: Vec<Open>,
    /// Descriptors that stand for nothing. Invariant: at most `SPARE_COUNT`.
    spare: Vec<OwnedFd>,
}

impl Connections {
    fn begin(&mut self, stream: ByteStream) {
        if self.open.len() >= self.port.limits.connection_count {
            self.close_longest_waiting();
        }
        let waiting = Rc::new(Waiting(Cell::new(Some(Instant::now()))));
        let serving = Rc::clone(&self.port).converse(stream, Rc::clone(&waiting));
        let task = self.tasks.spawn_local(serving);
        self.open.push(Open { waiting, task });
    }

    fn close_longest_waiting(&mut self) {
        let since = |(index, open): (usize, &Open)| open.waiting.0.get().map(|since| (since, index));
        if let Some((_, index)) = self.open.iter().enumerate().filter_map(since).min() {
            self.open.remove(index).task.abort();
        }
    }

    /// After a connection could not be accepted: makes a descriptor free, or waits until somebody else does.
    async fn make_room(&mut self, error: &io::Error) {
        let is_out_of_descriptors = [Errno::MFILE, Errno::NFILE]
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
        if is_out_of_descriptors && self.spare.pop().is_some() {
            return;
        }
        tracing::warn!(%error, "a connection to the management port was not accepted");
        self.close_longest_waiting();
        tokio::time::sleep(RETRY).await;
    }

    /// Takes spare descriptors again, as far as there are any.
    fn keep_spare(&mut self, listener: &Listener) {
        while self.spare.len() < SPARE_COUNT {
            match listener.spare_descriptor() {
                Ok(descriptor) => self.spare.push(descriptor),
                Err(_) => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream as StdStream};
    use std::sync::{Arc, mpsc};

    use axum::routing::{get, post};
    use runtime::{BoundListener, Network};
    use tokio::sync::Semaphore;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);
    /// Long enough for a request to come, on a machine that has other work.
    const SHORT: Duration = Duration::from_secs(1);

    /// A port with paths of the test's own: `/now`, `/length` of a body, and `/held`, which is answered when told.
    struct TestPort {
        address: SocketAddr,
        /// Each permit lets one request to `/held` go.
        gate: Arc<Semaphore>,
        /// Told whenever a request to `/held` is being carried out.
        held: mpsc::Receiver<()>,
    }

    impl TestPort {
        fn start(limits: PortLimits) -> TestPort {
            let listener = bound();
            let address = listener.local_address().expect("an address");
            let gate = Arc::new(Semaphore::new(0));
            let (tell, held) = mpsc::channel();
            let of_router = Arc::clone(&gate);
            let hold = move || {
                let (gate, tell) = (Arc::clone(&of_router), tell.clone());
                async move {
                    tell.send(()).expect("the test listens");
                    gate.acquire().await.expect("open").forget();
                    "held"
                }
            };
            let router = Router::new()
                .route("/now", get(|| async { "now" }))
                .route("/length", post(|body: String| async move { body.len().to_string() }))
                .route("/held", get(hold));
            let guard = Guard::new(address, None).expect("loopback");
            let serve = async move || {
                let listener = listener.open().expect("listens");
                Port::new(guard, router, limits).serve(listener).await;
            };
            runtime::start_service("port-test", serve).expect("a thread");
            TestPort { address, gate, held }
        }

        /// A connection on which these bytes were sent.
        #[expect(clippy::disallowed_methods, reason = "a client of a real port")]
        fn send(&self, bytes: &str) -> Client {
            let socket = StdStream::connect(self.address).expect("connects");
            socket.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
            let mut client = Client(socket);
            client.send(bytes);
            client
        }
    }

    fn bound() -> BoundListener {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        Network::System.bind(any_port, 1).expect("a port").remove(0)
    }

    struct Client(StdStream);

    impl Client {
        fn send(&mut self, bytes: &str) {
            // One that is refused in the midst of it does not take the rest.
            _ = self.0.write_all(bytes.as_bytes());
        }

        /// What comes until the connection is closed.
        fn rest(mut self) -> String {
            let mut bytes = Vec::new();
            match self.0.read_to_end(&mut bytes) {
                Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("still open: {error}"),
                _ => String::from_utf8(bytes).expect("text"),
            }
        }

        /// The status of the answer, after which the connection is closed.
        fn status(self) -> String {
            let answer = self.rest();
            answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {answer}")).to_owned()
        }
    }

    fn get_last(path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    }

    #[test]
    fn whoever_does_not_finish_a_request_is_let_go_and_whoever_waits_for_an_answer_is_not() {
        let port = TestPort::start(PortLimits { wait: SHORT, ..PortLimits::default() });
        let held = port.send(&get_last("/held"));
        port.held.recv().expect("it is being carried out");
        let nothing = "";
        let head = "GET /now HTTP/1.1\r\nHost: local";
        let body = "POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf";
        let next = "GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let clients = [(nothing, false), (head, false), (body, false), (next, true)]
            .map(|(bytes, is_answered)| (bytes, port.send(bytes), is_answered));
        for (bytes, client, is_answered) in clients {
            let answer = client.rest();
            assert_eq!(answer.ends_with("now"), is_answered, "{bytes:?}: {answer}");
        }
        // They were there for as long as a connection may wait, and this one for longer.
        port.gate.add_permits(1);
        assert!(held.rest().ends_with("held"));
    }

    #[test]
    fn the_connection_that_has_waited_longest_gives_way_to_a_new_one() {
        let limits =
            PortLimits { connection_count: 3, request_count: 2, wait: LONG, ..PortLimits::default() };
        let port = TestPort::start(limits);
        let held = port.send(&get_last("/held"));
        port.held.recv().expect("it is being carried out");
        let first = port.send("GET /now HTT");
        // Nothing tells when a connection was accepted, but that a later one is served.
        assert_eq!(port.send(&get_last("/now")).status(), "200");
        let mut second = port.send("GET /now HTTP/1.1\r\n");
        assert_eq!(port.send(&get_last("/now")).status(), "200");
        assert_eq!(first.rest(), "", "it was the longest");
        second.send("Host: localhost\r\nConnection: close\r\n\r\n");
        assert_eq!(second.status(), "200");
        port.gate.add_permits(1);
        assert_eq!(held.status(), "200");
    }

    #[test]
    fn more_requests_than_may_be_carried_out_are_refused() {
        let limits = PortLimits { request_count: 1, wait: LONG, ..PortLimits::default() };
        let port = TestPort::start(limits);
        let held = port.send(&get_last("/held"));
        port.held.recv().expect("it is being carried out");
        let refused = port.send(&get_last("/now")).rest();
        assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("\"error\""), "{refused}");
        port.gate.add_permits(1);
        assert_eq!(held.status(), "200");
        assert_eq!(port.send(&get_last("/now")).status(), "200");
    }

    #[test]
    fn the_place_of_a_request_is_free_again_when_its_client_has_gone() {
        let limits = PortLimits { request_count: 1, wait: LONG, ..PortLimits::default() };
        let port = TestPort::start(limits);
        let held = port.send(&get_last("/held"));
        port.held.recv().expect("it is being carried out");
        drop(held);
        // The node learns of it some time after the client went.
        while port.send(&get_last("/now")).status() == "503" {}
        assert_eq!(port.send(&get_last("/now")).status(), "200");
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let port = TestPort::start(PortLimits { head_bytes: 8192, body_bytes: 100, ..PortLimits::default() });
        let long = "x".repeat(9000);
        let many = "a: b\r\n".repeat(200);
        let post = |head: &str, body: &str| {
            format!("POST /length HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n\r\n{body}")
        };
        let body = "x".repeat(101);
        for (request, status) in [
            (format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"), "431"),
            (format!("GET /now HTTP/1.1\r\nHost: localhost\r\nx: {long}\r\n\r\n"), "431"),
            (format!("GET /now HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), "431"),
            (post("Content-Length: 100", &body[1..]), "200"),
            (post("Content-Length: 101", &body), "413"),
            (post("Content-Length: 99999999999", &body), "413"),
            (post("Transfer-Encoding: chunked", &format!("65\r\n{body}\r\n0\r\n\r\n")), "413"),
            (post("Content-Length: x", ""), "400"),
            (
                "GET /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
                    .into(),
                "400",
            ),
            ("\0\x16\x03\x01 not HTTP at all\r\n\r\n".into(), "400"),
        ] {
            assert_eq!(port.send(&request).status(), status, "{:.60}", request);
        }
    }

    /// What the kernel says when there is no descriptor is told here: taking all of them would end other tests.
    #[tokio::test]
    async fn a_spare_descriptor_is_given_back_for_a_connection_and_taken_again_later() {
        let bound = bound();
        let guard = Guard::new(bound.local_address().expect("an address"), None).expect("loopback");
        let listener = bound.open().expect("listens");
        let port = Port::new(guard, Router::new(), PortLimits::default());
        let mut connections =
            Connections { port: Rc::new(port), tasks: JoinSet::new(), open: Vec::new(), spare: Vec::new() };
        connections.keep_spare(&listener);
        assert_eq!(connections.spare.len(), SPARE_COUNT);
        let error = io::Error::from_raw_os_error(Errno::MFILE.raw_os_error());
        connections.make_room(&error).await;
        assert_eq!(connections.spare.len(), SPARE_COUNT - 1);
        connections.keep_spare(&listener);
        assert_eq!(connections.spare.len(), SPARE_COUNT);
    }
}
