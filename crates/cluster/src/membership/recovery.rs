//! A ring whose voters are lost for good, most of them, goes on with those that are left: by force, on one of them
//! while it is stopped.
//!
//! What may be lost: changes of the schema and of the members that this node had not heard of; and writes that only
//! lost nodes had. The lost members keep their places, so that others can take them, and are given up: they are asked
//! for nothing, and what they ask about agreement is declined. If most of them came back they would be a ring of
//! their own, beside that of the survivors.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use runtime::{Disk, Random};
use schema::Schema;
use tokio::sync::mpsc::unbounded_channel;
use uuid::Uuid;

use crate::metadata::{Command, Member, MemberState, Members, MetadataMachine};
use crate::raft::{OpenError, Remains};

/// A member that is stopped, by what it has of its ring.
pub struct StoppedMember {
    host_id: Uuid,
    members: Arc<Members>,
    remains: Remains<MetadataMachine>,
}

/// Why a ring can not be looked at, or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// Its log is not there, or damaged.
    #[error("read what was agreed on: {0}")]
    Open(#[from] OpenError),
    /// There is no ring.
    #[error("node {host_id} is no member of a ring")]
    NotMember {
        /// Whose directory it is.
        host_id: Uuid,
    },
    /// Somebody else was meant.
    #[error("no member of the ring is at {address}")]
    Unknown {
        /// As it was given.
        address: SocketAddr,
    },
    /// Its log is to be that of all.
    #[error("this node, at {address}, is not among the survivors")]
    NotAmong {
        /// This node.
        address: SocketAddr,
    },
    /// Nothing is lost but time.
    #[error(
        "{survivor_count} of {voter_count} voters are among the survivors: they are a majority; start them"
    )]
    Majority {
        /// Voters among the survivors.
        survivor_count: usize,
        /// All voters.
        voter_count: usize,
    },
}

impl StoppedMember {
    /// Reads what a member has of its ring, which began with that schema. Blocks.
    ///
    /// # Errors
    /// There is none, or it can not be read.
    pub fn read(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        host_id: Uuid,
        base: Arc<Schema>,
    ) -> Result<StoppedMember, RecoveryError> {
        // Nobody takes the entries.
        let machine = MetadataMachine::new(base, unbounded_channel().0);
        let remains = Remains::read(disk, directory, machine)?;
        let members = remains.machine().members().map(Arc::clone);
        match members.filter(|members| members.get(host_id).is_some()) {
            Some(members) => Ok(StoppedMember { host_id, members, remains }),
            None => Err(RecoveryError::NotMember { host_id }),
        }
    }

    /// This node.
    pub fn host_id(&self) -> Uuid {
        self.host_id
    }

    /// The members of the ring, as far as it has heard.
    pub fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// Who votes, as far as it has heard: one set of nodes; or two when their change was begun and is not over, and
    /// then a majority of each has to agree.
    pub fn voters(&self) -> &[BTreeSet<Uuid>] {
        self.remains.voters()
    }

    /// Term and index of its last entry: of several survivors, the greatest has heard most.
    pub fn last(&self) -> (u64, u64) {
        self.remains.last().unwrap_or_default()
    }

    /// Who is given up when these survive.
    ///
    /// # Errors
    /// One of them is no member, this node is none of them, or they are enough.
    pub fn lost(&self, survivors: &[SocketAddr]) -> Result<Vec<&Member>, RecoveryError> {
        let all = self.members.list();
        let survives = |member: &&Member| survivors.contains(&member.candidate.address);
        let is_unknown =
            |address: &&SocketAddr| !all.iter().any(|member| member.candidate.address == **address);
        if let Some(address) = survivors.iter().find(is_unknown) {
            return Err(RecoveryError::Unknown { address: *address });
        }
        let own = self.members.get(self.host_id).expect("it is a member");
        if !survives(&own) {
            return Err(RecoveryError::NotAmong { address: own.candidate.address });
        }
        let surviving = all.iter().filter(survives).map(|member| member.candidate.host_id).collect();
        if are_majority(&surviving, self.voters()) {
            let voters: BTreeSet<Uuid> = self.voters().iter().flatten().copied().collect();
            let (survivor_count, voter_count) = ((&surviving & &voters).len(), voters.len());
            return Err(RecoveryError::Majority { survivor_count, voter_count });
        }
        Ok(all.iter().filter(|member| !survives(member)).collect())
    }

    /// Makes the survivors the only voters, and gives up all other members. Blocks; durable when it returns.
    ///
    /// # Errors
    /// As [`StoppedMember::lost`]; or the disk fails, and it may be done again.
    pub fn recover(self, survivors: &[SocketAddr], random: &dyn Random) -> Result<(), RecoveryError> {
        let lost: BTreeSet<Uuid> =
            self.lost(survivors)?.into_iter().map(|member| member.candidate.host_id).collect();
        let left = self.members.list().iter().filter(|member| !lost.contains(&member.candidate.host_id));
        let left = left.filter(|member| member.state != MemberState::Lost);
        let voters: BTreeMap<Uuid, SocketAddr> =
            left.map(|member| (member.candidate.host_id, member.candidate.address)).collect();
        let command = Command::GiveUp { lost }.encode();
        Ok(self.remains.force(self.host_id, &voters, (random.uuid_v4(), command))?)
    }
}

/// Can these nodes agree? They must be a majority of each set of voters.
fn are_majority(nodes: &BTreeSet<Uuid>, voters: &[BTreeSet<Uuid>]) -> bool {
    voters.iter().all(|voters| 2 * (nodes & voters).len() > voters.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[u128]) -> BTreeSet<Uuid> {
        numbers.iter().copied().map(Uuid::from_u128).collect()
    }

    #[test]
    fn survivors_must_be_a_majority_of_the_voters_before_and_behind_a_change() {
        let three = [ids(&[1, 2, 3])];
        assert!(are_majority(&ids(&[1, 2]), &three) && !are_majority(&ids(&[1, 4]), &three));
        let changing = [ids(&[1, 2, 3]), ids(&[1, 4, 5])];
        assert!(are_majority(&ids(&[1, 2, 4]), &changing));
        // Of all five they are most.
        assert!(!are_majority(&ids(&[2, 3, 4]), &changing), "of the second set it is one");
        assert!(!are_majority(&ids(&[1, 4, 5]), &changing), "of the first set it is one");
    }
}
