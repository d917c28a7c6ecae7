//! A connection that asks: to one shard of one node, made anew whenever it breaks.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use runtime::{Network, Random};
use uuid::Uuid;

use super::asked::{AskError, Asked, Waiters};
use super::meeting::{self, MeetError, Wanted};
use super::outbox::Outbox;
use super::wire::{Wire, WireError};
use super::{Met, Node};
use crate::encoder::BodyTooLong;
use crate::handshake::{Established, HandshakeError, Purpose, Reason};
use crate::message::Kind;

/// How long is waited before a connection is tried again: at first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How long a connection may take to be made, without the handshake.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// So many frames are taken in a turn; then others have theirs.
const FRAMES_PER_TURN_MAX: usize = 16;

/// Whom to talk to, and how.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// Where it listens.
    pub address: SocketAddr,
    /// Who it must be; `None` when that is to be found out.
    pub host_id: Option<Uuid>,
    /// What the connection is for.
    pub purpose: Purpose,
    /// Nothing more is taken while so much is not sent.
    pub unsent_bytes_max: usize,
    /// Nothing more is asked while so many have no answer.
    pub asked_count_max: usize,
}

/// A handle on it. Cheap to clone; of one thread.
#[derive(Clone)]
pub struct Peer(Rc<Inner>);

struct Inner {
    options: PeerOptions,
    waiters: Waiters,
    /// Where messages go. There is one before the first connection is tried, and while there is one; `None` after one
    /// failed, until there is one again: what is asked meanwhile fails at once.
    outbox: RefCell<Option<Outbox>>,
    /// What is known of who was met last.
    met: RefCell<Option<Established>>,
}

impl Peer {
    /// A peer that nobody has connected to yet: [`Peer::run`] does, and what is asked before is kept.
    pub fn new(options: PeerOptions, node: Rc<dyn Node>) -> Peer {
        let waiters = Waiters::new(node.counts(&options.purpose, options.host_id));
        let outbox = RefCell::new(Some(Outbox::new(node)));
        Peer(Rc::new(Inner { options, waiters, outbox, met: RefCell::default() }))
    }

    /// What is known of who was met last; `None` before the first connection.
    pub fn met(&self) -> Option<Established> {
        self.0.met.borrow().clone()
    }

    /// Asks, and gives what the answer comes in. The caller writes the body.
    ///
    /// # Errors
    /// The body is longer than any message may be.
    pub fn ask(&self, patience: Duration, write: impl FnOnce(&mut BytesMut)) -> Result<Asked, BodyTooLong> {
        let waiters = &self.0.waiters;
        let Some(outbox) = self.outbox_with_room() else {
            self.note_turned_away();
            return Ok(waiters.over(AskError::NotSent));
        };
        let id = waiters.begin();
        match outbox.push(Kind::Request { id, patience }, write) {
            Ok(frame) => Ok(waiters.sent_in(id, frame)),
            Err(error) => {
                waiters.undo(id);
                Err(error)
            }
        }
    }

    /// Says something that is not answered. It is lost when the peer can not be reached.
    ///
    /// # Errors
    /// The body is longer than any message may be.
    pub fn notify(&self, write: impl FnOnce(&mut BytesMut)) -> Result<(), BodyTooLong> {
        match self.outbox_with_room() {
            Some(outbox) => outbox.push(Kind::Notice, write).map(|_| ()),
            None => {
                self.note_turned_away();
                Ok(())
            }
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.options.address
    }

    /// Would what is asked now be sent?
    pub fn is_reachable(&self) -> bool {
        self.outbox_with_room().is_some()
    }

    /// Is there a connection, or was none tried yet, and nothing more is taken since too much waits?
    pub fn is_crowded(&self) -> bool {
        self.0.outbox.borrow().is_some() && !self.is_reachable()
    }

    /// How many requests were asked and have no answer, or one that nobody has taken yet.
    pub fn waiting_count(&self) -> usize {
        self.0.waiters.count()
    }

    fn outbox_with_room(&self) -> Option<Outbox> {
        let Inner { options, waiters, outbox, .. } = &*self.0;
        let has_room = |outbox: &&Outbox| {
            outbox.unsent_bytes() < options.unsent_bytes_max
                && waiters.count() < options.asked_count_max
                && outbox.has_room()
        };
        outbox.borrow().as_ref().filter(has_room).cloned()
    }

    /// A message was not sent: is that for want of room?
    fn note_turned_away(&self) {
        if let Some(outbox) = &*self.0.outbox.borrow() {
            outbox.room().note_turned_away();
        }
    }

    /// Keeps a connection, for ever: makes it, sends and receives, and makes it again. What ended one is told to
    /// `ended`.
    ///
    /// # Cancel safety
    /// Dropped, the connection is closed, and who waits for an answer is told.
    pub async fn run(
        self,
        network: Network,
        random: Arc<dyn Random>,
        node: Rc<dyn Node>,
        mut ended: impl FnMut(PeerError),
    ) {
        let guard = EndsWaiting(&self);
        let mut pause = PAUSE_MIN;
        loop {
            match self.connect(&network, &*random, &node).await {
                Ok(met) => {
                    pause = PAUSE_MIN;
                    ended(self.converse(met, &node).await.into());
                }
                Err(error) => ended(error.into()),
            }
            guard.end();
            // Many who lost one node do not all come back to it at once.
            let micros = pause.as_micros() as u64;
            tokio::time::sleep(Duration::from_micros(micros / 2 + random.below(micros))).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn connect(
        &self,
        network: &Network,
        random: &dyn Random,
        node: &Rc<dyn Node>,
    ) -> Result<Met, MeetError> {
        let met = match self.meet(network, random, node, false).await {
            // It is told by the other side: this one may not know yet who that is, or has to encrypt later than it.
            Err(error) if meeting::wants_tls(&error) && node.credentials().is_some() => {
                self.meet(network, random, node, true).await
            }
            met => met,
        }?;
        if node.is_cut_off(met.established.host_id) {
            return Err(MeetError::CutOff);
        }
        let mut outbox = self.0.outbox.borrow_mut();
        outbox.get_or_insert_with(|| Outbox::new(node.clone())).connect(&met);
        *self.0.met.borrow_mut() = Some(met.established.clone());
        Ok(met)
    }

    async fn meet(
        &self,
        network: &Network,
        random: &dyn Random,
        node: &Rc<dyn Node>,
        must_encrypt: bool,
    ) -> Result<Met, MeetError> {
        let PeerOptions { address, host_id, purpose, .. } = self.0.options;
        let connected = tokio::time::timeout(CONNECT_PATIENCE, network.connect(address)).await;
        let stream = connected.map_err(|_| MeetError::Silence)??;
        let wanted = Wanted { address: address.ip(), host_id, purpose, must_encrypt };
        meeting::connect(stream, &**node, wanted, random).await
    }

    /// Sends and receives until the connection ends.
    async fn converse(&self, met: Met, node: &Rc<dyn Node>) -> WireError {
        let outbox = self.0.outbox.borrow().clone().expect("there is one while there is a connection");
        let mut wire = Wire::new(met, &node.bounds().room);
        std::future::poll_fn(|task| {
            if let Err(error) = wire.send(&outbox, task) {
                return Poll::Ready(error);
            }
            for _ in 0..FRAMES_PER_TURN_MAX {
                let frame = match wire.receive(task) {
                    Poll::Ready(Ok(frame)) => frame,
                    Poll::Ready(Err(error)) => return Poll::Ready(error),
                    Poll::Pending => return Poll::Pending,
                };
                if node.is_cut_off(wire.established.host_id) {
                    return Poll::Ready(WireError::CutOff);
                }
                node.heard(&wire.established, frame.context);
                outbox.hear(frame.stamp);
                if let Err(error) = self.take(frame) {
                    return Poll::Ready(error);
                }
            }
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    fn take(&self, mut frame: crate::Frame) -> Result<(), WireError> {
        while let Some(message) = frame.next_message()? {
            match message.kind {
                Kind::Answer { id } => self.0.waiters.answered(id, Ok(message.body))?,
                Kind::Declined { id } => self.0.waiters.answered(id, Err(AskError::Declined))?,
                Kind::Request { .. } | Kind::Notice => return Err(WireError::Misplaced),
            }
        }
        Ok(())
    }
}

impl PeerError {
    /// Has one of the two nodes refused the other one, so that somebody has to put something right?
    pub fn is_refusal(&self) -> bool {
        match self {
            PeerError::Meet(error) => error.is_refusal(),
            PeerError::Wire(_) => false,
        }
    }

    /// Is the other node one of another cluster of the same name?
    pub fn is_of_other_cluster(&self) -> bool {
        use HandshakeError::{Refused, Refusing};
        let PeerError::Meet(MeetError::Handshake(error)) = self else { return false };
        matches!(error, Refused { reason, .. } | Refusing { reason, .. } if *reason == Reason::ClusterId)
    }
}

/// Why there is no connection to a peer at the moment.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// It was not made.
    #[error(transparent)]
    Meet(#[from] MeetError),
    /// It ended.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Tells all who wait that nothing comes, also when the task is dropped in the midst of something.
struct EndsWaiting<'a>(&'a Peer);

impl EndsWaiting<'_> {
    fn end(&self) {
        let Inner { outbox, waiters, .. } = &*self.0.0;
        if let Some(outbox) = outbox.borrow_mut().take() {
            waiters.ended(&outbox);
        }
    }
}

impl Drop for EndsWaiting<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
