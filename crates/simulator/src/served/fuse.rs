//! What ends a life in the midst of requests: at an idle moment nothing is half done.

use std::cell::Cell;
use std::rc::Rc;

use super::World;
use super::plan::Ending;

/// Counts bursts of requests until the one that the node does not outlive.
pub(crate) struct Fuse {
    world: Rc<World>,
    node: usize,
    ending: Ending,
    /// Bursts that were sent.
    burst_count: Cell<u64>,
}

impl Fuse {
    pub(super) fn of(ending: Ending, world: Rc<World>, node: usize) -> Fuse {
        Fuse { world, node, ending, burst_count: Cell::new(0) }
    }

    /// A client has sent a burst of requests.
    pub(super) fn burn_for_client(&self) {
        if matches!(self.ending, Ending::InBurst { is_of_operator: false, .. }) {
            self.burn();
        }
    }

    /// The operator is about to send a statement.
    pub(super) fn burn_for_operator(&self) {
        if matches!(self.ending, Ending::InBurst { is_of_operator: true, .. }) {
            self.burn();
        }
    }

    fn burn(&self) {
        let count = self.burst_count.get();
        self.burst_count.set(count + 1);
        let Ending::InBurst { burst_count, change_count, is_power_cut, .. } = self.ending else { return };
        if count != burst_count {
            return;
        }
        match is_power_cut {
            true => self.world.hosts.disk(self.node).faults().power_off_after(change_count),
            false => self.world.hosts.kill_after_changes(self.node, change_count),
        }
    }
}
