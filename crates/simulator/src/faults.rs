//! Kinds of faults, and how often each came in a run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

/// What befalls nodes, their disks, clocks and the network between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A link that carries nothing one way.
    Cut,
    /// A node that is cut off from all others, both ways or one.
    Isolation,
    /// Connections of two nodes that break.
    Reset,
    /// A process that is killed.
    Kill,
    /// A machine without power, whose disk forgets what was not synced.
    PowerCut,
    /// A process that stands still.
    Pause,
    /// A life on a disk each sync of which is felt.
    SlowDisk,
    /// A wall clock that somebody sets between two lives.
    ClockStep,
    /// A disk that is lost.
    LostDisk,
    /// A node that is elsewhere than it was.
    OtherAddress,
}

/// Counts faults.
#[derive(Debug, Default)]
pub(crate) struct Faults(RefCell<BTreeMap<Fault, u64>>);

impl Faults {
    pub(crate) fn count(&self, fault: Fault) {
        *self.0.borrow_mut().entry(fault).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> BTreeMap<Fault, u64> {
        self.0.borrow().clone()
    }
}

/// How much a run was: of simulated time, of work, and of faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// How long it was for its nodes.
    pub simulated: std::time::Duration,
    /// Statements of clients and operators that came to an end.
    pub operation_count: u64,
    /// How often each kind of fault came.
    pub faults: BTreeMap<Fault, u64>,
    /// How many nodes it had.
    pub node_count: usize,
}

impl Scale {
    /// Faults of all kinds.
    pub fn fault_count(&self) -> u64 {
        self.faults.values().sum()
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scale { simulated, operation_count, faults, node_count } = self;
        let (seconds, fault_count) = (simulated.as_secs(), self.fault_count());
        write!(
            f,
            "{node_count} nodes, {seconds} s, {operation_count} operations, {fault_count} faults of {} kinds",
            faults.len()
        )
    }
}
