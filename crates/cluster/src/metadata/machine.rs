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
            let what = format!("at {address} there is node {host_id} already, a member of the ring");
            return Err(Refusal::Candidate { what });
        }
        check_not_older(members, &candidate)?;
        let mut keyspaces = self.metadata.schema.keyspaces().values();
        let holds_data = keyspaces
            .find(|keyspace| !keyspace.tables.is_empty() && !self.born_with.contains(&keyspace.name));
        if let Some(keyspace) = holds_data {
            let what = "no node can join the ring".to_owned();
            return Err(Refusal::HoldsData { keyspace: keyspace.name.clone(), what });
        }
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

/// Is it what it was, whatever its addresses?
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
    let Candidate { data_center, rack, shard_count, num_tokens, .. } = candidate;
    format!("{data_center}, {rack}, with {shard_count} shards and num_tokens {num_tokens}")
}

fn bad_candidate(error: ring::RingError) -> Refusal {
    Refusal::Candidate { what: error.to_string() }
}

fn bad_schema(error: impl std::fmt::Display) -> Refusal {
    Refusal::Schema { what: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schema::{ColumnKind, Replication, TableBuilder, TableId};
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
    use types::{CqlType, UserType};

    use super::super::command::{check_version, decode_outcome};
    use super::super::members::testing::candidate;
    use super::*;

    struct Ring {
        machine: MetadataMachine,
        taken: UnboundedReceiver<Entry>,
    }

    impl Ring {
        fn new() -> Ring {
            let (taker, taken) = unbounded_channel();
            Ring { machine: MetadataMachine::new(Arc::default(), taker), taken }
        }

        fn founded() -> Ring {
            let mut ring = Ring::new();
            let founder = candidate(1);
            let found = Command::Found { cluster_id: Uuid::from_u128(9), history: Vec::new(), founder };
            assert_eq!(ring.propose(found), agreed(0, 1));
            ring
        }

        fn propose(&mut self, command: Command) -> Result<Agreed, Refusal> {
            let encoded = command.encode();
            self.machine.may_be_proposed(&encoded).expect("all know it");
            self.apply(&command)
        }

        /// As one that is in the log.
        fn apply(&mut self, command: &Command) -> Result<Agreed, Refusal> {
            decode_outcome(&self.machine.apply(1, &command.encode()).expect("it is known"))
        }

        fn change(&mut self, based_on: u64, change: Transformation) -> Result<Agreed, Refusal> {
            self.propose(Command::ChangeSchema { based_on, change })
        }

        fn entries(&mut self) -> Vec<Entry> {
            std::iter::from_fn(|| self.taken.try_recv().ok()).collect()
        }
    }

    fn agreed(schema_epoch: u64, ring_epoch: u64) -> Result<Agreed, Refusal> {
        Ok(Agreed { schema_epoch, ring_epoch })
    }

    fn replication(factor: u32) -> Replication {
        let options = BTreeMap::from([("replication_factor".to_owned(), factor.to_string())]);
        Replication { class: "org.apache.cassandra.locator.SimpleStrategy".to_owned(), options }
    }

    fn keyspace() -> Transformation {
        Transformation::CreateKeyspace { name: "k".into(), replication: replication(3), durable_writes: true }
    }

    fn table(name: &str) -> Transformation {
        let id = TableId(Uuid::from_u128(name.bytes().map(u128::from).sum()));
        let table = TableBuilder::new(id, "k", name).column("a", ColumnKind::PartitionKey(0), CqlType::Int);
        Transformation::CreateTable { table: Box::new(table.build().expect("a sound table")) }
    }

    #[test]
    fn a_ring_is_founded_once_and_with_what_its_founder_has_made() {
        let mut ring = Ring::new();
        assert_eq!(ring.change(0, keyspace()), Err(Refusal::NotFounded));
        assert_eq!(ring.propose(Command::Join { candidate: candidate(2) }), Err(Refusal::NotFounded));
        let found =
            |history| Command::Found { cluster_id: Uuid::from_u128(9), history, founder: candidate(1) };
        assert!(matches!(ring.propose(found(vec![table("t")])), Err(Refusal::Schema { .. })));
        assert_eq!(ring.entries(), [], "nothing of it was taken");
        assert_eq!(ring.propose(found(vec![keyspace(), table("t")])), agreed(2, 1));
        // It is proposed no more, and changes nothing if it was before.
        assert!(ring.machine.may_be_proposed(&found(Vec::new()).encode()).is_err());
        assert_eq!(ring.apply(&found(Vec::new())), Err(Refusal::Founded));
        assert_eq!(ring.entries().len(), 3);
    }

    #[test]
    fn members_are_listened_to_and_nobody_proposes_to_give_one_up() {
        let mut ring = Ring::new();
        let [first, second] = [1, 2].map(|number| candidate(number).host_id);
        assert!(!ring.machine.listens_to(first), "there is no ring");
        ring = Ring::founded();
        ring.propose(Command::Join { candidate: candidate(2) }).expect("it joins");
        assert!(ring.machine.listens_to(first) && ring.machine.listens_to(second));
        assert!(!ring.machine.listens_to(candidate(3).host_id), "a stranger");
        let give_up = Command::GiveUp { lost: BTreeSet::from([second]) };
        assert!(ring.machine.may_be_proposed(&give_up.encode()).is_err());
        ring.apply(&give_up).expect("it is written by force");
        assert!(ring.machine.listens_to(first) && !ring.machine.listens_to(second));
    }

    #[test]
    fn nodes_join_as_long_as_no_data_would_have_to_move() {
        let mut ring = Ring::founded();
        ring.change(0, keyspace()).expect("a keyspace is no data");
        assert_eq!(ring.propose(Command::Join { candidate: candidate(2) }), agreed(1, 2));
        assert_eq!(ring.propose(Command::Join { candidate: candidate(2) }), agreed(1, 2), "once");
        let in_another_rack = Candidate { rack: "another".into(), ..candidate(2) };
        assert!(matches!(
            ring.propose(Command::Join { candidate: in_another_rack }),
            Err(Refusal::Candidate { .. })
        ));
        let in_its_place = Candidate { host_id: Uuid::from_u128(77), ..candidate(2) };
        assert!(matches!(
            ring.propose(Command::Join { candidate: in_its_place }),
            Err(Refusal::Candidate { .. })
        ));
        ring.change(1, table("t")).expect("a table");
        let refused = ring.propose(Command::Join { candidate: candidate(3) });
        assert!(matches!(refused, Err(Refusal::HoldsData { .. })), "{refused:?}");
        let alter = Transformation::AlterKeyspace {
            name: "k".into(),
            replication: replication(1),
            durable_writes: true,
        };
        assert!(matches!(ring.change(2, alter), Err(Refusal::HoldsData { .. })));
        let same = Transformation::AlterKeyspace {
            name: "k".into(),
            replication: replication(3),
            durable_writes: false,
        };
        assert_eq!(ring.change(2, same), agreed(3, 2));
    }

    #[test]
    fn a_node_takes_the_place_of_a_member_also_in_a_ring_that_holds_data() {
        let mut ring = Ring::founded();
        for number in 2..=4 {
            ring.propose(Command::Join { candidate: candidate(number) }).expect("it joins");
        }
        ring.change(0, keyspace()).expect("a keyspace");
        ring.change(1, table("t")).expect("a table");
        let replace = |newcomer: Candidate, place: u8| {
            let candidate = Candidate { address: candidate(place).address, ..newcomer };
            Command::Replace { candidate, replaced: self::candidate(place).address, found_dead: None }
        };
        let unknown = ring.propose(replace(candidate(12), 7));
        assert!(matches!(unknown, Err(Refusal::Candidate { .. })), "{unknown:?}");
        let heavier = ring.propose(replace(Candidate { num_tokens: 32, ..candidate(12) }, 2));
        assert!(matches!(heavier, Err(Refusal::Candidate { .. })), "{heavier:?}");
        assert_eq!(ring.propose(replace(candidate(12), 2)), agreed(2, 5));
        assert_eq!(ring.propose(replace(candidate(12), 2)), agreed(2, 5), "once");
        // Of some range, two of three replicas would be unreadable.
        let second = ring.propose(replace(candidate(13), 3));
        let Err(Refusal::Candidate { what }) = second else { panic!("{second:?}") };
        assert!(what.contains("is getting its rows"), "{what}");
        // The one that is joining has lost its disk, too.
        assert_eq!(ring.propose(replace(candidate(22), 2)), agreed(2, 6));
        let gone = ring.propose(Command::Filled { host_id: candidate(12).host_id });
        assert!(matches!(gone, Err(Refusal::Candidate { .. })), "{gone:?}");
        assert_eq!(ring.propose(Command::Filled { host_id: candidate(22).host_id }), agreed(2, 7));
        assert_eq!(ring.propose(Command::Filled { host_id: candidate(22).host_id }), agreed(2, 7), "once");
        assert_eq!(ring.propose(replace(candidate(13), 3)), agreed(2, 8));
    }

    /// It was found dead, and by the time that this is agreed on somebody else is where it was: it lives.
    #[test]
    fn the_place_of_another_one_than_was_found_dead_is_not_taken() {
        let mut ring = Ring::founded();
        for number in 2..=4 {
            ring.propose(Command::Join { candidate: candidate(number) }).expect("it joins");
        }
        let [second, third] = [2, 3].map(candidate);
        let replace = |found_dead: &Candidate| Command::Replace {
            candidate: Candidate { address: candidate(12).address, ..candidate(12) },
            replaced: candidate(2).address,
            found_dead: Some(found_dead.host_id),
        };
        let presences = [(&second, candidate(9)), (&third, candidate(2))];
        let presences = presences.map(|(member, place)| (member.host_id, place.presence())).into();
        ring.propose(Command::Present { presences }).expect("they are elsewhere");
        let refused = ring.propose(replace(&second));
        let Err(Refusal::Candidate { what }) = refused else { panic!("{refused:?}") };
        assert!(what.contains("was found dead"), "{what}");
        assert_eq!(ring.propose(replace(&third)), agreed(0, 6));
    }

    #[test]
    fn a_replacement_says_who_was_found_dead_only_where_all_look_at_it() {
        let mut ring = Ring::founded();
        let earlier = Candidate { history_version: 1, ..candidate(1) };
        let presences = [(earlier.host_id, earlier.presence())].into();
        ring.apply(&Command::Present { presences }).expect("it runs an earlier program");
        let replace = |found_dead| {
            let command =
                Command::Replace { candidate: candidate(12), replaced: candidate(1).address, found_dead };
            command.encode()
        };
        assert!(ring.machine.may_be_proposed(&replace(Some(earlier.host_id))).is_err());
        assert_eq!(ring.machine.may_be_proposed(&replace(None)), Ok(()));
        let text = String::from_utf8(replace(None).to_vec()).expect("text");
        assert!(!text.contains("found_dead"), "{text}");
    }

    #[test]
    fn who_was_given_up_is_known_also_of_what_an_earlier_program_has_written() {
        let mut ring = Ring::founded();
        for number in 2..=3 {
            ring.propose(Command::Join { candidate: candidate(number) }).expect("it joins");
        }
        let lost = candidate(2);
        ring.apply(&Command::GiveUp { lost: BTreeSet::from([lost.host_id]) }).expect("by force");
        let replaced = lost.address;
        let replace = Command::Replace { candidate: candidate(12), replaced, found_dead: None };
        ring.propose(replace).expect("its place is taken");
        let history = String::from_utf8(ring.machine.snapshot().to_vec()).expect("text");
        let given_up = format!(r#","given_up":["{}"]"#, lost.host_id);
        assert_eq!(history.matches(&given_up).count(), 2);
        let (taker, mut taken) = unbounded_channel();
        let mut machine = MetadataMachine::new(Arc::default(), taker);
        machine.restore(history.replace(&given_up, "").as_bytes()).expect("it is later");
        assert!(machine.members().expect("a ring").has_given_up(lost.host_id));
        // And so does what a node knows that is told of it entry by entry.
        let told = std::iter::from_fn(|| taken.try_recv().ok());
        let members = told.fold(None, |before: Option<Arc<Members>>, entry| match entry {
            Entry::Members { members } => Some(Arc::new(members.remembering(before.as_deref()))),
            Entry::Schema { .. } => before,
        });
        assert!(members.expect("a ring").has_given_up(lost.host_id));
    }

    #[test]
    fn members_are_found_elsewhere_also_where_another_one_was() {
        let mut ring = Ring::founded();
        ring.propose(Command::Join { candidate: candidate(2) }).expect("it joins");
        ring.propose(Command::Join { candidate: candidate(3) }).expect("it joins");
        let at = |places: &[(u8, u8)]| {
            let presence = |(who, place): &(u8, u8)| (candidate(*who).host_id, candidate(*place).presence());
            Command::Present { presences: places.iter().map(presence).collect() }
        };
        let before = Arc::clone(ring.machine.members().expect("a ring"));
        assert_eq!(ring.propose(at(&[(2, 9)])), agreed(0, 4));
        assert_eq!(ring.propose(at(&[(2, 9)])), agreed(0, 4), "it is there already");
        let taken = ring.propose(at(&[(1, 3)]));
        assert!(matches!(taken, Err(Refusal::Candidate { .. })), "{taken:?}");
        assert_eq!(ring.propose(at(&[(1, 3), (3, 1)])), agreed(0, 5), "they change their places");
        let stranger = ring.propose(at(&[(7, 7)]));
        assert!(matches!(stranger, Err(Refusal::Candidate { .. })), "{stranger:?}");
        let after = ring.machine.members().expect("a ring");
        assert_eq!(after.topology(), before.topology(), "nobody's tokens change");
        let addresses = after.list().iter().map(|member| member.candidate.address);
        assert!(addresses.eq([3, 9, 1].map(|number| candidate(number).address)));
        // One that was let in and did not hear of it asks again, from elsewhere.
        let again = Candidate { address: candidate(5).address, ..candidate(2) };
        assert_eq!(ring.propose(Command::Join { candidate: again }), agreed(0, 6));
    }

    #[test]
    fn changes_of_different_tables_do_not_contradict_each_other() {
        let mut ring = Ring::founded();
        assert_eq!(ring.change(0, keyspace()), agreed(1, 1));
        assert_eq!(ring.change(1, table("one")), agreed(2, 1));
        assert_eq!(ring.change(1, table("two")), agreed(3, 1));
        assert_eq!(ring.change(1, table("one")), Err(Refusal::Moved { based_on: 1, current: 3 }));
        let drop = Transformation::DropKeyspace { name: "k".into() };
        assert_eq!(ring.change(2, drop), Err(Refusal::Moved { based_on: 2, current: 3 }));
        assert_eq!(ring.change(9, table("x")), Err(Refusal::Moved { based_on: 9, current: 3 }));
    }

    #[test]
    fn a_new_type_is_in_nobodys_way_and_one_that_is_there_is_in_all_tables_way() {
        let put = |name: &str, field: &str| {
            let fields = vec![(field.to_owned(), CqlType::Int)];
            let definition = UserType { keyspace: "k".into(), name: name.into(), fields };
            Transformation::PutType {
                cql_type: CqlType::UserDefined { definition: definition.into(), frozen: false },
            }
        };
        let moved = |current| Err(Refusal::Moved { based_on: 1, current });
        let mut ring = Ring::founded();
        assert_eq!(ring.change(0, keyspace()), agreed(1, 1));
        assert_eq!(ring.change(1, table("one")), agreed(2, 1));
        assert_eq!(ring.change(1, put("a", "x")), agreed(3, 1), "a table came first");
        assert_eq!(ring.change(1, put("b", "x")), agreed(4, 1), "another type came first");
        assert_eq!(ring.change(1, table("two")), agreed(5, 1), "types came first");
        assert_eq!(ring.change(1, put("a", "y")), moved(5), "it is there");
        assert_eq!(ring.change(5, put("a", "y")), agreed(6, 1));
        assert_eq!(ring.change(1, put("c", "x")), moved(6), "it may have the changed one in it");
        assert_eq!(ring.change(1, table("three")), moved(6), "likewise");
    }

    #[test]
    fn a_snapshot_gives_who_is_behind_the_entries_that_it_lacks() {
        let mut ring = Ring::founded();
        ring.change(0, keyspace()).expect("a keyspace");
        let mut behind = Ring::founded();
        behind.entries();
        let ahead = ring.machine.snapshot();
        behind.machine.restore(&ahead).expect("it is later");
        assert_eq!(behind.entries(), ring.entries()[1..]);
        assert_eq!(behind.machine.snapshot(), ahead);
        assert_eq!(behind.change(1, table("t")), agreed(2, 1));
        assert!(behind.machine.restore(&ahead).is_err(), "it is older");
        assert!(behind.machine.restore(b"{").is_err());
    }

    #[test]
    fn who_can_not_read_a_command_ends_and_proposes_none_that_others_can_not_read() {
        let mut ring = Ring::founded();
        ring.entries();
        let unknown = b"{\"promote\":1}";
        assert!(ring.machine.may_be_proposed(unknown).is_err());
        let ends = ring.machine.apply(2, unknown).expect_err("it is not known");
        assert!(ends.contains("entry 2") && ends.contains("start a later one"), "{ends}");
        assert_eq!(ring.entries(), []);
    }

    #[test]
    fn what_one_member_does_not_know_is_not_proposed() {
        let mut ring = Ring::founded();
        let next = HISTORY_VERSION + 1;
        let later = Candidate { history_version: next, ..candidate(2) };
        ring.propose(Command::Join { candidate: later.clone() }).expect("it joins");
        let members = |ring: &Ring| Arc::clone(ring.machine.members().expect("a ring"));
        let refused = check_version(next, &members(&ring)).expect_err("the first does not know it");
        assert!(refused.contains("127.0.0.1:7000"), "{refused}");
        // It is started with a later program.
        let presence = Presence { history_version: next, ..candidate(1).presence() };
        let presences = BTreeMap::from([(candidate(1).host_id, presence)]);
        assert_eq!(ring.propose(Command::Present { presences }), agreed(0, 3));
        assert_eq!(check_version(next, &members(&ring)), Ok(()));
        let earlier = ring.propose(Command::Join { candidate: candidate(3) });
        assert!(matches!(earlier, Err(Refusal::Candidate { .. })), "{earlier:?}");
    }
}
