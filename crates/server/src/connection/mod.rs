//! One client's connection, on one shard.
//!
//! ```text
//!   room? ──► read ──► frames ──► requests ──┬─ answered in their turn ───┬──► one write
//!     ▲                                      └─ pending (disk, other shard) ┘        │
//!     └── in line while too much is held (`budget.rs`)    no reading while the client takes nothing
//! ```

mod answer;
mod backlog;
mod batcher;
mod chunks;
mod drive;
mod failed;
mod handle;
mod intake;
mod late_writes;
mod output;
mod party;
mod pending;
mod plain;
mod progress;
mod remote;
mod request;
mod session;
mod slow;
mod subscription;
mod tombstones;
mod traced;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use protocol::{ErrorKind, ErrorResponse, Workspace};
use query::{AnswerMemory, Engine};
use runtime::{Alarm, Clock};

use crate::Limits;
use crate::budget::Budget;
use crate::clients::Clients;
use crate::entrance::Leaving;
use crate::events::Events;
use crate::long_turns::LongTurns;
use crate::ways::RequestWays;
use answer::MetadataCache;
use backlog::Pace;
use chunks::Chunks;
use failed::FailureLog;
use late_writes::LateWrites;

pub(crate) use drive::serve_connection;
pub(crate) use failed::note_refused_connection;
pub(crate) use traced::Tracer;

/// What the connections of a shard share.
pub(crate) struct ShardServer {
    pub(crate) engine: Engine,
    pub(crate) events: Events,
    pub(crate) clients: Clients,
    pub(crate) tracer: Tracer,
    pub(crate) limits: Limits,
    clock: Arc<dyn Clock>,
    alarm: Alarm,
    pace: Pace,
    /// What they may hold together.
    pub(crate) budget: Rc<Budget>,
    /// What is held after requests are over.
    late_writes: Rc<LateWrites>,
    /// Which ways their requests took.
    ways: Arc<RequestWays>,
    /// Whether they are to end.
    pub(crate) leaving: Leaving,
    /// Whose turn it is of those that have much to do.
    long_turns: Rc<LongTurns>,
    /// What they read into.
    chunks: RefCell<Chunks>,
    /// What they write into.
    workspace: RefCell<Workspace>,
    /// What requests are answered that are not carried out.
    no_room: ErrorResponse,
    too_late: ErrorResponse,
    metadata: MetadataCache,
    failures: FailureLog,
    /// Reads that came upon many tombstones, and went well.
    tombstones: FailureLog,
    /// Clients that were not let in.
    refused: FailureLog,
}

impl ShardServer {
    pub(crate) fn new(
        engine: Engine,
        events: Events,
        clients: Clients,
        tracer: Tracer,
        limits: Limits,
        budget: Rc<Budget>,
        ways: Arc<RequestWays>,
    ) -> Rc<Self> {
        let clock = Arc::clone(&tracer.coordinator.runtime().clock);
        Rc::new(ShardServer {
            clock,
            alarm: Alarm::default(),
            pace: Pace::default(),
            metadata: MetadataCache::new(engine.prepared_limits().metadata_bytes),
            engine,
            events,
            clients,
            late_writes: LateWrites::new(tracer.coordinator.clone()),
            tracer,
            limits,
            chunks: RefCell::new(Chunks::new(&budget)),
            workspace: RefCell::default(),
            budget,
            ways,
            leaving: Leaving::default(),
            long_turns: Rc::default(),
            no_room: overloaded("too many bytes of requests in flight"),
            too_late: overloaded("the request has waited for too long"),
            failures: FailureLog::default(),
            tombstones: FailureLog::default(),
            refused: FailureLog::default(),
        })
    }
}

impl ShardServer {
    /// What answers may take.
    pub(crate) fn answers(&self) -> &Rc<AnswerMemory> {
        self.engine.answers()
    }

    /// Does anybody stand in line for memory?
    fn is_memory_wanted(&self) -> bool {
        self.budget.is_wanted() || self.answers().is_wanted()
    }

    /// The time that waits are measured with.
    fn pace(&self) -> Duration {
        self.pace.at(self.clock.elapsed())
    }
}

fn overloaded(why: &str) -> ErrorResponse {
    ErrorResponse::new(ErrorKind::Overloaded, format!("Server is in overloaded state: {why}"))
}
