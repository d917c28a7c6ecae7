//! What all handles of an open database share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assembly::AssembledNode;
use query::{BindValue, QueryOptions, Values};
use runtime::{Failsafe, LatestReader, MailboxSender};
use storage::{Demand, Shards};
use tokio::sync::oneshot;
use types::Token;

use crate::Error;
use crate::worker::{Answer, Kept, Request, Work};

/// Statements that were prepared because they came with values; beyond it all are forgotten.
const KNOWN_MAX: usize = 1_000;

/// The keyspace of its unqualified names, and a text.
type Known = HashMap<(Option<String>, Arc<str>), Arc<Kept>>;

/// An open database.
pub(crate) struct Instance {
    /// Taken by whoever closes it.
    node: Mutex<Option<AssembledNode>>,
    shards: Shards,
    mailboxes: Vec<MailboxSender<Request>>,
    is_closed: AtomicBool,
    failsafe: Failsafe,
    /// What failures of the disk ask of us.
    demand: LatestReader<Demand>,
    /// Which shard is next for what can be done on any.
    turn: AtomicUsize,
    known: Mutex<Known>,
}

impl Instance {
    pub(crate) fn new(
        node: AssembledNode,
        failsafe: Failsafe,
        mailboxes: Vec<MailboxSender<Request>>,
    ) -> Self {
        let shards = node.shards().clone();
        let demand = shards.health().demand();
        Instance {
            node: Mutex::new(Some(node)),
            shards,
            mailboxes,
            is_closed: AtomicBool::new(false),
            failsafe,
            demand,
            turn: AtomicUsize::new(0),
            known: Mutex::default(),
        }
    }

    pub(crate) fn shards(&self) -> &Shards {
        &self.shards
    }

    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        self.failsafe.check().map_err(Error::Poisoned)?;
        if self.demand.get() == Demand::Serve {
            return Ok(());
        }
        // Of all that failed, what failed last says most.
        let (faults, _) = self.shards.health().faults();
        Err(Error::Stopped { cause: faults.last().map_or_else(String::new, |fault| fault.what.clone()) })
    }

    /// Brings work to a shard, and its answer back.
    pub(crate) async fn carry_out(
        &self,
        keyspace: Option<String>,
        work: Work,
        options: QueryOptions,
    ) -> Result<Answer, Error> {
        self.check_open()?;
        let answered = self.ask(keyspace, work, options).await;
        if answered.is_err() {
            // That it broke a promise says more than that there is no answer.
            self.failsafe.check().map_err(Error::Poisoned)?;
        }
        let answer = answered?;
        if answer.schema_change.is_some() {
            // So that texts are understood anew.
            self.forget_known();
        }
        Ok(answer)
    }

    async fn ask(
        &self,
        keyspace: Option<String>,
        work: Work,
        options: QueryOptions,
    ) -> Result<Answer, Error> {
        let shard = self.shard_for(&work, &options);
        let (reply, answer) = oneshot::channel();
        let request = Request { keyspace, work, options, reply };
        self.mailboxes[shard].send(request).await.map_err(|_| Error::NoAnswer)?;
        answer.await.map_err(|_| Error::NoAnswer)?
    }

    /// The owner of the partition when it is known, so that one thread does it all; else each in turn.
    fn shard_for(&self, work: &Work, options: &QueryOptions) -> usize {
        let owner = match work {
            Work::Execute(kept) => partition_key(kept, &options.values).map(|key| Token::of(&key)),
            _ => None,
        };
        match owner {
            Some(token) => self.shards.owner(token),
            None => self.turn.fetch_add(1, Ordering::Relaxed) % self.mailboxes.len(),
        }
    }

    /// The statement of that text, prepared now or earlier.
    pub(crate) async fn known(&self, keyspace: Option<String>, text: &str) -> Result<Arc<Kept>, Error> {
        let key = (keyspace, Arc::<str>::from(text));
        if let Some(kept) = lock(&self.known).get(&key) {
            return Ok(Arc::clone(kept));
        }
        let kept = Arc::new(self.prepare(key.0.clone(), Arc::clone(&key.1)).await?);
        let mut known = lock(&self.known);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key, Arc::clone(&kept));
        Ok(kept)
    }

    /// Forgets what was prepared because it came with values.
    pub(crate) fn forget_known(&self) {
        lock(&self.known).clear();
    }

    pub(crate) async fn prepare(&self, keyspace: Option<String>, text: Arc<str>) -> Result<Kept, Error> {
        let answer = self.carry_out(keyspace, Work::Prepare(text), QueryOptions::default()).await?;
        answer.prepared.ok_or(Error::NoAnswer)
    }

    /// Takes no more calls; the node, for whoever comes first.
    pub(crate) fn begin_close(&self) -> Option<AssembledNode> {
        self.is_closed.store(true, Ordering::SeqCst);
        lock(&self.node).take()
    }
}

impl Drop for Instance {
    /// Without a close: everything acknowledged is made durable and the threads end, and the next open
    /// replays the commit log.
    fn drop(&mut self) {
        if let Some(node) = self.begin_close()
            && let Err(error) = runtime::block_on(node.stop(false))
        {
            tracing::warn!(%error, "a database that was dropped did not end well");
        }
    }
}

/// The partition key that a statement's values make, if they do.
fn partition_key(kept: &Kept, values: &Values) -> Option<Vec<u8>> {
    let Values::Positional(values) = values else { return None };
    if kept.partition_key_indexes.is_empty() {
        return None;
    }
    let parts = kept.partition_key_indexes.iter().map(|index| match values.get(usize::from(*index)) {
        Some(BindValue::Set(bytes)) => Some(&bytes[..]),
        _ => None,
    });
    let parts: Vec<&[u8]> = parts.collect::<Option<_>>()?;
    types::encoding::partition_key(parts.into_iter()).ok()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
