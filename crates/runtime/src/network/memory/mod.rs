//! A network in memory, for nodes and clients that live in one process.
//!
//! ```text
//!   host 10.0.0.1                    MemoryNetwork                     host 10.0.0.2
//!     bind :9042 ──► Queue ◄───────────── connect ◄─────────────────────  client
//!                      │ accept
//!     Stream ◄─────────┴── two wires, one each way: latency, bandwidth, room, cuts ──► Stream
//! ```
//!
//! Bytes of one wire arrive in order and whole, or the connection ends: as with TCP. What a real network does to
//! several connections (one overtakes another, one ends and the other does not) happens here as well. How long bytes
//! take is decided by a seed; faults are ordered by whoever holds the network.
//!
//! | a reader asks | file |
//! |---|---|
//! | how do bytes travel one way? | `wire.rs` |
//! | what does a connection look like from its end? | `stream.rs` |
//! | who waits to be accepted? | `queue.rs` |
//! | did two runs send the same? | `digest.rs` |
//! | how long is a host busy with what comes? | `toll.rs` |

mod digest;
mod queue;
mod stream;
#[cfg(test)]
mod tests;
mod toll;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::pool::lock;
use crate::{Random, SeededRandom};

pub use queue::Queue;
pub use stream::{Reader, Stream, Writer};
pub use toll::Toll;

use digest::Digest;
use queue::Waiting;
use toll::Tolls;
use wire::Wire;

/// A host that hears nothing from the other asks again after so long, as Linux does at first.
const RETRY: Duration = Duration::from_secs(1);
/// And gives up after so many times.
const RETRY_COUNT_MAX: u32 = 7;
/// Ports that are given to whoever asks for any.
const PORT_FIRST: u16 = 32_768;

/// How a network in memory carries bytes.
#[derive(Clone, Copy, Debug)]
pub struct MemoryNetworkOptions {
    /// The shortest that bytes are under way.
    pub latency_min: Duration,
    /// The longest; each write takes what the seed says.
    pub latency_max: Duration,
    /// How many bytes of one connection pass in a second, each way.
    pub bytes_per_second: u64,
    /// Bytes that one direction of a connection holds that were not read; a writer waits for room.
    pub window_bytes: usize,
}

impl Default for MemoryNetworkOptions {
    fn default() -> MemoryNetworkOptions {
        MemoryNetworkOptions {
            latency_min: Duration::from_micros(50),
            latency_max: Duration::from_millis(1),
            bytes_per_second: 1 << 30,
            window_bytes: 256 << 10,
        }
    }
}

/// Hosts and the connections between them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MemoryNetwork(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: MemoryNetworkOptions,
    random: SeededRandom,
    digest: Digest,
    tolls: Tolls,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Who listens where; several share what comes in.
    queues: BTreeMap<SocketAddr, Vec<Arc<Waiting>>>,
    /// Those of all connections; some have ended.
    wires: Vec<Weak<Wire>>,
    /// From whom nothing arrives at whom.
    cuts: BTreeSet<(IpAddr, IpAddr)>,
    next_port: u16,
}

impl MemoryNetwork {
    /// An empty network. The same seed and the same acts give the same delays.
    pub fn new(seed: u64, options: MemoryNetworkOptions) -> MemoryNetwork {
        assert!(options.latency_min <= options.latency_max, "a shortest latency is not above the longest");
        assert!(options.window_bytes > 0, "bytes need room to travel");
        let state = Mutex::new(State { next_port: PORT_FIRST, ..State::default() });
        let (random, digest) = (SeededRandom::new(seed), Digest::new());
        MemoryNetwork(Arc::new(Shared { options, random, digest, tolls: Tolls::default(), state }))
    }

    /// The network as a host with that address sees it.
    pub fn host(&self, address: IpAddr) -> super::Network {
        super::Network::Memory(Host { network: self.clone(), address })
    }

    /// From now on a host is busy with what comes to it, over all of its connections.
    pub fn charge(&self, host: IpAddr, toll: Toll) {
        self.0.tolls.charge(host, toll);
    }

    /// From now on nothing that one host sends arrives at the other: no error, only silence.
    pub fn cut(&self, from: IpAddr, to: IpAddr) {
        lock(&self.0.state).cuts.insert((from, to));
        self.wires(from, to).iter().for_each(|wire| wire.hold());
    }

    /// Ends a cut. What was sent meanwhile arrives.
    pub fn heal(&self, from: IpAddr, to: IpAddr) {
        lock(&self.0.state).cuts.remove(&(from, to));
        self.wires(from, to).iter().for_each(|wire| wire.release());
    }

    /// Ends all connections between two hosts with an error at both ends; what is under way is lost.
    pub fn reset(&self, one: IpAddr, other: IpAddr) {
        for wire in self.wires(one, other).into_iter().chain(self.wires(other, one)) {
            wire.reset();
        }
    }

    /// All bytes that were sent so far, in their order, and when each arrives, in one number.
    pub fn digest(&self) -> u64 {
        self.0.digest.value()
    }

    /// How many directions of connections there are that have not ended.
    pub fn wire_count(&self) -> usize {
        let mut state = lock(&self.0.state);
        state.wires.retain(|wire| wire.strong_count() > 0);
        state.wires.len()
    }

    fn wires(&self, from: IpAddr, to: IpAddr) -> Vec<Arc<Wire>> {
        let mut state = lock(&self.0.state);
        state.wires.retain(|wire| wire.strong_count() > 0);
        let live = state.wires.iter().filter_map(Weak::upgrade);
        live.filter(|wire| wire.connects(from, to)).collect()
    }

    fn latency(&self) -> Duration {
        let MemoryNetworkOptions { latency_min, latency_max, .. } = self.0.options;
        let spread = u64::try_from((latency_max - latency_min).as_nanos()).unwrap_or(u64::MAX);
        latency_min + Duration::from_nanos(self.0.random.below(spread.saturating_add(1)))
    }

    fn is_cut(&self, one: IpAddr, other: IpAddr) -> bool {
        let cuts = &lock(&self.0.state).cuts;
        cuts.contains(&(one, other)) || cuts.contains(&(other, one))
    }

    /// The two ends of a new connection: of who connects, and of who accepts.
    fn join(&self, from: SocketAddr, to: SocketAddr) -> (Stream, Stream) {
        let [forth, back] =
            [(from, to), (to, from)].map(|(from, to)| Arc::new(Wire::new(self.clone(), from.ip(), to.ip())));
        lock(&self.0.state).wires.extend([&forth, &back].map(Arc::downgrade));
        (Stream::new(Arc::clone(&back), Arc::clone(&forth), to), Stream::new(forth, back, from))
    }
}

/// A network in memory, as one host sees it.
#[derive(Clone, Debug)]
pub struct Host {
    network: MemoryNetwork,
    address: IpAddr,
}

impl Host {
    pub(super) fn bind(&self, address: SocketAddr, count: usize) -> io::Result<Vec<Queue>> {
        if address.ip() != self.address && !address.ip().is_unspecified() {
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "it is not an address of this host"));
        }
        let mut state = lock(&self.network.0.state);
        let port = if address.port() == 0 { state.take_port() } else { address.port() };
        let address = SocketAddr::new(self.address, port);
        if state.queues.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let queues: Vec<_> = (0..count).map(|_| Arc::new(Waiting::default())).collect();
        state.queues.insert(address, queues.clone());
        let network = &self.network;
        Ok(queues.into_iter().map(|waiting| Queue::new(network.clone(), address, waiting)).collect())
    }

    pub(super) async fn connect(&self, address: SocketAddr) -> io::Result<Stream> {
        let network = &self.network;
        let mut retry_count = 0;
        while network.is_cut(self.address, address.ip()) {
            if retry_count == RETRY_COUNT_MAX {
                return Err(io::ErrorKind::TimedOut.into());
            }
            tokio::time::sleep(RETRY).await;
            retry_count += 1;
        }
        tokio::time::sleep(network.latency() + network.latency()).await;
        let (queue, port) = {
            let mut state = lock(&network.0.state);
            let Some(queues) = state.queues.get(&address) else {
                return Err(io::ErrorKind::ConnectionRefused.into());
            };
            let index = network.0.random.below(queues.len() as u64) as usize;
            (Arc::clone(&queues[index]), state.take_port())
        };
        let (own, other) = network.join(SocketAddr::new(self.address, port), address);
        queue.put(other);
        Ok(own)
    }
}

impl State {
    /// A port that nobody was given before, until all were.
    fn take_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(PORT_FIRST);
        port
    }
}
