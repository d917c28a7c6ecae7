//! Where a memtable stands while it turns from active to frozen under its readers.

use std::cell::{Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::Memtable;

/// A memtable on its shard, shared with the cursors that read it. Freezing does not disturb them.
pub struct MemtableSlot(RefCell<State>);

enum State {
    Active(Box<Memtable>),
    Frozen(Arc<Memtable>),
}

impl MemtableSlot {
    /// One that takes writes.
    pub fn active(memtable: Memtable) -> Rc<Self> {
        Rc::new(MemtableSlot(RefCell::new(State::Active(Box::new(memtable)))))
    }

    /// Looks at it.
    pub fn with<T>(&self, look: impl FnOnce(&Memtable) -> T) -> T {
        look(&self.look())
    }

    /// It, to be looked at before anything else happens to it.
    #[inline]
    pub fn look(&self) -> Ref<'_, Memtable> {
        Ref::map(self.0.borrow(), |state| match state {
            State::Active(memtable) => &**memtable,
            State::Frozen(memtable) => &**memtable,
        })
    }

    /// Changes it.
    ///
    /// # Panics
    /// When it is frozen: writes go to the active memtable only.
    pub fn with_active<T>(&self, change: impl FnOnce(&mut Memtable) -> T) -> T {
        match &mut *self.0.borrow_mut() {
            State::Active(memtable) => change(memtable),
            State::Frozen(_) => panic!("a frozen memtable takes no writes"),
        }
    }

    /// Makes it immutable, to be shared with a flush job.
    pub fn freeze(&self) -> Arc<Memtable> {
        let mut state = self.0.borrow_mut();
        if let State::Active(memtable) = &mut *state {
            let table = Arc::clone(&memtable.table);
            let frozen = std::mem::replace(&mut **memtable, Memtable::new(table));
            *state = State::Frozen(Arc::new(frozen));
        }
        match &*state {
            State::Frozen(memtable) => Arc::clone(memtable),
            State::Active(_) => unreachable!("frozen just above"),
        }
    }
}
