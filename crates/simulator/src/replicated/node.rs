//! A node of the ring: storage on a disk of its own, connections to all others, and clients' requests.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::membership::Other;
use coordinator::replicas::{Marks, Remote, ReplicaService, Replicas, RingView, Way};
use messaging::{Handed, Node, Peer, PeerOptions, Purpose, answer, keep_gate};
use ring::allocation::{Newcomer, found};
use ring::{Strategy, Topology};
use runtime::{
    Background, Failsafe, Io, ManualClock, Network, Plants, Random, Runtime, SeededRandom, VirtualClock,
};
use schema::{ColumnKind, Keyspace, Replication, Schema, Table, TableBuilder, TableId};
use storage::{Directory, ShardHandle, StorageOptions, SyncMode};
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use types::CqlType;
use uuid::Uuid;

use super::World;
use super::client::Order;
use crate::dice::Dice;
use crate::peers::identity::{Me, address, host_id, listening};

const KEYSPACE: &str = "ks";

/// Who is in the ring, for the whole of a run.
pub(crate) struct Members {
    topology: Arc<Topology>,
    sync: SyncMode,
    shard_counts: Vec<u16>,
    /// How long short disk work takes at most: syncs, too.
    io_delay_max: Duration,
}

impl Members {
    /// Three to five nodes, each with one or two shards.
    pub(crate) fn roll(dice: &Dice) -> Members {
        let count = dice.between(3, 5) as usize;
        let newcomer = |node: usize| Newcomer {
            host_id: host_id(node),
            data_center: "dc1".into(),
            rack: "r1".into(),
            num_tokens: 16,
        };
        let newcomers: Vec<Newcomer> = (0..count).map(newcomer).collect();
        let topology = Arc::new(found(&newcomers, 3).expect("a ring"));
        let sync = if dice.one_in(2) { SyncMode::Batch } else { SyncMode::Group { window: Duration::ZERO } };
        let shard_counts = (0..count).map(|_| dice.between(1, 2) as u16).collect();
        let io_delay_max = Duration::from_millis(*dice.pick(&[2, 20, 200]));
        Members { topology, sync, shard_counts, io_delay_max }
    }

    pub(crate) fn count(&self) -> usize {
        self.topology.nodes().len()
    }
}

/// `ks.t (pk int PRIMARY KEY, v bigint)`
pub(crate) fn table() -> Arc<Table> {
    let table = TableBuilder::new(TableId(Uuid::from_u128(7)), KEYSPACE, "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Bigint);
    Arc::new(table.build().expect("a sound table"))
}

fn schema() -> Schema {
    let options = BTreeMap::from([("replication_factor".into(), "3".into())]);
    let keyspace = Keyspace {
        name: KEYSPACE.into(),
        replication: Replication { class: "SimpleStrategy".into(), options },
        durable_writes: true,
        tables: [("t".to_owned(), table())].into_iter().collect(),
        types: BTreeMap::new(),
    };
    Schema::new(1, [keyspace])
}

/// A node that serves.
pub(crate) struct Life {
    /// What clients ask for.
    pub(crate) orders: mpsc::UnboundedSender<Order>,
}

/// Lives until it is killed.
pub(crate) async fn live(world: Rc<World>, node: usize, incarnation: u64) {
    let seed = world.seed.wrapping_mul(31).wrapping_add(incarnation << 8 | node as u64);
    let random = Arc::new(SeededRandom::new(seed));
    let handles = start_storage(&world, node, &random);
    let me: Rc<dyn Node> = Rc::new(Me { node, incarnation, shard_count: handles.len() as u16 });
    let (orders, mut placed) = mpsc::unbounded_channel::<Order>();
    let marks = Marks::new(handles.len(), Arc::default());
    let view = connect_all(&world, node, &me, &random);
    let replicas = Replicas::new(Rc::new(view), handles[0].clone(), marks);
    let network = world.network.host(address(node));
    let bound = network.bind(listening(node), 1).expect("nobody else lives there").remove(0);
    let services: Vec<Rc<ReplicaService>> =
        handles.into_iter().map(|handle| Rc::new(ReplicaService::new(handle))).collect();
    let answers_as = me.clone();
    let hand_over = move |handed: Handed| {
        let service = services[usize::from(handed.shard().unwrap_or(0))].clone();
        let met = handed.take().expect("it is in memory");
        spawn_local(answer(met, answers_as.clone(), service));
    };
    spawn_local(keep_gate(bound.open().expect("it is in memory"), me, random, hand_over, |_, _| {}));
    world.lives.borrow_mut()[node] = Some(Rc::new(Life { orders }));
    while let Some(order) = placed.recv().await {
        let replicas = replicas.clone();
        spawn_local(async move { order.carry_out(&replicas).await });
    }
}

fn start_storage(world: &World, node: usize, random: &Arc<SeededRandom>) -> Vec<ShardHandle> {
    let Members { sync, shard_counts, .. } = &world.members;
    let runtime = Runtime {
        disk: Arc::new(world.hosts.disk(node)),
        network: Network::None,
        clock: Arc::new(VirtualClock::new(ManualClock::DEFAULT_START_MICROS)),
        random: random.clone(),
        background: Background::seeded_tasks(random.next_u64(), Duration::from_millis(200)),
        io: Io::seeded(random.next_u64(), world.members.io_delay_max),
        failsafe: Failsafe::default(),
        plants: Plants::default(),
    };
    let options = StorageOptions {
        sync: *sync,
        segment_bytes: 16 << 10,
        ..StorageOptions::new("/node", shard_counts[node], 32 << 20)
    };
    let schema = Arc::new(schema());
    let directory = Directory::open(&runtime, options).expect("its own directory");
    let recovered = directory.recover(&schema).expect("it starts on what a fault has left");
    let shards = recovered.start_local(&schema).expect("it starts");
    shards.handles().to_vec()
}

fn connect_all(world: &Rc<World>, node: usize, me: &Rc<dyn Node>, random: &Arc<SeededRandom>) -> RingView {
    let Members { topology, shard_counts, .. } = &world.members;
    let connect = |other: usize| {
        let options = PeerOptions {
            address: listening(other),
            host_id: Some(host_id(other)),
            purpose: Purpose::Shard { from: 0, to: shard_counts[other] - 1 },
            unsent_bytes_max: 1 << 20,
            asked_count_max: 100,
        };
        let peer = Peer::new(options, me.clone());
        let network = world.network.host(address(node));
        spawn_local(peer.clone().run(network, random.clone(), me.clone(), |_| {}));
        Remote { peer, other: Other::unwatched(), latencies: Rc::default() }
    };
    let way = |other: usize| Way {
        address: listening(other),
        remote: (other != node).then(|| connect(other)),
        has_rows: true,
    };
    let ways = (0..world.members.count()).map(way).collect();
    let here = topology.index_of(host_id(node)).expect("it is a member");
    let keyspaces = [(KEYSPACE.to_owned(), Strategy::Simple { factor: 3 })];
    RingView::new(topology, here, ways, keyspaces)
}
