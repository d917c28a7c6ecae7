//! A node from start to stop, whoever it serves.
//!
//! 1. Lock the data directory, read the metadata log, open table files, replay the commit log.
//! 2. Start the shards; on each, a coordinator, the system tables and a query engine.
//! 3. Finish logged batches that an earlier run left open. Compactions begin after that.
//! 4. In a ring: found it, come in, or go on as a member; nobody is served before, nor before it has its rows.
//! 5. On stop: memtables flushed, logs closed, threads joined.

use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cluster::MetadataLog;
use cluster::membership::{Known, while_in_ring};
use coordinator::replicas::{RingSeat, carry_out_repairs, fill};
use coordinator::{BatchReplay, Coordinator, CoordinatorError, Node, follow};
use query::{AnswerMemory, Engine, LargeAnswer, PreparedTexts, Timeouts};
use runtime::Runtime;
use schema::Schema;
use storage::{
    CompactionsHeld, Directory, Layout, LocalShards, Recovered, RunningShards, ShardHandle, Shards,
    StorageError, StorageOptions,
};
use tokio::sync::oneshot::{self, error::RecvError};

use crate::memory::ClientMemory;
use crate::ring::{RingPart, Seats, Stop, comes_in};
use crate::system::{NodeView, SystemTables, base_schema};
use crate::{AssemblyError, Clients, NodeOptions, cluster_name};

/// So long after a farewell it is on its way, as a rule: a stop takes no longer for it.
const FAREWELL_SENT: Duration = Duration::from_millis(50);

/// What a shard's thread is given to serve with.
pub struct Seat {
    /// Which shard this is.
    pub index: usize,
    /// What the node knows about itself.
    pub view: NodeView,
    /// Carries reads and writes.
    pub coordinator: Coordinator,
    /// Carries statements out.
    pub engine: Engine,
}

/// A node that is put together and runs, on threads of its own or ([`LocalShards`]) as tasks of one.
pub struct AssembledNode<Running = RunningShards> {
    shards: Running,
    view: NodeView,
    /// Its part in a ring, which ends with it.
    ring: Option<Stop>,
}

/// Where it is told how many logged batches of an earlier run were finished.
type ReplayReport = oneshot::Sender<Result<u64, CoordinatorError>>;
/// Where that is heard.
type ReplayTold = oneshot::Receiver<Result<u64, CoordinatorError>>;

/// What each shard's thread needs for its seat.
#[derive(Clone)]
struct Parts {
    node: Node,
    view: NodeView,
    clients: Arc<dyn Clients>,
    texts: Arc<PreparedTexts>,
    large_answer: Arc<LargeAnswer>,
    timeouts: Arc<Timeouts>,
    /// `None` when the node is alone.
    seats: Option<Seats>,
    /// Taken by the first shard.
    batches_replayed: Arc<Mutex<Option<ReplayReport>>>,
}

/// A node whose shards have yet to start.
struct Prepared {
    recovered: Recovered,
    schema: Arc<Schema>,
    parts: Parts,
    replayed: ReplayTold,
    ring: Option<RingPart>,
}

/// Puts a node together and runs `body` on each shard's thread, as a task that ends with the shard.
/// Returns when the first query can be answered. Blocks.
///
/// # Errors
/// [`AssemblyError`]: the directory is in use or damaged.
pub fn start<Body, Work>(
    runtime: &Runtime,
    options: NodeOptions,
    clients: Arc<dyn Clients>,
    body: Body,
) -> Result<AssembledNode, AssemblyError>
where
    Body: Fn(Seat) -> Work + Clone + Send + 'static,
    Work: Future<Output = ()> + 'static,
{
    let Prepared { recovered, schema, parts, replayed, ring } = prepare(runtime, options, clients)?;
    let (view, compactions_held) = (parts.view.clone(), recovered.hold_compactions());
    let shards = recovered.start(&schema, move |handle| {
        let (parts, body) = (parts.clone(), body.clone());
        async move {
            let seat = take_seat(parts, handle).await;
            body(seat).await;
        }
    })?;
    let start_ring = || ring.map(|ring| ring.start(runtime)).transpose().map_err(AssemblyError::RingThread);
    runtime::block_on(async {
        let came_up = come_up(runtime, &view, replayed, compactions_held, start_ring).await;
        assembled(came_up, view, shards, async |shards| shards.stop(false).await).await
    })
}

/// As [`start`], with all shards as tasks of the surrounding `LocalSet`.
///
/// # Errors
/// As [`start`].
pub async fn start_local<Body, Work>(
    runtime: &Runtime,
    options: NodeOptions,
    clients: Arc<dyn Clients>,
    body: Body,
) -> Result<AssembledNode<LocalShards>, AssemblyError>
where
    Body: Fn(Seat) -> Work + Clone + 'static,
    Work: Future<Output = ()> + 'static,
{
    let Prepared { recovered, schema, parts, replayed, ring } = prepare(runtime, options, clients)?;
    let (view, compactions_held) = (parts.view.clone(), recovered.hold_compactions());
    let shards = recovered.start_local(&schema)?;
    for handle in shards.handles() {
        let (parts, body, handle) = (parts.clone(), body.clone(), handle.clone());
        let starting = async move {
            let seat = take_seat(parts, handle).await;
            body(seat).await;
        };
        runtime::spawn_local("start", Box::pin(starting));
    }
    drop(parts);
    let start_ring = || Ok(ring.map(|ring| ring.start_local(runtime)));
    let came_up = come_up(runtime, &view, replayed, compactions_held, start_ring).await;
    assembled(came_up, view, shards, async |shards| shards.stop(false).await).await
}

/// What comes after the shards: returns when the node may serve, with its part in a ring.
///
/// # Errors
/// The node can not serve. Its shards run on until [`assembled`] stops them.
async fn come_up(
    runtime: &Runtime,
    view: &NodeView,
    replayed: ReplayTold,
    compactions_held: CompactionsHeld,
    start_ring: impl FnOnce() -> Result<Option<Stop>, AssemblyError>,
) -> Result<Option<Stop>, AssemblyError> {
    told(replayed.await)?;
    drop(compactions_held);
    let ring = start_ring()?;
    if let Some(known) = view.ring() {
        comes_in(known).await?;
        keep_cluster_name(runtime, view)?;
    }
    Ok(ring)
}

/// The node, if it may serve; its shards are stopped before anybody hears that it may not.
async fn assembled<Running>(
    came_up: Result<Option<Stop>, AssemblyError>,
    view: NodeView,
    shards: Running,
    stop: impl AsyncFnOnce(Running) -> Result<(), StorageError>,
) -> Result<AssembledNode<Running>, AssemblyError> {
    match came_up {
        Ok(ring) => Ok(AssembledNode { shards, view, ring }),
        Err(why) => {
            if let Err(error) = stop(shards).await {
                tracing::warn!(%error, "shards of a node that could not start did not end well");
            }
            Err(why)
        }
    }
}

/// What comes before the shards.
fn prepare(
    runtime: &Runtime,
    options: NodeOptions,
    clients: Arc<dyn Clients>,
) -> Result<Prepared, AssemblyError> {
    let storage = StorageOptions { is_log_kept: options.ring.is_some(), ..options.storage.clone() };
    let directory = Directory::open(runtime, storage)?;
    let base = base_schema()?;
    let layout = directory.layout().clone();
    let metadata = MetadataLog::open(&runtime.disk, &layout.schema_log(), base.clone())?;
    let schema: Arc<Schema> = Arc::clone(metadata.schema());
    let recovered = directory.recover(&schema)?;
    let history = (&metadata, &layout, Arc::new(base));
    if options.ring.is_some() {
        cluster_name::check(&*runtime.disk, &layout, &options.cluster_name)?;
    }
    let ring = match &options.ring {
        Some(ring) => Some(RingPart::prepare(ring, &options, recovered.facts(), history, runtime)?),
        None if metadata.metadata().members.is_some() => return Err(AssemblyError::NotAlone),
        None => None,
    };
    let seats = ring.as_ref().map(|ring| ring.seats.clone());
    let texts = Arc::new(PreparedTexts::new(options.prepared.limits(options.storage.shard_count)));
    let (largest_bytes, timeouts) = (options.answers.largest_bytes, Arc::clone(&options.timeouts));
    let (node, client_memory) = (Node::new(metadata), ClientMemory::new(Arc::clone(&texts)));
    let in_ring = (node.clone(), seats.as_ref());
    let view = NodeView::new(options, client_memory, in_ring, recovered.facts(), runtime)?;
    let (batches_replayed, replayed) = oneshot::channel();
    let parts = Parts {
        node,
        view,
        clients,
        texts,
        large_answer: LargeAnswer::new(largest_bytes),
        timeouts,
        seats,
        batches_replayed: Arc::new(Mutex::new(Some(batches_replayed))),
    };
    Ok(Prepared { recovered, schema, parts, replayed, ring })
}

/// From now on the directory is that of a member of this cluster.
fn keep_cluster_name(runtime: &Runtime, view: &NodeView) -> Result<(), AssemblyError> {
    let layout = Layout::of_options(&view.options.storage);
    cluster_name::keep(&*runtime.disk, &layout, &view.options.cluster_name)
}

/// What became of the batches of an earlier run.
fn told(replayed: Result<Result<u64, CoordinatorError>, RecvError>) -> Result<(), AssemblyError> {
    let replayed = replayed.unwrap_or(Err(CoordinatorError::ShuttingDown));
    let batch_count = replayed.map_err(AssemblyError::Batches)?;
    if batch_count > 0 {
        tracing::info!(batch_count, "finished logged batches of an earlier run");
    }
    Ok(())
}

impl<Running> AssembledNode<Running> {
    /// What the node knows about itself.
    pub fn view(&self) -> &NodeView {
        &self.view
    }
}

impl AssembledNode {
    /// The way to all shards.
    pub fn shards(&self) -> &Shards {
        self.shards.shards()
    }

    /// Has a shard ended although nobody told it to? The node must not go on then.
    pub fn has_failed(&self) -> bool {
        self.shards.any_finished()
    }

    /// Stops the node: everything is made durable and the threads end. With `flush_first` memtables are
    /// written out, so that the next start has nothing to replay.
    ///
    /// # Errors
    /// A shard could not write something out; what was acknowledged is in its log.
    pub async fn stop(self, flush_first: bool) -> Result<(), AssemblyError> {
        say_farewell(&self.view).await;
        // First, so that what others have missed is kept while memtables are written out.
        drop(self.ring);
        Ok(self.shards.stop(flush_first).await?)
    }
}

impl AssembledNode<LocalShards> {
    /// The way to all shards.
    pub fn shards(&self) -> &Shards {
        self.shards.shards()
    }

    /// As for a node on threads; the tasks end.
    ///
    /// # Errors
    /// As for a node on threads.
    pub async fn stop(self, flush_first: bool) -> Result<(), AssemblyError> {
        say_farewell(&self.view).await;
        // First, so that what others have missed is kept while memtables are written out.
        drop(self.ring);
        Ok(self.shards.stop(flush_first).await?)
    }
}

/// Tells the others of a ring that this node goes, so that they need not find it out. They are not waited for.
async fn say_farewell(view: &NodeView) {
    if let Some(known) = view.ring().filter(|known| !known.is_withdrawn()) {
        known.withdraw(true);
        tokio::time::sleep(FAREWELL_SENT).await;
    }
}

/// Gives how many batches there were that are finished.
async fn finish_what_was_cut_off(
    coordinator: &Coordinator,
    ring: Option<&Known>,
) -> Result<u64, CoordinatorError> {
    let mut batch_count = 0;
    if let Some(known) = ring {
        // A node starts without the others, and replicas of a batch may be on them.
        let replay = BatchReplay::on(coordinator.clone());
        let found_count = replay.find().await?;
        if found_count > 0 {
            tracing::info!(found_count, "logged batches of an earlier run are being finished");
        }
        spawn_in_ring(coordinator.runtime(), known, "batches that are kept", replay.run());
    } else {
        batch_count = coordinator.replay_batches().await?;
    }
    coordinator.finish_truncation().await?;
    Ok(batch_count)
}

/// Starts vital work that ends with the node's part in its ring: it may hold a shard.
fn spawn_in_ring(
    runtime: &Runtime,
    known: &Known,
    what: &'static str,
    work: impl Future<Output = ()> + 'static,
) {
    runtime.failsafe.spawn_local(what, while_in_ring(known.clone(), Box::pin(work)));
}

/// The coordinator of a shard of a node in a ring. The first shard writes down what is agreed on, repairs, and gets the
/// rows of a node whose place this one has taken.
fn seat_in_ring(seats: &Seats, node: Node, handle: ShardHandle, timeouts: &Arc<Timeouts>) -> Coordinator {
    let Seats { known, proposer, marks, .. } = seats;
    let index = handle.local().index();
    let handed = seats.take_handed(index).expect("each shard takes its own, once");
    let timeouts = Arc::clone(timeouts);
    let seat = RingSeat::take(known.clone(), proposer.clone(), timeouts, handle.clone(), marks.clone());
    let coordinator = Coordinator::in_ring(node, handle, seat, handed);
    if index == 0
        && let Some(entries) = seats.take_entries()
    {
        let failsafe = &coordinator.runtime().failsafe;
        let (coordinator, known) = (coordinator.clone(), known.clone());
        let following = async move {
            if let Err(error) = follow(&coordinator, known.clone(), entries).await {
                tracing::error!(%error, "what was agreed on can not be kept");
                known.end(error.to_string());
            }
        };
        failsafe.spawn_local("history", following);
    }
    if index == 0
        && let Some(repairs) = seats.take_repairs()
    {
        let runtime = coordinator.runtime();
        spawn_in_ring(runtime, known, "rows of a lost node", fill(coordinator.clone()));
        spawn_in_ring(runtime, known, "repairs", carry_out_repairs(coordinator.clone(), repairs));
    }
    coordinator
}

/// What a shard has above storage.
async fn take_seat(parts: Parts, handle: ShardHandle) -> Seat {
    let Parts { node, view, clients, texts, large_answer, timeouts, seats, batches_replayed } = parts;
    let (index, shard, shards) = (handle.local().index(), Rc::clone(handle.local()), handle.shards().clone());
    let ring = seats.as_ref().map(|seats| seats.known.clone());
    let coordinator = match seats {
        None => Coordinator::new(node, handle),
        Some(seats) => seat_in_ring(&seats, node, handle, &timeouts),
    };
    // Taken, so that whoever waits for it hears of it when this task dies.
    let report = batches_replayed.lock().unwrap_or_else(PoisonError::into_inner).take_if(|_| index == 0);
    if let Some(report) = report {
        _ = report.send(finish_what_was_cut_off(&coordinator, ring.as_ref()).await);
    }
    let system_tables = SystemTables::new(view.clone(), coordinator.clone(), shards, clients);
    let answers = AnswerMemory::new(view.options.answers.bytes / coordinator.owners().count(), large_answer);
    view.client_memory.count_answers(answers.held_figure());
    let engine = Engine::new(coordinator.clone(), system_tables, texts, answers, timeouts);
    view.latencies.add(engine.latencies());
    // From here on requests are answered; what comes now gives way to them.
    shard.start_prefetch();
    Seat { index, view, coordinator, engine }
}
