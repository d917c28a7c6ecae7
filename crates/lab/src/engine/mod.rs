//! The engine: operations begun when they are due, and both of their times taken.
//!
//! A few threads drive many connections, each with many requests under way. A thread waits for sockets and for the next
//! operation that is due, and for nothing else:
//!
//! ```text
//!   Pacer --due--> Operations --request--> Link ==socket==> node
//!                      ^                     |
//!                      +------- answer ------+--> Recorder (by second and kind)
//! ```
//!
//! In an open loop operations are due at a rate, evenly. When all streams are taken, those that are due wait at the
//! client, and that time counts: a server that stalls for a second is charged for all that would have come in it.
//!
//! As in a driver, an operation that has no answer in time has failed, a node that owes answers is asked after others,
//! and a connection that broke is opened anew.

mod disturber;
mod link;
mod mender;
mod pacer;
mod recorder;
mod run;
mod shared;
mod timer;
mod worker;

pub(crate) use link::Link;
pub(crate) use run::{PassEnd, audit, load, measure};
pub use run::{Progress, Watch};
