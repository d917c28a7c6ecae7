//! What a node has in memory, by use.
//!
//! Every part that grows with what clients ask is counted by whoever holds it, against a share of `memory`. What the
//! process has beside them is told as one figure, so that the sum is what the kernel counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use messaging::Room;
use query::{PreparedFigures, PreparedTexts};

use crate::{NodeOptions, NodeStats};

/// What one use has of the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// What it is.
    pub name: &'static str,
    /// What it has, in bytes.
    pub held_bytes: u64,
    /// What it may have; `None` where nothing is counted against a share.
    pub share_bytes: Option<u64>,
}

/// What is counted on each shard, for other threads to look at.
#[derive(Clone, Debug, Default)]
struct ShardFigures(Arc<Mutex<Vec<Arc<AtomicUsize>>>>);

impl ShardFigures {
    fn add(&self, held_bytes: Arc<AtomicUsize>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(held_bytes);
    }

    fn sum(&self) -> usize {
        let figures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        figures.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }
}

/// What is there for clients.
#[derive(Clone, Debug)]
pub struct ClientMemory {
    prepared: Arc<PreparedTexts>,
    requests: ShardFigures,
    answers: ShardFigures,
}

impl ClientMemory {
    pub(crate) fn new(prepared: Arc<PreparedTexts>) -> Self {
        ClientMemory { prepared, requests: ShardFigures::default(), answers: ShardFigures::default() }
    }

    /// Counts what one more shard's connections hold of requests.
    pub fn count_requests(&self, held_bytes: Arc<AtomicUsize>) {
        self.requests.add(held_bytes);
    }

    /// Counts one more shard's answers.
    pub(crate) fn count_answers(&self, held_bytes: Arc<AtomicUsize>) {
        self.answers.add(held_bytes);
    }

    /// What requests and answers hold, in bytes.
    pub fn in_flight_bytes(&self) -> usize {
        self.requests.sum() + self.answers.sum()
    }

    /// What there is of prepared statements.
    pub fn prepared(&self) -> PreparedFigures {
        self.prepared.figures()
    }

    /// Everything that the process has.
    pub(crate) fn uses(
        &self,
        options: &NodeOptions,
        stats: &NodeStats,
        room: Option<&Room>,
        process: ProcessMemory,
    ) -> Vec<MemoryUse> {
        let prepared = self.prepared.figures();
        let counted = |name, held_bytes: usize, share_bytes: usize| MemoryUse {
            name,
            held_bytes: held_bytes as u64,
            share_bytes: Some(share_bytes as u64),
        };
        let cache = &stats.cache;
        let mut uses = vec![
            counted("memtables", stats.memtable_bytes as usize, options.storage.memtable_bytes),
            counted("chunk cache", cache.used_bytes as usize, cache.capacity_bytes as usize),
            counted("filters and indexes", cache.pinned_bytes as usize, options.storage.cache_bytes),
            counted("requests", self.requests.sum(), options.request_bytes),
            counted("answers", self.answers.sum(), options.answers.bytes),
            counted("prepared statements", prepared.text_bytes + prepared.plan_bytes, options.prepared.bytes),
        ];
        uses.extend(room.map(|room| counted("messages of the ring", room.held_bytes(), room.bytes_max())));
        let told: u64 = uses.iter().map(|memory_use| memory_use.held_bytes).sum();
        let rest = process.resident_bytes.saturating_sub(told + process.program_bytes);
        let uncounted = |name, held_bytes| MemoryUse { name, held_bytes, share_bytes: None };
        uses.push(uncounted("program", process.program_bytes));
        uses.push(uncounted("connections, flushes, compactions, and what is freed and kept", rest));
        uses
    }
}

/// What the kernel tells of the process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessMemory {
    /// All of it.
    pub(crate) resident_bytes: u64,
    /// Of that, pages of the program's own file.
    pub(crate) program_bytes: u64,
}

impl ProcessMemory {
    /// As it is now; nothing where the system does not tell.
    pub(crate) fn now() -> Self {
        ProcessMemory {
            resident_bytes: runtime::resident_bytes().unwrap_or(0),
            program_bytes: runtime::resident_file_bytes().unwrap_or(0),
        }
    }
}
