//! The way to any shard of a node, from any thread.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use ring::Sharding;
use runtime::{MailboxSender, Residence, TurnFigures};
use table::Health;
use types::Token;

use super::errand::{Fate, Message, refused};
use crate::StorageError;
use crate::shard::Shard;

/// Where to send work to any shard of the node, from anywhere.
#[derive(Clone)]
pub struct Shards {
    pub(crate) senders: Vec<MailboxSender<Message>>,
    /// Where each is found while it sleeps.
    pub(crate) homes: Arc<[Arc<Residence<Shard>>]>,
    pub(crate) sharding: Sharding,
    pub(crate) health: Arc<Health>,
    /// How long turns of each take.
    pub(crate) turns: Arc<[Arc<TurnFigures>]>,
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

    pub(crate) async fn exit(&self) {
        for sender in &self.senders {
            // One that is gone already needs no telling.
            _ = sender.send(Message::Exit).await;
        }
    }
}
