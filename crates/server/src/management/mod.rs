//! The management port: JSON over HTTP for `nodetool`, monitoring, and people with `curl`.
//!
//! It runs on a thread of its own, so that nothing asked of it holds up a shard; whatever it wants
//! to know or do it asks of the shards by message. `docs/internals/management.md` fixes the answers.
//!
//! | a reader asks | file |
//! |---|---|
//! | who may ask, and who is connected? | `guard.rs`, `token.rs`, `connections.rs` |
//! | which paths are there, what do they take, and how are errors told? | `routes.rs`, `request.rs`, `answer.rs` |
//! | what is known of the node? | `info.rs`, `status.rs` |
//! | what do all nodes have together? | `ring.rs` |
//! | what does it know of the others, and say to them? | `gossip.rs` |
//! | how are tables made equal on all nodes? | `repair.rs` |
//! | what is known of its tables? | `table_stats.rs` |
//! | what can be done to it? | `actions.rs` |
//! | how does data come in and go out? | `moving.rs` |
//! | what of its compactions? | `compactions.rs` |
//! | how do files come into the form that tables ask for? | `rewrites.rs` |
//! | how are its disks? | `faults.rs` |

mod actions;
mod answer;
mod compactions;
mod connections;
mod drill;
mod faults;
mod gossip;
mod guard;
mod handoff;
mod info;
mod latencies;
mod members;
mod memory;
mod moving;
mod repair;
mod request;
mod rewrites;
mod ring;
mod ring_metrics;
mod routes;
mod services;
mod status;
mod table_stats;
mod timeouts;
mod token;
mod trace_chance;
mod turns;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assembly::{NodeCompactions, NodeStats, NodeView};
use runtime::BoundListener;
use schema::Schema;
use storage::{Demand, Shards, StorageError};
use tokio::sync::watch;
use tokio::time::sleep;

use self::connections::{Port, PortLimits};
pub(crate) use self::guard::Guard;
pub use self::token::ManagementToken;
use crate::budget::Figures;
use crate::clients::Clients;
use crate::entrance::Entrance;
use crate::listener::ConnectionCount;

/// What requests hold of the memory, and how much they may.
#[derive(Clone)]
pub(crate) struct RequestMemory {
    /// One for each shard.
    pub(crate) figures: Arc<[Arc<Figures>]>,
    pub(crate) limit_bytes: usize,
}

/// What the port knows, and what it can act on.
#[derive(Clone)]
pub(crate) struct ManagementState {
    view: NodeView,
    shards: Shards,
    connections: Arc<ConnectionCount>,
    clients: Clients,
    requests: RequestMemory,
    /// Where a stop of the node is asked for.
    stop: watch::Sender<bool>,
    entrance: Entrance,
    /// Set by the first drain, and never taken back.
    is_draining: Arc<AtomicBool>,
}

impl ManagementState {
    /// The state of a running node.
    pub(crate) fn new(
        view: NodeView,
        shards: Shards,
        connections: Arc<ConnectionCount>,
        clients: Clients,
        requests: RequestMemory,
        stop: watch::Sender<bool>,
        entrance: Entrance,
    ) -> Self {
        ManagementState {
            view,
            shards,
            connections,
            clients,
            requests,
            stop,
            entrance,
            is_draining: Arc::default(),
        }
    }

    /// The schema in force.
    async fn schema(&self) -> Result<Arc<Schema>, StorageError> {
        self.shards.on(0, |shard| async move { shard.schema() }).await
    }

    /// May clients connect?
    fn serves_clients(&self) -> bool {
        self.entrance.is_on() && self.shards.health().demand().get() == Demand::Serve
    }

    fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }
}

/// Serves the port on a thread of its own until the node is gone.
///
/// # Errors
/// The thread can not be started.
pub(crate) fn start(listener: BoundListener, guard: Guard, state: ManagementState) -> io::Result<()> {
    runtime::start_service("management", move || serve(listener, guard, state))?;
    Ok(())
}

/// Serves the port until nobody listens for a stop any more, which is when the node is gone.
pub(crate) async fn serve(listener: BoundListener, guard: Guard, state: ManagementState) {
    let listener = match listener.open() {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the management port can not listen"),
    };
    let stop = state.stop.clone();
    let telling = tell_load(state.clone());
    let port = Port::new(guard, routes::router(state), PortLimits::default());
    tokio::select! {
        biased;
        () = port.serve(listener) => {}
        () = telling => {}
        () = stop.closed() => {}
    }
}

/// So often the other nodes of a ring are told anew how much this one has.
const LOAD_EVERY: Duration = Duration::from_secs(10);

/// Tells the other nodes of a ring, for ever, how much this one has.
async fn tell_load(state: ManagementState) {
    let Some(ring) = state.view.ring() else { return std::future::pending().await };
    loop {
        // A shard that is busy has another figure soon.
        if let Ok(stats) = NodeStats::collect(&state.shards).await {
            ring.set_load_bytes(stats.load_bytes());
        }
        sleep(LOAD_EVERY).await;
    }
}
