//! Bounded queues between shards. A receiver takes all that has arrived in one wake-up.

use tokio::sync::mpsc;

/// Why a message was not taken; it is handed back.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError<T> {
    /// As many messages wait as the mailbox holds.
    #[error("mailbox is full")]
    Full(T),
    /// The receiver is gone.
    #[error("mailbox is closed")]
    Closed(T),
}

/// Puts messages into a mailbox. Clones share the bound.
#[derive(Debug)]
pub struct MailboxSender<T> {
    inner: mpsc::Sender<T>,
}

impl<T> Clone for MailboxSender<T> {
    fn clone(&self) -> MailboxSender<T> {
        MailboxSender { inner: self.inner.clone() }
    }
}

/// Takes messages out of a mailbox.
#[derive(Debug)]
pub struct MailboxReceiver<T> {
    inner: mpsc::Receiver<T>,
}

/// A mailbox that holds `capacity` messages, at least one.
pub fn mailbox<T>(capacity: usize) -> (MailboxSender<T>, MailboxReceiver<T>) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    (MailboxSender { inner: sender }, MailboxReceiver { inner: receiver })
}

impl<T> MailboxSender<T> {
    /// Puts a message in, or hands it back at once when there is no room.
    pub fn try_send(&self, message: T) -> Result<(), SendError<T>> {
        self.inner.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(message) => SendError::Full(message),
            mpsc::error::TrySendError::Closed(message) => SendError::Closed(message),
        })
    }

    /// Puts a message in, waiting for room.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the message is not sent.
    pub async fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.inner.send(message).await.map_err(|mpsc::error::SendError(message)| SendError::Closed(message))
    }

    /// From a thread that may block; never from a shard.
    pub fn blocking_send(&self, message: T) -> Result<(), SendError<T>> {
        self.inner
            .blocking_send(message)
            .map_err(|mpsc::error::SendError(message)| SendError::Closed(message))
    }

    /// How many more messages fit in at the moment.
    pub fn room(&self) -> usize {
        self.inner.capacity()
    }

    /// Whether nobody will receive any more.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }
}

impl<T> MailboxReceiver<T> {
    /// The next message; `None` once all senders are gone and the mailbox is empty.
    ///
    /// # Cancel safety
    /// Dropped before it is done, no message is lost.
    pub async fn receive(&mut self) -> Option<T> {
        self.inner.recv().await
    }

    /// Waits for a message, then takes up to `count_max` of those that are there, into `batch`. 0
    /// means that all senders are gone.
    ///
    /// # Cancel safety
    /// Dropped before it is done, no message is lost.
    pub async fn receive_batch(&mut self, batch: &mut Vec<T>, count_max: usize) -> usize {
        self.inner.recv_many(batch, count_max).await
    }

    /// Takes no more messages; those that are in can still be received.
    pub fn close(&mut self) {
        self.inner.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_mailbox_hands_the_message_back() {
        let (sender, mut receiver) = mailbox(2);
        sender.try_send(1).expect("room");
        sender.try_send(2).expect("room");
        assert_eq!(sender.try_send(3), Err(SendError::Full(3)));
        let mut batch = Vec::new();
        assert_eq!(receiver.receive_batch(&mut batch, 16).await, 2);
        assert_eq!(batch, [1, 2]);
        drop(receiver);
        assert_eq!(sender.try_send(4), Err(SendError::Closed(4)));
    }
}
