//! One listener per shard on the same address: the kernel spreads connections over them.
//!
//! The option that lets shards share an address lets any other process of the same user share it, too:
//! two nodes would serve one port, and clients would find now this database, now that one. So the address is
//! first taken without that option, which fails when anybody listens there.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::connection::{ShardServer, serve_connection};

/// Connections the kernel keeps before we accept them.
const BACKLOG: i32 = 4096;

/// Counts the connections of the node against its limit.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCount(AtomicUsize);

impl ConnectionCount {
    /// A place for one more, unless there are as many as may be.
    fn enter(self: &Arc<Self>, connection_count_max: usize) -> Option<Place> {
        let add = |count: usize| (count < connection_count_max).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Place(Arc::clone(self)))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection's place in the count, given back however it ends.
struct Place(Arc<ConnectionCount>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections of a shard, each a task.
pub(crate) type ConnectionTasks = Rc<RefCell<JoinSet<()>>>;

/// Sockets that listen on one address, one for each shard.
///
/// # Errors
/// `AddrInUse` when somebody listens there already, and what else the system refuses.
pub(crate) fn bind(address: SocketAddr, count: usize) -> io::Result<Vec<StdListener>> {
    if count > 1 && address.port() != 0 {
        drop(bind_one(address, false)?);
    }
    let mut address = address;
    let mut listeners = Vec::with_capacity(count);
    for _ in 0..count {
        let listener = bind_one(address, count > 1)?;
        // Port 0 asks for any; the others must join the one that was given.
        address = listener.local_addr()?;
        listeners.push(listener);
    }
    Ok(listeners)
}

fn bind_one(address: SocketAddr, shares_port: bool) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // What is left of connections of an earlier run is no hindrance; who listens is.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shares_port)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts connections for a shard until the shard stops.
pub(crate) async fn accept(
    listener: StdListener,
    server: Rc<ShardServer>,
    connections: Arc<ConnectionCount>,
    tasks: ConnectionTasks,
) {
    let listener = match TcpListener::from_std(listener) {
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
        let Some(place) = connections.enter(server.limits.connection_count) else {
            tracing::warn!(%peer, limit = server.limits.connection_count, "too many connections, one is refused");
            continue;
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

    const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    /// Two nodes once served one port: the sockets of shards may share it, and so might those of strangers.
    #[test]
    fn a_port_that_is_served_already_is_refused_however_many_shards_there_are() {
        let first = bind(ANY_PORT, 2).expect("a free port");
        let taken = first[0].local_addr().expect("an address");
        assert!(first.iter().all(|listener| listener.local_addr().is_ok_and(|address| address == taken)));
        for count in [1, 2, 3] {
            let refused = bind(taken, count).map(|_| ()).map_err(|error| error.kind());
            assert_eq!(refused, Err(io::ErrorKind::AddrInUse), "{count} shards");
        }
        drop(first);
        assert_eq!(bind(taken, 2).map(|listeners| listeners.len()).ok(), Some(2), "free again");
    }

    #[test]
    fn a_port_whose_last_connection_is_not_forgotten_yet_is_free() {
        let first = bind(ANY_PORT, 1).expect("a free port");
        first[0].set_nonblocking(false).expect("waits");
        let address = first[0].local_addr().expect("an address");
        let client = std::net::TcpStream::connect(address).expect("connect");
        // The side that closes first keeps the address in TIME_WAIT.
        drop(first[0].accept().expect("a connection"));
        drop(client);
        drop(first);
        assert!(bind(address, 2).is_ok());
    }
}
