//! Nodes of a ring on a network in memory: writes and reads at all levels, replicas that are gone, behind, or differ.

mod crowded;
mod delivered;
mod fenced;
mod joining;
mod left;
mod left_out;
mod lists;
mod outdated;
mod traced;
mod unrepaired;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster::membership::Other;
use cluster::metadata::Members;
use coordinator::Consistency;
use coordinator::replicas::{
    Marks, Participants, Remote, ReplicaError, ReplicaService, Replicas, RingView, Way,
};
use messaging::{Context, Established, Identity, Node, Peer, PeerOptions, Purpose, answer, keep_gate};
use read::{ReadCommand, ReadTarget};
use ring::allocation::{Newcomer, found};
use ring::{Strategy, Topology};
use rows::{
    CellRef, Clustering, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey, RowBuilder,
};
use runtime::network::memory::MemoryNetworkOptions;
use runtime::{ManualClock, MemoryDisk, MemoryNetwork, Runtime, SeededRandom};
use schema::{ColumnKind, Keyspace, Replication, Schema, Table, TableBuilder, TableId};
use storage::{Directory, LocalShards, StorageOptions, SyncMode};
use tokio::task::LocalSet;
use tokio::time::sleep;
use types::CqlType;
use uuid::Uuid;

const NOW: u32 = 1_704_067_300;
const PATIENCE: Duration = Duration::from_secs(2);

/// `ks.t (pk int PRIMARY KEY, v text)`
fn table() -> Arc<Table> {
    let table = TableBuilder::new(TableId(Uuid::from_u128(7)), "ks", "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Text);
    Arc::new(table.build().expect("a sound table"))
}

/// One beside it, of the same shape.
fn other_table() -> Arc<Table> {
    let table = TableBuilder::new(TableId(Uuid::from_u128(8)), "ks", "other")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Text);
    Arc::new(table.build().expect("a sound table"))
}

/// One that is not repaired when it is read.
fn unrepaired_table() -> Arc<Table> {
    let mut table = TableBuilder::new(TableId(Uuid::from_u128(9)), "ks", "unrepaired")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Text);
    table.options.read_repair = "NONE".into();
    Arc::new(table.build().expect("a sound table"))
}

fn schema(has_table: bool) -> Arc<Schema> {
    let tables = [table(), other_table(), unrepaired_table()];
    let tables = tables.into_iter().map(|table| (table.name().to_owned(), table));
    let options = BTreeMap::from([("replication_factor".into(), "3".into())]);
    let keyspace = Keyspace {
        name: "ks".into(),
        replication: Replication { class: "SimpleStrategy".into(), options },
        durable_writes: true,
        tables: tables.filter(|_| has_table).collect(),
        types: BTreeMap::new(),
    };
    Arc::new(Schema::new(1, [keyspace]))
}

fn address(node: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, node as u8 + 1)), 7000)
}

fn host_id(node: usize) -> Uuid {
    Uuid::from_u128(node as u128 + 1)
}

struct Me(usize);

impl Node for Me {
    fn identity(&self) -> Identity {
        Identity {
            cluster_name: "Test Cluster".into(),
            cluster_id: None,
            host_id: host_id(self.0),
            incarnation: 1,
            shard_count: 1,
            wants_compression: false,
            secret: None,
        }
    }

    fn context(&self) -> Context {
        Context { clock_micros: 0, schema_epoch: 1, ring_epoch: 9 }
    }

    fn heard(&self, _from: &Established, _context: Context) {}
}

struct Ring {
    network: MemoryNetwork,
    topology: Arc<Topology>,
    nodes: Vec<(LocalShards, Replicas)>,
    /// What others have missed of each one's writes.
    marks: Vec<Marks>,
}

impl Ring {
    /// A ring of so many nodes in these data centres, in turns, with three replicas; `lacking` does not know the table.
    async fn start(node_count: usize, centers: &[&str], lacking: Option<usize>) -> Ring {
        Ring::start_with(node_count, centers, (lacking, None), (SyncMode::Batch, None)).await
    }

    /// Three nodes of a ring of which somebody has left.
    async fn start_fenced(members: &Arc<Members>) -> Ring {
        Ring::start_with(3, &["dc1"], (None, None), (SyncMode::Batch, Some(members))).await
    }

    /// Three nodes, of which one has no rows yet.
    async fn start_joining(joining: usize) -> Ring {
        Ring::start_with(3, &["dc1"], (None, Some(joining)), (SyncMode::Batch, None)).await
    }

    async fn start_with(
        node_count: usize,
        centers: &[&str],
        (lacking, joining): (Option<usize>, Option<usize>),
        (sync, members): (SyncMode, Option<&Arc<Members>>),
    ) -> Ring {
        let network = MemoryNetwork::new(5, MemoryNetworkOptions::default());
        let newcomer = |node: usize| Newcomer {
            host_id: host_id(node),
            data_center: centers[node % centers.len()].to_owned(),
            rack: "r1".into(),
            num_tokens: 16,
        };
        let newcomers: Vec<Newcomer> = (0..node_count).map(newcomer).collect();
        let topology = Arc::new(found(&newcomers, 3).expect("a ring"));
        let strategy = match centers {
            [_] => Strategy::Simple { factor: 3 },
            centers => Strategy::NetworkTopology {
                factors: centers.iter().map(|center| ((*center).to_owned(), 2)).collect(),
            },
        };
        let (mut nodes, mut marks) = (Vec::new(), Vec::new());
        for node in 0..node_count {
            let shards = start_storage(lacking != Some(node), node, sync);
            let me: Rc<dyn Node> = Rc::new(Me(node));
            let shard = shards.handles()[0].clone();
            let service = match members {
                None => ReplicaService::new(shard),
                Some(members) => ReplicaService::of_node(shard, fenced::known(node, members)),
            };
            keep_open(&network, node, me.clone(), service);
            let remote = |other: usize| {
                let peer = connect(&network, node, other, me.clone());
                Remote { peer, other: Other::unwatched(), latencies: Rc::default() }
            };
            let way = |other: usize| Way {
                address: address(other),
                remote: (other != node).then(|| remote(other)),
                has_rows: joining != Some(other),
            };
            let ways = (0..node_count).map(way).collect();
            let here = topology.index_of(host_id(node)).expect("it is in the ring");
            let view = RingView::new(&topology, here, ways, [("ks".to_owned(), strategy.clone())]);
            let view = Rc::new(view);
            let of_node = Marks::new(1, Arc::default());
            let replicas = Replicas::new(view, shards.handles()[0].clone(), of_node.clone());
            nodes.push((shards, replicas));
            marks.push(of_node);
        }
        sleep(Duration::from_secs(1)).await;
        Ring { network, topology, nodes, marks }
    }

    fn replicas(&self, node: usize) -> &Replicas {
        &self.nodes[node].1
    }

    /// Cuts a node off from all others; its connections stay, and nothing comes.
    fn cut_off(&self, node: usize) {
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            self.network.cut(address(node).ip(), address(other).ip());
            self.network.cut(address(other).ip(), address(node).ip());
        }
    }

    /// Cuts a node off from all others, and all its connections.
    async fn lose(&self, node: usize) {
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            let (node, other) = (address(node).ip(), address(other).ip());
            self.network.cut(node, other);
            self.network.cut(other, node);
            self.network.reset(node, other);
        }
        // Until a new connection is known not to come about.
        sleep(Duration::from_secs(10)).await;
    }

    /// Joins a node that was lost with all others again.
    async fn find(&self, node: usize) {
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            let (node, other) = (address(node).ip(), address(other).ip());
            self.network.heal(node, other);
            self.network.heal(other, node);
        }
        sleep(Duration::from_secs(60)).await;
    }

    async fn write(&self, node: usize, pk: i32, v: &str, level: Consistency) -> Result<(), ReplicaError> {
        self.replicas(node).write(vec![insert(pk, v, 1)], level, PATIENCE).await
    }

    async fn read(&self, node: usize, pk: i32, level: Consistency) -> Result<Option<String>, ReplicaError> {
        let page = self.replicas(node).read(&command(pk), level, PATIENCE).await?;
        Ok(page.partitions.first().map(|partition| value(&partition.rows[0])))
    }

    /// What a node has by itself.
    async fn held(&self, node: usize, pk: i32) -> Option<String> {
        let page = self.nodes[node].0.handles()[0].local().read(&command(pk)).await.expect("reads");
        page.partitions.first().map(|partition| value(&partition.rows[0]))
    }

    /// The nodes that have a value.
    async fn holders(&self, pk: i32, v: &str) -> Vec<usize> {
        let mut holders = Vec::new();
        for node in 0..self.nodes.len() {
            if self.held(node, pk).await.as_deref() == Some(v) {
                holders.push(node);
            }
        }
        holders
    }
}

fn start_storage(has_table: bool, node: usize, sync: SyncMode) -> LocalShards {
    let mut runtime = Runtime::in_memory(Arc::new(MemoryDisk::new()), node as u64);
    runtime.clock = Arc::new(ManualClock::default());
    let options =
        StorageOptions { sync, segment_bytes: 64 << 10, ..StorageOptions::new("/node", 1, 32 << 20) };
    let schema = schema(has_table);
    let directory = Directory::open(&runtime, options).expect("opens");
    directory.recover(&schema).expect("recovers").start_local(&schema).expect("starts")
}

fn keep_open(network: &MemoryNetwork, node: usize, me: Rc<dyn Node>, service: ReplicaService) {
    let bound = network.host(address(node).ip()).bind(address(node), 1).expect("free").remove(0);
    let listener = bound.open().expect("listens");
    let service = Rc::new(service);
    let of_node = me.clone();
    let hand_over = move |handed: messaging::Handed| {
        let met = handed.take().expect("it is in memory");
        tokio::task::spawn_local(answer(met, of_node.clone(), service.clone()));
    };
    let random = Arc::new(SeededRandom::new(node as u64));
    tokio::task::spawn_local(keep_gate(listener, me, random, hand_over, |_, _| {}));
}

fn connect(network: &MemoryNetwork, node: usize, other: usize, me: Rc<dyn Node>) -> Peer {
    let options = PeerOptions {
        address: address(other),
        host_id: Some(host_id(other)),
        purpose: Purpose::Shard { from: 0, to: 0 },
        unsent_bytes_max: 1 << 20,
        asked_count_max: 1000,
    };
    let peer = Peer::new(options, me.clone());
    let random = Arc::new(SeededRandom::new(100 + node as u64));
    let run = peer.clone().run(network.host(address(node).ip()), random, me, |_| {});
    tokio::task::spawn_local(run);
    peer
}

fn key(pk: i32) -> PartitionKey {
    PartitionKey::new(Bytes::copy_from_slice(&pk.to_be_bytes()))
}

fn insert(pk: i32, v: &str, timestamp: i64) -> Mutation {
    insert_into(&table(), pk, v, timestamp)
}

fn insert_into(table: &Table, pk: i32, v: &str, timestamp: i64) -> Mutation {
    let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(timestamp), DeletionTime::LIVE);
    row.cell(table.column("v").expect("v").id, CellRef::live(timestamp, v.as_bytes()));
    let mut mutation = MutationBuilder::new(table.id(), key(pk));
    mutation.row(row.finish());
    mutation.finish()
}

fn command(pk: i32) -> ReadCommand {
    ReadCommand::new(table(), ReadTarget::Keys(vec![key(pk)]), NOW)
}

fn value(row: &rows::Row) -> String {
    match row.column(table().column("v").expect("v").id) {
        Some(rows::ColumnData::Simple(cell)) => String::from_utf8_lossy(cell.value).into_owned(),
        other => panic!("{other:?}"),
    }
}

fn run(story: impl Future<Output = ()>) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&tokio.expect("a runtime"), story);
}

#[test]
fn what_is_written_at_all_is_on_every_replica_and_read_anywhere() {
    run(async {
        let ring = Ring::start(5, &["dc1"], None).await;
        for pk in 0..20 {
            ring.write(pk as usize % 5, pk, "v", Consistency::All).await.expect("all are there");
            assert_eq!(ring.holders(pk, "v").await.len(), 3, "of five nodes three have it");
            for node in 0..5 {
                for level in [Consistency::One, Consistency::Quorum, Consistency::All] {
                    let read = ring.read(node, pk, level).await.expect("all are there");
                    assert_eq!(read.as_deref(), Some("v"), "{pk} from {node} at {level:?}");
                }
            }
            assert_eq!(ring.read(0, pk + 100, Consistency::Quorum).await.expect("read"), None);
        }
    });
}

#[test]
fn with_a_replica_gone_a_quorum_goes_on_and_all_is_refused_before_anything_is_sent() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        ring.lose(2).await;
        ring.write(0, 1, "quorum", Consistency::Quorum).await.expect("two of three");
        assert_eq!(
            ring.read(1, 1, Consistency::Quorum).await.expect("two of three").as_deref(),
            Some("quorum")
        );
        let refused = ring.write(0, 2, "all", Consistency::All).await;
        assert!(
            matches!(refused, Err(ReplicaError::Unavailable { required: 3, alive: 2, .. })),
            "{refused:?}"
        );
        assert_eq!(ring.holders(2, "all").await, [] as [usize; 0], "nothing was sent");
        let refused = ring.read(0, 1, Consistency::All).await;
        assert!(matches!(refused, Err(ReplicaError::Unavailable { required: 3, alive: 2, .. })));
        let refused = ring.write(2, 3, "alone", Consistency::Quorum).await;
        assert!(matches!(refused, Err(ReplicaError::Unavailable { required: 2, alive: 1, .. })));
        ring.write(2, 3, "alone", Consistency::One).await.expect("itself");
    });
}

#[test]
fn a_replica_that_falls_silent_is_a_timeout_that_says_how_many_have_it() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        // One way, so that nobody knows yet.
        ring.network.cut(address(0).ip(), address(2).ip());
        let late = ring.write(0, 1, "all", Consistency::All).await;
        assert!(matches!(late, Err(ReplicaError::WriteTimeout { received: 2, required: 3 })), "{late:?}");
        assert_eq!(ring.holders(1, "all").await, [0, 1]);
        let late = ring.read(0, 1, Consistency::All).await;
        assert!(matches!(late, Err(ReplicaError::ReadTimeout { received: 2, required: 3 })), "{late:?}");
    });
}

#[test]
fn what_a_replica_has_missed_is_marked_and_can_be_made_equal() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        let (replicas, marks) = (ring.replicas(0), &ring.marks[0]);
        let whole_ring = (types::Token(i64::MIN + 1), types::Token::MAX);
        for pk in 0..20 {
            ring.write(0, pk, "before", Consistency::All).await.expect("all have it");
        }
        sleep(Duration::from_secs(5)).await;
        assert!((0..3).all(|node| marks.slot_count(host_id(node)) == 0), "nobody has missed anything");
        let equal = replicas
            .make_range_equal(&table(), whole_ring, Participants::All, PATIENCE)
            .await
            .expect("all live");
        assert_eq!((equal.differing_count, equal.mended_count), (0, 0));
        ring.lose(2).await;
        for pk in 0..20 {
            let after = vec![insert(pk, "after", 2)];
            replicas.write(after, Consistency::Quorum, PATIENCE).await.expect("two of three have it");
        }
        sleep(Duration::from_secs(5)).await;
        assert_eq!(marks.slot_count(host_id(1)), 0);
        let marked = marks.slot_count(host_id(2));
        assert!((15..=20).contains(&marked), "each partition has its slot: {marked}");
        let equal = replicas
            .make_range_equal(&table(), whole_ring, Participants::All, PATIENCE)
            .await
            .expect("two live");
        assert_eq!(equal.mended_count, 0, "those that live have it");
        let of_lost = replicas
            .make_range_equal(&table(), whole_ring, Participants::AllWith(host_id(2)), PATIENCE)
            .await;
        assert!(matches!(of_lost, Err(ReplicaError::Unavailable { .. })), "{of_lost:?}");
        ring.find(2).await;
        let equal = replicas
            .make_range_equal(&table(), whole_ring, Participants::All, PATIENCE)
            .await
            .expect("all live");
        assert_eq!(equal.mended_count, 20);
        for pk in 0..20 {
            assert_eq!(ring.held(2, pk).await.as_deref(), Some("after"), "{pk}");
        }
    });
}

#[test]
fn a_read_asks_somebody_else_when_an_answer_is_late() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        for pk in 0..20 {
            ring.write(0, pk, "v", Consistency::All).await.expect("all have it");
        }
        ring.cut_off(1);
        for pk in 0..20 {
            let begun = tokio::time::Instant::now();
            let read = ring.read(0, pk, Consistency::Quorum).await.expect("two answer");
            assert_eq!(read.as_deref(), Some("v"));
            assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
        }
        let store = ring.nodes[0].0.handles()[0].local().table(table().id()).expect("a table");
        let retries = store.stats().speculative_retries;
        assert!((1..=20).contains(&retries), "{retries} of 20 reads asked somebody else");
    });
}

#[test]
fn a_replica_that_can_not_says_why() {
    run(async {
        let ring = Ring::start(3, &["dc1"], Some(2)).await;
        let failed = ring.write(0, 1, "all", Consistency::All).await;
        let Err(ReplicaError::WriteFailure { received: 0..=2, required: 3, failures }) = failed else {
            panic!("{failed:?}");
        };
        assert_eq!(failures, [(address(2), replica::Failure::NoTable { table: table().id() })]);
        ring.write(0, 1, "quorum", Consistency::Quorum).await.expect("the two others");
        // Another one is asked in its place.
        assert!(ring.read(0, 1, Consistency::Two).await.expect("the two others").is_some());
        let failed = ring.read(0, 1, Consistency::All).await;
        assert!(
            matches!(failed, Err(ReplicaError::ReadFailure { received: 0..=2, required: 3, .. })),
            "{failed:?}"
        );
    });
}

#[test]
fn what_a_replica_lacks_is_written_to_it_before_the_answer() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        for (pk, node) in [(1, 0), (2, 1), (3, 2)] {
            let alone = ring.nodes[node].0.handles()[0].local();
            alone.write(&[insert(pk, "alone", 5)]).await.expect("writes");
            assert_eq!(ring.read(0, pk, Consistency::All).await.expect("all").as_deref(), Some("alone"));
            assert_eq!(ring.holders(pk, "alone").await, [0, 1, 2]);
        }
        // At a quorum those two that were asked.
        let alone = ring.nodes[0].0.handles()[0].local();
        alone.write(&[insert(4, "newer", 5)]).await.expect("writes");
        assert_eq!(ring.read(0, 4, Consistency::Quorum).await.expect("two").as_deref(), Some("newer"));
        assert_eq!(ring.holders(4, "newer").await.len(), 2);
    });
}

/// A read at a quorum failed, though two replicas were well, when the one that lacked something was lost between its
/// answer and what it was sent.
#[test]
fn another_replica_is_read_when_one_does_not_take_what_it_lacks() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        for (pk, lost) in (0..40).flat_map(|moment| [(2 * moment, 1), (2 * moment + 1, 2)]) {
            ring.write(0, pk, "v", Consistency::All).await.expect("all have it");
            let alone = ring.nodes[0].0.handles()[0].local();
            alone.write(&[insert(pk, "newer", 5)]).await.expect("writes");
            let begun = tokio::time::Instant::now();
            let is_lost = async {
                sleep(Duration::from_micros(50 * pk as u64)).await;
                ring.cut_off(lost);
            };
            let (read, ()) = tokio::join!(ring.read(0, pk, Consistency::Quorum), is_lost);
            assert_eq!(read.expect("two are well").as_deref(), Some("newer"), "{pk}");
            assert!(begun.elapsed() < Duration::from_millis(500), "{pk}: {:?}", begun.elapsed());
            assert!(ring.holders(pk, "newer").await.len() >= 2, "{pk}");
            ring.find(lost).await;
        }
    });
}

#[test]
fn local_levels_wait_for_their_data_centre_alone() {
    run(async {
        let ring = Ring::start(4, &["dc1", "dc2"], None).await;
        let of_center =
            |node: usize| ring.topology.node(ring.topology.index_of(host_id(node)).expect("there"));
        assert_eq!(of_center(1).data_center, "dc2");
        for node in [0, 2] {
            for other in [1, 3] {
                ring.network.cut(address(node).ip(), address(other).ip());
                ring.network.cut(address(other).ip(), address(node).ip());
            }
        }
        for node in 0..4 {
            ring.write(node, node as i32, "local", Consistency::LocalQuorum).await.expect("both of here");
            let read = ring.read(node, node as i32, Consistency::LocalQuorum).await.expect("both of here");
            assert_eq!(read.as_deref(), Some("local"));
            assert_eq!(ring.holders(node as i32, "local").await, [node % 2, node % 2 + 2]);
            let late = ring.write(node, 10, "each", Consistency::EachQuorum).await;
            assert!(matches!(late, Err(ReplicaError::WriteTimeout { received: 2, required: 4 })), "{late:?}");
        }
    });
}

#[test]
fn mutations_of_several_sets_of_replicas_go_to_each() {
    run(async {
        let ring = Ring::start(5, &["dc1"], None).await;
        let mutations = (0..40).map(|pk| insert(pk, "many", 1)).collect();
        ring.replicas(0).write(mutations, Consistency::All, PATIENCE).await.expect("all are there");
        let held = Cell::new(0);
        for pk in 0..40 {
            held.set(held.get() + ring.holders(pk, "many").await.len());
        }
        assert_eq!(held.get(), 40 * 3);
    });
}

/// Where the own write needs no waiting the level is met before the others are heard of: they are sent it all the same.
#[test]
fn what_is_written_at_one_comes_to_all_replicas() {
    run(async {
        let periodic = SyncMode::Periodic { period: Duration::from_secs(10) };
        let ring = Ring::start_with(3, &["dc1"], (None, None), (periodic, None)).await;
        ring.write(0, 1, "one", Consistency::One).await.expect("itself");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(ring.holders(1, "one").await, [0, 1, 2]);
    });
}

/// It is not known whether the silent one has it.
#[test]
fn after_anything_was_sent_nobody_hears_of_unavailable() {
    run(async {
        // Of four nodes three are replicas; one that is none asks them.
        let ring = Ring::start(4, &["dc1"], None).await;
        let mut pk = 0;
        loop {
            ring.write(0, pk, "v", Consistency::All).await.expect("all are there");
            if ring.held(0, pk).await.is_none() {
                break;
            }
            pk += 1;
        }
        // All three fall silent, so that nothing is known when they are asked.
        for other in 1..4 {
            ring.network.cut(address(0).ip(), address(other).ip());
        }
        let late = ring.replicas(0).write(vec![insert(pk, "w", 2)], Consistency::One, PATIENCE).await;
        assert!(matches!(late, Err(ReplicaError::WriteTimeout { received: 0, required: 1 })), "{late:?}");
    });
}

#[test]
fn a_quorum_is_of_the_factor_and_not_of_the_nodes() {
    run(async {
        let ring = Ring::start(1, &["dc1"], None).await;
        ring.write(0, 1, "one", Consistency::One).await.expect("itself");
        let refused = ring.write(0, 1, "quorum", Consistency::Quorum).await;
        assert!(
            matches!(refused, Err(ReplicaError::Unavailable { required: 2, alive: 1, .. })),
            "{refused:?}"
        );
    });
}
