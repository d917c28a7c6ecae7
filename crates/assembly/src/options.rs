//! What a node is put together with.

use std::net::SocketAddr;
use std::sync::Arc;

use query::{PreparedLimits, Timeouts};
use storage::StorageOptions;

use crate::RingOptions;

/// Memory for answers while they are put together, and until clients take them.
#[derive(Clone, Copy, Debug)]
pub struct AnswerOptions {
    /// Bytes of all together.
    pub bytes: usize,
    /// Bytes of rows in an answer that is not given in pages. There is one such answer at a time.
    pub largest_bytes: usize,
}

impl AnswerOptions {
    /// One part in so many of all memory is for answers, and as much for the largest one.
    const PART: usize = 16;

    /// What is for answers of so much memory.
    pub fn of_memory(memory_bytes: u64) -> Self {
        let bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX) / Self::PART;
        AnswerOptions { bytes, largest_bytes: bytes }
    }
}

/// Memory for prepared statements.
#[derive(Clone, Copy, Debug)]
pub struct PreparedOptions {
    /// Bytes of all that is kept of them: texts have a half of it; what each shard makes of them, the other half.
    pub bytes: usize,
}

impl PreparedOptions {
    /// One part in so many of all memory.
    const PART: usize = 12;
    /// And no more than so many bytes: enough for any application, and not too many for one that never reuses a text.
    const BYTES_MAX: usize = 512 << 20;

    /// What is for prepared statements of so much memory.
    pub fn of_memory(memory_bytes: u64) -> Self {
        let part = usize::try_from(memory_bytes).unwrap_or(usize::MAX) / Self::PART;
        PreparedOptions { bytes: part.min(Self::BYTES_MAX) }
    }

    /// What texts may take, and plans and columns on each of so many shards.
    pub fn limits(&self, shard_count: u16) -> PreparedLimits {
        let of_shard = self.bytes / 2 / usize::from(shard_count);
        PreparedLimits {
            text_bytes: self.bytes / 2,
            plan_bytes: of_shard / 4 * 3,
            metadata_bytes: of_shard / 4,
        }
    }
}

/// What a node is put together with.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// How the node keeps its data.
    pub storage: StorageOptions,
    /// Where CQL is spoken; port 0 when nobody listens.
    pub listen: SocketAddr,
    /// Where clients are told that it is.
    pub cql_broadcast: SocketAddr,
    /// The whole memory budget in bytes.
    pub memory_bytes: u64,
    /// What of it is for requests that are under way.
    pub request_bytes: usize,
    /// What of it is for answers.
    pub answers: AnswerOptions,
    /// What of it is for prepared statements.
    pub prepared: PreparedOptions,
    /// How long requests may take.
    pub timeouts: Arc<Timeouts>,
    /// Name that drivers check to be the same on all nodes.
    pub cluster_name: String,
    /// This node's data centre.
    pub data_center: String,
    /// This node's rack.
    pub rack: String,
    /// How the node takes part in a ring; `None` when it is alone.
    pub ring: Option<RingOptions>,
    /// What `system_views.settings` tells beside what this floor knows.
    pub settings: Vec<(&'static str, String)>,
}
