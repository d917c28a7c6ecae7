//! Servers that are started to be measured, hurt while they are, and gone afterwards.
//!
//! A peer is a node or a ring on loopback: of this very program, of Cassandra, or of whatever somebody has written an
//! adapter for (docs/lab/peers.md says how one is asked). Several can be there at once, so each has ports of its own.
//! All that it writes is in one folder, and its processes may be in one memory group:
//!
//! ```text
//!   arguments    words of the command line
//!   kind         which servers there are
//!   ports        three of them that are free on all addresses
//!   group        a limit of memory that the kernel keeps
//!   place        a peer's folder and group; programs that are run in them
//!   keeper       whoever starts and stops servers:
//!     own          this program, by `peristyle cluster`
//!     adapter      any other, by a program in between
//!   ring         the servers that run, and what is done to them
//! ```

mod adapter;
mod arguments;
mod error;
mod group;
mod keeper;
mod kind;
mod own;
mod place;
mod ports;
mod ring;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use lab::{CommitLogSync, Hand, LabError};

pub(super) use arguments::PeerArguments;
use error::PeerError;
use kind::PeerKind;
use place::Place;
use ports::Ports;
use ring::Ring;

/// What somebody wants of servers that are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeerWish {
    /// How many nodes.
    pub(super) node_count: usize,
    /// What all of them may have, page cache and all, where the system can keep that.
    pub(super) memory_bytes: Option<u64>,
    /// When a write is acknowledged.
    pub(super) commit_log_sync: CommitLogSync,
    /// Ports are looked for from here on.
    pub(super) first_port: u16,
}

/// All that were started by this process and may be there still.
static RINGS: Mutex<Vec<Weak<Ring>>> = Mutex::new(Vec::new());

/// Ends all servers, for who ends this process without dropping them. Waits for whoever is doing that already.
pub(super) fn end_all() {
    let rings = std::mem::take(&mut *RINGS.lock().unwrap_or_else(PoisonError::into_inner));
    rings.iter().filter_map(Weak::upgrade).for_each(|ring| ring.end());
}

/// Servers that were started, and end with this value: no process, no file, no group of them is left.
#[derive(Debug)]
pub(super) struct Peer(Arc<Ring>);

impl Peer {
    /// Starts them in a folder, which is theirs, and waits until all serve.
    ///
    /// # Errors
    /// They can not be started: why. Nothing is left then, either.
    pub(super) fn start(kind: &PeerKind, wanted: &PeerWish, folder: &Path) -> Result<Peer, LabError> {
        let refuse = |error: PeerError| error.of(&format!("start {}", kind.name()));
        let begin = || {
            let ports = Ports::free(wanted.node_count, wanted.first_port)?;
            let place = Place::make(folder, wanted.memory_bytes)?;
            let keeper = kind.keeper(&place).inspect_err(|_| place.clear())?;
            Ok(Peer::new(Ring::new(keeper, place, ports)))
        };
        let peer = begin().map_err(refuse)?;
        peer.0.up(wanted).map_err(refuse)?;
        Ok(peer)
    }

    fn new(ring: Ring) -> Peer {
        let ring = Arc::new(ring);
        RINGS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&ring));
        Peer(ring)
    }

    /// Where its nodes serve.
    pub(super) fn nodes(&self) -> Vec<String> {
        self.0.servers().into_iter().map(|server| server.address).collect()
    }

    /// Their processes.
    pub(super) fn process_ids(&self) -> Vec<u32> {
        self.0.servers().into_iter().map(|server| server.process.number).collect()
    }

    /// Who does to them what a plan says.
    pub(super) fn hand(&self) -> Arc<dyn Hand> {
        Arc::clone(&self.0) as Arc<dyn Hand>
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.0.end();
    }
}
