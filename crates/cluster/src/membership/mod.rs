//! A node's part in its ring: it founds one or joins one, stays in it, and knows who else is there.
//!
//! ```text
//!   take_part ─┬─ gate: who comes in ──► urgent connections: Door        others: to their shard
//!              ├─ founding or joining, once (joining.rs)
//!              ├─ the agreement about metadata ──► entries ──► who writes them down, and tells Known
//!              ├─ Proposer ──► what this node proposes
//!              └─ every tick: heartbeats to all others (heartbeat.rs); as leader: who has the log, votes (voters.rs)
//!
//!   Known ── members, epochs, who lives: looked at by all threads of the node
//! ```
//!
//! All of it runs on one thread, which is none of the shards': a shard that is busy is no dead node.
//!
//! | a reader asks | file |
//! |---|---|
//! | what does the node know of the others? | `known.rs`, `other.rs` |
//! | what do nodes ask each other about membership? | `message.rs`, `door.rs` |
//! | who is at an address? | `contact.rs` |
//! | how does a ring begin, and how does a node come in? | `joining.rs`, `letting_in.rs` |
//! | how does a node hear that its place was taken? | `standing.rs` |
//! | how is a member found that has other addresses than before? | `presence.rs` |
//! | who lives? | `heartbeat.rs` |
//! | what became of requests to others? | `counted.rs` |
//! | which talks must be under TLS? | `protection.rs` |
//! | who has the log, and who votes? | `voters.rs` |
//! | how does a ring go on that has lost most of its voters? | `recovery.rs` |
//! | how is something proposed from another thread? | `proposer.rs` |

mod contact;
mod counted;
mod door;
mod error;
mod heartbeat;
pub mod hostile;
mod joining;
mod known;
mod letting_in;
mod message;
mod options;
mod other;
mod presence;
mod proposer;
mod protection;
mod recovery;
mod standing;
mod take_part;
#[cfg(test)]
mod tests;
mod voters;

pub use counted::{About, Counted, MessageTotals};
pub use error::{MembershipError, ProposeError};
pub use heartbeat::{FAREWELL, SILENCE};
pub use known::{Event, Hybrid, Known, Speaker, while_in_ring};
pub use options::{Doors, MembershipOptions};
pub use other::Other;
pub use proposer::{Proposals, Proposer, proposals};
pub use protection::{Encryption, Protection};
pub use recovery::{RecoveryError, StoppedMember};
pub use take_part::take_part;
