//! Tests of the machine of the metadata.

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
    let found = |history| Command::Found { cluster_id: Uuid::from_u128(9), history, founder: candidate(1) };
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
    let refused = ring.propose(Command::Join { candidate: in_its_place }).expect_err("somebody is there");
    assert!(refused.to_string().ends_with("start with --replace-address 127.0.0.2:7000"), "{refused}");
    ring.change(1, table("t")).expect("a table");
    let refused = ring.propose(Command::Join { candidate: candidate(3) });
    assert!(matches!(refused, Err(Refusal::HoldsData { .. })), "{refused:?}");
    let alter =
        Transformation::AlterKeyspace { name: "k".into(), replication: replication(1), durable_writes: true };
    assert!(matches!(ring.change(2, alter), Err(Refusal::HoldsData { .. })));
    let same = Transformation::AlterKeyspace {
        name: "k".into(),
        replication: replication(3),
        durable_writes: false,
    };
    assert_eq!(ring.change(2, same), agreed(3, 2));
}

/// A node that nobody could reach was let in, and stayed for ever, as down.
#[test]
fn a_member_is_removed_as_long_as_no_data_would_have_to_move() {
    let mut ring = Ring::founded();
    let [first, second, third] = [1, 2, 3].map(|number| candidate(number).host_id);
    for number in [2, 3] {
        ring.propose(Command::Join { candidate: candidate(number) }).expect("it joins");
    }
    let stranger = ring.propose(Command::Remove { host_id: candidate(7).host_id });
    assert!(matches!(stranger, Err(Refusal::Candidate { .. })), "{stranger:?}");
    assert_eq!(ring.propose(Command::Remove { host_id: second }), agreed(0, 4));
    let members = ring.machine.members().expect("a ring").clone();
    assert_eq!((members.list().len(), members.fence()), (2, 4));
    assert!(members.get(second).is_none() && members.get(third).is_some());
    assert!(!ring.machine.listens_to(second));
    ring.change(0, keyspace()).expect("a keyspace is no data");
    ring.change(1, table("t")).expect("a table");
    let refused = ring.propose(Command::Remove { host_id: third });
    assert!(matches!(refused, Err(Refusal::HoldsData { .. })), "{refused:?}");
    let mut ring = Ring::founded();
    let last = ring.propose(Command::Remove { host_id: first });
    assert!(matches!(last, Err(Refusal::Candidate { .. })), "{last:?}");
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
fn a_member_may_have_another_number_of_shards() {
    let mut ring = Ring::founded();
    let more = Candidate { shard_count: 3, ..candidate(1) };
    let shards = |ring: &Ring| ring.machine.members().expect("a ring").list()[0].candidate.shard_count;
    ring.propose(Command::Present { presences: [(more.host_id, more.presence())].into() }).expect("it has");
    assert_eq!(shards(&ring), 3);
    // As an earlier program says it.
    let silent = Presence { shard_count: None, ..candidate(1).presence() };
    assert!(!serde_json::to_string(&silent).expect("JSON").contains("shard_count"));
    ring.propose(Command::Present { presences: [(more.host_id, silent)].into() }).expect("it is there");
    assert_eq!(shards(&ring), 3);
    ring.propose(Command::Join { candidate: candidate(1) }).expect("it is a member");
    assert_eq!(shards(&ring), candidate(1).shard_count, "that of one that asks to be one again");
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

#[test]
fn tokens_are_given_to_all_members_or_to_none() {
    let given = |number: u8, tokens: &[i64]| Candidate {
        initial_tokens: tokens.to_vec(),
        num_tokens: 1,
        ..candidate(number)
    };
    let check = |outcome: Result<Agreed, Refusal>, expected: &str| match outcome {
        Err(Refusal::Candidate { what }) => assert!(what.contains(expected), "{what}"),
        other => panic!("{other:?}"),
    };
    let mut chosen = Ring::founded();
    let join = |candidate| Command::Join { candidate };
    check(
        chosen.propose(join(given(2, &[-1]))),
        "its tokens are given (`initial_token`), and those of the members",
    );

    let mut ring = Ring::new();
    let found = |founder| Command::Found { cluster_id: Uuid::from_u128(9), history: Vec::new(), founder };
    check(ring.apply(&found(given(1, &[-1, i64::MAX]))), "its 2 tokens are given, and num_tokens is 1");
    assert_eq!(ring.propose(found(given(1, &[-1]))), agreed(0, 1));
    check(ring.propose(join(candidate(2))), "its tokens are not given, and those of all members are");
    check(ring.propose(join(given(2, &[-1]))), "token -1");
    assert_eq!(ring.propose(join(given(2, &[i64::MAX]))), agreed(0, 2));
}

#[test]
fn tokens_are_given_to_nobody_while_a_member_would_not_take_them() {
    let mut ring = Ring::new();
    let earlier = Candidate { history_version: 2, ..candidate(1) };
    let found = Command::Found { cluster_id: Uuid::from_u128(9), history: Vec::new(), founder: earlier };
    assert_eq!(ring.propose(found), agreed(0, 1));
    let given = Candidate { initial_tokens: vec![-1], num_tokens: 1, ..candidate(2) };
    let proposed = ring.machine.may_be_proposed(&Command::Join { candidate: given }.encode());
    assert!(proposed.is_err_and(|why| why.contains("and it takes 3")));
}
