//! What worlds of several hosts have in common: the hosts, the network between them, the log of the run, paused time.

use std::cell::{Cell, RefCell};
use std::future::Future;

use runtime::MemoryNetwork;
use runtime::network::memory::MemoryNetworkOptions;
use tokio::time::Instant;

use crate::Events;
use crate::faults::{Faults, Scale};
use crate::scenario::{Outcome, Violation};
use crate::served::Hosts;

/// Where a run takes place.
pub(crate) struct Stage {
    pub(crate) seed: u64,
    pub(crate) hosts: Hosts,
    pub(crate) network: MemoryNetwork,
    /// When the run began, in paused time.
    pub(crate) begun: Instant,
    pub(crate) faults: Faults,
    host_count: usize,
    operation_count: Cell<u64>,
    events: RefCell<Events>,
}

impl Stage {
    /// So many hosts, on which nothing runs yet.
    pub(crate) fn new(seed: u64, host_count: usize, options: MemoryNetworkOptions) -> Stage {
        Stage {
            seed,
            hosts: Hosts::new(host_count),
            network: MemoryNetwork::new(seed, options),
            begun: Instant::now(),
            faults: Faults::default(),
            host_count,
            operation_count: Cell::default(),
            events: RefCell::default(),
        }
    }

    /// Adds a line to the log.
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        self.events.borrow_mut().add(line);
    }

    /// A statement has come to its end.
    pub(crate) fn count_operation(&self) {
        self.operation_count.set(self.operation_count.get() + 1);
    }

    /// How many have so far.
    pub(crate) fn operation_count(&self) -> u64 {
        self.operation_count.get()
    }

    /// Ends all lives; what came of the run. The last line of its log stands for all that went over the network.
    pub(crate) fn close(&self, outcome: Result<(), Violation>) -> Outcome {
        let scale = Scale {
            simulated: self.begun.elapsed(),
            operation_count: self.operation_count(),
            faults: self.faults.counts(),
            node_count: self.host_count,
        };
        self.note(format_args!("sent over the network: {:016x}", self.network.digest()));
        self.hosts.clear();
        let events = self.events.borrow().clone();
        Outcome { seed: self.seed, violation: outcome.err(), events, scale }
    }
}

/// Runs something in a thread whose time goes on only while all wait for it.
pub(crate) fn in_paused_time<T>(body: impl Future<Output = T>) -> T {
    let tokio_runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing that can fail");
    tokio_runtime.block_on(body)
}
