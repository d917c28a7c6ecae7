//! What the requests of one client share, also those that wait while others come.

use std::cell::RefCell;
use std::rc::Rc;

use query::{Lane, SessionState};

use crate::clients::Registration;

pub(super) struct Session {
    /// Its entry among those who are connected.
    pub(super) client: Registration,
    pub(super) state: RefCell<SessionState>,
    /// Where its requests wait for room for their answers.
    pub(super) lane: Rc<Lane>,
}

impl Session {
    pub(super) fn new(client: Registration) -> Rc<Self> {
        Rc::new(Session { client, state: RefCell::default(), lane: Rc::default() })
    }
}
