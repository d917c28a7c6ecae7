//! Whether clients are let in, and how they are let go while the node runs.
//!
//! ```text
//!   Off ── enablebinary ──► On ── drain ──► NoMore    who is connected is served on
//!    ▲                      │                 │
//!    └── disablebinary ─────┴─────────────────┘       listeners close; requests in flight end, and then connections
//! ```

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use cluster::membership::Known;
use runtime::{BoundListener, Latest, LatestReader, Network};
use tokio::sync::MutexGuard;

/// How long requests in flight may take when clients are let go: as long as the longest that is usual, a range read.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// Whether clients are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Welcome {
    /// Nobody is served.
    Off,
    /// Whoever comes.
    On,
    /// Nobody new; who is connected is served on.
    NoMore,
}

/// What each shard's thread needs of it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Listeners {
    /// One for each shard, taken by it.
    bound: Arc<Mutex<Vec<Option<BoundListener>>>>,
    pub(crate) welcome: LatestReader<Welcome>,
    /// How many shards have a listener, or connections that it let in.
    busy_count: Latest<usize>,
}

/// A shard listens, or has connections: until this is dropped.
pub(crate) struct Busy(Latest<usize>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.change(|count| Some(count - 1));
    }
}

impl Listeners {
    /// A shard's listener, if it has not taken it.
    pub(crate) fn take(&self, shard: usize) -> Option<(BoundListener, Busy)> {
        let listener = self.bound.lock().unwrap_or_else(PoisonError::into_inner).get_mut(shard)?.take()?;
        self.busy_count.change(|count| Some(count + 1));
        Some((listener, Busy(self.busy_count.clone())))
    }
}

/// Lets clients in and lets them go, for all shards. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Entrance {
    network: Network,
    address: SocketAddr,
    shard_count: usize,
    listeners: Listeners,
    welcome: Latest<Welcome>,
    /// Held by whose turn it is to change it, or what else drivers and other nodes are told.
    changing: Arc<tokio::sync::Mutex<()>>,
}

impl Entrance {
    /// Takes the address for clients; nobody is let in yet.
    ///
    /// # Errors
    /// It can not be had.
    pub(crate) fn take(network: Network, address: SocketAddr, shard_count: usize) -> io::Result<Entrance> {
        let bound = network.bind(address, shard_count)?;
        let address = bound.first().map_or(Ok(address), BoundListener::local_address)?;
        let welcome = Latest::new(Welcome::Off);
        let bound = Arc::new(Mutex::new(bound.into_iter().map(Some).collect()));
        let listeners = Listeners { bound, welcome: welcome.reader(), busy_count: Latest::new(0) };
        Ok(Entrance { network, address, shard_count, listeners, welcome, changing: Arc::default() })
    }

    /// Where clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// For the shards' threads.
    pub(crate) fn listeners(&self) -> Listeners {
        self.listeners.clone()
    }

    /// Are clients let in?
    pub(crate) fn is_on(&self) -> bool {
        self.welcome.get() == Welcome::On
    }

    /// Lets clients in at the address that was taken, and has other nodes know.
    pub(crate) fn open(&self, known: Option<&Known>) {
        self.welcome.set(Welcome::On);
        if let Some(known) = known {
            known.set_serving(true);
        }
    }

    /// Waits for one's turn to change what the node does for others: until it is dropped, nobody else does.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        Turn { entrance: self, _held: self.changing.lock().await }
    }
}

/// Somebody's turn.
pub(crate) struct Turn<'a> {
    entrance: &'a Entrance,
    _held: MutexGuard<'a, ()>,
}

impl Turn<'_> {
    /// Lets nobody in any more; who is connected is served on.
    pub(crate) fn close(&self) {
        let was_on = |welcome| (welcome == Welcome::On).then_some(Welcome::NoMore);
        self.entrance.welcome.change(was_on);
    }

    /// Takes the address anew and lets clients in, unless they are.
    ///
    /// # Errors
    /// The address can not be had any more.
    pub(crate) fn enable(&self, known: Option<&Known>) -> io::Result<()> {
        let Entrance { network, address, shard_count, listeners, .. } = self.entrance;
        if self.entrance.is_on() {
            return Ok(());
        }
        let bound = network.bind(*address, *shard_count)?;
        *listeners.bound.lock().unwrap_or_else(PoisonError::into_inner) =
            bound.into_iter().map(Some).collect();
        self.entrance.open(known);
        Ok(())
    }

    /// Lets nobody in and lets all go, once their requests in flight have ended; returns when that is done.
    pub(crate) async fn disable(&self) {
        let Entrance { listeners, welcome, .. } = self.entrance;
        welcome.set(Welcome::Off);
        // What a shard has not taken yet, nobody listens on.
        listeners.bound.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let busy = listeners.busy_count.reader();
        busy.wait_for(|count| count == 0).await.expect("the count lives as long as its entrance");
    }
}

/// Tells the connections of a shard that they are to end. Of one thread; looking costs each turn a load.
#[derive(Default)]
pub(crate) struct Leaving {
    is_leaving: Cell<bool>,
    wakers: RefCell<BTreeMap<u64, Waker>>,
    next: Cell<u64>,
}

impl Leaving {
    /// Are connections to end?
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.get()
    }

    /// All are to end, or those that come now are not.
    pub(crate) fn set(&self, is_leaving: bool) {
        self.is_leaving.set(is_leaving);
        if is_leaving {
            self.wakers.borrow().values().for_each(Waker::wake_by_ref);
        }
    }

    /// The surrounding task, a connection's, is woken when it is to end.
    pub(crate) async fn enter(&self) -> Left<'_> {
        let number = self.next.replace(self.next.get() + 1);
        std::future::poll_fn(|task| {
            self.wakers.borrow_mut().insert(number, task.waker().clone());
            Poll::Ready(())
        })
        .await;
        Left { leaving: self, number }
    }

    /// Ready when connections are to end. Who waits for it has entered.
    pub(crate) async fn wait(&self) {
        std::future::poll_fn(|_| if self.is_leaving() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

/// A connection's place in [`Leaving`].
pub(crate) struct Left<'a> {
    leaving: &'a Leaving,
    number: u64,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.leaving.wakers.borrow_mut().remove(&self.number);
    }
}
