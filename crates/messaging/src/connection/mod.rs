//! Connections: requests that are asked on one node and answered on another, over a stream of bytes.
//!
//! ```text
//!   asks                                              answers
//!   Peer ── ask ──► Outbox ──► Wire ═══ frames ═══► Wire ──► Service::request(Request)
//!   Asked ◄─────────────────── Wire ◄══ frames ════ Wire ◄── Outbox ◄── Request::answer
//! ```
//!
//! Each connection is one task on the shard that uses it; nothing here is shared by threads. What a turn of the shard
//! has to say goes out together: messages are written into the open frame at once, and the task seals it when it runs.
//!
//! | a reader asks | file |
//! |---|---|
//! | who is let in, and to which shard? | `gate.rs` |
//! | how many are let in? | `guests.rs` |
//! | how much may all of them hold? | `room.rs` |
//! | who are we talking to, and may others listen? | `meeting.rs` |
//! | what do bytes go over? | `channel.rs` |
//! | what waits to be sent? | `outbox.rs` |
//! | how do frames get on a stream and off it? | `wire.rs` |
//! | how long was a frame on its way? | `ages.rs` |
//! | who waits for which answer, and what if none comes? | `asked.rs` |
//! | how many were answered, and how many lost? | `counts.rs` |
//! | a connection that asks, made anew when it breaks | `peer.rs` |
//! | a connection that answers | `answering.rs` |

mod ages;
mod answering;
mod asked;
mod channel;
mod counts;
mod gate;
#[cfg(test)]
mod gate_tests;
mod guests;
mod meeting;
mod outbox;
mod peer;
mod room;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;
mod wire;

use std::sync::Arc;

use tls::Credentials;
use uuid::Uuid;

use crate::handshake::{Established, Identity, Purpose};
use crate::message::Context;

pub use answering::{Request, Service, answer};
pub use asked::{AskError, Asked};
pub use counts::MessageCounts;
pub use gate::{Handed, keep_gate};
pub use guests::Guests;
pub use meeting::{MeetError, Met, accept};
pub use peer::{Peer, PeerError, PeerOptions};
pub use room::Room;
pub use wire::WireError;

/// What connections with other nodes may come to. Cheap to clone; by default there is no bound.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// What they hold in memory, those that this node makes and those that others make.
    pub room: Room,
    /// How many others may have to this one.
    pub guests: Guests,
}

/// The node, as its connections see it.
pub trait Node {
    /// What it says of itself when it meets another.
    fn identity(&self) -> Identity;
    /// What it knows at this moment: it goes with the next frame.
    fn context(&self) -> Context;
    /// Another node knew this when it sent a frame.
    fn heard(&self, from: &Established, context: Context);
    /// Is this node to hear and tell that one nothing? A drill: as if the network between them were cut.
    fn is_cut_off(&self, _host_id: Uuid) -> bool {
        false
    }
    /// Its certificates, as they are now; `None` when it talks without TLS only.
    fn credentials(&self) -> Option<Arc<Credentials>> {
        None
    }
    /// Must a talk with that node be under TLS? `None` when it is not known yet who it is.
    fn must_encrypt(&self, _host_id: Option<Uuid>) -> bool {
        false
    }
    /// What its connections may come to.
    fn bounds(&self) -> Bounds {
        Bounds::default()
    }
    /// Where the requests of its connections for that purpose to that node are counted; `None` when it is not known yet
    /// who it is.
    fn counts(&self, _purpose: &Purpose, _host_id: Option<Uuid>) -> Arc<MessageCounts> {
        Arc::default()
    }
}
