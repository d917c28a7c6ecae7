//! What is to be compared: taken for one node, slot by slot, and with each slot for all that have missed something of
//! it.

use schema::TableId;
use uuid::Uuid;

use super::{ShardMarks, State};

impl ShardMarks {
    /// Rows of the slot are to be compared with a node's.
    pub(in crate::replicas) fn compare(&self, node: Uuid, table: TableId, slot: usize) {
        self.state().compare(node, table, slot);
    }

    /// Some replicas of the slot were away when it was compared with a node's.
    pub(in crate::replicas) fn wait(&self, node: Uuid, table: TableId, slot: usize) {
        let state = &mut *self.state();
        state.is_changed |= state.of_nodes.entry(node).or_default().waiting.insert(table, slot);
    }

    /// Others than before live: what was compared with some of its replicas only is to be compared again.
    pub(in crate::replicas) fn stop_waiting(&self) {
        for owed in self.state().of_nodes.values_mut() {
            owed.compared.add_all(&std::mem::take(&mut owed.waiting));
        }
    }

    /// Takes a table whose rows are to be compared with a node's, and its slots in their order. Who can not make them
    /// equal adds them again, and says in the end that healing is over.
    pub(in crate::replicas) fn take_compared(&self, node: Uuid) -> Option<(TableId, Vec<usize>)> {
        let state = &mut *self.state();
        let (table, slots) = state.of_nodes.get_mut(&node)?.compared.pop()?;
        state.forget_if_nothing(node);
        let taken = slots.iter().collect();
        // It may have been taken before, and marked again since.
        let in_healing = &mut state.in_healing.entry(node).or_default().compared;
        slots.iter().for_each(|slot| _ = in_healing.insert(table, slot));
        Some((table, taken))
    }

    /// Takes a slot that was taken for one node of others, too, of those that may be; of which others? They have what
    /// they have missed of it once it was compared on all its replicas.
    pub(in crate::replicas) fn take_of_others(
        &self,
        table: TableId,
        slot: usize,
        may_be: impl Fn(Uuid) -> bool,
    ) -> Vec<Uuid> {
        let state = &mut *self.state();
        let State { of_nodes, in_healing, .. } = state;
        let mut taken = Vec::new();
        for (node, owed) in of_nodes.iter_mut().filter(|(node, _)| may_be(**node)) {
            let (was_compared, has_waited) =
                (owed.compared.remove(table, slot), owed.waiting.remove(table, slot));
            if was_compared || has_waited {
                in_healing.entry(*node).or_default().compared.insert(table, slot);
                taken.push(*node);
            }
        }
        taken.iter().for_each(|node| state.forget_if_nothing(*node));
        taken
    }

    /// What was taken nodes have, or it was added again.
    pub(in crate::replicas) fn healing_is_over(&self) {
        let state = &mut *self.state();
        state.is_changed |= !std::mem::take(&mut state.in_healing).is_empty();
    }
}

impl State {
    pub(super) fn compare(&mut self, node: Uuid, table: TableId, slot: usize) {
        self.is_changed |= self.of_nodes.entry(node).or_default().compared.insert(table, slot);
    }
}
