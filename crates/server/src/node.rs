//! A node that serves the world, from start to stop.
//!
//! 1. Take the addresses.
//! 2. Put the node together (`assembly`): directory, shards, engines, batches of an earlier run.
//! 3. On each shard a listener; only then accept connections.
//! 4. On stop: no more connections, memtables flushed, logs closed, threads joined.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use assembly::{AnswerOptions, AssembledNode, NodeOptions, NodeView, PreparedOptions, RingOptions, Seat};
use cluster::membership::Known;
use coordinator::replicas::Marks;
use messaging::Secret;
use runtime::{BoundListener, LatestReader, Runtime};
use storage::{Demand, LocalShards, Shards};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::budget::{Budget, Figures};
use crate::clients::Clients;
use crate::connection::{ShardServer, Tracer};
use crate::entrance::{Entrance, GRACE, Listeners, Welcome};
use crate::events::{Events, follow_ring};
use crate::listener::{ConnectionCount, ConnectionTasks, accept};
use crate::management::{self, Guard, ManagementState, RequestMemory};
use crate::slow_queries::SlowQueries;
use crate::ways::RequestWays;
use crate::{Limits, ManagementToken, ServerError, ServerOptions};

/// A running node.
pub struct Server {
    node: AssembledNode,
    listen: SocketAddr,
    management: Option<SocketAddr>,
    stop_requested: watch::Receiver<bool>,
    /// Kept so that the shards do not take a lost sender for an end.
    _entrance: Entrance,
}

/// What each shard's thread needs to serve clients.
#[derive(Clone)]
struct Door {
    events: Events,
    clients: Clients,
    limits: Limits,
    /// What each shard's connections hold.
    figures: Arc<[Arc<Figures>]>,
    /// Which ways each shard's requests took.
    ways: Arc<[Arc<RequestWays>]>,
    listeners: Listeners,
    connections: Arc<ConnectionCount>,
}

/// A node's way in, and what is known of who came in, before there is a node behind it.
struct Front {
    door: Door,
    entrance: Entrance,
}

impl Front {
    /// Takes the address for clients.
    fn take(runtime: &Runtime, options: &ServerOptions) -> Result<Self, ServerError> {
        let shard_count = usize::from(options.storage.shard_count);
        let entrance = Entrance::take(runtime.network.clone(), options.listen, shard_count)
            .map_err(|source| not_listening(("CQL", "listen"), options.listen, source))?;
        let door = Door {
            events: Events::new(options.ring.is_some()),
            clients: Clients::new(SlowQueries::longer_than(options.limits.slow_query)),
            limits: options.limits,
            figures: (0..shard_count).map(|_| Arc::default()).collect(),
            ways: (0..shard_count).map(|_| Arc::default()).collect(),
            listeners: entrance.listeners(),
            connections: Arc::default(),
        };
        Ok(Front { door, entrance })
    }

    /// What the management port of the node behind it knows.
    fn management(&self, view: &NodeView, shards: &Shards, stop: watch::Sender<bool>) -> ManagementState {
        let Door { clients, limits, figures, connections, .. } = self.door.clone();
        ManagementState::new(
            view.clone(),
            shards.clone(),
            connections,
            clients,
            RequestMemory { figures, limit_bytes: limits.in_flight_bytes },
            stop,
            self.entrance.clone(),
        )
    }
}

impl Server {
    /// Starts a node and returns when its first query can be answered. Blocks.
    ///
    /// # Errors
    /// [`ServerError`]: the directory is in use or damaged, an address is taken, or the management port is open to
    /// others.
    pub fn start(runtime: &Runtime, options: ServerOptions) -> Result<Server, ServerError> {
        // Addresses first: a node that can not be reached has no business with the data.
        let front = Front::take(runtime, &options)?;
        let management = bind_management(runtime, &options)?;
        let (door, clients) = (front.door.clone(), Arc::new(front.door.clients.clone()));
        let listen = front.entrance.address();
        let options = node_options(options, listen)?;
        let node = assembly::start(runtime, options, clients, move |seat| serve_shard(door.clone(), seat))?;
        front.entrance.open(node.view().ring());
        let (request_stop, stop_requested) = watch::channel(false);
        let management = match management {
            None => None,
            Some((listener, guard)) => {
                let address = listener.local_address().ok();
                let state = front.management(node.view(), node.shards(), request_stop);
                management::start(listener, guard, state).map_err(ServerError::Thread)?;
                address
            }
        };
        Ok(Server { node, listen, management, stop_requested, _entrance: front.entrance })
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
        self.node.has_failed()
    }

    /// Why the node takes no part in its ring any more, if so. It must not go on then.
    pub fn left_ring(&self) -> Option<String> {
        self.node.view().ring()?.ended()
    }

    /// Has the chunk caches of all shards do without so many bytes of theirs.
    pub async fn call_back_cache(&self, bytes: u64) {
        self.node.shards().call_back_cache(bytes).await;
    }

    /// Resolves when somebody asked for a stop over the management port.
    pub async fn stop_requested(&self) {
        let mut requested = self.stop_requested.clone();
        if requested.wait_for(|requested| *requested).await.is_err() {
            // Nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }

    /// Resolves when a disk has failed whose policy is to end the process.
    pub async fn disk_failed(&self) {
        let demand = self.node.shards().health().demand();
        if demand.wait_for(|demand| demand == Demand::Die).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Stops the node: memtables are written out, so that the next start has nothing to replay.
    ///
    /// # Errors
    /// A shard could not write something out; what was acknowledged is in its log.
    pub async fn stop(self) -> Result<(), ServerError> {
        Ok(self.node.stop(true).await?)
    }
}

/// A running node whose shards are tasks of one thread, as a simulator runs it; its management port is one more.
pub struct LocalServer {
    node: AssembledNode<LocalShards>,
    listen: SocketAddr,
    ways: Arc<[Arc<RequestWays>]>,
    /// The management port is served until it is gone.
    _stop_requested: watch::Receiver<bool>,
    /// As for [`Server`].
    _entrance: Entrance,
}

impl LocalServer {
    /// Starts a node on the surrounding `LocalSet`; returns when its first query can be answered.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub async fn start(runtime: &Runtime, options: ServerOptions) -> Result<LocalServer, ServerError> {
        let front = Front::take(runtime, &options)?;
        let management = bind_management(runtime, &options)?;
        let (door, clients) = (front.door.clone(), Arc::new(front.door.clients.clone()));
        let listen = front.entrance.address();
        let options = node_options(options, listen)?;
        let serve = move |seat| serve_shard(door.clone(), seat);
        let node = assembly::start_local(runtime, options, clients, serve).await?;
        front.entrance.open(node.view().ring());
        let (request_stop, stop_requested) = watch::channel(false);
        if let Some((listener, guard)) = management {
            let state = front.management(node.view(), node.shards(), request_stop);
            runtime::spawn_local("management", management::serve(listener, guard, state));
        }
        let Front { door, entrance } = front;
        Ok(LocalServer {
            node,
            listen,
            ways: door.ways,
            _stop_requested: stop_requested,
            _entrance: entrance,
        })
    }

    /// Where CQL is spoken.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// The way to all shards.
    pub fn shards(&self) -> &Shards {
        self.node.shards()
    }

    /// What the node knows of its ring, if it takes part in one: it must not go on once that has ended.
    pub fn ring(&self) -> Option<&Known> {
        self.node.view().ring()
    }

    /// How many logged batches could not be finished yet, or are kept for other nodes; and how many of the latter were
    /// written again so far. Told whenever it is asked.
    pub fn logged_batches(&self) -> impl Fn() -> (usize, u64) + use<> {
        let view = self.node.view().clone();
        move || (view.unfinished_batch_count() + view.kept_batch_count(), view.replayed_batch_count())
    }

    /// What other nodes of its ring have missed; `None` when it is alone.
    pub fn marks(&self) -> Option<&Marks> {
        self.node.view().marks()
    }

    /// How many reads have found that a replica lacked something, told whenever it is asked.
    pub fn mismatched_reads(&self) -> impl Fn() -> usize + use<> {
        let view = self.node.view().clone();
        move || view.read_repairs().iter().map(|counts| counts.mismatched() as usize).sum()
    }

    /// Which ways requests took, for each shard that clients are connected to.
    pub fn ways(&self) -> &Arc<[Arc<RequestWays>]> {
        &self.ways
    }

    /// Stops the node, as [`Server::stop`] does or with all that is in memory left to the log.
    ///
    /// # Errors
    /// As for [`Server::stop`].
    pub async fn stop(self, flush_first: bool) -> Result<(), ServerError> {
        Ok(self.node.stop(flush_first).await?)
    }
}

/// The management port's listener, unless it is off, and who may come in.
fn bind_management(
    runtime: &Runtime,
    options: &ServerOptions,
) -> Result<Option<(BoundListener, Guard)>, ServerError> {
    let Some(address) = options.management else { return Ok(None) };
    let token = options.management_token_file.as_deref().map(ManagementToken::read).transpose()?;
    let guard = Guard::new(address, token)?;
    let listeners = runtime
        .network
        .bind(address, 1)
        .map_err(|source| not_listening(("management port", "management"), address, source))?;
    Ok(listeners.into_iter().next().map(|listener| (listener, guard)))
}

/// Why nobody can listen, and which option says where.
fn not_listening(
    (what, option): (&'static str, &'static str),
    address: SocketAddr,
    source: io::Error,
) -> ServerError {
    match source.kind() {
        io::ErrorKind::AddrInUse => ServerError::AddressInUse { what, option, address },
        _ => ServerError::Listen { what, option, address, source },
    }
}

/// What the node under the server is put together with.
fn node_options(options: ServerOptions, listen: SocketAddr) -> Result<NodeOptions, ServerError> {
    let read = |path| ManagementToken::read_as("secret file", path);
    let secret = options.internode_secret_file.as_deref().map(read).transpose()?;
    let secret = secret.map(|secret| Secret::new(secret.as_str().as_bytes()));
    let ring = options.ring.map(|ring| RingOptions { secret, ..ring });
    // In the largest unit of which there are whole ones.
    let size = |bytes: usize| match bytes % (1 << 20) {
        0 => format!("{}MiB", bytes >> 20),
        _ => format!("{}KiB", bytes >> 10),
    };
    let limits = options.limits;
    // Requests and answers have a half each.
    let half_bytes = limits.in_flight_bytes / 2;
    let settings = vec![
        ("native_transport_max_concurrent_connections", limits.connection_count.to_string()),
        (
            "native_transport_max_concurrent_connections_per_ip",
            limits.connection_count_per_address.to_string(),
        ),
        ("native_transport_max_frame_size", size(limits.frame_bytes)),
        ("native_transport_max_request_data_in_flight", size(limits.in_flight_bytes)),
        ("slow_query_log_timeout", format!("{}ms", limits.slow_query.unwrap_or_default().as_millis())),
    ];
    Ok(NodeOptions {
        storage: options.storage,
        listen,
        cql_broadcast: SocketAddr::new(options.broadcast_rpc.unwrap_or(listen.ip()), listen.port()),
        memory_bytes: options.memory_bytes,
        request_bytes: half_bytes,
        answers: AnswerOptions { bytes: half_bytes, ..AnswerOptions::of_memory(options.shared_bytes) },
        prepared: PreparedOptions::of_memory(options.shared_bytes),
        timeouts: options.timeouts,
        cluster_name: options.cluster_name,
        data_center: options.data_center,
        rack: options.rack,
        ring,
        settings,
    })
}

/// A node whose disks have failed is no replica any more: others are to take it to be down.
async fn withdraw_when_failing(demand: LatestReader<Demand>, known: Known) {
    if demand.wait_for(|demand| demand > Demand::Serve).await.is_ok() {
        tracing::warn!(
            "a disk has failed: this node tells the others nothing any more, they take it to be down"
        );
        known.withdraw(true);
    }
}

/// What runs on a shard's thread for clients.
async fn serve_shard(door: Door, seat: Seat) {
    let Seat { index, view, coordinator, engine } = seat;
    if let Some(known) = view.ring().filter(|_| index == 0) {
        let following = follow_ring(door.events.clone(), known.events());
        runtime::spawn_local("events of the ring", following);
        let withdrawing = withdraw_when_failing(coordinator.health().demand(), known.clone());
        runtime::spawn_local("a node that withdraws", withdrawing);
    }
    let shard_count = coordinator.owners().count();
    let demand = coordinator.health().demand();
    let tracer = Tracer { coordinator, address: view.address() };
    let budget = Budget::new(view.options.request_bytes / shard_count, Arc::clone(&door.figures[index]));
    view.client_memory.count_requests(door.figures[index].held_figure());
    let ways = Arc::clone(&door.ways[index]);
    let server: Rc<ShardServer> =
        ShardServer::new(engine, door.events, door.clients, tracer, door.limits, budget, ways);
    let (listeners, connections, known) = (door.listeners, door.connections, view.ring());
    while listeners.welcome.wait_for(|welcome| welcome == Welcome::On).await.is_ok() {
        // Where there is none, clients were to be let go just now, and it is not `On` any more.
        let Some((listener, _busy)) = listeners.take(index) else { continue };
        let tasks = ConnectionTasks::default();
        tokio::select! {
            biased;
            () = accept(listener, Rc::clone(&server), Arc::clone(&connections), Rc::clone(&tasks)) => {}
            _ = listeners.welcome.wait_for(|welcome| welcome != Welcome::On) => {}
            _ = demand.wait_for(|demand| demand > Demand::Serve) => {}
        }
        if let Some(known) = known {
            known.set_serving(false);
        }
        tokio::select! {
            biased;
            // A failing disk ends connections, too. The sender is gone only with the node.
            _ = demand.wait_for(|demand| demand > Demand::Serve) => return tasks.borrow_mut().abort_all(),
            // Until then whoever is connected is served on.
            off = listeners.welcome.wait_for(|welcome| welcome == Welcome::Off) => {
                if off.is_err() {
                    return;
                }
            }
        }
        let_go(&server, tasks.take()).await;
    }
}

/// Ends connections once their requests in flight have ended, or the time for that is over.
async fn let_go(server: &ShardServer, mut tasks: JoinSet<()>) {
    server.leaving.set(true);
    let ending = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ending).await.is_err() {
        tracing::warn!(
            connection_count = tasks.len(),
            "connections end in the midst of requests that take too long"
        );
        tasks.shutdown().await;
    }
    server.leaving.set(false);
}
