//! Who agrees, and who leads: changes of both.
//!
//! A node comes as a learner, which has the log and does not vote, and is made a voter when it has caught up.

use std::net::SocketAddr;

use openraft::{ChangeMembers, LogIdOptionExt};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::agreement::{Agreement, of_write};
use super::error::AgreementError;
use super::message::{Answer, Ask, Change};
use super::state::Machine;
use super::types::Address;

/// So many entries may a member miss and still become a voter: a majority may wait for it from then on.
const LAG_ENTRY_COUNT_MAX: u64 = 64;

impl<M: Machine> Agreement<M> {
    /// Adds a node that has the log and does not vote.
    ///
    /// # Errors
    /// Whether it was done, as far as is known. It may be done again.
    pub async fn add_learner(&self, node: Uuid, address: SocketAddr) -> Result<(), AgreementError> {
        self.change(Change::AddLearner { node, address: Address(address) }).await
    }

    /// Lets a learner vote.
    ///
    /// # Errors
    /// Whether it was done, as far as is known; `Behind` while it has not caught up. It may be done again.
    pub async fn make_voter(&self, node: Uuid) -> Result<(), AgreementError> {
        self.change(Change::MakeVoter { node }).await
    }

    /// Removes a member, voter or learner. It may be added again as long as it has its log; a node that lost it needs
    /// another id.
    ///
    /// # Errors
    /// Whether it was done, as far as is known. It may be done again.
    pub async fn remove(&self, node: Uuid) -> Result<(), AgreementError> {
        self.change(Change::Remove { node }).await
    }

    /// Ends a change of voters that was begun, as the leader: who began it has died since, or gave up waiting. Until
    /// then both the voters before and those behind it must agree to everything.
    ///
    /// # Errors
    /// As [`Agreement::make_voter`]; `NoLeader` when this node does not lead.
    pub async fn finish_change(&self) -> Result<(), AgreementError> {
        let Some(voters) = self.standing().next_voters else { return Ok(()) };
        let change = self.raft().change_membership(ChangeMembers::ReplaceAllVoters(voters), false);
        self.as_node(change).await.map(drop).map_err(of_write)
    }

    /// Makes another voter the leader.
    ///
    /// # Errors
    /// It can not lead, or it is not known whether it will.
    pub async fn hand_over(&self, node: Uuid) -> Result<(), AgreementError> {
        self.change(Change::HandOver { node }).await
    }

    async fn change(&self, change: Change) -> Result<(), AgreementError> {
        let read = |answer| matches!(answer, Answer::Changed).then_some(());
        let asked = Ask::Change(change);
        self.as_node(self.anywhere(&asked, || self.change_here(change), read)).await
    }

    /// Carries a change out, as the leader.
    pub(super) async fn change_here(&self, change: Change) -> Result<(), AgreementError> {
        match change {
            Change::AddLearner { node, address } => {
                self.raft().add_learner(node, address, false).await.map_err(of_write)?;
            }
            Change::MakeVoter { node } => {
                self.check_has_log(node, LAG_ENTRY_COUNT_MAX)?;
                let voters = ChangeMembers::AddVoterIds([node].into());
                self.raft().change_membership(voters, true).await.map_err(of_write)?;
            }
            Change::Remove { node } => self.remove_here(node).await?,
            Change::HandOver { node } => self.hand_over_here(node).await?,
        }
        Ok(())
    }

    async fn remove_here(&self, node: Uuid) -> Result<(), AgreementError> {
        let standing = self.standing();
        let change = if standing.voters == [node].into() {
            return Err(AgreementError::LastVoter);
        } else if standing.voters.contains(&node) {
            ChangeMembers::RemoveVoters([node].into())
        } else if standing.learners.contains(&node) {
            ChangeMembers::RemoveNodes([node].into())
        } else {
            return Ok(());
        };
        // A voter that votes no more does not stay as a learner.
        self.raft().change_membership(change, false).await.map_err(of_write)?;
        Ok(())
    }

    /// Openraft takes any target, and a leader that waits for one that can not be elected takes no more writes: so all
    /// that could go wrong is looked at first (decision 0027).
    async fn hand_over_here(&self, node: Uuid) -> Result<(), AgreementError> {
        if node == self.me() {
            return Ok(());
        }
        let metrics = self.metrics();
        if metrics.current_leader != Some(self.me()) {
            return Err(AgreementError::NoLeader);
        }
        if metrics.committed_membership_config != metrics.membership_config {
            return Err(AgreementError::Changing);
        }
        if !metrics.membership_config.voter_ids().any(|voter| voter == node) {
            return Err(AgreementError::NotMember { node });
        }
        self.check_has_log(node, 0)?;
        self.raft().trigger().transfer_leader(node).await.map_err(|_| AgreementError::Ended)?;
        let deadline = Instant::now() + self.timing().election_max;
        while Instant::now() < deadline {
            sleep(self.timing().heartbeat / 10).await;
            match self.standing().leader {
                Some(leader) if leader == node => return Ok(()),
                _ => {}
            }
        }
        Err(AgreementError::Refused { what: format!("node {node} has not taken over") })
    }

    /// Has a member all of the leader's log but so many entries?
    fn check_has_log(&self, node: Uuid, lag_max: u64) -> Result<(), AgreementError> {
        if node == self.me() {
            return Ok(());
        }
        let metrics = self.metrics();
        let replication = metrics.replication.as_ref().ok_or(AgreementError::NoLeader)?;
        let matched = replication.get(&node).ok_or(AgreementError::NotMember { node })?;
        let last = metrics.last_log_index.unwrap_or(0);
        match matched.index() {
            Some(matched) if matched.saturating_add(lag_max) >= last => Ok(()),
            _ => Err(AgreementError::Behind { node }),
        }
    }
}
