//! The plans that one shard keeps of prepared statements.

use std::rc::Rc;

use cql::ast::Statement;
use stdx::id_map::IdMap;

use super::planned::Planned;

/// A prepared statement on one shard.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) statement: Rc<Statement>,
    /// The keyspace of its unqualified names.
    pub(crate) keyspace: Option<Rc<str>>,
    pub(crate) planned: Rc<Planned>,
}

/// Plans by id, up to a number; the least recently used go first.
#[derive(Debug)]
pub(crate) struct PlanCache {
    by_id: IdMap<[u8; 16], (Prepared, u64)>,
    clock: u64,
    count_max: usize,
}

impl PlanCache {
    pub(crate) fn new(count_max: usize) -> Self {
        PlanCache { by_id: IdMap::default(), clock: 0, count_max }
    }

    pub(crate) fn get(&mut self, id: &[u8; 16]) -> Option<Prepared> {
        self.clock += 1;
        let (prepared, used) = self.by_id.get_mut(id)?;
        *used = self.clock;
        Some(prepared.clone())
    }

    pub(crate) fn put(&mut self, id: [u8; 16], prepared: Prepared) {
        self.clock += 1;
        self.by_id.insert(id, (prepared, self.clock));
        if self.by_id.len() <= self.count_max {
            return;
        }
        // A quarter at once, so that a full cache is not searched at every new statement.
        let mut ages: Vec<u64> = self.by_id.values().map(|(_, used)| *used).collect();
        let quarter = ages.len() / 4;
        let (_, limit, _) = ages.select_nth_unstable(quarter);
        let limit = *limit;
        self.by_id.retain(|_, (_, used)| *used > limit);
    }

    pub(crate) fn remove(&mut self, id: &[u8; 16]) {
        self.by_id.remove(id);
    }
}
