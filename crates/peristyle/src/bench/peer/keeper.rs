//! Whoever starts and stops servers of a kind.

use std::fmt;

use super::PeerWish;
use super::error::PeerError;
use super::place::Place;
use super::ports::Ports;
use crate::cluster::ProcessId;

/// A node that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// Where it serves, `HOST:PORT`.
    pub(super) address: String,
    /// What was started last.
    pub(super) process: ProcessId,
}

/// Who can do with them what no signal does. Nodes are counted from 1.
pub(super) trait Keeper: fmt::Debug + Send + Sync {
    /// Starts all nodes, and waits until they serve.
    fn up(&self, place: &Place, wanted: &PeerWish, ports: Ports) -> Result<Vec<Server>, PeerError>;

    /// Starts one that has ended, on what is on its disk, and waits until it serves.
    fn start(&self, place: &Place, number: usize) -> Result<Server, PeerError>;

    /// Cuts one off from the others, of which those are named that run.
    fn cut(&self, place: &Place, number: usize, others: &[usize]) -> Result<(), PeerError>;

    /// Takes all cuts back.
    fn heal(&self, place: &Place) -> Result<(), PeerError>;

    /// Stops all of them, whatever they do, and takes cuts back. Of nodes that were never started, nothing.
    fn down(&self, place: &Place) -> Result<(), PeerError>;
}
