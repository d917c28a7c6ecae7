//! Work that one shard does for another, and how its result comes back.
//!
//! ```text
//!   asking shard                              owning shard
//!   on(work) ──► outbox ─┐ end of the turn    ┌─► begin ─┬─ done: kept until the batch is through
//!   on(work) ──► outbox ─┴────── mailbox ─────┴─► begin  │            │
//!                        one wake-up                     └─ not yet: a task of its own
//!   answers ◄────────────────────── one wake-up ◄─────────────────────┘
//! ```
//!
//! Waking another thread is a system call and mostly a change of context, dearer than a read from
//! memory. So what a shard asks of another in one turn goes out together, and what is answered at
//! once comes back together.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use runtime::trace::{self, Trace};
use runtime::{MailboxSender, Panicked, Piece, SendError, caught, caught_in};
use tokio::sync::oneshot;

use crate::StorageError;
use crate::shard::Shard;

/// What is sent to a shard.
pub(crate) enum Message {
    Errand(Box<dyn Errand>),
    /// Wakes the shard, so that it goes on with what was left to it (`shard/left_reads.rs`).
    Wake,
    Exit,
}

/// Something to do on a shard's thread, and the way its result goes back.
pub(crate) trait Errand: Send {
    /// Does it, if that needs no waiting; else leaves the rest to a task, which also answers.
    fn begin(&mut self, shard: &Rc<Shard>);
    /// Sends back what came of it, if it is done.
    fn deliver(self: Box<Self>);
}

struct ErrandOf<Work, T> {
    work: Option<Work>,
    /// What goes on when nobody waits for its result any more.
    fate: Fate,
    trace: Option<Trace>,
    reply: Option<Reply<T>>,
    result: Option<Done<T>>,
}

/// What came of work: its result, or its panic.
type Done<T> = Result<T, Panicked>;

/// The way on which it goes back.
pub(crate) type Reply<T> = oneshot::Sender<Done<T>>;

/// What becomes of work whose asker has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes on: it must not stop half way.
    GoesOn,
    /// It ends where it waits: it only reads, or changes nothing while it waits for room.
    EndsWithAsker,
}

impl Message {
    /// A message that does something and sends back what it gives.
    pub(crate) fn for_work<T, Work, Doing>(fate: Fate, work: Work) -> (Message, Answer<T>)
    where
        T: Send + 'static,
        Work: FnOnce(Rc<Shard>) -> Doing + Send + 'static,
        Doing: Future<Output = T> + 'static,
    {
        let (reply, answer) = Answer::new();
        let (work, trace) = (Some(work), trace::current());
        let errand = ErrandOf { work, fate, trace, reply: Some(reply), result: None };
        (Message::Errand(Box::new(errand)), answer)
    }
}

/// What comes back from a shard.
pub(crate) struct Answer<T>(oneshot::Receiver<Done<T>>);

impl<T> Answer<T> {
    /// Both ends of the way on which it comes.
    pub(crate) fn new() -> (Reply<T>, Self) {
        let (reply, answer) = oneshot::channel();
        (reply, Answer(answer))
    }

    /// Waits for what the work gives on that shard.
    ///
    /// # Errors
    /// It panicked, or the shard has ended.
    pub(crate) async fn wait(self, shard: usize) -> Result<T, StorageError> {
        Ok(self.0.await.map_err(|_| StorageError::ShardGone { shard })??)
    }
}

impl<T, Work, Doing> Errand for ErrandOf<Work, T>
where
    T: Send + 'static,
    Work: FnOnce(Rc<Shard>) -> Doing + Send + 'static,
    Doing: Future<Output = T> + 'static,
{
    fn begin(&mut self, shard: &Rc<Shard>) {
        let (Some(work), Some(reply)) = (self.work.take(), self.reply.take()) else { return };
        if self.fate == Fate::EndsWithAsker && reply.is_closed() {
            return;
        }
        let trace = self.trace.take();
        // As in a task of its own, a panic ends this errand only: its asker is told.
        let begun = caught(|| {
            let mut doing = Box::pin(trace::carry(trace, work(Rc::clone(shard))));
            let result = runtime::labelled(name_of::<Work>, || poll_once(doing.as_mut()));
            (doing, result)
        });
        match begun {
            Ok((_, Poll::Ready(result))) => {
                self.result = Some(Ok(result));
                self.reply = Some(reply);
            }
            // The task polls it again at once, which is when it learns whom to wake.
            Ok((doing, Poll::Pending)) if self.fate == Fate::EndsWithAsker => {
                runtime::spawn_local("errand", end_with_asker(caught_in(doing), reply));
            }
            Ok((doing, Poll::Pending)) => {
                runtime::spawn_local("errand", async move { _ = reply.send(caught_in(doing).await) });
            }
            Err(panicked) => {
                self.result = Some(Err(panicked));
                self.reply = Some(reply);
            }
        }
    }

    fn deliver(self: Box<Self>) {
        if let (Some(reply), Some(result)) = (self.reply, self.result) {
            // An asker that no longer waits is no error.
            _ = reply.send(result);
        }
    }
}

/// Sends back what comes of it, unless nobody waits for that any more.
pub(crate) async fn end_with_asker<T>(doing: impl Future<Output = T>, mut reply: oneshot::Sender<T>) {
    let result = tokio::select! {
        biased;
        result = doing => result,
        () = reply.closed() => return,
    };
    _ = reply.send(result);
}

/// Where in the code the work comes from.
fn name_of<Work>() -> String {
    std::any::type_name::<Work>().to_owned()
}

fn poll_once<T>(doing: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    doing.poll(&mut Context::from_waker(Waker::noop()))
}

/// Messages from one shard to another that go out together at the end of the sender's turn.
pub(crate) struct Outbox {
    sender: MailboxSender<Message>,
    waiting: RefCell<Vec<Message>>,
}

impl Outbox {
    pub(crate) fn new(sender: MailboxSender<Message>) -> Rc<Self> {
        Rc::new(Outbox { sender, waiting: RefCell::new(Vec::new()) })
    }

    /// Puts a message to those that go out when the tasks that are ready now have run.
    ///
    /// # Errors
    /// There is no room for it at the other end, or nobody there any more.
    pub(crate) fn put(self: &Rc<Self>, message: Message) -> Result<(), SendError<Message>> {
        let mut waiting = self.waiting.borrow_mut();
        if self.sender.is_closed() {
            return Err(SendError::Closed(message));
        }
        if waiting.len() >= self.sender.room() {
            return Err(SendError::Full(message));
        }
        if waiting.is_empty() {
            runtime::spawn_local("errand", Rc::clone(self).send_all());
        }
        waiting.push(message);
        Ok(())
    }

    async fn send_all(self: Rc<Self>) {
        let messages = std::mem::take(&mut *self.waiting.borrow_mut());
        for message in messages {
            // There was room; if others took it meanwhile, it comes back.
            if self.sender.send(message).await.is_err() {
                return;
            }
        }
    }
}

/// Does the errands of a batch and then sends back all results.
pub(crate) struct ErrandBatch(Vec<Box<dyn Errand>>);

impl ErrandBatch {
    pub(crate) fn with_capacity(count: usize) -> Self {
        ErrandBatch(Vec::with_capacity(count))
    }

    pub(crate) fn begin(&mut self, mut errand: Box<dyn Errand>, shard: &Rc<Shard>) {
        errand.begin(shard);
        self.0.push(errand);
    }

    /// Results of askers that have gone are dropped here, and may be megabytes each.
    pub(crate) async fn deliver(&mut self, piece: &mut Piece) {
        for errand in self.0.drain(..) {
            errand.deliver();
            piece.give_way().await;
        }
    }
}

/// What the asker is told when its message was not taken.
pub(crate) fn refused(shard: usize) -> impl FnOnce(SendError<Message>) -> StorageError {
    move |error| match error {
        SendError::Full(_) => StorageError::ShardBusy { shard },
        SendError::Closed(_) => StorageError::ShardGone { shard },
    }
}
