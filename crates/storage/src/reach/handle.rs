//! The way from one shard to all of its node.

use std::future::Future;
use std::rc::Rc;

use super::Shards;
use super::errand::{Fate, Message, Outbox, refused};
use crate::StorageError;
use crate::shard::Shard;

/// A shard's view of its node: itself, and the way to the others. Stays on its thread.
#[derive(Clone)]
pub struct ShardHandle {
    shards: Shards,
    local: Rc<Shard>,
    /// One for each shard.
    outboxes: Rc<[Rc<Outbox>]>,
}

impl ShardHandle {
    pub(crate) fn new(shards: Shards, local: Rc<Shard>) -> Self {
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

    /// As [`ShardHandle::on`], of work that only reads, or may be left where it waits.
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
