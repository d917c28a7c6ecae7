//! A node's shards: how they are started, reached and stopped.
//!
//! ```text
//!   Directory::open ──► recover ──► Shards::start ──► one thread each, body(ShardHandle) on it
//!       lock, facts      memtables, files               │
//!                                                        └─ mailbox: work from other shards
//! ```
//!
//! The *body* is what the floors above put on a shard's thread: sessions, coordinator, console.

use std::future::Future;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};

use compaction::CompactionControl;
use manifest::{Manifest, ManifestState};
use ring::Sharding;
use runtime::{
    DirectoryLock, Door, MailboxReceiver, MailboxSender, Piece, Residence, Runtime, ShardOptions,
    ShardThreads, TurnFigures, mailbox,
};
use schema::Schema;
use table::{DiskFailurePolicy, FaultKind, FileRegistry, Health, TableError};
use types::Token;

use crate::errand::{ErrandBatch, Fate, Message, Outbox, refused};
use crate::layout::NodeFacts;
use crate::recovery::Recovery;
use crate::shard::{Shard, ShardContext, ShardSeed};
use crate::{Layout, StorageError, StorageOptions};

/// Messages a shard takes before it lets its other tasks run and sends back results.
const MESSAGES_PER_TURN: usize = 64;

/// A data directory, locked by this process.
pub struct Directory {
    runtime: Runtime,
    options: Arc<StorageOptions>,
    layout: Layout,
    facts: NodeFacts,
    locks: Vec<DirectoryLock>,
    /// Directories of table files that can not be used, and why.
    failed: Vec<(PathBuf, TableError)>,
}

impl Directory {
    /// Locks a data directory, makes it if need be, and reads what node it belongs to. Blocks.
    ///
    /// # Errors
    /// Another process has it, the disk fails, or `node.json` is damaged.
    pub fn open(runtime: &Runtime, options: StorageOptions) -> Result<Directory, StorageError> {
        let layout = Layout::of_options(&options);
        let fail = |act| move |source| TableError::Disk { act, source };
        runtime.disk.create_dir_all(layout.root()).map_err(fail("create data directory"))?;
        let lock = take_directory(runtime, layout.root())?;
        let sharding = Sharding::new(options.shard_count, Sharding::IGNORE_MSB)
            .map_err(|error| TableError::Directory { path: layout.root().into(), what: error.to_string() })?;
        // What a killed process wrote last may be in the cache alone; from here on it is relied on.
        runtime.disk.sync_dir(layout.root()).map_err(fail("sync data directory"))?;
        let facts = match layout.read_facts(&*runtime.disk)? {
            Some(facts) => facts,
            None => begin(runtime, &layout, sharding)?,
        };
        let (mut locks, mut failed) = (vec![lock], Vec::new());
        for path in layout.tables().written() {
            if *path == layout.tables().own() {
                runtime.disk.create_dir_all(path).map_err(fail("create table directory"))?;
                continue;
            }
            match crate::directories::take(runtime, path, facts.host_id) {
                Ok(lock) => locks.push(lock),
                Err(error)
                    if options.disk_failure_policy == DiskFailurePolicy::BestEffort
                        && FaultKind::of(&error).is_some() =>
                {
                    failed.push((path.clone(), error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let (shard_count, directory_count) =
            (usize::from(options.shard_count), layout.tables().written().len());
        if shard_count < directory_count {
            tracing::warn!(
                shard_count,
                directory_count,
                "some data directories are not used: each shard writes to one"
            );
        }
        Ok(Directory { runtime: runtime.clone(), options: Arc::new(options), layout, facts, locks, failed })
    }

    /// Paths in it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What node it belongs to.
    pub fn facts(&self) -> &NodeFacts {
        &self.facts
    }

    /// Opens table files and replays the commit log. Blocks.
    ///
    /// # Errors
    /// The log or a manifest is damaged, or the disk fails. Damaged table files are no error here:
    /// reads that need them are refused.
    pub fn recover(self, schema: &Schema) -> Result<Recovered, StorageError> {
        let sharding =
            Sharding::new(self.options.shard_count, self.facts.sharding_ignore_msb()).map_err(|error| {
                TableError::Directory { path: self.layout.root().into(), what: error.to_string() }
            })?;
        let compaction = CompactionControl::new(
            self.options.concurrent_compactors,
            self.options.compaction_bytes_per_second,
        );
        let health = Health::new(
            self.options.disk_failure_policy,
            self.options.commit_failure_policy,
            self.layout.tables().written().to_vec(),
            Arc::clone(&self.runtime.clock),
        );
        for (path, error) in &self.failed {
            health.note_lost(path, error);
        }
        let context = ShardContext {
            health: Arc::new(health),
            compaction,
            sharding,
            runtime: self.runtime,
            options: self.options,
            layout: self.layout,
            registry: Arc::new(FileRegistry::default()),
            timestamp_floor: Arc::new(AtomicI64::new(i64::MIN)),
        };
        context.registry.set_incremental_backups(context.options.incremental_backups);
        let (facts, seeds) = Recovery { context: &context, schema, facts: self.facts }.run()?;
        Ok(Recovered { context, facts, seeds, locks: self.locks })
    }
}

/// Locks a directory for this process.
pub(crate) fn take_directory(runtime: &Runtime, path: &Path) -> Result<DirectoryLock, TableError> {
    runtime.disk.lock_dir(path).map_err(|source| match source.kind() {
        ErrorKind::WouldBlock => {
            TableError::Directory { path: path.into(), what: format!("another process uses it ({source})") }
        }
        _ => TableError::Disk { act: "lock data directory", source },
    })
}

/// Begins a node in an empty directory. `node.json` comes last: where it is, everything is that a start
/// relies on; where it is not but anything else is, it was lost, and beginning anew would lose the rest.
fn begin(runtime: &Runtime, layout: &Layout, sharding: Sharding) -> Result<NodeFacts, StorageError> {
    for path in [layout.tables().own().to_owned(), layout.commitlog(), layout.schema_log()] {
        let is_there = runtime.disk.exists(&path);
        if is_there.map_err(|source| TableError::Disk { act: "look for earlier data", source })? {
            let what = format!("node.json is missing, but there is {}", path.display());
            return Err(TableError::Directory { path: layout.root().into(), what }.into());
        }
    }
    check_nothing_foreign(runtime, layout)?;
    let facts = Layout::new_facts(&*runtime.random, sharding);
    let create = |source| TableError::Disk { act: "create manifest directory", source };
    runtime.disk.create_dir_all(&layout.manifests(facts.generation)).map_err(create)?;
    for shard in 0..sharding.shard_count() {
        let path = layout.manifest(facts.generation, shard);
        Manifest::create(Arc::clone(&runtime.disk), path, ManifestState::default())?;
    }
    layout.write_facts(&*runtime.disk, &facts)?;
    Ok(facts)
}

/// Refuses to begin a node among somebody else's files: a home directory named by mistake, another program's data.
/// What a beginning that was cut off leaves is ours, and so are directories of table files below.
fn check_nothing_foreign(runtime: &Runtime, layout: &Layout) -> Result<(), StorageError> {
    const OURS: [&str; 5] = ["LOCK", "lost+found", "manifest", "node.json", "node.json.tmp"];
    let list = |source| TableError::Disk { act: "list data directory", source };
    for entry in runtime.disk.list(layout.root()).map_err(list)? {
        let path = layout.root().join(&entry.name);
        let holds_data = layout.tables().written().iter().any(|directory| directory.starts_with(&path));
        if !OURS.contains(&entry.name.as_str()) && !holds_data {
            let what = format!(
                "it is no node's and not empty: there is {}; a new node begins in an empty one",
                entry.name
            );
            return Err(TableError::Directory { path: layout.root().into(), what }.into());
        }
    }
    Ok(())
}

/// A data directory ready to be served.
pub struct Recovered {
    context: ShardContext,
    facts: NodeFacts,
    seeds: Vec<ShardSeed>,
    locks: Vec<DirectoryLock>,
}

impl Recovered {
    /// What node it belongs to.
    pub fn facts(&self) -> &NodeFacts {
        &self.facts
    }

    /// Starts one thread per shard, and `body` on each. Returns when all shards take requests.
    ///
    /// # Errors
    /// A thread can not be started, a shard can not open its log, or it dies on the way.
    pub fn start<Body, Work>(self, schema: &Arc<Schema>, body: Body) -> Result<RunningShards, StorageError>
    where
        Body: Fn(ShardHandle) -> Work + Clone + Send + 'static,
        Work: Future<Output = ()> + 'static,
    {
        let (shards, receivers, doors) = self.mailboxes(Door::default);
        // A channel for each: when a shard dies before it has reported, its end is dropped with it.
        let (reports, started): (Vec<_>, Vec<_>) =
            receivers.iter().map(|_| std::sync::mpsc::channel::<Result<(), StorageError>>()).unzip();
        let seats: Vec<_> =
            receivers.into_iter().zip(self.seeds).zip(reports).map(|((a, b), c)| Some((a, b, c))).collect();
        let seats = Arc::new(Mutex::new(seats));
        let turns = shards.turns.to_vec();
        let options = ShardOptions { shard_count: shards.count(), pinned: false, doors, turns };
        let (context, schema, for_threads) = (self.context.clone(), Arc::clone(schema), shards.clone());
        let threads = ShardThreads::start(options, move |index| {
            let seat = seats.lock().unwrap_or_else(PoisonError::into_inner)[index].take();
            let (context, schema, shards) = (context.clone(), Arc::clone(&schema), for_threads.clone());
            let body = body.clone();
            async move {
                let Some((receiver, seed, report)) = seat else { return };
                match Shard::start(index, context, seed, schema) {
                    Ok(shard) => {
                        let home = Arc::clone(&shards.homes[index]);
                        let handle = ShardHandle::new(shards, Rc::clone(&shard));
                        runtime::spawn_local("start", Box::pin(body(handle)));
                        _ = report.send(Ok(()));
                        drop(report);
                        runtime::measured("errands", live(home, shard, receiver)).await;
                    }
                    Err(error) => _ = report.send(Err(error)),
                }
            }
        });
        // When some can not start, the others must not go on in a directory that is no longer locked.
        let end_all = || shards.senders.iter().for_each(|sender| _ = sender.try_send(Message::Exit));
        let threads = threads
            .inspect_err(|_| end_all())
            .map_err(|source| TableError::Disk { act: "start shard threads", source })?;
        let mut all_started = Ok(());
        for (shard, started) in started.into_iter().enumerate() {
            let one = started.recv().unwrap_or(Err(StorageError::DiedStarting { shard }));
            all_started = all_started.and(one);
        }
        if let Err(error) = all_started {
            end_all();
            _ = threads.join();
            return Err(error);
        }
        Ok(RunningShards {
            shards,
            threads: Some(threads),
            runtime: self.context.runtime,
            _locks: self.locks,
        })
    }

    /// Starts all shards as tasks of the surrounding `LocalSet`: for tests, for the simulator, and
    /// to embed.
    ///
    /// # Errors
    /// A shard can not open its log.
    pub fn start_local(self, schema: &Arc<Schema>) -> Result<LocalShards, StorageError> {
        let random = &self.context.runtime.random;
        let (shards, receivers, _) = self.mailboxes(|| Door::among_tasks(Arc::clone(random)));
        let mut handles = Vec::new();
        for (index, (receiver, seed)) in receivers.into_iter().zip(self.seeds).enumerate() {
            let shard = Shard::start(index, self.context.clone(), seed, Arc::clone(schema))?;
            handles.push(ShardHandle::new(shards.clone(), Rc::clone(&shard)));
            runtime::spawn_local("errands", live(Arc::clone(&shards.homes[index]), shard, receiver));
        }
        Ok(LocalShards { handles, _locks: self.locks })
    }

    fn mailboxes(&self, door: impl Fn() -> Door) -> (Shards, Vec<MailboxReceiver<Message>>, Vec<Arc<Door>>) {
        let count = self.seeds.len();
        // No test can break it: a directory gives a seed for each shard of its rule.
        assert_eq!(count, self.context.sharding.shard_count(), "each token has a shard that runs");
        let (senders, receivers) = (0..count).map(|_| mailbox(self.context.options.mailbox_messages)).unzip();
        let doors: Vec<Arc<Door>> = (0..count).map(|_| Arc::new(door())).collect();
        let homes = doors.iter().map(|door| Arc::new(Residence::new(Arc::clone(door)))).collect();
        let health = Arc::clone(&self.context.health);
        let turns = (0..count).map(|_| Arc::default()).collect();
        (Shards { senders, homes, sharding: self.context.sharding, health, turns }, receivers, doors)
    }
}

/// A shard's life: visitors find it until it is told to end.
async fn live(home: Arc<Residence<Shard>>, shard: Rc<Shard>, receiver: MailboxReceiver<Message>) {
    home.move_in(Rc::clone(&shard));
    serve(&shard, receiver).await;
    home.move_out();
    shard.left_reads().end();
}

/// A shard's main loop: does what others send, in turns, until it is told to end.
async fn serve(shard: &Rc<Shard>, mut receiver: MailboxReceiver<Message>) {
    let mut messages = Vec::with_capacity(MESSAGES_PER_TURN);
    let mut batch = ErrandBatch::with_capacity(MESSAGES_PER_TURN);
    while receiver.receive_batch(&mut messages, MESSAGES_PER_TURN).await > 0 {
        let mut piece = Piece::of_turn();
        shard.left_reads().go_on(shard);
        for message in messages.drain(..) {
            match message {
                Message::Errand(errand) => batch.begin(errand, shard),
                Message::Wake => {}
                Message::Exit => return batch.deliver(&mut piece).await,
            }
            if piece.is_long() {
                batch.deliver(&mut piece).await;
                piece.give_way().await;
            }
        }
        batch.deliver(&mut piece).await;
    }
}

/// Where to send work to any shard of the node, from anywhere.
#[derive(Clone)]
pub struct Shards {
    senders: Vec<MailboxSender<Message>>,
    /// Where each is found while it sleeps.
    homes: Arc<[Arc<Residence<Shard>>]>,
    sharding: Sharding,
    health: Arc<Health>,
    /// How long turns of each take.
    turns: Arc<[Arc<TurnFigures>]>,
}

impl Shards {
    /// How long turns of each shard take; nothing is measured of shards that are tasks of one thread.
    pub fn turns(&self) -> &[Arc<TurnFigures>] {
        &self.turns
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.senders.len()
    }

    /// The shard that owns a token.
    pub fn owner(&self, token: Token) -> usize {
        self.sharding.shard_of(token)
    }

    /// How the node's disks are, and what that asks of it.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// The rule that gives each token its shard.
    pub fn sharding(&self) -> Sharding {
        self.sharding
    }

    /// Does something on a shard's thread and brings back what it gives.
    ///
    /// # Errors
    /// `ShardBusy` at once when too many requests wait for it, `ShardGone` when it has ended.
    ///
    /// # Cancel safety
    /// Dropped, the work goes on; its result is lost.
    pub async fn on<T, Work, Doing>(&self, shard: usize, work: Work) -> Result<T, StorageError>
    where
        T: Send + 'static,
        Work: FnOnce(Rc<Shard>) -> Doing + Send + 'static,
        Doing: Future<Output = T> + 'static,
    {
        let (message, answer) = Message::for_work(Fate::GoesOn, work);
        self.senders[shard].try_send(message).map_err(refused(shard))?;
        answer.wait(shard).await
    }

    /// As [`Shards::on`], but waits when many requests are there: for work that must not be refused.
    ///
    /// # Errors
    /// `ShardGone` when the shard has ended.
    ///
    /// # Cancel safety
    /// Dropped, the work may or may not be done.
    pub async fn on_when_free<T, Work, Doing>(&self, shard: usize, work: Work) -> Result<T, StorageError>
    where
        T: Send + 'static,
        Work: FnOnce(Rc<Shard>) -> Doing + Send + 'static,
        Doing: Future<Output = T> + 'static,
    {
        let (message, answer) = Message::for_work(Fate::GoesOn, work);
        self.senders[shard].send(message).await.map_err(|_| StorageError::ShardGone { shard })?;
        answer.wait(shard).await
    }

    /// Has the chunk caches of all shards do without so many bytes of theirs, until they are told otherwise.
    pub async fn call_back_cache(&self, bytes: u64) {
        let share = usize::try_from(bytes).unwrap_or(usize::MAX) / self.count();
        for shard in 0..self.count() {
            // A shard that is too busy, or gone, is told the next time.
            _ = self
                .on(shard, move |shard: Rc<Shard>| async move { shard.shared().call_back_cache(share) })
                .await;
        }
    }

    pub(crate) fn home(&self, shard: usize) -> &Residence<Shard> {
        &self.homes[shard]
    }

    async fn exit(&self) {
        for sender in &self.senders {
            // One that is gone already needs no telling.
            _ = sender.send(Message::Exit).await;
        }
    }
}

/// A shard's view of its node: itself, and the way to the others. Stays on its thread.
#[derive(Clone)]
pub struct ShardHandle {
    shards: Shards,
    local: Rc<Shard>,
    /// One for each shard.
    outboxes: Rc<[Rc<Outbox>]>,
}

impl ShardHandle {
    fn new(shards: Shards, local: Rc<Shard>) -> Self {
        let outboxes = shards.senders.iter().cloned().map(Outbox::new).collect();
        ShardHandle { shards, local, outboxes }
    }

    /// The shard of this thread.
    pub fn local(&self) -> &Rc<Shard> {
        &self.local
    }

    /// All shards.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }

    /// As [`Shards::on_when_free`]; on this shard without a detour.
    ///
    /// # Errors
    /// As [`Shards::on_when_free`].
    pub async fn on_when_free<T, Work, Doing>(&self, shard: usize, work: Work) -> Result<T, StorageError>
    where
        T: Send + 'static,
        Work: FnOnce(Rc<Shard>) -> Doing + Send + 'static,
        Doing: Future<Output = T> + 'static,
    {
        if shard == self.local.index() {
            return Ok(work(Rc::clone(&self.local)).await);
        }
        self.shards.on_when_free(shard, work).await
    }

    /// Does something on a shard; on this one without a detour, on another together with all that
    /// this shard asks of it in one turn.
    ///
    /// # Errors
    /// As [`Shards::on`].
    ///
    /// # Cancel safety
    /// As [`Shards::on`].
    pub async fn on<T, Work, Doing>(&self, shard: usize, work: Work) -> Result<T, StorageError>
    where
        T: Send + 'static,
        Work: FnOnce(Rc<Shard>) -> Doing + Send + 'static,
        Doing: Future<Output = T> + 'static,
    {
        self.send(Fate::GoesOn, shard, work).await
    }

    /// As [`ShardHandle::on`], of work that only reads.
    ///
    /// # Errors
    /// As [`Shards::on`].
    ///
    /// # Cancel safety
    /// Dropped, the work ends at the next point where it waits.
    pub async fn ask<T, Work, Doing>(&self, shard: usize, work: Work) -> Result<T, StorageError>
    where
        T: Send + 'static,
        Work: FnOnce(Rc<Shard>) -> Doing + Send + 'static,
        Doing: Future<Output = T> + 'static,
    {
        self.send(Fate::EndsWithAsker, shard, work).await
    }

    /// Wakes a shard that sleeps, to see what was left to it, at the end of this shard's turn.
    ///
    /// # Errors
    /// As [`Shards::on`].
    pub(crate) fn wake(&self, shard: usize) -> Result<(), StorageError> {
        self.outboxes[shard].put(Message::Wake).map_err(refused(shard))
    }

    async fn send<T, Work, Doing>(&self, fate: Fate, shard: usize, work: Work) -> Result<T, StorageError>
    where
        T: Send + 'static,
        Work: FnOnce(Rc<Shard>) -> Doing + Send + 'static,
        Doing: Future<Output = T> + 'static,
    {
        if shard == self.local.index() {
            return Ok(work(Rc::clone(&self.local)).await);
        }
        let (message, answer) = Message::for_work(fate, work);
        self.outboxes[shard].put(message).map_err(refused(shard))?;
        answer.wait(shard).await
    }
}

/// Shards on threads of their own.
pub struct RunningShards {
    shards: Shards,
    threads: Option<ShardThreads>,
    runtime: Runtime,
    _locks: Vec<DirectoryLock>,
}

impl RunningShards {
    /// Where to send work.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Has a shard ended although nobody told it to?
    pub fn any_finished(&self) -> bool {
        self.threads.as_ref().is_some_and(ShardThreads::any_finished)
    }

    /// Makes everything durable and ends the threads. With `flush_first` memtables are written
    /// out, so that the next start has nothing to replay. Call it outside the shards' threads.
    ///
    /// # Errors
    /// A shard could not flush or close its log; the others were stopped all the same.
    pub async fn stop(mut self, flush_first: bool) -> Result<(), StorageError> {
        let mut result = Ok(());
        for shard in 0..self.shards.count() {
            let stop = move |shard: Rc<Shard>| async move { shard.stop(flush_first).await };
            let stopped = self.shards.on_when_free(shard, stop).await;
            result = result.and(stopped.and_then(|stopped| stopped));
        }
        self.shards.exit().await;
        if let Some(threads) = self.threads.take() {
            let joined =
                threads.join().map_err(|source| TableError::Disk { act: "join shard threads", source });
            result = result.and(joined.map_err(StorageError::from));
        }
        self.runtime.stop();
        result
    }
}

/// Shards that are tasks of one thread.
pub struct LocalShards {
    handles: Vec<ShardHandle>,
    _locks: Vec<DirectoryLock>,
}

impl LocalShards {
    /// Where to send work.
    pub fn shards(&self) -> &Shards {
        self.handles.first().expect("a node has one shard at least").shards()
    }

    /// A handle on each shard.
    pub fn handles(&self) -> &[ShardHandle] {
        &self.handles
    }

    /// Makes everything durable and ends the tasks.
    ///
    /// # Errors
    /// As [`RunningShards::stop`].
    pub async fn stop(self, flush_first: bool) -> Result<(), StorageError> {
        let mut result = Ok(());
        for handle in &self.handles {
            result = result.and(handle.local().stop(flush_first).await);
        }
        self.shards().exit().await;
        result
    }
}
