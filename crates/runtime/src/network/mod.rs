//! The network: byte streams, taken or made, and nothing of what they carry.
//!
//! ```text
//!   bind ──► BoundListener ── to its shard's thread ──► open ──► Listener ── accept ──► ByteStream
//!   connect ──────────────────────────────────────────────────────────────────────────► ByteStream
//! ```
//!
//! A node has one [`Network`] and reaches others through nothing else. It is the operating system's, or one in memory
//! ([`MemoryNetwork`]) on which a simulator decides how long bytes take and which of them arrive, or none at all.
//! A stream is an enum and not a trait object, so that the hot path pays a branch and no allocation.

pub mod memory;
mod stream;
mod system;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

pub use memory::MemoryNetwork;
pub use stream::{ByteStream, DetachedStream, ReadHalf, WriteHalf};

/// The door to the network. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub enum Network {
    /// The operating system's.
    System,
    /// None: a node that is used within its own process.
    #[default]
    None,
    /// One in memory, as a host on it sees it.
    Memory(memory::Host),
}

impl Network {
    /// Takes an address for so many listeners that share what comes in, each for a thread of its own. Port 0 is
    /// any that is free.
    ///
    /// # Errors
    /// `AddrInUse` when somebody listens there already, and what else the system refuses.
    pub fn bind(&self, address: SocketAddr, count: usize) -> io::Result<Vec<BoundListener>> {
        match self {
            Network::System => {
                Ok(system::bind(address, count)?.into_iter().map(BoundListener::System).collect())
            }
            Network::None => Err(there_is_none()),
            Network::Memory(host) => {
                Ok(host.bind(address, count)?.into_iter().map(BoundListener::Memory).collect())
            }
        }
    }

    /// Connects to whoever listens there.
    ///
    /// # Errors
    /// Nobody listens, or the address can not be reached.
    ///
    /// # Cancel safety
    /// Dropped, the connection is given up; the other side may have accepted it.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<ByteStream> {
        match self {
            Network::System => system::connect(address).await.map(ByteStream::Tcp),
            Network::None => Err(there_is_none()),
            Network::Memory(host) => host.connect(address).await.map(ByteStream::Memory),
        }
    }
}

fn there_is_none() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this node has no network")
}

/// An address that was taken; nothing is accepted yet. May go to the thread that is to accept.
#[derive(Debug)]
pub enum BoundListener {
    /// A socket of the operating system's.
    System(std::net::TcpListener),
    /// One in memory.
    Memory(memory::Queue),
}

impl BoundListener {
    /// The address, with the port that was given.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        match self {
            BoundListener::System(listener) => listener.local_addr(),
            BoundListener::Memory(queue) => Ok(queue.address()),
        }
    }

    /// Begins to accept on this thread.
    ///
    /// # Errors
    /// The thread's runtime can not take the socket.
    pub fn open(self) -> io::Result<Listener> {
        match self {
            BoundListener::System(listener) => Ok(Listener::System(system::open(listener)?)),
            BoundListener::Memory(queue) => Ok(Listener::Memory(queue)),
        }
    }
}

/// Accepts connections on one thread.
#[derive(Debug)]
pub enum Listener {
    /// A socket of the operating system's.
    System(tokio::net::TcpListener),
    /// One in memory.
    Memory(memory::Queue),
}

impl Listener {
    /// The next connection, and where it comes from.
    ///
    /// # Errors
    /// What the system refuses: most likely there is no descriptor left.
    ///
    /// # Cancel safety
    /// Dropped, no connection is lost.
    pub async fn accept(&self) -> io::Result<(ByteStream, SocketAddr)> {
        match self {
            Listener::System(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((ByteStream::Tcp(stream), peer))
            }
            Listener::Memory(queue) => {
                let stream = queue.accept().await;
                let peer = stream.peer_address();
                Ok((ByteStream::Memory(stream), peer))
            }
        }
    }

    /// One more descriptor of the socket, to be given back when there is none for a connection.
    ///
    /// # Errors
    /// There is none to be had; in memory there are none.
    pub fn spare_descriptor(&self) -> io::Result<OwnedFd> {
        match self {
            Listener::System(listener) => listener.as_fd().try_clone_to_owned(),
            Listener::Memory(_) => Err(there_is_none()),
        }
    }
}
