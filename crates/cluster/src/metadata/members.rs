//! Who the members of a ring are, where they are reached, and which tokens they have.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use ring::allocation::{FACTOR, Newcomer, found};
use ring::{Grid, Node, NodeIndex, RingError, Topology};
use serde::{Deserialize, Serialize};
use types::Token;
use uuid::Uuid;

/// What a node says of itself when it wants to be a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Who it is, whatever its address.
    pub host_id: Uuid,
    /// Where other nodes reach it.
    pub address: SocketAddr,
    /// Where clients reach it.
    pub cql_address: SocketAddr,
    /// Where it stands.
    pub data_center: String,
    /// Where in the data centre.
    pub rack: String,
    /// How many shards it has.
    pub shard_count: u16,
    /// How many tokens it is to have: its weight beside the others.
    pub num_tokens: u16,
    /// Those that its operator has chosen, as many. None: they are chosen for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub initial_tokens: Vec<i64>,
    /// Which forms of the history its program knows: [`super::HISTORY_VERSION`].
    #[serde(default = "first_version")]
    pub history_version: u16,
}

/// Of a program that does not say it.
fn first_version() -> u16 {
    1
}

/// What of a member may be another one each time it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Where other nodes reach it.
    pub address: SocketAddr,
    /// Where clients reach it.
    pub cql_address: SocketAddr,
    /// Which forms of the history its program knows.
    #[serde(default = "first_version")]
    pub history_version: u16,
    /// How many shards it has; a program that keeps their number does not say it, and passes it over. So whoever has
    /// only such a member's word for it may ask for a shard that is not there, and is answered by another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard_count: Option<u16>,
}

/// A member of the ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// What it said of itself.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// Where its vnodes end, in the order of the ring.
    pub tokens: Vec<i64>,
    /// How it stands.
    #[serde(default, skip_serializing_if = "MemberState::has_rows")]
    pub state: MemberState,
}

/// How a member stands with the rows of its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// It has them.
    #[default]
    Normal,
    /// It has taken the place of another one and is getting them. Until it has, it is written to, and counts as one
    /// that is away: it is not read, and what it acknowledges is as if it had not.
    Joining,
    /// It was given up with its rows when most voters were lost. It is asked for nothing and not listened to; another
    /// node may take its place.
    Lost,
}

impl MemberState {
    /// Does it count as a replica?
    pub fn has_rows(&self) -> bool {
        *self == MemberState::Normal
    }
}

/// All members of a ring between two changes. Immutable; a change makes another one, of the next epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Members {
    cluster_id: Uuid,
    epoch: u64,
    /// Invariant: in the order of the topology's nodes.
    members: Vec<Member>,
    topology: Arc<Topology>,
    /// The epoch since which somebody is no member any more: what was asked before that of a replica is not answered.
    fence: u64,
    /// All that were ever given up, also those whose places others have by now: they may start again with what they
    /// had, and are not to have a say.
    given_up: BTreeSet<Uuid>,
}

/// Members as they stand in the history.
#[derive(Clone, Serialize, Deserialize)]
struct Written {
    cluster_id: Uuid,
    epoch: u64,
    slot_bits: u8,
    members: Vec<Member>,
    #[serde(default, skip_serializing_if = "is_zero")]
    fence: u64,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    given_up: BTreeSet<Uuid>,
}

fn is_zero(fence: &u64) -> bool {
    *fence == 0
}

impl TryFrom<Written> for Members {
    type Error = RingError;

    fn try_from(written: Written) -> Result<Members, RingError> {
        let Written { cluster_id, epoch, slot_bits, members, fence, given_up } = written;
        let members = Members::new(cluster_id, epoch, Grid::new(slot_bits)?, members)?;
        Ok(Members { fence, given_up, ..members })
    }
}

impl From<Members> for Written {
    fn from(members: Members) -> Written {
        let Members { cluster_id, epoch, members, topology, fence, given_up } = members;
        Written { cluster_id, epoch, slot_bits: topology.grid().slot_bits(), members, fence, given_up }
    }
}

impl Members {
    fn new(cluster_id: Uuid, epoch: u64, grid: Grid, mut members: Vec<Member>) -> Result<Members, RingError> {
        members.sort_by_key(|member| member.candidate.host_id);
        let topology = Arc::new(Topology::new(grid, members.iter().map(Member::node).collect())?);
        Ok(Members { cluster_id, epoch, members, topology, fence: 0, given_up: BTreeSet::new() })
    }

    /// A ring of one node.
    ///
    /// # Errors
    /// It wants no tokens, more than there is room for, or some that are off the grid.
    pub fn founded(cluster_id: Uuid, founder: Candidate) -> Result<Members, RingError> {
        Members::chosen(cluster_id, 1, vec![founder])
    }

    /// The ring with one more node, which holds no data yet: so tokens of all are chosen anew, as if all had founded it
    /// together; or are those that the operators of all have chosen.
    ///
    /// # Errors
    /// It wants no tokens, more than there is room for, some that are off the grid or another node's; or is there
    /// already.
    ///
    /// # Panics
    /// When its operator has chosen its tokens and those of others have not, or the other way round.
    pub fn joined(&self, candidate: Candidate) -> Result<Members, RingError> {
        let mut candidates: Vec<Candidate> =
            self.members.iter().map(|member| member.candidate.clone()).collect();
        candidates.push(candidate);
        self.chosen_anew(candidates)
    }

    /// The ring without a member, which holds no data yet: as if the others had founded it together.
    ///
    /// # Errors
    /// There is no other one.
    pub fn removed(&self, host_id: Uuid) -> Result<Members, RingError> {
        let candidates = self.members.iter().map(|member| &member.candidate);
        let left = candidates.filter(|candidate| candidate.host_id != host_id).cloned().collect();
        let removed = self.chosen_anew(left)?;
        Ok(Members { fence: removed.epoch, ..removed })
    }

    /// The next epoch, in which these are the members, with tokens that are chosen anew.
    fn chosen_anew(&self, candidates: Vec<Candidate>) -> Result<Members, RingError> {
        let mut chosen = Members::chosen(self.cluster_id, self.epoch + 1, candidates)?;
        for member in &mut chosen.members {
            member.state =
                self.get(member.candidate.host_id).map_or(MemberState::Normal, |before| before.state);
        }
        Ok(Members { fence: self.fence, given_up: self.given_up.clone(), ..chosen })
    }

    /// The ring with some members that are elsewhere now; those that it does not have are passed over.
    pub fn present(&self, presences: &BTreeMap<Uuid, Presence>) -> Members {
        self.with_each(|Member { candidate, .. }| {
            if let Some(presence) = presences.get(&candidate.host_id) {
                candidate.set_presence(*presence);
            }
        })
    }

    /// The ring with another node in the place of a member, with that one's tokens. It has no rows yet.
    pub fn replaced(&self, replaced: Uuid, candidate: &Candidate) -> Members {
        let after = self.with_each(|member| {
            if member.candidate.host_id == replaced {
                let initial_tokens = std::mem::take(&mut member.candidate.initial_tokens);
                member.candidate = Candidate { initial_tokens, ..candidate.clone() };
                member.state = MemberState::Joining;
            }
        });
        Members { fence: after.epoch, ..after }
    }

    /// The ring once a member has the rows of its tokens.
    pub fn filled(&self, host_id: Uuid) -> Members {
        self.with_each(|member| {
            if member.candidate.host_id == host_id {
                member.state = MemberState::Normal;
            }
        })
    }

    /// The ring without what some members have.
    pub fn without(&self, lost: &BTreeSet<Uuid>) -> Members {
        let after = self.with_each(|member| {
            if lost.contains(&member.candidate.host_id) {
                member.state = MemberState::Lost;
            }
        });
        let given_up = &self.given_up | lost;
        Members { fence: after.epoch, given_up, ..after }
    }

    /// The next epoch, in which all tokens are taken as before.
    fn with_each(&self, change: impl FnMut(&mut Member)) -> Members {
        let mut members = self.members.clone();
        members.iter_mut().for_each(change);
        let members = Members::new(self.cluster_id, self.epoch + 1, self.topology.grid(), members);
        let given_up = self.given_up.clone();
        Members { fence: self.fence, given_up, ..members.expect("their tokens are as before") }
    }

    fn chosen(cluster_id: Uuid, epoch: u64, candidates: Vec<Candidate>) -> Result<Members, RingError> {
        let is_first_given = candidates.first().is_some_and(Candidate::has_initial_tokens);
        let are_alike = candidates.iter().all(|candidate| candidate.has_initial_tokens() == is_first_given);
        assert!(are_alike, "who is unlike the others was refused");
        let topology = match is_first_given {
            true => given(&candidates)?,
            false => found(&candidates.iter().map(Candidate::newcomer).collect::<Vec<Newcomer>>(), FACTOR)?,
        };
        let tokens_of = |candidate: &Candidate| {
            let index = topology.index_of(candidate.host_id).expect("it was among those that got tokens");
            topology.node(index).tokens.iter().map(|token| token.0).collect()
        };
        let member = |candidate: Candidate| Member {
            tokens: tokens_of(&candidate),
            candidate,
            state: MemberState::Normal,
        };
        let members = candidates.into_iter().map(member).collect();
        Members::new(cluster_id, epoch, topology.grid(), members)
    }

    /// Have the operators of all members chosen their tokens?
    pub fn have_initial_tokens(&self) -> bool {
        self.members.iter().all(|member| member.candidate.has_initial_tokens())
    }

    /// Drawn when the ring was founded: rings of one name are told apart by it.
    pub fn cluster_id(&self) -> Uuid {
        self.cluster_id
    }

    /// Counts the changes of the ring so far.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// All of them, by host id: in the order of the topology's nodes.
    pub fn list(&self) -> &[Member] {
        &self.members
    }

    /// The one with that id.
    pub fn get(&self, host_id: Uuid) -> Option<&Member> {
        self.topology.index_of(host_id).map(|index| &self.members[index.as_usize()])
    }

    /// The one at that place of the topology.
    pub fn at(&self, index: NodeIndex) -> &Member {
        &self.members[index.as_usize()]
    }

    /// The epoch since which somebody is no member any more, or what it has is given up; 0 as long as that never was.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// As they were written down, with those that had been given up before: an earlier program did not say it of those
    /// whose places others have.
    pub fn remembering(&self, before: Option<&Members>) -> Members {
        let lost = |members: &Members| {
            let lost = members.members.iter().filter(|member| member.state == MemberState::Lost);
            lost.map(|member| member.candidate.host_id).collect::<BTreeSet<Uuid>>()
        };
        let before = before.map(|before| &before.given_up | &lost(before)).unwrap_or_default();
        Members { given_up: &self.given_up | &before, ..self.clone() }
    }

    /// Was it a member that was given up?
    pub fn has_given_up(&self, host_id: Uuid) -> bool {
        let is_lost = |member: &Member| member.state == MemberState::Lost;
        self.given_up.contains(&host_id) || self.get(host_id).is_some_and(is_lost)
    }

    /// The member that knows the fewest forms of the history.
    pub fn oldest(&self) -> Option<&Candidate> {
        let counting = self.members.iter().filter(|member| member.state != MemberState::Lost);
        counting.map(|member| &member.candidate).min_by_key(|candidate| candidate.history_version)
    }

    /// Their tokens as a ring.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }
}

/// The ring of tokens that operators have chosen, on the coarsest grid that has them all.
fn given(candidates: &[Candidate]) -> Result<Topology, RingError> {
    let node = |candidate: &Candidate| {
        let tokens = candidate.initial_tokens.iter().map(|token| Token(*token)).collect();
        candidate.node(tokens)
    };
    let nodes: Vec<Node> = candidates.iter().map(node).collect();
    let grids = Grid::SLOT_BITS_MIN..Grid::SLOT_BITS_MAX;
    let coarse = grids.filter_map(|slot_bits| Topology::new(Grid::new(slot_bits).ok()?, nodes.clone()).ok());
    // What the finest has not, none has.
    coarse.map(Ok).next().unwrap_or_else(|| Topology::new(Grid::new(Grid::SLOT_BITS_MAX)?, nodes.clone()))
}

impl Candidate {
    /// Has its operator chosen its tokens?
    pub fn has_initial_tokens(&self) -> bool {
        !self.initial_tokens.is_empty()
    }

    fn node(&self, tokens: Vec<Token>) -> Node {
        let Newcomer { host_id, data_center, rack, num_tokens } = self.newcomer();
        Node { host_id, data_center, rack, num_tokens, tokens }
    }

    /// What of it may be another one when it starts again.
    pub fn presence(&self) -> Presence {
        let Candidate { address, cql_address, history_version, shard_count, .. } = *self;
        Presence { address, cql_address, history_version, shard_count: Some(shard_count) }
    }

    fn set_presence(&mut self, presence: Presence) {
        let Presence { address, cql_address, history_version, shard_count } = presence;
        (self.address, self.cql_address, self.history_version) = (address, cql_address, history_version);
        self.shard_count = shard_count.unwrap_or(self.shard_count);
    }

    fn newcomer(&self) -> Newcomer {
        Newcomer {
            host_id: self.host_id,
            data_center: self.data_center.clone(),
            rack: self.rack.clone(),
            num_tokens: self.num_tokens,
        }
    }
}

impl Member {
    fn node(&self) -> Node {
        self.candidate.node(self.tokens.iter().map(|token| Token(*token)).collect())
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A node of `dc1`.
    pub(crate) fn candidate(number: u8) -> Candidate {
        let host = |port| SocketAddr::from(([127, 0, 0, number], port));
        Candidate {
            host_id: Uuid::from_u128(u128::from(number)),
            address: host(7000),
            cql_address: host(9042),
            data_center: "dc1".to_owned(),
            rack: "r1".to_owned(),
            shard_count: 1,
            num_tokens: 16,
            initial_tokens: Vec::new(),
            history_version: super::super::HISTORY_VERSION,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::candidate;
    use super::*;

    #[test]
    fn nodes_that_join_an_empty_ring_share_it_as_if_they_had_founded_it() {
        let cluster_id = Uuid::from_u128(99);
        let mut members = Members::founded(cluster_id, candidate(2)).expect("a ring");
        for number in [3, 1] {
            members = members.joined(candidate(number)).expect("it joins");
        }
        assert_eq!((members.cluster_id(), members.epoch(), members.list().len()), (cluster_id, 3, 3));
        assert!(members.list().iter().all(|member| member.tokens.len() == 16));
        let newcomers: Vec<_> = (1..=3).map(|number| candidate(number).newcomer()).collect();
        assert_eq!(**members.topology(), found(&newcomers, FACTOR).expect("a ring"));
        assert!(members.joined(candidate(3)).is_err(), "it is there already");
        assert_eq!(members.get(Uuid::from_u128(3)).map(|member| &member.candidate), Some(&candidate(3)));
    }

    /// A node whose operator has chosen the ends of these slots of the coarsest grid.
    fn choosing(number: u8, slots: &[usize]) -> Candidate {
        let initial_tokens: Vec<i64> = slots.iter().map(|slot| Grid::COARSEST.last_token(*slot).0).collect();
        let num_tokens = u16::try_from(slots.len()).expect("a few");
        Candidate { initial_tokens, num_tokens, ..candidate(number) }
    }

    #[test]
    fn tokens_that_operators_choose_are_taken_and_stay_when_others_come() {
        let founded = Members::founded(Uuid::from_u128(99), choosing(1, &[7, 4_000])).expect("a ring");
        let joined = founded.joined(choosing(2, &[8, 2_000])).expect("it joins");
        for (number, slots) in [(1, [7, 4_000]), (2, [8, 2_000])] {
            let member = joined.get(Uuid::from_u128(number)).expect("a member");
            assert_eq!(member.tokens, slots.map(|slot| Grid::COARSEST.last_token(slot).0));
        }
        assert_eq!(joined.topology().grid(), Grid::COARSEST);
        let replaced = joined.replaced(Uuid::from_u128(1), &Candidate { num_tokens: 2, ..candidate(9) });
        assert!(replaced.have_initial_tokens(), "the place is one that an operator has chosen");
        let third = replaced.joined(choosing(3, &[1])).expect("it joins");
        assert_eq!(third.get(Uuid::from_u128(9)).map(|member| member.tokens.len()), Some(2));
        assert!(matches!(joined.joined(choosing(3, &[2_000])), Err(RingError::TokenTwice { .. })));
        let off_grid = Candidate { initial_tokens: vec![0], num_tokens: 1, ..candidate(3) };
        assert_eq!(
            joined.joined(off_grid).map_err(|error| error.to_string()).map(|_| ()),
            Err("token 0 is not the last one of a slot of 2^16; the nearest that is: -1".to_owned())
        );
        let text = serde_json::to_string(&joined).expect("text");
        assert_eq!(serde_json::from_str::<Members>(&text).expect("members"), joined);
    }

    #[test]
    fn a_grid_is_as_fine_as_chosen_tokens_need() {
        let fine = Grid::new(14).expect("a grid").last_token(4).0;
        let candidate = Candidate { initial_tokens: vec![fine], num_tokens: 1, ..candidate(1) };
        let members = Members::founded(Uuid::from_u128(99), candidate).expect("a ring");
        assert_eq!(members.topology().grid(), Grid::new(14).expect("a grid"));
    }

    #[test]
    fn who_takes_a_place_takes_its_tokens_and_counts_when_it_has_its_rows() {
        let cluster_id = Uuid::from_u128(99);
        let founded = Members::founded(cluster_id, candidate(1)).expect("a ring");
        let before = founded.joined(candidate(2)).expect("it joins");
        let id = |number: u8| candidate(number).host_id;
        let joining = before.replaced(id(1), &candidate(9));
        assert_eq!((joining.epoch(), joining.fence(), joining.list().len()), (3, 3, 2));
        let tokens = |members: &Members, number| members.get(id(number)).map(|member| member.tokens.clone());
        assert_eq!((tokens(&joining, 1), tokens(&joining, 9)), (None, tokens(&before, 1)));
        let text = serde_json::to_string(&joining).expect("text");
        assert_eq!(serde_json::from_str::<Members>(&text).expect("members"), joining);
        let states = |members: &Members| members.list().iter().map(|member| member.state).collect::<Vec<_>>();
        let joined = joining.joined(candidate(4)).expect("it joins");
        let (normal, joins) = (MemberState::Normal, MemberState::Joining);
        assert_eq!((states(&joined), joined.fence()), (vec![normal, normal, joins], 3));
        let filled = joining.filled(id(9));
        assert_eq!((states(&filled), filled.fence(), filled.epoch()), (vec![normal; 2], 3, 4));
        let without = filled.without(&[id(2)].into());
        assert_eq!((states(&without), without.fence()), (vec![MemberState::Lost, normal], 5));
        let again = without.replaced(id(2), &candidate(3)).joined(candidate(4)).expect("it joins");
        let text = serde_json::to_string(&again).expect("text");
        assert_eq!(serde_json::from_str::<Members>(&text).expect("members"), again);
        let given_up = |members: &Members| [1, 2, 3, 9].map(|number| members.has_given_up(id(number)));
        assert_eq!(given_up(&without), [false, true, false, false]);
        assert_eq!(given_up(&again), [false, true, false, false], "though another has its place");
    }

    #[test]
    fn members_survive_as_text_and_no_ring_is_made_of_others() {
        let members = Members::founded(Uuid::from_u128(9), candidate(1)).expect("a ring");
        let text = serde_json::to_string(&members).expect("text");
        assert_eq!(serde_json::from_str::<Members>(&text).expect("members"), members);
        let off_grid = text.replacen(&members.list()[0].tokens[0].to_string(), "17", 1);
        let error = serde_json::from_str::<Members>(&off_grid).expect_err("off the grid");
        assert!(error.to_string().contains("token 17 is not the last one of a slot"), "{error}");
    }
}
