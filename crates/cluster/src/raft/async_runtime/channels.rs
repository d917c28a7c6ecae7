//! Tokio's channels and lock, which wake in order, under the names that openraft knows.

use std::future::Future;

use openraft::async_runtime::{self as rt, TryRecvError};
use openraft::{OptionalSend, async_runtime};
use tokio::sync::{mpsc, oneshot};

/// One answer to one who waits.
pub(crate) struct Reply;

pub(crate) struct ReplySender<T>(oneshot::Sender<T>);

impl rt::Oneshot for Reply {
    type Sender<T: OptionalSend> = ReplySender<T>;
    type Receiver<T: OptionalSend> = oneshot::Receiver<T>;
    type ReceiverError = oneshot::error::RecvError;

    fn channel<T>() -> (ReplySender<T>, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (ReplySender(sender), receiver)
    }
}

impl<T> rt::OneshotSender<T> for ReplySender<T> {
    fn send(self, value: T) -> Result<(), T> {
        self.0.send(value)
    }
}

/// A bounded queue that many fill and one empties.
pub(crate) struct Queue;

pub(crate) struct QueueSender<T>(mpsc::Sender<T>);
pub(crate) struct QueueWeakSender<T>(mpsc::WeakSender<T>);
pub(crate) struct QueueReceiver<T>(mpsc::Receiver<T>);

impl rt::Mpsc for Queue {
    type Sender<T: OptionalSend> = QueueSender<T>;
    type Receiver<T: OptionalSend> = QueueReceiver<T>;
    type WeakSender<T: OptionalSend> = QueueWeakSender<T>;

    fn channel<T>(capacity: usize) -> (QueueSender<T>, QueueReceiver<T>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (QueueSender(sender), QueueReceiver(receiver))
    }
}

impl<T> rt::MpscSender<Queue, T> for QueueSender<T> {
    async fn send(&self, value: T) -> Result<(), async_runtime::SendError<T>> {
        self.0.send(value).await.map_err(|error| async_runtime::SendError(error.0))
    }

    fn downgrade(&self) -> QueueWeakSender<T> {
        QueueWeakSender(self.0.downgrade())
    }
}

impl<T> rt::MpscReceiver<T> for QueueReceiver<T> {
    fn recv(&mut self) -> impl Future<Output = Option<T>> {
        self.0.recv()
    }

    fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.0.try_recv().map_err(|error| match error {
            mpsc::error::TryRecvError::Empty => TryRecvError::Empty,
            mpsc::error::TryRecvError::Disconnected => TryRecvError::Disconnected,
        })
    }
}

impl<T> rt::MpscWeakSender<Queue, T> for QueueWeakSender<T> {
    fn upgrade(&self) -> Option<QueueSender<T>> {
        self.0.upgrade().map(QueueSender)
    }
}

impl<T> Clone for QueueSender<T> {
    fn clone(&self) -> Self {
        QueueSender(self.0.clone())
    }
}

impl<T> Clone for QueueWeakSender<T> {
    fn clone(&self) -> Self {
        QueueWeakSender(self.0.clone())
    }
}

/// A lock that is held over awaits.
pub(crate) struct Lock<T>(tokio::sync::Mutex<T>);

impl<T: 'static> rt::Mutex<T> for Lock<T> {
    type Guard<'a> = tokio::sync::MutexGuard<'a, T>;

    fn new(value: T) -> Self {
        Lock(tokio::sync::Mutex::new(value))
    }

    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> {
        self.0.lock()
    }
}
