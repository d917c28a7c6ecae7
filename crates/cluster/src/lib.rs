//! What all nodes must agree on, and how they do: the metadata log, and the members of a ring.
//!
//! Changes are pure [`schema::Transformation`]s; the history gives them an order, and the epoch of the schema counts
//! them. A lone node writes its history itself. In a ring an agreement ([`raft`]) says what comes next in it.
//!
//! | a reader asks | folder |
//! |---|---|
//! | what is agreed on, and how is it kept? | `metadata/` |
//! | how do nodes agree? | `raft/` |
//! | how does a node come into a ring, and what does it know of the others? | `membership/` |

pub mod membership;
pub mod metadata;
pub mod raft;

pub use metadata::{Members, Metadata, MetadataError, MetadataLog};
