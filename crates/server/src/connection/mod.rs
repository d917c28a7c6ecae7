//! One client's connection, on one shard.
//!
//! ```text
//!   read ──► frames ──► requests ──┬─ answered at once ─────────┬──► one write
//!              ▲                   └─ pending (disk, other shard) ┘
//!              └── no reading while too many are pending
//! ```

mod answer;
mod drive;
mod failed;
mod handle;
mod traced;

use std::cell::Cell;
use std::rc::Rc;

use query::Engine;

use crate::Limits;
use crate::clients::Clients;
use crate::events::Events;
use answer::MetadataCache;
use failed::FailureLog;

pub(crate) use drive::serve_connection;
pub(crate) use traced::Tracer;

/// What a request holds beside its frame while it waits: its future, and an answer of a row or two.
const REQUEST_BYTES: usize = 8 << 10;

/// What the connections of a shard share.
pub(crate) struct ShardServer {
    pub(crate) engine: Engine,
    pub(crate) events: Events,
    pub(crate) clients: Clients,
    pub(crate) tracer: Tracer,
    pub(crate) limits: Limits,
    /// Bytes of requests that may be carried out on this shard at once.
    pub(crate) in_flight_bytes_max: usize,
    in_flight_bytes: Cell<usize>,
    metadata: MetadataCache,
    failures: FailureLog,
}

impl ShardServer {
    pub(crate) fn new(
        engine: Engine,
        events: Events,
        clients: Clients,
        tracer: Tracer,
        limits: Limits,
        shard_count: usize,
    ) -> Rc<Self> {
        Rc::new(ShardServer {
            engine,
            events,
            clients,
            tracer,
            limits,
            in_flight_bytes_max: limits.in_flight_bytes / shard_count.max(1),
            in_flight_bytes: Cell::new(0),
            metadata: MetadataCache::default(),
            failures: FailureLog::default(),
        })
    }

    /// Takes a request whose frame has that many bytes in, if there is room for it. A shard with nothing
    /// to do takes any.
    fn admit(self: &Rc<Self>, frame_bytes: usize) -> Option<Admission> {
        let bytes = frame_bytes + REQUEST_BYTES;
        let in_flight = self.in_flight_bytes.get();
        if in_flight > 0 && in_flight + bytes > self.in_flight_bytes_max {
            return None;
        }
        self.in_flight_bytes.set(in_flight + bytes);
        Some(Admission { server: Rc::clone(self), bytes })
    }
}

/// A request's share of the bytes in flight, given back when it is answered or dropped.
struct Admission {
    server: Rc<ShardServer>,
    bytes: usize,
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.server.in_flight_bytes.set(self.server.in_flight_bytes.get() - self.bytes);
    }
}
