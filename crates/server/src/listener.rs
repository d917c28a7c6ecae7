//! One listener per shard on the same address: the kernel spreads connections over them.

use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use crate::connection::{ShardServer, serve_connection};

/// Connections the kernel keeps before we accept them.
const BACKLOG: i32 = 4096;

/// Counts the connections of the node against its limit.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCount(AtomicUsize);

impl ConnectionCount {
    fn enter(&self, connection_count_max: usize) -> bool {
        let add = |count: usize| (count < connection_count_max).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sockets that listen on one address, one for each shard.
pub(crate) fn bind(address: SocketAddr, count: usize) -> io::Result<Vec<StdListener>> {
    let mut address = address;
    let mut listeners = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(count > 1)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let listener: StdListener = socket.into();
        // Port 0 asks for any; the others must join the one that was given.
        address = listener.local_addr()?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Accepts connections for a shard until the shard stops.
pub(crate) async fn accept(
    listener: StdListener,
    server: Rc<ShardServer>,
    connections: Arc<ConnectionCount>,
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
        if !connections.enter(server.limits.connection_count) {
            tracing::warn!(%peer, limit = server.limits.connection_count, "too many connections, one is refused");
            continue;
        }
        next_id.set(next_id.get().wrapping_add(1));
        let (server, connections, id) = (Rc::clone(&server), Arc::clone(&connections), next_id.get());
        tokio::task::spawn_local(async move {
            if let Err(error) = serve_connection(stream, server, id).await {
                tracing::debug!(%peer, %error, "a connection ended");
            }
            connections.leave();
        });
    }
}
