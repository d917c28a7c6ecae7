//! Who is let in: one listener per shard on the same address, and the limits on connections.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtime::BoundListener;
use tokio::task::JoinSet;

use crate::Limits;
use crate::connection::{ShardServer, note_refused_connection, serve_connection};

/// Counts the connections of the node against its limits.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCount(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    /// Of those that have any.
    by_address: HashMap<IpAddr, usize>,
    /// Sum over `by_address`.
    count: usize,
}

/// Why one more connection is not let in: which option says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionLimit {
    Node,
    Address,
}

impl ConnectionLimit {
    /// The option.
    pub(crate) fn option(self) -> &'static str {
        match self {
            ConnectionLimit::Node => "connections_max",
            ConnectionLimit::Address => "connections_max_per_address",
        }
    }
}

impl ConnectionCount {
    /// A place for one more connection from there.
    ///
    /// # Errors
    /// There are as many as may be.
    fn enter(self: &Arc<Self>, address: IpAddr, limits: &Limits) -> Result<ConnectionPlace, ConnectionLimit> {
        let mut counted = self.counted();
        let of_address = counted.by_address.get(&address).copied().unwrap_or(0);
        if counted.count >= limits.connection_count {
            return Err(ConnectionLimit::Node);
        }
        if of_address >= limits.connection_count_per_address {
            return Err(ConnectionLimit::Address);
        }
        counted.by_address.insert(address, of_address + 1);
        counted.count += 1;
        Ok(ConnectionPlace { count: Arc::clone(self), address })
    }

    fn leave(&self, address: IpAddr) {
        let mut counted = self.counted();
        let of_address = counted.by_address.get_mut(&address).expect("who leaves has entered");
        *of_address -= 1;
        if *of_address == 0 {
            counted.by_address.remove(&address);
        }
        counted.count -= 1;
    }

    pub(crate) fn get(&self) -> usize {
        self.counted().count
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place in the count, given back however it ends.
#[derive(Debug)]
struct ConnectionPlace {
    count: Arc<ConnectionCount>,
    address: IpAddr,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.count.leave(self.address);
    }
}

/// The connections of a shard, each a task.
pub(crate) type ConnectionTasks = Rc<RefCell<JoinSet<()>>>;

/// Accepts connections for a shard until the shard stops.
pub(crate) async fn accept(
    listener: BoundListener,
    server: Rc<ShardServer>,
    connections: Arc<ConnectionCount>,
    tasks: ConnectionTasks,
) {
    let listener = match listener.open() {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "cannot listen"),
    };
    let next_id = Cell::new(0u32);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most likely: wait until some are given back.
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Of those that have ended nothing need be kept.
        while tasks.borrow_mut().try_join_next().is_some() {}
        // One address of version 4 has one limit, whatever the listener calls it.
        let place = match connections.enter(peer.ip().to_canonical(), &server.limits) {
            Ok(place) => place,
            Err(limit) => {
                note_refused_connection(&server, peer, limit);
                continue;
            }
        };
        next_id.set(next_id.get().wrapping_add(1));
        let (server, id) = (Rc::clone(&server), next_id.get());
        let serving = async move {
            if let Err(error) = serve_connection(stream, server, id).await {
                tracing::debug!(%peer, %error, "a connection ended");
            }
            drop(place);
        };
        tasks.borrow_mut().spawn_local(runtime::measured("connection", serving));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_places_to_others() {
        let limits = Limits { connection_count: 3, connection_count_per_address: 2, ..Limits::default() };
        let count = Arc::new(ConnectionCount::default());
        let enter = |last: u8| count.enter(IpAddr::from([10, 0, 0, last]), &limits);
        let first = [enter(1).expect("a place"), enter(1).expect("a place")];
        assert_eq!(enter(1).err(), Some(ConnectionLimit::Address));
        let other = enter(2).expect("a place");
        assert_eq!(enter(3).err(), Some(ConnectionLimit::Node));
        assert_eq!(count.get(), 3);
        drop(first);
        assert_eq!(count.counted().by_address.len(), 1, "nothing is kept of who has left");
        drop((enter(1).expect("a place again"), other));
        assert_eq!(count.get(), 0);
    }
}
