//! The plans that one shard keeps of prepared statements.

use std::rc::Rc;
use std::sync::Arc;

use stdx::id_map::IdHash;
use stdx::weighed_lru::WeighedLru;

use super::planned::Planned;
use super::texts::PreparedTexts;

/// A prepared statement on one shard.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// The keyspace of its unqualified names.
    pub(crate) keyspace: Option<Rc<str>>,
    pub(crate) planned: Rc<Planned>,
    /// What the plan takes in memory.
    pub(crate) bytes: usize,
}

/// Plans by id, up to a number of bytes; the least recently used go first.
#[derive(Debug)]
pub(crate) struct PlanCache {
    by_id: WeighedLru<[u8; 16], Prepared, IdHash>,
    /// Where it is counted what the plans have.
    texts: Arc<PreparedTexts>,
}

impl PlanCache {
    /// As large as `texts` say.
    pub(crate) fn new(texts: Arc<PreparedTexts>) -> Self {
        PlanCache { by_id: WeighedLru::new(texts.limits().plan_bytes), texts }
    }

    pub(crate) fn get(&mut self, id: &[u8; 16]) -> Option<Prepared> {
        self.by_id.get(id).cloned()
    }

    /// Keeps a plan, unless it is too large.
    pub(crate) fn put(&mut self, id: [u8; 16], prepared: Prepared) {
        let keyspace_bytes = prepared.keyspace.as_ref().map_or(0, |name| name.len());
        let bytes = prepared.bytes + keyspace_bytes;
        self.change(|by_id| by_id.put(id, prepared, bytes));
    }

    pub(crate) fn remove(&mut self, id: &[u8; 16]) {
        self.change(|by_id| by_id.remove(id));
    }

    fn change(&mut self, change: impl FnOnce(&mut WeighedLru<[u8; 16], Prepared, IdHash>)) {
        let bytes_before = self.by_id.bytes();
        change(&mut self.by_id);
        self.texts.count_plans(bytes_before, self.by_id.bytes());
    }
}
