//! The lab, over servers whose behaviour is known.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test outside of the simulated world")]

mod measured;
mod stub;

mod disturbed;
mod honest;
mod script;
mod studied;
