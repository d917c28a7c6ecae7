//! Which other replicas plain requests go to. It takes longer to choose them than to find a row, and what comes
//! together should go to the same ones as one message. So a choice is kept: of a read for a turn of reads, of a write
//! as long as all replicas live.
//!
//! Who takes a kept choice asks of each node in it whether it lives, and of a read whether it was late just now. So
//! nothing goes to a node that is known to be dead, and what is chosen has as many nodes as the level wants.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ring::{GroupIndex, NodeIndex};
use smallvec::SmallVec;
use stdx::id_map::IdMap;

use super::requirement::Requirement;
use crate::Consistency;

/// Nodes by their index; most often other replicas than this node, which is one.
pub(crate) type Nodes = SmallVec<[NodeIndex; 3]>;

/// The nodes that have a say in a plain request, and how many of them it takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Partners {
    /// Of a read those that this node's row is compared with; of a write all replicas. None when this node alone has a
    /// say.
    pub(crate) nodes: Nodes,
    pub(crate) requirement: Requirement,
}

/// The choices of one keyspace.
#[derive(Debug, Default)]
pub(super) struct KeptPartners {
    reads: RefCell<IdMap<u64, Turn>>,
    writes: RefCell<IdMap<u64, Rc<Partners>>>,
    /// How many turns there were.
    turn_count: Cell<usize>,
}

/// Reads that go to the same nodes, one after the other.
#[derive(Debug)]
struct Turn {
    partners: Rc<Partners>,
    /// So many more have the same.
    left: u32,
}

/// A turn has so many reads: some batches of a connection, and few enough for a node that hangs to be noticed soon by
/// all who ask it.
const TURN_LENGTH: u32 = 64;

impl KeptPartners {
    /// Those of a read of these replicas, if its turn is not over, and all of them can be asked.
    pub(super) fn of_read(
        &self,
        group: GroupIndex,
        consistency: Consistency,
        can_be_asked: impl Fn(NodeIndex) -> bool,
    ) -> Option<Rc<Partners>> {
        let mut reads = self.reads.borrow_mut();
        let turn = reads.get_mut(&key(group, consistency))?;
        turn.left = turn.left.checked_sub(1)?;
        turn.partners.nodes.iter().all(|node| can_be_asked(*node)).then(|| Rc::clone(&turn.partners))
    }

    /// Begins a turn with these; the next one's number is another.
    pub(super) fn keep_of_read(
        &self,
        group: GroupIndex,
        consistency: Consistency,
        partners: Partners,
    ) -> Rc<Partners> {
        self.turn_count.set(self.turn_count.get().wrapping_add(1));
        let partners = Rc::new(partners);
        let turn = Turn { partners: Rc::clone(&partners), left: TURN_LENGTH - 1 };
        self.reads.borrow_mut().insert(key(group, consistency), turn);
        partners
    }

    /// The first of so many nodes to be asked in a turn that begins now: each in its turn.
    pub(super) fn first_of(&self, node_count: usize) -> usize {
        self.turn_count.get().checked_rem(node_count).unwrap_or(0)
    }

    /// Those of a write to these replicas, if all of them live.
    pub(super) fn of_write(
        &self,
        group: GroupIndex,
        consistency: Consistency,
        is_alive: impl Fn(NodeIndex) -> bool,
    ) -> Option<Rc<Partners>> {
        let writes = self.writes.borrow();
        let partners = writes.get(&key(group, consistency))?;
        partners.nodes.iter().all(|node| is_alive(*node)).then(|| Rc::clone(partners))
    }

    /// Keeps these, all of which live.
    pub(super) fn keep_of_write(
        &self,
        group: GroupIndex,
        consistency: Consistency,
        partners: Partners,
    ) -> Rc<Partners> {
        let partners = Rc::new(partners);
        self.writes.borrow_mut().insert(key(group, consistency), Rc::clone(&partners));
        partners
    }
}

fn key(group: GroupIndex, consistency: Consistency) -> u64 {
    u64::from(group.0) << 8 | consistency as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupIndex = GroupIndex(7);
    const LEVEL: Consistency = Consistency::Quorum;

    fn with(node: u16) -> Partners {
        Partners { nodes: Nodes::from_slice(&[NodeIndex(node)]), requirement: Requirement::Anywhere(2) }
    }

    #[test]
    fn reads_of_a_turn_have_the_same_partners_and_then_somebody_chooses_again() {
        let kept = KeptPartners::default();
        assert_eq!(kept.of_read(GROUP, LEVEL, |_| true), None);
        let chosen = kept.keep_of_read(GROUP, LEVEL, with(1));
        for _ in 1..TURN_LENGTH {
            let partners = kept.of_read(GROUP, LEVEL, |_| true).expect("the turn is not over");
            assert!(Rc::ptr_eq(&partners, &chosen));
        }
        assert_eq!(kept.of_read(GROUP, LEVEL, |_| true), None);
        assert_eq!(kept.of_read(GROUP, LEVEL, |_| true), None, "it does not begin by itself");
    }

    #[test]
    fn nobody_is_sent_to_a_node_that_can_not_be_asked() {
        let kept = KeptPartners::default();
        kept.keep_of_read(GROUP, LEVEL, with(1));
        kept.keep_of_write(GROUP, LEVEL, with(1));
        assert_eq!(kept.of_read(GROUP, LEVEL, |node| node != NodeIndex(1)), None);
        assert_eq!(kept.of_write(GROUP, LEVEL, |node| node != NodeIndex(1)), None);
        assert!(
            kept.of_read(GROUP, LEVEL, |_| true).is_some() && kept.of_write(GROUP, LEVEL, |_| true).is_some()
        );
    }

    #[test]
    fn other_replicas_and_other_levels_have_partners_of_their_own() {
        let kept = KeptPartners::default();
        kept.keep_of_read(GROUP, LEVEL, with(1));
        kept.keep_of_write(GROUP, LEVEL, with(1));
        for (group, level) in [(GroupIndex(8), LEVEL), (GROUP, Consistency::All)] {
            assert!(kept.of_read(group, level, |_| true).is_none());
            assert!(kept.of_write(group, level, |_| true).is_none());
        }
    }

    #[test]
    fn each_node_is_the_first_in_its_turn() {
        let kept = KeptPartners::default();
        let firsts: Vec<usize> = (0..4)
            .map(|_| {
                let first = kept.first_of(2);
                kept.keep_of_read(GROUP, LEVEL, with(first as u16));
                first
            })
            .collect();
        assert_eq!(firsts, [0, 1, 0, 1]);
        assert_eq!(kept.first_of(0), 0);
    }
}
