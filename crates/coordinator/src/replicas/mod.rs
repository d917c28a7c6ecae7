//! Reads and writes over the nodes of a ring.
//!
//! ```text
//!   write ─► RingView: which replicas? ─► enough alive? ─┬─ this node's shards
//!                                                        └─ Peer::ask, one message for each ─► enough said done?
//!   read ──► as many replicas as must answer ─► merge ─► what one lacks is written to it ─► the page
//! ```
//!
//! No node uses it yet: a ring needs members first. The simulator does.
//!
//! What is not here yet, and what its place is: names of mutations and what a missed one is sent from (decision 0026);
//! hashes instead of rows; one more replica when an answer is late; ranges over nodes.
//!
//! | a reader asks | file |
//! |---|---|
//! | who are the replicas, and how are they reached? | `view.rs` |
//! | how many must answer? | `requirement.rs` |
//! | how is a write carried to them? | `write.rs` |
//! | how do their rows become one answer? | `read.rs` |
//! | how does a node answer another one? | `service.rs` |
//! | what does a client hear when too few answered? | `error.rs` |

mod error;
mod read;
mod requirement;
mod service;
mod view;
mod write;

pub use error::ReplicaError;
pub use service::ReplicaService;
pub use view::RingView;

use std::rc::Rc;

use ::read::ReadCommand;
use ::replica::Failure;
use messaging::AskError;
use schema::TableId;
use storage::ShardHandle;

/// Carries reads and writes to the replicas of a ring. Belongs to one shard; clone it freely there.
#[derive(Clone)]
pub struct Replicas {
    view: Rc<RingView>,
    shard: ShardHandle,
}

/// Why a replica did not do its part.
#[derive(Clone, Debug, PartialEq)]
enum Missed {
    /// It was not asked, or what it was asked was lost or given up: nobody knows.
    Silent {
        /// Did anything leave this node?
        was_sent: bool,
    },
    /// It said why.
    Failed(Failure),
}

impl From<AskError> for Missed {
    fn from(error: AskError) -> Missed {
        Missed::Silent { was_sent: error != AskError::NotSent }
    }
}

impl Replicas {
    /// The way to the replicas of a ring, as one of its nodes sees it.
    pub fn new(view: Rc<RingView>, shard: ShardHandle) -> Replicas {
        Replicas { view, shard }
    }

    fn keyspace_of(&self, table: TableId) -> Option<String> {
        self.shard
            .local()
            .with_schema(|schema| schema.keyspace_of(table).map(|keyspace| keyspace.name.clone()))
    }

    /// That of a read.
    fn keyspace_of_read(&self, command: &ReadCommand) -> Option<String> {
        self.keyspace_of(command.table.id())
    }
}
