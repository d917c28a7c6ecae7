//! Plain requests in a ring: rows by their keys, those that came together as one message to each other replica.
//!
//! ```text
//!   reads    hashes of the other replicas ──► this node's rows ──┬─ all hashes are equal: shown
//!                                                                └─ else: a full read
//!   writes   this node and the others write each ──► those that enough have done are done
//! ```
//!
//! A hash tells all of a plain row, its times, too: where they are equal there is nothing to repair, and what this node
//! has is the answer.

use std::time::Duration;

use futures_util::future::join_all;
use replica::{Answer, Request};
use ring::NodeIndex;
use rows::{Mutation, PartitionKey};
use schema::{Table, TableId};
use smallvec::SmallVec;
use storage::Unit;
use tokio::time::{Instant, timeout_at};
use types::Token;

use super::requirement::Requirement;
use super::{ReplicaError, Replicas};
use crate::plain::PlainOutcomes;
use crate::{Consistency, CoordinatorError};

/// Other replicas than this node, which is one.
pub(crate) type Others = SmallVec<[NodeIndex; 3]>;

/// The hash of each row that a replica could tell at once.
pub(crate) type Hashes = Vec<Option<u128>>;

impl Replicas {
    /// The other replicas that a plain read is compared with. `None` when this node is no replica, or too few live, or
    /// the level counts data centres: then it is a full one.
    pub(crate) fn others_to_read(
        &self,
        table: TableId,
        token: Token,
        consistency: Consistency,
    ) -> Option<(Others, Requirement)> {
        let (plan, requirement) = self.admit(table, token, consistency).ok()?;
        let wanted = requirement.plain_count()? as usize;
        let here = self.view.here();
        let others = plan.nodes.iter().filter(|node| **node != here && self.view.is_alive(**node));
        let is_near = |node: &&NodeIndex| self.view.center_of(**node) == self.view.center_of(here);
        let (near, far) = (others.clone().filter(is_near), others.filter(|node| !is_near(node)));
        let far_count = if requirement.is_local() { 0 } else { usize::MAX };
        let chosen: Others = near.chain(far.take(far_count)).take(wanted.checked_sub(1)?).copied().collect();
        (plan.nodes.contains(&here) && chosen.len() + 1 == wanted).then_some((chosen, requirement))
    }

    /// What several replicas say of the rows of some keys, up to so many as are done in one go; `None` when one of them
    /// does not say it in time.
    pub(crate) async fn hashes(
        &self,
        others: &[NodeIndex],
        table: &Table,
        keys: &[PartitionKey],
        patience: Duration,
    ) -> Option<Vec<Hashes>> {
        // When one is late, each becomes a full read, which asks somebody else, too.
        let late = self.lateness(table, others).filter(|late| !late.is_zero());
        let deadline = Instant::now() + late.map_or(patience, |late| late.min(patience));
        let asked = others
            .iter()
            .map(|node| self.ask_to_read(*node, deadline, |out| Request::put_look_up(table.id(), keys, out)));
        let answers = timeout_at(deadline, join_all(asked)).await.ok()?;
        let hashes = answers.into_iter().map(|answer| match answer {
            Ok(Answer::Hashes(hashes)) if hashes.len() == keys.len() => Some(hashes),
            _ => None,
        });
        hashes.collect()
    }

    /// All replicas of a plain write. `None` when too few live.
    pub(crate) fn nodes_to_write(
        &self,
        table: TableId,
        token: Token,
        consistency: Consistency,
    ) -> Option<(Others, Requirement)> {
        let (plan, requirement) = self.admit(table, token, consistency).ok()?;
        let mut nodes = Others::from_slice(plan.nodes);
        // Those of the same nodes go together, whoever is the first.
        nodes.sort_unstable();
        Some((nodes, requirement))
    }

    /// Writes each of some mutations, which all have the same replicas, by itself, and waits until enough have or
    /// can not have it any more.
    ///
    /// # Panics
    /// When they are none, or more than are done in one go.
    pub(crate) async fn write_each(
        &self,
        mutations: Vec<Mutation>,
        consistency: Consistency,
        patience: Duration,
    ) -> PlainOutcomes {
        let deadline = Instant::now() + patience;
        let first = &mutations[0];
        let Ok((plan, requirement)) = self.admit(first.table, first.key.token, consistency) else {
            // As a full write it is refused with the reason.
            return PlainOutcomes::default();
        };
        let begun = self.begin_group(&plan, requirement, Unit::Each, &mutations, deadline);
        let mut outcomes = PlainOutcomes::default();
        for (index, outcome) in begun.finish(consistency, deadline).await.into_iter().enumerate() {
            match outcome {
                Ok(()) => outcomes.done.insert(index),
                Err(ReplicaError::Unavailable { .. }) => {}
                Err(error) => {
                    outcomes.doubtful.insert(index);
                    outcomes.error.get_or_insert_with(|| CoordinatorError::from(error));
                }
            }
        }
        outcomes
    }
}

/// Do all that were to be compared say that their row is equal to this node's?
pub(crate) fn are_equal(others: &[Hashes], index: usize, hash: u128) -> bool {
    others.iter().all(|hashes| hashes[index] == Some(hash))
}
