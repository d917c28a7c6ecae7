//! A node from start to stop.
//!
//! 1. Lock the data directory, read the metadata log, open table files, replay the commit log.
//! 2. Start the shards; on each, a coordinator, a query engine and a listener.
//! 3. Finish logged batches that an earlier run left open; only then accept connections.
//! 4. On stop: no more connections, memtables flushed, logs closed, threads joined.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use cluster::MetadataLog;
use coordinator::{Coordinator, CoordinatorError, Node};
use query::{Engine, PreparedTexts};
use runtime::Runtime;
use schema::Schema;
use storage::{Directory, RunningShards, ShardHandle};
use tokio::sync::watch;

use crate::clients::Clients;
use crate::connection::{ShardServer, Tracer};
use crate::events::Events;
use crate::listener::{ConnectionCount, accept, bind};
use crate::management::{self, ManagementState};
use crate::system::{NodeView, SystemTables, base_schema};
use crate::{Limits, ServerError, ServerOptions};

/// A running node.
pub struct Server {
    shards: RunningShards,
    listen: SocketAddr,
    management: Option<SocketAddr>,
    stop_requested: watch::Receiver<bool>,
    /// Kept so that the listeners do not take a lost sender for a drain.
    _open: watch::Sender<bool>,
}

/// Where it is told how many logged batches of an earlier run were finished.
type ReplayReport = std::sync::mpsc::Sender<Result<u64, CoordinatorError>>;

/// What each shard's thread needs to serve clients.
#[derive(Clone)]
struct Seat {
    node: Node,
    view: NodeView,
    events: Events,
    clients: Clients,
    limits: Limits,
    texts: Arc<PreparedTexts>,
    /// One listener for each shard, taken by it.
    listeners: Arc<Mutex<Vec<Option<StdListener>>>>,
    connections: Arc<ConnectionCount>,
    /// Set once connections may be accepted.
    is_open: watch::Receiver<bool>,
    /// Taken by the first shard.
    batches_replayed: Arc<Mutex<Option<ReplayReport>>>,
}

impl Server {
    /// Starts a node and returns when its first query can be answered. Blocks.
    ///
    /// # Errors
    /// [`ServerError`]: the directory is in use or damaged, or an address is taken.
    pub fn start(runtime: &Runtime, options: ServerOptions) -> Result<Server, ServerError> {
        let shard_count = usize::from(options.storage.shard_count);
        // Addresses first: a node that can not be reached has no business with the data.
        let listening = |address| move |source| ServerError::Listen { address, source };
        let listeners = bind(options.listen, shard_count).map_err(listening(options.listen))?;
        let listen = listeners
            .first()
            .map_or(Ok(options.listen), StdListener::local_addr)
            .map_err(listening(options.listen))?;
        let management_listener = match options.management {
            None => None,
            Some(address) => bind(address, 1).map_err(listening(address))?.pop(),
        };
        let directory = Directory::open(runtime, options.storage.clone())?;
        let metadata = MetadataLog::open(&runtime.disk, &directory.layout().schema_log(), base_schema()?)?;
        let schema: Arc<Schema> = Arc::clone(metadata.schema());
        let recovered = directory.recover(&schema)?;
        let view = NodeView::new(&options, listen, recovered.facts(), runtime)?;
        let (open, is_open) = watch::channel(false);
        let (batches_replayed, replayed) = std::sync::mpsc::channel();
        let connections = Arc::new(ConnectionCount::default());
        let clients = Clients::default();
        let seat = Seat {
            node: Node::new(metadata),
            view: view.clone(),
            events: Events::new(),
            clients: clients.clone(),
            limits: options.limits,
            texts: Arc::new(PreparedTexts::new(prepared_texts_bytes(options.memory_bytes))),
            listeners: Arc::new(Mutex::new(listeners.into_iter().map(Some).collect())),
            connections: Arc::clone(&connections),
            is_open,
            batches_replayed: Arc::new(Mutex::new(Some(batches_replayed))),
        };
        let shards = recovered.start(&schema, move |handle| serve_shard(seat.clone(), handle))?;
        let batch_count =
            replayed.recv().map_err(|_| ServerError::Batches(CoordinatorError::ShuttingDown))?;
        let batch_count = batch_count.map_err(ServerError::Batches)?;
        if batch_count > 0 {
            tracing::info!(batch_count, "finished logged batches of an earlier run");
        }
        _ = open.send(true);
        let (request_stop, stop_requested) = watch::channel(false);
        let management = match management_listener {
            None => None,
            Some(listener) => {
                let address = listener.local_addr().ok();
                let state = ManagementState::new(
                    view,
                    shards.shards().clone(),
                    connections,
                    clients,
                    request_stop,
                    open.clone(),
                );
                management::start(listener, state).map_err(ServerError::Thread)?;
                address
            }
        };
        Ok(Server { shards, listen, management, stop_requested, _open: open })
    }

    /// Where CQL is spoken.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Where the management port is.
    pub fn management(&self) -> Option<SocketAddr> {
        self.management
    }

    /// Has a shard ended although nobody told it to? The node must not go on then.
    pub fn has_failed(&self) -> bool {
        self.shards.any_finished()
    }

    /// Resolves when somebody asked for a stop over the management port.
    pub async fn stop_requested(&self) {
        let mut requested = self.stop_requested.clone();
        if requested.wait_for(|requested| *requested).await.is_err() {
            // Nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }

    /// Stops the node: memtables are written out, so that the next start has nothing to replay.
    ///
    /// # Errors
    /// A shard could not write something out; what was acknowledged is in its log.
    pub async fn stop(self) -> Result<(), ServerError> {
        Ok(self.shards.stop(true).await?)
    }
}

/// Bytes of texts of prepared statements that are kept: as much as Cassandra gives them.
fn prepared_texts_bytes(memory_bytes: u64) -> usize {
    usize::try_from(memory_bytes / 256).unwrap_or(usize::MAX).max(10 << 20)
}

/// What runs on a shard's thread above storage.
async fn serve_shard(seat: Seat, handle: ShardHandle) {
    let index = handle.local().index();
    let coordinator = Coordinator::new(seat.node.clone(), handle.clone());
    // Taken, so that whoever waits for it hears of it when this task dies.
    let report = seat.batches_replayed.lock().unwrap_or_else(PoisonError::into_inner).take_if(|_| index == 0);
    if let Some(report) = report {
        _ = report.send(coordinator.replay_batches().await);
    }
    let system_tables = SystemTables::new(seat.view.clone(), coordinator.clone(), seat.clients.clone());
    let tracer = Tracer { coordinator: coordinator.clone(), address: seat.view.listen.ip() };
    let engine = Engine::new(coordinator, system_tables, Arc::clone(&seat.texts));
    let server: Rc<ShardServer> = ShardServer::new(
        engine,
        seat.events.clone(),
        seat.clients.clone(),
        tracer,
        seat.limits,
        handle.shards().count(),
    );
    let listener = seat.listeners.lock().unwrap_or_else(PoisonError::into_inner)[index].take();
    let mut is_open = seat.is_open.clone();
    if is_open.wait_for(|open| *open).await.is_err() {
        return;
    }
    let Some(listener) = listener else { return };
    tokio::select! {
        () = accept(listener, server, seat.connections) => {}
        // Closed again by a drain.
        _ = is_open.wait_for(|open| !*open) => {}
    }
}
