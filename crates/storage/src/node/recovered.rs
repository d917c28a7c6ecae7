//! What recovery found, and how shards are started from it: on threads of their own, or as tasks of one.

use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use compaction::CompactionsHeld;
use runtime::{DirectoryLock, Door, MailboxReceiver, Residence, ShardOptions, ShardThreads, mailbox};
use schema::Schema;
use table::TableError;

use super::{LocalShards, RunningShards};
use crate::StorageError;
use crate::layout::NodeFacts;
use crate::reach::errand::Message;
use crate::reach::{ShardHandle, Shards, live};
use crate::shard::{Shard, ShardContext, ShardSeed};

/// A data directory ready to be served.
pub struct Recovered {
    pub(super) context: ShardContext,
    pub(super) facts: NodeFacts,
    pub(super) seeds: Vec<ShardSeed>,
    pub(super) locks: Vec<DirectoryLock>,
}

impl Recovered {
    /// Lets no compaction begin until what this gives is dropped: for as long as writes of an earlier run come that
    /// were not in the log. A compaction that began before them may drop tombstones that are to hide them.
    pub fn hold_compactions(&self) -> CompactionsHeld {
        self.context.compaction.hold()
    }

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
        // All of them, before one goes on: the directory is not locked any more when some can not start.
        let start = |(index, seed)| Shard::start(index, self.context.clone(), seed, Arc::clone(schema));
        let started: Vec<_> = self.seeds.into_iter().enumerate().map(start).collect::<Result<_, _>>()?;
        let mut handles = Vec::new();
        for (index, (receiver, shard)) in receivers.into_iter().zip(started).enumerate() {
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
