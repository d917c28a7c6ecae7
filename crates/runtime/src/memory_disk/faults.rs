//! Failures ordered for a memory disk, and operations that do not come to an end.

use std::io;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::pool::lock;

/// What is asked of a disk, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reading, listing, looking, opening an existing file.
    Read,
    /// Writing, cutting or growing a file.
    Write,
    /// Syncing a file or a directory.
    Sync,
    /// A new file, directory, link or lock.
    Create,
    /// Removing a name.
    Remove,
    /// Renaming.
    Rename,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EIO. A sync that fails so loses its bytes for good.
    InputOutput,
    /// ENOSPC.
    NoSpace,
    /// A write leaves a prefix, then EIO; for other operations the same as [`Fault::InputOutput`].
    ShortWrite {
        /// Length of the prefix.
        written_bytes: usize,
    },
}

impl Fault {
    pub(super) fn error(self) -> io::Error {
        let errno = match self {
            Fault::InputOutput | Fault::ShortWrite { .. } => rustix::io::Errno::IO,
            Fault::NoSpace => rustix::io::Errno::NOSPC,
        };
        errno.into()
    }
}

/// What will fail, and when.
#[derive(Debug)]
pub struct Faults {
    state: Mutex<State>,
    /// An operation that hung may go on.
    freed: Condvar,
}

/// As long as it is there, operations of a kind hang.
#[derive(Debug)]
pub struct Hang<'a> {
    faults: &'a Faults,
}

impl Drop for Hang<'_> {
    fn drop(&mut self) {
        lock(&self.faults.state).hanging = None;
        self.faults.freed.notify_all();
    }
}

#[derive(Debug)]
struct State {
    orders: Vec<Order>,
    hanging: Option<Operation>,
    changes_until_power_off: Option<u64>,
    is_off: bool,
    change_count: u64,
    capacity_bytes: u64,
}

#[derive(Debug)]
struct Order {
    operation: Option<Operation>,
    skip_count: u64,
    fault: Fault,
    repeats: bool,
}

impl Default for Faults {
    fn default() -> Faults {
        let state = State {
            orders: Vec::new(),
            hanging: None,
            changes_until_power_off: None,
            is_off: false,
            change_count: 0,
            capacity_bytes: u64::MAX,
        };
        Faults { state: Mutex::new(state), freed: Condvar::new() }
    }
}

impl Faults {
    /// The `nth` operation of this kind from now (0 is the next; `None` counts every kind) fails.
    pub fn fail_nth(&self, operation: Option<Operation>, nth: u64, fault: Fault) {
        let order = Order { operation, skip_count: nth, fault, repeats: false };
        lock(&self.state).orders.push(order);
    }

    /// Every operation of this kind fails until [`Faults::clear`].
    pub fn fail_all(&self, operation: Option<Operation>, fault: Fault) {
        let order = Order { operation, skip_count: 0, fault, repeats: true };
        lock(&self.state).orders.push(order);
    }

    /// Every operation of this kind hangs with its thread, until what is given back is dropped. For disks whose users
    /// have threads of their own.
    pub fn hang_all(&self, operation: Operation) -> Hang<'_> {
        lock(&self.state).hanging = Some(operation);
        Hang { faults: self }
    }

    /// After so many more changes (all but reads) the power is off: every operation fails until the
    /// disk's image is taken with [`crash`](super::MemoryDisk::crash).
    pub fn power_off_after(&self, change_count: u64) {
        let mut state = lock(&self.state);
        state.is_off = change_count == 0;
        state.changes_until_power_off = Some(change_count);
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        lock(&self.state).is_off
    }

    /// How large the files may be together; growth past it fails with [`Fault::NoSpace`].
    pub fn set_capacity_bytes(&self, capacity_bytes: u64) {
        lock(&self.state).capacity_bytes = capacity_bytes;
    }

    /// Operations other than reads so far, failed ones included.
    pub fn change_count(&self) -> u64 {
        lock(&self.state).change_count
    }

    /// Forgets all orders and the capacity, and turns the power on.
    pub fn clear(&self) {
        let mut state = lock(&self.state);
        *state = State {
            orders: Vec::new(),
            hanging: state.hanging,
            changes_until_power_off: None,
            is_off: false,
            change_count: state.change_count,
            capacity_bytes: u64::MAX,
        };
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        lock(&self.state).capacity_bytes
    }

    /// Counts an operation. An error when the power is off, a fault when one was ordered.
    pub(super) fn begin(&self, operation: Operation) -> io::Result<Option<Fault>> {
        let hangs = |state: &mut State| state.hanging == Some(operation);
        let mut state =
            self.freed.wait_while(lock(&self.state), hangs).unwrap_or_else(PoisonError::into_inner);
        if operation != Operation::Read {
            state.change_count += 1;
            match &mut state.changes_until_power_off {
                Some(0) => state.is_off = true,
                Some(left) => *left -= 1,
                None => {}
            }
        }
        if state.is_off {
            return Err(io::Error::other("the power is off"));
        }
        Ok(state.due(operation))
    }
}

impl State {
    fn due(&mut self, operation: Operation) -> Option<Fault> {
        let mut due = None;
        for (index, order) in self.orders.iter_mut().enumerate() {
            if order.operation.is_some_and(|wanted| wanted != operation) {
                continue;
            }
            match order.skip_count {
                0 if due.is_none() => due = Some(index),
                0 => {}
                _ => order.skip_count -= 1,
            }
        }
        let index = due?;
        let fault = self.orders[index].fault;
        if !self.orders[index].repeats {
            self.orders.remove(index);
        }
        Some(fault)
    }
}
