//! What the calls of a statement return, each found out once.
//!
//! Which overload a call means depends on what its arguments may be, and these may be calls: to ask each of the 81 ways
//! to add two numbers what its left side could be, and so on down, took `1 + 1 + 1 + 1 + 1` a second and one more `+ 1`
//! a minute. So what a call returns for a receiver is remembered while the term around it is planned.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use cql::ast::Term as Written;
use types::CqlType;

use crate::QueryError;
use crate::error::refuse;

/// Most times that the function of a call is looked for in one statement: a few microseconds each. An operator takes
/// one for each type that its result may have.
const FINDS_MAX: usize = 20_000;

/// What is known of the calls of the statement that is planned.
#[derive(Default)]
pub(crate) struct CallTypes {
    find_count: Cell<usize>,
    /// How many calls are being planned or asked about, one inside of another.
    depth: Cell<usize>,
    returned: RefCell<HashMap<AskedCall, Option<CqlType>>>,
}

/// A call, by its address, and the type it is received as. Addresses mean what they meant as long as the outermost term
/// is borrowed, which is while the depth is not 0; then all is forgotten.
type AskedCall = (usize, Option<CqlType>);

impl CallTypes {
    /// Counts that a function is looked for.
    ///
    /// # Errors
    /// It has been done too often.
    pub(super) fn count_find(&self) -> Result<(), QueryError> {
        self.find_count.set(self.find_count.get() + 1);
        if self.find_count.get() > FINDS_MAX {
            refuse!(
                "The statement has too many functions and operators: finding what they are is given up after {FINDS_MAX} tries"
            );
        }
        Ok(())
    }

    /// What the call returns for that receiver: as it is remembered, or else as `find` says.
    pub(super) fn returned(
        &self,
        call: &Written,
        receiver: Option<&CqlType>,
        find: impl FnOnce() -> Option<CqlType>,
    ) -> Option<CqlType> {
        let key = (std::ptr::from_ref(call).addr(), receiver.cloned());
        if let Some(known) = self.returned.borrow().get(&key) {
            return known.clone();
        }
        self.enter();
        let found = find();
        self.returned.borrow_mut().insert(key, found.clone());
        self.leave();
        found
    }

    /// A call is planned from here on.
    pub(super) fn enter(&self) {
        self.depth.set(self.depth.get() + 1);
    }

    /// It is planned.
    pub(super) fn leave(&self) {
        self.depth.set(self.depth.get() - 1);
        if self.depth.get() == 0 {
            self.returned.borrow_mut().clear();
        }
    }
}
