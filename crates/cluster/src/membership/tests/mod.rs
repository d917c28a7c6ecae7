//! A few nodes that form a ring, on disks and a network in memory, in paused time.

mod places;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use messaging::Identity;
use runtime::network::memory::MemoryNetworkOptions;
use runtime::{Disk, Io, MemoryDisk, MemoryNetwork, Runtime};
use schema::{ColumnKind, Replication, Schema, TableBuilder, TableId, Transformation};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{Instant, sleep, timeout};
use types::CqlType;
use uuid::Uuid;

use super::{Doors, Event, Known, MembershipError, MembershipOptions, ProposeError, Proposer, StoppedMember};
use super::{FAREWELL, SILENCE, proposals, take_part};
use crate::metadata::testing::candidate;
use crate::metadata::{Agreed, Candidate, Command, MemberState, Metadata, Refusal};
use crate::raft::{AgreementError, Timing};

/// Hosts, with what each has written down.
struct World {
    network: MemoryNetwork,
    disks: Vec<MemoryDisk>,
    metadata: Vec<Rc<RefCell<Metadata>>>,
    /// How long each takes to write something down.
    lag: Duration,
    /// How many lives of nodes have begun.
    lives: Cell<u64>,
}

/// A node that takes part.
struct Running {
    known: Known,
    proposer: Proposer,
    failed: Rc<RefCell<Option<MembershipError>>>,
    life: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.life.abort();
    }
}

fn member(node: usize) -> Candidate {
    candidate(u8::try_from(node + 1).expect("a few"))
}

fn address(node: usize) -> SocketAddr {
    member(node).address
}

impl World {
    fn new(node_count: usize) -> World {
        let metadata = || Rc::new(RefCell::new(Metadata::new(Arc::new(Schema::default()))));
        World {
            network: MemoryNetwork::new(5, MemoryNetworkOptions::default()),
            disks: (0..node_count).map(|_| MemoryDisk::new()).collect(),
            metadata: (0..node_count).map(|_| metadata()).collect(),
            lag: Duration::ZERO,
            lives: Cell::new(0),
        }
    }

    fn start(&self, node: usize, seeds: &[usize]) -> Running {
        self.start_as(node, member(node), seeds)
    }

    fn start_as(&self, node: usize, candidate: Candidate, seeds: &[usize]) -> Running {
        self.start_with(node, candidate, seeds, (Vec::new(), None))
    }

    /// On an empty disk, in the place of the member that was there.
    fn replace(&mut self, node: usize, id: u8, seeds: &[usize]) -> Running {
        self.disks[node] = MemoryDisk::new();
        *self.metadata[node].borrow_mut() = Metadata::new(Arc::new(Schema::default()));
        let candidate = Candidate { host_id: candidate(id).host_id, ..member(node) };
        self.start_with(node, candidate, seeds, (Vec::new(), Some(address(node))))
    }

    fn start_with(
        &self,
        node: usize,
        candidate: Candidate,
        seeds: &[usize],
        (history, replaces): (Vec<Transformation>, Option<SocketAddr>),
    ) -> Running {
        let listening = candidate.address;
        self.start_behind(listening, node, candidate, seeds, (history, replaces))
    }

    /// A node that listens elsewhere than others are told.
    fn start_behind(
        &self,
        listening: SocketAddr,
        node: usize,
        candidate: Candidate,
        seeds: &[usize],
        (history, replaces): (Vec<Transformation>, Option<SocketAddr>),
    ) -> Running {
        let runtime = Runtime {
            network: self.network.host(listening.ip()),
            io: Io::delayed(Duration::from_millis(2)),
            ..Runtime::in_memory(Arc::new(self.disks[node].clone()), node as u64)
        };
        let identity = Identity {
            cluster_name: "Test Cluster".to_owned(),
            cluster_id: None,
            host_id: candidate.host_id,
            incarnation: self.lives.replace(self.lives.get() + 1) + 1,
            shard_count: 1,
            wants_compression: false,
            secret: None,
        };
        let metadata = Rc::clone(&self.metadata[node]);
        let known = Known::new(identity, &metadata.borrow());
        let options = MembershipOptions {
            candidate,
            seeds: seeds.iter().map(|seed| address(*seed)).collect(),
            replaces,
            directory: PathBuf::from("/node/agreement"),
            timing: Timing::default(),
            base: Arc::new(Schema::default()),
            history,
        };
        let (entry_taker, mut entries) = unbounded_channel();
        let (proposer, proposals) = proposals();
        let listener = runtime.network.bind(listening, 1).expect("nobody else is there").remove(0);
        let doors = Doors {
            known: known.clone(),
            listener,
            entries: entry_taker,
            proposals,
            hand_over: Box::new(|_, _| {}),
        };
        let failed: Rc<RefCell<Option<MembershipError>>> = Rc::default();
        let (told, knows, lag) = (Rc::clone(&failed), known.clone(), self.lag);
        let life = async move {
            let follows = knows.clone();
            spawn_local(async move {
                while let Some(entry) = entries.recv().await {
                    sleep(lag).await;
                    if !metadata.borrow().has(&entry) {
                        let after = metadata.borrow().after(&entry).expect("it is the next one");
                        let before = metadata.replace(after);
                        follows.take(&entry, &before.schema);
                    }
                }
            });
            let serves = knows.clone();
            spawn_local(async move {
                serves.may_serve().await;
                serves.set_serving(true);
            });
            let Err(error) = take_part(options, runtime, doors).await;
            *told.borrow_mut() = Some(error);
        };
        // All tasks of the node end with it.
        let life = spawn_local(async move { LocalSet::new().run_until(life).await });
        Running { known, proposer, failed, life }
    }

    async fn ring(&self) -> Vec<Running> {
        let nodes: Vec<_> = (0..self.disks.len()).map(|node| self.start(node, &[0])).collect();
        for node in &nodes {
            node.is_in().await;
        }
        nodes
    }

    fn epochs(&self) -> Vec<(u64, u64)> {
        let epochs = |metadata: &Rc<RefCell<Metadata>>| {
            (metadata.borrow().schema.epoch(), metadata.borrow().ring_epoch())
        };
        self.metadata.iter().map(epochs).collect()
    }
}

impl Running {
    async fn is_in(&self) {
        timeout(Duration::from_secs(60), self.known.is_member()).await.expect("it comes in");
    }

    async fn change(&self, based_on: u64, change: Transformation) -> Result<Agreed, ProposeError> {
        let agreed = self.proposer.propose(Command::ChangeSchema { based_on, change }).await?;
        self.known.schema_is_everywhere(agreed.schema_epoch).await;
        Ok(agreed)
    }
}

fn keyspace(name: &str) -> Transformation {
    let options = BTreeMap::from([("replication_factor".to_owned(), "3".to_owned())]);
    let class = "org.apache.cassandra.locator.SimpleStrategy".to_owned();
    let replication = Replication { class, options };
    Transformation::CreateKeyspace { name: name.to_owned(), replication, durable_writes: true }
}

fn table(keyspace: &str) -> Transformation {
    let table = TableBuilder::new(TableId(Uuid::from_u128(7)), keyspace, "t").column(
        "a",
        ColumnKind::PartitionKey(0),
        CqlType::Int,
    );
    Transformation::CreateTable { table: Box::new(table.build().expect("a sound table")) }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let bounded = async { timeout(Duration::from_secs(3600), test).await.expect("it ends") };
    LocalSet::new().block_on(&runtime.expect("a runtime"), bounded);
}

#[test]
fn nodes_with_equal_seeds_form_one_ring_and_change_the_schema_from_any_of_them() {
    run(async {
        let world = World::new(3);
        // Each is told all of them, and only the first may found a ring.
        let nodes: Vec<_> = (0..3).rev().map(|node| world.start(node, &[0, 1, 2])).collect();
        for node in &nodes {
            node.is_in().await;
        }
        sleep(Duration::from_secs(5)).await;
        let members = nodes[0].known.members().expect("a ring");
        assert!(nodes.iter().all(|node| node.known.members().as_ref() == Some(&members)));
        assert_eq!(members.list().len(), 3);
        let mut epoch = 0;
        for (node, name) in nodes.iter().zip(["a", "b", "c"]) {
            epoch = node.change(epoch, keyspace(name)).await.expect("agreed").schema_epoch;
            assert_eq!(world.epochs(), [(epoch, members.epoch()); 3], "all live nodes have it");
        }
    });
}

/// A node that is behind was refused as often as it planned a change anew, until it gave up.
#[test]
fn who_is_refused_for_being_behind_knows_more_then() {
    run(async {
        let world = World { lag: Duration::from_millis(500), ..World::new(3) };
        let nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        for (epoch, name) in ["a", "b", "c"].into_iter().enumerate() {
            let propose = |node: &Running| {
                let (change, proposer) = (keyspace(name), node.proposer.clone());
                let command = Command::ChangeSchema { based_on: epoch as u64, change };
                async move { proposer.propose(command).await }
            };
            propose(&nodes[epoch]).await.expect("it is the next one");
            let behind = &nodes[(epoch + 1) % 3];
            let refused = propose(behind).await.expect_err("its name is taken");
            assert!(matches!(refused, ProposeError::Refused(Refusal::Moved { .. })), "{refused:?}");
            assert_eq!(behind.known.schema_epoch(), epoch as u64 + 1);
        }
    });
}

#[test]
fn two_that_were_each_told_to_be_the_first_found_one_ring() {
    run(async {
        let world = World::new(2);
        let nodes = [world.start(0, &[0, 1]), world.start(1, &[1, 0])];
        for node in &nodes {
            node.is_in().await;
        }
        sleep(Duration::from_secs(5)).await;
        let members = nodes[0].known.members().expect("a ring");
        assert_eq!(members.list().len(), 2);
        assert_eq!(nodes[1].known.members(), Some(members));
    });
}

#[test]
fn a_lone_founder_changes_the_schema_at_once() {
    run(async {
        let world = World::new(1);
        let begun = Instant::now();
        let node = world.start(0, &[]);
        node.is_in().await;
        node.change(0, keyspace("k")).await.expect("agreed");
        assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    });
}

#[test]
fn a_node_that_was_away_learns_what_it_missed() {
    run(async {
        let world = World::new(3);
        let mut nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        let mut events = nodes[0].known.events();
        drop(nodes.remove(2));
        sleep(Duration::from_secs(5)).await;
        assert!(!nodes[0].known.other(member(2).host_id).is_up());
        nodes[0].change(0, keyspace("k")).await.expect("two of three agree");
        nodes.push(world.start(2, &[0]));
        assert!(nodes[2].known.is_member_now(), "it knows without asking");
        sleep(Duration::from_secs(10)).await;
        assert_eq!(world.epochs(), [(1, 3); 3]);
        assert!(nodes[0].known.other(member(2).host_id).is_up());
        let cql_address = member(2).cql_address;
        let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
        let changed = Event::SchemaChanged { change: Box::new(keyspace("k")), creates: true };
        assert_eq!(told, [Event::Down(cql_address), changed, Event::Up(cql_address)]);
        nodes[2].change(1, keyspace("l")).await.expect("it takes part again");
    });
}

#[test]
fn a_node_that_withdraws_is_down_at_once_and_has_its_part_in_the_agreement() {
    run(async {
        let world = World::new(3);
        let nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        let host_id = member(2).host_id;
        let is_alive = |node: &Running| node.known.other(host_id).is_alive();
        let mut events = nodes[0].known.events();
        nodes[2].known.withdraw(true);
        // Long before its silence would tell.
        sleep(FAREWELL).await;
        assert!(FAREWELL < SILENCE && !is_alive(&nodes[0]) && !is_alive(&nodes[1]));
        assert_eq!(events.try_recv().ok(), Some(Event::Down(member(2).cql_address)));
        // It hears the others, and agrees with them: on whatever node something is proposed.
        assert!(nodes[2].known.other(member(0).host_id).is_up());
        nodes[2].change(0, keyspace("k")).await.expect("agreed");
        nodes[0].change(1, keyspace("l")).await.expect("agreed");
        sleep(Duration::from_secs(5)).await;
        assert_eq!(world.epochs(), [(2, 3); 3]);
        assert!(!is_alive(&nodes[0]), "whatever it says about agreement is no sign of life");
        nodes[2].known.withdraw(false);
        sleep(FAREWELL).await;
        assert!(is_alive(&nodes[0]) && nodes[0].known.other(host_id).is_up());
    });
}

#[test]
fn without_a_majority_a_change_is_refused_soon_and_made_once_there_is_one() {
    run(async {
        let world = World::new(3);
        let mut nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        nodes.truncate(1);
        // They were heard a moment ago.
        let begun = Instant::now();
        let in_doubt = nodes[0].change(0, keyspace("k")).await.expect_err("two of three are gone");
        assert_eq!(in_doubt, ProposeError::Agreement(AgreementError::InDoubt));
        assert!(begun.elapsed() < Duration::from_millis(2_500), "{:?}", begun.elapsed());
        let begun = Instant::now();
        let refused = nodes[0].change(0, keyspace("k")).await.expect_err("they are still gone");
        assert_eq!(refused, ProposeError::NoMajority { heard_count: 1, voter_count: 3 });
        assert!(begun.elapsed() < Duration::from_millis(1_500), "{:?}", begun.elapsed());
        nodes.extend([1, 2].map(|node| world.start(node, &[0])));
        sleep(Duration::from_secs(5)).await;
        let epoch = nodes[0].known.schema_epoch();
        nodes[0].change(epoch, keyspace("l")).await.expect("they are back");
    });
}

#[test]
fn a_change_waits_for_a_leader_that_most_can_elect() {
    run(async {
        let world = World::new(3);
        let mut nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        // The founder leads.
        drop(nodes.remove(0));
        let begun = Instant::now();
        nodes[0].change(0, keyspace("k")).await.expect("two of three elect one of them");
        assert!(begun.elapsed() > SILENCE, "{:?}", begun.elapsed());
    });
}

#[test]
fn nodes_that_have_withdrawn_are_a_majority_all_the_same() {
    run(async {
        let world = World::new(3);
        let nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        nodes[1].known.withdraw(true);
        nodes[2].known.withdraw(true);
        sleep(Duration::from_secs(5)).await;
        assert!(nodes[1..].iter().all(|node| !nodes[0].known.other(node.known.host_id()).is_alive()));
        nodes[0].change(0, keyspace("k")).await.expect("agreed");
    });
}

/// A leader died that had made a node a member, and that node knew: nobody gave it the log from then on.
#[test]
fn a_member_gets_the_log_though_it_does_not_ask_for_it() {
    run(async {
        let world = World::new(3);
        let first = world.start(0, &[0]);
        first.is_in().await;
        let joined = Command::Join { candidate: member(1) };
        first.proposer.propose(joined).await.expect("it is a member");
        // It asks somebody who is not there.
        let second = world.start(1, &[2]);
        second.is_in().await;
    });
}

#[test]
fn a_whole_ring_that_was_stopped_goes_on() {
    run(async {
        let world = World::new(3);
        let nodes = world.ring().await;
        sleep(Duration::from_secs(5)).await;
        nodes[1].change(0, keyspace("k")).await.expect("agreed");
        drop(nodes);
        sleep(Duration::from_secs(1)).await;
        let nodes: Vec<_> = (0..3).map(|node| world.start(node, &[0])).collect();
        assert!(nodes.iter().all(|node| node.known.is_member_now()));
        nodes[2].change(1, keyspace("l")).await.expect("agreed");
        assert!(nodes.iter().all(|node| node.failed.borrow().is_none()));
    });
}

#[test]
fn nobody_joins_a_ring_that_holds_data_or_as_another() {
    run(async {
        let world = World::new(3);
        let first = world.start(0, &[0]);
        first.is_in().await;
        let second = world.start(1, &[0]);
        second.is_in().await;
        first.change(0, keyspace("k")).await.expect("agreed");
        first.change(1, table("k")).await.expect("agreed");
        let third = world.start(2, &[0]);
        sleep(Duration::from_secs(10)).await;
        let refused = third.failed.take();
        assert!(matches!(refused, Some(MembershipError::Refused(Refusal::HoldsData { .. }))), "{refused:?}");
        drop(second);
        let in_another_rack = Candidate { rack: "another".to_owned(), ..member(1) };
        sleep(Duration::from_secs(1)).await;
        let second = world.start_as(1, in_another_rack, &[0]);
        sleep(Duration::from_secs(10)).await;
        let changed = second.failed.borrow();
        assert!(matches!(&*changed, Some(MembershipError::Changed(_))), "{changed:?}");
    });
}

#[test]
fn who_has_a_schema_of_its_own_founds_a_ring_with_it_and_joins_none() {
    run(async {
        let world = World::new(2);
        let first = world.start_with(0, member(0), &[0], (vec![keyspace("k"), table("k")], None));
        first.is_in().await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.epochs()[0], (2, 1));
        let second = world.start_with(1, member(1), &[0], (vec![keyspace("other")], None));
        sleep(Duration::from_secs(5)).await;
        let refused = second.failed.take();
        assert!(matches!(refused, Some(MembershipError::HasHistory)), "{refused:?}");
    });
}

#[test]
fn a_member_without_its_log_of_agreement_takes_no_part() {
    run(async {
        let mut world = World::new(3);
        drop(world.ring().await);
        sleep(Duration::from_secs(1)).await;
        world.disks[1] = MemoryDisk::new();
        let node = world.start(1, &[0]);
        sleep(Duration::from_secs(1)).await;
        let failed = node.failed.borrow();
        assert!(matches!(&*failed, Some(MembershipError::LogGone { .. })), "{failed:?}");
    });
}

/// What the others have agreed on is applied before it is in the own log: such a node was taken for one that has lost
/// it, and never started again.
#[test]
fn a_node_that_is_cut_off_as_it_comes_in_takes_part_again() {
    run(async {
        let world = World::new(2);
        let first = world.start(0, &[0]);
        first.is_in().await;
        let second = world.start(1, &[0]);
        second.is_in().await;
        drop(second);
        sleep(Duration::from_secs(1)).await;
        let second = world.start(1, &[0]);
        sleep(Duration::from_secs(10)).await;
        assert!(second.failed.borrow().is_none());
        second.change(0, keyspace("k")).await.expect("agreed");
    });
}

#[test]
fn who_may_not_found_a_ring_goes_on_asking() {
    run(async {
        let world = World::new(2);
        let node = world.start(1, &[0]);
        sleep(Duration::from_secs(120)).await;
        assert!(node.failed.borrow().is_none() && !node.known.is_member_now(), "it goes on asking");
        drop(node);
        sleep(Duration::from_secs(1)).await;
        let own = world.start(0, &[]);
        own.is_in().await;
    });
}
