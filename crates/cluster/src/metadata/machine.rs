//! Metadata as what an agreement makes of its log: each command is an entry of the history, or refused. The same on all
//! nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use schema::{Schema, Transformation};
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

use super::command::{HISTORY_VERSION, encode_outcome};
use super::replacement::replace;
use super::touched::{Part, Touched};
use super::{Agreed, Candidate, Command, Entry, Member, MemberState, Members, Metadata, Presence, Refusal};
use crate::raft::Machine;

/// Makes history.
pub struct MetadataMachine {
    metadata: Metadata,
    /// Keyspaces that every node is born with: what they hold may go anywhere.
    born_with: BTreeSet<String>,
    history: Vec<Entry>,
    touched: Touched,
    /// Takes each entry, from the first one on.
    taker: UnboundedSender<Entry>,
}

impl MetadataMachine {
    /// Before anything is agreed on. Each entry goes to `taker` as it is made; again from the first one, when the node
    /// starts again.
    pub fn new(base: Arc<Schema>, taker: UnboundedSender<Entry>) -> MetadataMachine {
        let born_with = base.keyspaces().keys().cloned().collect();
        let (history, touched) = (Vec::new(), Touched::default());
        MetadataMachine { metadata: Metadata::new(base), born_with, history, touched, taker }
    }

    /// Who the members are.
    pub fn members(&self) -> Option<&Arc<Members>> {
        self.metadata.members.as_ref()
    }

    fn carry_out(&mut self, command: Command) -> Result<(), Refusal> {
        match command {
            Command::Found { cluster_id, history, founder } => self.found(cluster_id, history, founder),
            Command::ChangeSchema { based_on, change } => self.change_schema(based_on, change),
            Command::Join { candidate } => self.join(candidate),
            Command::Present { presences } => self.present(&presences),
            Command::Replace { candidate, replaced, found_dead } => {
                self.replace(candidate, replaced, found_dead)
            }
            Command::Remove { host_id } => self.remove(host_id),
            Command::Filled { host_id } => self.filled(host_id),
            Command::GiveUp { lost } => self.give_up(&lost),
        }
    }

    fn found(
        &mut self,
        cluster_id: Uuid,
        history: Vec<Transformation>,
        founder: Candidate,
    ) -> Result<(), Refusal> {
        if self.metadata.members.is_some() {
            return Err(Refusal::Founded);
        }
        check_token_count(&founder)?;
        let members = Members::founded(cluster_id, founder).map_err(bad_candidate)?;
        // All or nothing: what does not fit is found before anything is taken.
        let mut schema = Schema::clone(&self.metadata.schema);
        for change in &history {
            schema = change.apply(&schema).map_err(bad_schema)?;
        }
        for change in history {
            self.take_change(change)?;
        }
        self.take(Entry::Members { members: Box::new(members) })
    }

    fn change_schema(&mut self, based_on: u64, change: Transformation) -> Result<(), Refusal> {
        let members = self.metadata.members.as_ref().ok_or(Refusal::NotFounded)?;
        let current = self.metadata.schema.epoch();
        if based_on > current || self.is_contradicted(&change, based_on) {
            return Err(Refusal::Moved { based_on, current });
        }
        if let Transformation::AlterKeyspace { name, replication, .. } = &change
            && let Some(keyspace) = self.metadata.schema.keyspace(name)
            && members.list().len() > 1
            && keyspace.replication != *replication
            && !keyspace.tables.is_empty()
            && !self.born_with.contains(name)
        {
            let what = "its replication stays as it is".to_owned();
            return Err(Refusal::HoldsData { keyspace: name.clone(), what });
        }
        self.take_change(change)
    }

    fn is_contradicted(&self, change: &Transformation, based_on: u64) -> bool {
        self.touched.contradicts(&Part::of(change, &self.metadata.schema), based_on)
    }

    fn join(&mut self, candidate: Candidate) -> Result<(), Refusal> {
        let members = self.metadata.members.as_ref().ok_or(Refusal::NotFounded)?;
        if members.get(candidate.host_id).is_some() {
            return self.join_again(&candidate);
        }
        if let Some(there) =
            members.list().iter().find(|member| member.candidate.address == candidate.address)
        {
            let (address, host_id) = (candidate.address, there.candidate.host_id);
            let what = format!(
                "at {address} there is node {host_id} already, a member of the ring: to take its place, when it is \
                 dead, start with --replace-address {address}"
            );
            return Err(Refusal::Candidate { what });
        }
        check_not_older(members, &candidate)?;
        check_tokens(members, &candidate)?;
        self.check_holds_nothing("no node can join the ring")?;
        let members = members.joined(candidate).map_err(bad_candidate)?;
        self.take(Entry::Members { members: Box::new(members) })
    }

    /// A member asks to be one: it was let in and did not hear of it, and may be elsewhere by now.
    fn join_again(&mut self, candidate: &Candidate) -> Result<(), Refusal> {
        let members = self.metadata.members.as_ref().ok_or(Refusal::NotFounded)?;
        if let Some(member) = members.get(candidate.host_id) {
            check_same(&member.candidate, candidate)?;
        }
        self.present(&BTreeMap::from([(candidate.host_id, candidate.presence())]))
    }

    fn replace(
        &mut self,
        candidate: Candidate,
        replaced: SocketAddr,
        found_dead: Option<Uuid>,
    ) -> Result<(), Refusal> {
        let members = self.metadata.members.as_ref().ok_or(Refusal::NotFounded)?;
        if members.get(candidate.host_id).is_some() {
            return self.join_again(&candidate);
        }
        check_not_older(members, &candidate)?;
        let after = replace(members, &self.metadata.schema, &candidate, (replaced, found_dead))?;
        self.take(Entry::Members { members: Box::new(after) })
    }

    fn remove(&mut self, host_id: Uuid) -> Result<(), Refusal> {
        let members = self.metadata.members.as_ref().ok_or(Refusal::NotFounded)?;
        if members.get(host_id).is_none() {
            return Err(Refusal::Candidate { what: format!("node {host_id} is no member of the ring") });
        }
        if members.list().len() == 1 {
            return Err(Refusal::Candidate {
                what: format!("node {host_id} is the last member of the ring"),
            });
        }
        self.check_holds_nothing("no member can be removed from the ring")?;
        let members = members.removed(host_id).map_err(bad_candidate)?;
        self.take(Entry::Members { members: Box::new(members) })
    }

    /// Would no data have to move if tokens were chosen anew?
    fn check_holds_nothing(&self, what: &str) -> Result<(), Refusal> {
        let mut keyspaces = self.metadata.schema.keyspaces().values();
        let holds_data = keyspaces
            .find(|keyspace| !keyspace.tables.is_empty() && !self.born_with.contains(&keyspace.name));
        match holds_data {
            None => Ok(()),
            Some(keyspace) => {
                Err(Refusal::HoldsData { keyspace: keyspace.name.clone(), what: what.to_owned() })
            }
        }
    }

    fn filled(&mut self, host_id: Uuid) -> Result<(), Refusal> {
        let members = self.metadata.members.as_ref().ok_or(Refusal::NotFounded)?;
        match members.get(host_id).map(|member| member.state) {
            Some(MemberState::Joining) => {
                let after = members.filled(host_id);
                self.take(Entry::Members { members: Box::new(after) })
            }
            Some(MemberState::Normal) => Ok(()),
            Some(MemberState::Lost) | None => {
                Err(Refusal::Candidate { what: format!("node {host_id} is no member of the ring any more") })
            }
        }
    }

    fn give_up(&mut self, lost: &BTreeSet<Uuid>) -> Result<(), Refusal> {
        let members = self.metadata.members.as_ref().ok_or(Refusal::NotFounded)?;
        let after = members.without(lost);
        self.take(Entry::Members { members: Box::new(after) })
    }

    fn present(&mut self, presences: &BTreeMap<Uuid, Presence>) -> Result<(), Refusal> {
        let members = self.metadata.members.as_ref().ok_or(Refusal::NotFounded)?;
        if let Some(stranger) = presences.keys().find(|host_id| members.get(**host_id).is_none()) {
            return Err(Refusal::Candidate { what: format!("node {stranger} is no member of the ring") });
        }
        let after = members.present(presences);
        if after.list() == members.list() {
            return Ok(());
        }
        let mut addresses = BTreeMap::new();
        for Member { candidate, .. } in after.list() {
            if let Some(other) = addresses.insert(candidate.address, candidate.host_id) {
                let what =
                    format!("nodes {other} and {} are both at {}", candidate.host_id, candidate.address);
                return Err(Refusal::Candidate { what });
            }
        }
        self.take(Entry::Members { members: Box::new(after) })
    }

    fn take_change(&mut self, change: Transformation) -> Result<(), Refusal> {
        self.take(Entry::Schema { epoch: self.metadata.schema.epoch() + 1, change })
    }

    fn take(&mut self, entry: Entry) -> Result<(), Refusal> {
        let after = self.metadata.after(&entry).map_err(bad_schema)?;
        if let Entry::Schema { epoch, change } = &entry {
            self.touched.note(&Part::of(change, &self.metadata.schema), *epoch);
        }
        self.metadata = after;
        self.history.push(entry.clone());
        // Nobody takes entries of a node that ends.
        _ = self.taker.send(entry);
        Ok(())
    }
}

impl Machine for MetadataMachine {
    fn apply(&mut self, index: u64, command: &[u8]) -> Result<Bytes, String> {
        let command = Command::decode(command).map_err(|refusal| {
            format!(
                "entry {index} of what was agreed on is unknown to this program, which knows version {HISTORY_VERSION} \
                 of the history: start a later one ({refusal})"
            )
        })?;
        let agreed = self.carry_out(command).map(|()| Agreed {
            schema_epoch: self.metadata.schema.epoch(),
            ring_epoch: self.metadata.ring_epoch(),
        });
        Ok(encode_outcome(&agreed))
    }

    fn listens_to(&self, node: Uuid) -> bool {
        let member = self.members().and_then(|members| members.get(node));
        member.is_some_and(|member| member.state != MemberState::Lost)
    }

    fn may_be_proposed(&self, command: &[u8]) -> Result<(), String> {
        let command = Command::decode(command).map_err(|refusal| refusal.to_string())?;
        match (&command, self.members()) {
            (Command::GiveUp { .. }, _) => Err("members are given up by force only".to_owned()),
            (Command::Found { .. }, Some(_)) => Err(Refusal::Founded.to_string()),
            (_, members) => members.map_or(Ok(()), |members| command.check_known(members)),
        }
    }

    fn snapshot(&self) -> Bytes {
        serde_json::to_vec(&self.history).expect("all of its keys are texts").into()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        let history: Vec<Entry> = serde_json::from_slice(snapshot).map_err(|error| error.to_string())?;
        let left = history.get(self.history.len()..).ok_or("it is older than what was agreed on here")?;
        for entry in left {
            self.take(entry.clone()).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Nobody comes in who knows less than all others.
fn check_not_older(members: &Members, candidate: &Candidate) -> Result<(), Refusal> {
    match members.oldest().filter(|oldest| candidate.history_version < oldest.history_version) {
        None => Ok(()),
        Some(oldest) => Err(Refusal::Candidate {
            what: format!(
                "its program knows version {} of the history, and all members' version {} at least",
                candidate.history_version, oldest.history_version
            ),
        }),
    }
}

/// Has its operator chosen its tokens where all have, and not where none has? With tokens of both kinds, one node more
/// could be evened out with the others by nobody.
fn check_tokens(members: &Members, candidate: &Candidate) -> Result<(), Refusal> {
    let what = match (candidate.has_initial_tokens(), members.have_initial_tokens()) {
        (true, false) => "its tokens are given (`initial_token`), and those of the members are not",
        (false, true) => "its tokens are not given, and those of all members are (`initial_token`)",
        _ => return check_token_count(candidate),
    };
    Err(Refusal::Candidate { what: what.to_owned() })
}

fn check_token_count(candidate: &Candidate) -> Result<(), Refusal> {
    let Candidate { initial_tokens, num_tokens, .. } = candidate;
    match candidate.has_initial_tokens() && initial_tokens.len() != usize::from(*num_tokens) {
        true => {
            let what =
                format!("its {} tokens are given, and num_tokens is {num_tokens}", initial_tokens.len());
            Err(Refusal::Candidate { what })
        }
        false => Ok(()),
    }
}

/// Is it what it was, whatever its addresses and however many shards it has?
pub(crate) fn check_same(member: &Candidate, candidate: &Candidate) -> Result<(), Refusal> {
    let (was, is) = (fixed(member), fixed(candidate));
    if was == is {
        return Ok(());
    }
    let what = format!("node {} is a member of the ring in {was} and can not be one in {is}", member.host_id);
    Err(Refusal::Candidate { what })
}

/// What of a member stays, in words.
fn fixed(candidate: &Candidate) -> String {
    let Candidate { data_center, rack, num_tokens, .. } = candidate;
    format!("{data_center}, {rack}, with num_tokens {num_tokens}")
}

fn bad_candidate(error: ring::RingError) -> Refusal {
    Refusal::Candidate { what: error.to_string() }
}

fn bad_schema(error: impl std::fmt::Display) -> Refusal {
    Refusal::Schema { what: error.to_string() }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
