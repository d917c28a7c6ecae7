//! What requests hold of whom the client was told that they are late, or whose client has gone.
//!
//! A write that was begun goes on: with its mutations, while it waits for room on another shard or is a logged batch,
//! and with its record, until the log has it on the disk. While a disk hangs, such writes would pile up and be counted
//! by nobody. So their memory counts until all writes have ended that are under way on the node.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use coordinator::Coordinator;

use crate::budget::Held;

/// Of the connections of a shard.
pub(super) struct LateWrites {
    coordinator: Coordinator,
    /// Of writes that may have been begun after those were that are waited for now.
    held: RefCell<Vec<Held>>,
    is_waiting: Cell<bool>,
}

impl LateWrites {
    pub(super) fn new(coordinator: Coordinator) -> Rc<Self> {
        Rc::new(LateWrites { coordinator, held: RefCell::default(), is_waiting: Cell::new(false) })
    }

    /// Counts what is held on, until all writes have ended that are under way now.
    pub(super) fn hold(self: &Rc<Self>, held: Option<Held>) {
        let Some(mut held) = held else { return };
        // It ends whether its client takes answers or not.
        held.set_ending(true);
        self.held.borrow_mut().push(held);
        if !self.is_waiting.replace(true) {
            runtime::spawn_local("late writes", Rc::clone(self).wait());
        }
    }

    /// Waits for one after the other, and for all together that came meanwhile.
    async fn wait(self: Rc<Self>) {
        loop {
            let held = self.held.take();
            if held.is_empty() {
                self.is_waiting.set(false);
                return;
            }
            self.coordinator.writes_ended().await;
            drop(held);
        }
    }
}
