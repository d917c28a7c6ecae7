//! A server that keeps rows of texts in a map, and does wrong when it is told to.
//!
//! It speaks version 4 through `protocol`, one thread for each connection, so that what it does to a client is known:
//! how late it answers, when it stands still, which answer is wrong.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use lab::{Act, Hand};
use protocol::{
    Consistency, Decoder, Encoder, ErrorKind, ErrorResponse, Execute, Prepared, PreparedMetadata, Request,
    Response, ResponseEnvelope, ResultMetadata, Rows, Version, put_cell,
};

/// What it does besides answering.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manners {
    /// Each answer to an EXECUTE comes so late.
    pub(crate) delay: Duration,
    /// It stands still from then on (since its start), for so long.
    pub(crate) stall: Option<(Duration, Duration)>,
    /// Every n-th read is answered with a field of another row.
    pub(crate) mixes_every: Option<u64>,
    /// Every n-th read is answered with another row, whole.
    pub(crate) swaps_every: Option<u64>,
    /// All connections are closed from then on, since its start.
    pub(crate) dies_after: Option<Duration>,
    /// Every n-th EXECUTE is refused.
    pub(crate) refuses_every: Option<u64>,
    /// No table can be made.
    pub(crate) refuses_tables: bool,
    /// The connection on which one is to be made breaks.
    pub(crate) dies_at_tables: bool,
    /// It can not reach enough replicas for any EXECUTE.
    pub(crate) lacks_replicas: bool,
    /// Another node of its cluster.
    pub(crate) peer: Option<SocketAddr>,
}

/// The server.
pub(crate) struct Stub {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    pub(crate) fate: Arc<Fate>,
}

/// What is done to it.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    /// It takes no connection and serves none.
    is_away: AtomicBool,
    /// It answers nothing.
    is_paused: AtomicBool,
}

impl Hand for Fate {
    fn act(&self, act: Act) -> Result<(), String> {
        match act {
            Act::Kill(1) => self.is_away.store(true, Ordering::Relaxed),
            Act::Start(1) => self.is_away.store(false, Ordering::Relaxed),
            Act::Pause(1) => self.is_paused.store(true, Ordering::Relaxed),
            Act::Resume(1) => self.is_paused.store(false, Ordering::Relaxed),
            act => return Err(format!("the stub knows no {act}")),
        }
        Ok(())
    }

    fn process_ids(&self) -> Vec<u32> {
        Vec::new()
    }
}

#[derive(Default)]
struct State {
    /// Fields by key.
    rows: HashMap<Bytes, Vec<Bytes>>,
    read_count: u64,
    execute_count: u64,
    /// Keys and values of all updates.
    written: Vec<(Bytes, Bytes)>,
    /// Of each read.
    read_levels: Vec<Consistency>,
}

impl Stub {
    /// Listens, until the test's process ends.
    pub(crate) fn start(manners: Manners) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (state, started) = (Arc::new(Mutex::new(State::default())), Instant::now());
        let fate = Arc::new(Fate::default());
        let (shared, own_fate) = (state.clone(), fate.clone());
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                if own_fate.is_away.load(Ordering::Relaxed) {
                    continue;
                }
                let (state, manners, fate) = (shared.clone(), manners.clone(), own_fate.clone());
                std::thread::spawn(move || Talk { socket, state, manners, fate, started }.serve());
            }
        });
        Stub { address, state, fate }
    }

    /// Keys and values of all updates, in their order.
    pub(crate) fn written(&self) -> Vec<(Bytes, Bytes)> {
        self.state.lock().unwrap().written.clone()
    }
}

impl Stub {
    /// The levels of all reads, in their order.
    pub(crate) fn read_levels(&self) -> Vec<Consistency> {
        self.state.lock().unwrap().read_levels.clone()
    }
}

/// One connection.
struct Talk {
    socket: TcpStream,
    state: Arc<Mutex<State>>,
    manners: Manners,
    fate: Arc<Fate>,
    started: Instant,
}

impl Talk {
    /// Until the client goes. All that came in one piece is answered in one.
    fn serve(mut self) {
        self.socket.set_nodelay(true).unwrap();
        let (mut decoder, mut encoder) = (Decoder::server(1 << 24), Encoder::server());
        let mut buffer = vec![0; 1 << 16];
        while let Ok(received @ 1..) = self.socket.read(&mut buffer) {
            let came = Instant::now();
            decoder.feed(&buffer[..received]);
            let mut is_late = false;
            while let Some(frame) = decoder.next_frame() {
                let frame = frame.unwrap();
                let request = decoder.decode_request(&frame).unwrap().request;
                is_late |= matches!(request, Request::Execute(_));
                if matches!(request, Request::Startup(_)) {
                    decoder.establish(Version::V4, None);
                    decoder.set_ready();
                    encoder.establish(Version::V4, None);
                }
                let is_table = matches!(&request, Request::Query(query)
                    if query.query.as_str().starts_with("CREATE TABLE"));
                if is_table && self.manners.dies_at_tables {
                    return;
                }
                let response = self.answer(request);
                encoder.append_response(Version::V4, frame.header.stream, &ResponseEnvelope::from(response));
            }
            if is_late {
                self.wait(came);
            }
            while self.fate.is_paused.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            if self.fate.is_away.load(Ordering::Relaxed) {
                return;
            }
            if self.manners.dies_after.is_some_and(|after| self.started.elapsed() > after) {
                return;
            }
            if self.socket.write_all(&encoder.take()).is_err() {
                return;
            }
        }
    }

    fn wait(&self, came: Instant) {
        std::thread::sleep(self.manners.delay.saturating_sub(came.elapsed()));
        if let Some((from, length)) = self.manners.stall {
            let now = self.started.elapsed();
            if (from..from + length).contains(&now) {
                std::thread::sleep(from + length - now);
            }
        }
    }

    fn answer(&self, request: Request) -> Response {
        match request {
            Request::Startup(_) => Response::Ready,
            Request::Query(query) if query.query.as_str().starts_with("SELECT release_version") => {
                named_rows(vec![vec![Bytes::from("stub"), Bytes::from("Stub Cluster")]])
            }
            Request::Query(query) if query.query.as_str().starts_with("SELECT schema_version") => {
                named_rows(Vec::new())
            }
            Request::Query(query) if query.query.as_str().starts_with("SELECT host_id") => {
                match query.query.as_str().contains("system.local") {
                    true => named_rows(vec![node(7, "0")]),
                    false => named_rows(self.manners.peer.map(peer).into_iter().collect()),
                }
            }
            Request::Query(query) if query.query.as_str().starts_with("SELECT replication") => {
                let words =
                    ["class", "org.apache.cassandra.locator.SimpleStrategy", "replication_factor", "1"];
                named_rows(vec![vec![collection(&words, 2)]])
            }
            Request::Query(query)
                if self.manners.refuses_tables && query.query.as_str().starts_with("CREATE TABLE") =>
            {
                ErrorResponse::new(ErrorKind::Invalid, "no such tables here").into()
            }
            Request::Query(_) => Response::Void,
            Request::Prepare(prepare) => Response::Prepared(Prepared {
                id: Bytes::copy_from_slice(prepare.query.as_str().as_bytes()),
                result_metadata_id: Bytes::new(),
                bind: PreparedMetadata {
                    columns: columns(&markers(prepare.query.as_str())),
                    partition_key_indexes: Vec::new(),
                },
                result: Arc::new(ResultMetadata::new(columns(&selected(prepare.query.as_str())))),
            }),
            Request::Execute(execute) => self.execute(&execute),
            other => panic!("the lab asks for {other:?}"),
        }
    }

    fn execute(&self, execute: &Execute) -> Response {
        let mut state = self.state.lock().unwrap();
        state.execute_count += 1;
        if self.manners.lacks_replicas {
            let kind = ErrorKind::Unavailable { consistency: Consistency::One, required: 1, alive: 0 };
            return ErrorResponse::new(kind, "Cannot achieve consistency level ONE").into();
        }
        if self.manners.refuses_every.is_some_and(|every| state.execute_count.is_multiple_of(every)) {
            return ErrorResponse::new(ErrorKind::Overloaded, "the stub has enough").into();
        }
        let text = std::str::from_utf8(&execute.id).unwrap();
        let values: Vec<Bytes> = (0..execute.parameters.values.len())
            .filter_map(|at| execute.parameters.values.get_bytes(at))
            .collect();
        match text.split(' ').next() {
            Some("INSERT") => {
                state.rows.insert(values[0].clone(), values[1..].to_vec());
                Response::Void
            }
            Some("UPDATE") => {
                let field: usize =
                    text.split("field").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
                state.written.push((values[1].clone(), values[0].clone()));
                if let Some(row) = state.rows.get_mut(&values[1]) {
                    row[field] = values[0].clone();
                }
                Response::Void
            }
            _ => {
                state.read_levels.push(execute.parameters.consistency);
                self.read(&mut state, &values[0], selected(text).len())
            }
        }
    }

    fn read(&self, state: &mut State, key: &Bytes, column_count: usize) -> Response {
        state.read_count += 1;
        let Some(fields) = state.rows.get(key) else { return rows(Vec::new()) };
        let mut row = vec![key.clone()];
        row.extend(fields.iter().cloned());
        if self.manners.swaps_every.is_some_and(|every| state.read_count.is_multiple_of(every)) {
            let (other, fields) = state.rows.iter().find(|(other, _)| *other != key).unwrap();
            row = std::iter::once(other).chain(fields).cloned().collect();
        }
        if self.manners.mixes_every.is_some_and(|every| state.read_count.is_multiple_of(every)) {
            let other = state.rows.iter().find(|(other, _)| *other != key).unwrap();
            let column = 3.min(other.1.len());
            row[column] = other.1[column - 1].clone();
        }
        row.truncate(column_count);
        rows(vec![row])
    }
}

/// A node as `system.local` has it.
fn node(id: u8, token: &str) -> Vec<Bytes> {
    vec![Bytes::from(vec![id; 16]), Bytes::from("dc1"), Bytes::from("rack1"), collection(&[token], 1)]
}

/// Another node, as `system.peers_v2` has it: half of the ring is its.
fn peer(address: SocketAddr) -> Vec<Bytes> {
    let SocketAddr::V4(address) = address else { panic!("stubs listen on 127.0.0.1") };
    let mut cells = node(8, "-9223372036854775808");
    cells.push(Bytes::copy_from_slice(&address.ip().octets()));
    cells.push(Bytes::copy_from_slice(&i32::from(address.port()).to_be_bytes()));
    cells
}

/// A collection of texts, of which so many make an element.
fn collection(values: &[&str], value_count: usize) -> Bytes {
    let mut bytes = BytesMut::from(((values.len() / value_count) as i32).to_be_bytes().as_slice());
    values.iter().for_each(|value| put_cell(&mut bytes, Some(value.as_bytes())));
    bytes.freeze()
}

/// Of a statement that is not prepared: with the columns.
fn named_rows(rows: Vec<Vec<Bytes>>) -> Response {
    answered(rows, false)
}

/// Of one whose columns are known since it was prepared.
fn rows(rows: Vec<Vec<Bytes>>) -> Response {
    answered(rows, true)
}

fn answered(rows: Vec<Vec<Bytes>>, no_metadata: bool) -> Response {
    let column_count = rows.first().map_or(0, Vec::len);
    let mut cells = BytesMut::new();
    rows.iter().flatten().for_each(|cell| put_cell(&mut cells, Some(cell)));
    Response::Rows(Rows {
        metadata: Arc::new(ResultMetadata::new(columns(&vec!["c"; column_count]))),
        no_metadata,
        new_metadata_id: None,
        paging_state: None,
        row_count: rows.len() as u32,
        cells: cells.freeze(),
    })
}

fn columns(names: &[&str]) -> Vec<protocol::ColumnSpec> {
    let column = |name: &&str| protocol::ColumnSpec {
        keyspace: "ks".into(),
        table: "t".into(),
        name: (*name).into(),
        cql_type: types::CqlType::Text,
    };
    names.iter().map(column).collect()
}

/// Columns that a statement binds: those that an INSERT lists, or those that stand before `= ?`.
fn markers(text: &str) -> Vec<&str> {
    match text.split_once('(').filter(|_| text.starts_with("INSERT")) {
        Some((_, listed)) => listed.split(')').next().unwrap().split(", ").collect(),
        None => {
            let before: Vec<&str> = text.split(" = ?").collect();
            before[..before.len() - 1].iter().map(|before| last_word(before)).collect()
        }
    }
}

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap()
}

/// Columns that a statement selects.
fn selected(text: &str) -> Vec<&str> {
    let listed = text.strip_prefix("SELECT ").and_then(|text| text.split_once(" FROM "));
    listed.map_or_else(Vec::new, |(listed, _)| listed.split(", ").collect())
}
