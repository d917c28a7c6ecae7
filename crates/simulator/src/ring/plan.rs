//! What a seed decided for the whole of a run: how many nodes, of what size, how slow, how wrong their clocks.

use std::sync::Arc;
use std::time::Duration;

use cluster::raft::Timing;
use coordinator::Timeouts;
use runtime::network::memory::MemoryNetworkOptions;
use server::{Limits, RingLimits, RingOptions, ServerOptions};
use storage::{StorageOptions, SyncMode};

use super::cast::Cast;
use super::level::Factors;
use super::node::CLOCK_STEP_MAX;
use super::places::Places;
use crate::dice::Dice;
use crate::peers::identity::listening;

/// Where a node keeps its data on its disk.
const DIRECTORY: &str = "/peristyle";
const DATA_CENTERS: [&str; 2] = ["datacenter1", "datacenter2"];
/// So many nodes are in two data centres at least.
const NODES_OF_TWO_MIN: usize = 4;
/// How far a clock is from the right time, as a rule at most.
const CLOCK_OFFSET_MAX_MICROS: u64 = 4_000_000;
/// How far a wrong one is.
const CLOCK_WRONG_MICROS: i64 = 3_600_000_000;
/// A run takes no longer.
const RUN_MAX: Duration = Duration::from_secs(3_600);
/// Where clocks differ by more, nobody can tell within a run what has expired.
const SPREAD_MAX: Duration = Duration::from_secs(20);

/// What a seed decided for the whole of a run.
pub(crate) struct Plan {
    pub(crate) cast: Cast,
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) network: MemoryNetworkOptions,
    /// How the keyspace of several replicas is placed.
    pub(crate) replication: String,
    /// How many those are.
    pub(crate) factors: Factors,
    /// Faults before the ring is whole.
    pub(crate) founding_fault_count: u64,
    sync: SyncMode,
    timing: Timing,
    timeouts: [Duration; 6],
    /// Of how many nodes all know the addresses from the start.
    seed_count: usize,
    segment_bytes: u32,
    memtable_bytes: usize,
    has_racks: bool,
    center_count: usize,
    /// How long a sync takes on all disks; `None` where each life has another disk.
    pub(crate) sync_max: Option<Duration>,
}

/// What it decided for a node.
#[derive(Clone)]
pub(crate) struct NodePlan {
    shard_count: u16,
    /// How far its wall clock is from the right time.
    pub(crate) clock_offset_micros: i64,
    /// How many µs it gains in a second.
    pub(crate) clock_drift: i64,
}

impl Plan {
    pub(crate) fn roll(dice: &Dice, cast: Cast) -> Plan {
        let quick = Timing {
            heartbeat: Duration::from_millis(200),
            election_min: Duration::from_millis(600),
            election_max: Duration::from_millis(1_200),
            patience: Duration::from_secs(4),
        };
        let syncs = [
            SyncMode::Batch,
            SyncMode::Group { window: Duration::ZERO },
            SyncMode::Group { window: Duration::from_millis(3) },
        ];
        let short = [1, 2, 1, 10, 1, 1].map(Duration::from_secs);
        let center_count = if dice.one_in(3) { 2 } else { 1 };
        let count_min = if center_count == 2 { NODES_OF_TWO_MIN as u64 } else { 3 };
        let count = dice.between(count_min, 5) as usize;
        let (replication, factors) = match center_count {
            1 => roll_one_center(dice),
            _ => roll_two_centers(dice, count),
        };
        Plan {
            // Of one replica nothing is left when its disk is lost.
            cast: Cast { is_local: cast.is_local && factors.of_first_center() > 1, ..cast },
            nodes: (0..count).map(|_| NodePlan::roll(dice)).collect(),
            network: MemoryNetworkOptions {
                latency_max: Duration::from_micros(dice.between(50, 5_000)),
                window_bytes: *dice.pick(&[20_000, 256 << 10]),
                ..MemoryNetworkOptions::default()
            },
            replication,
            factors,
            center_count,
            founding_fault_count: *dice.pick(&[0, 3, 10, 20]),
            sync: *dice.pick(&syncs),
            timing: if dice.one_in(3) { quick } else { Timing::default() },
            timeouts: if dice.one_in(2) { short } else { [5, 10, 2, 60, 2, 5].map(Duration::from_secs) },
            seed_count: dice.between(1, count as u64) as usize,
            segment_bytes: *dice.pick(&[64 << 10, 1 << 20]),
            memtable_bytes: *dice.pick(&[50_000, 100_000, 1_500_000]),
            has_racks: dice.one_in(2),
            sync_max: None,
        }
    }

    /// Three nodes of one shard, with right clocks and fast disks, each of which has all rows.
    pub(crate) fn steady() -> Plan {
        Plan {
            cast: Cast::ALL,
            nodes: vec![NodePlan { shard_count: 1, clock_offset_micros: 0, clock_drift: 0 }; 3],
            network: MemoryNetworkOptions {
                latency_max: Duration::from_micros(500),
                window_bytes: 1 << 20,
                ..MemoryNetworkOptions::default()
            },
            replication: String::new(),
            factors: Factors::simple(3),
            center_count: 1,
            founding_fault_count: 0,
            sync: SyncMode::Group { window: Duration::ZERO },
            timing: Timing::default(),
            timeouts: [5, 10, 2, 60, 2, 5].map(Duration::from_secs),
            seed_count: 3,
            segment_bytes: 1 << 20,
            memtable_bytes: 4 << 20,
            has_racks: false,
            sync_max: Some(Duration::from_millis(1)),
        }
    }

    /// Are all nodes in one data centre?
    pub(crate) fn is_one_center(&self) -> bool {
        self.center_count == 1
    }

    /// Which data centre a node is in.
    pub(crate) fn center_of(&self, node: usize) -> usize {
        node % self.center_count
    }

    /// What a node is started with.
    pub(crate) fn options(&self, node: usize, places: &Places) -> ServerOptions {
        let storage = StorageOptions {
            sync: self.sync,
            segment_bytes: self.segment_bytes,
            memtable_bytes: self.memtable_bytes,
            log_bytes: 0,
            ..StorageOptions::new(DIRECTORY, self.nodes[node].shard_count, 64 << 20)
        };
        ServerOptions {
            storage,
            listen: places.cql(node),
            broadcast_rpc: None,
            management: None,
            management_token_file: None,
            memory_bytes: 64 << 20,
            shared_bytes: 64 << 20,
            cluster_name: "Simulation".into(),
            data_center: DATA_CENTERS[self.center_of(node)].into(),
            rack: if self.has_racks {
                format!("rack{}", node / self.center_count % 3)
            } else {
                "rack1".into()
            },
            ring: Some(self.ring(node, places)),
            internode_secret_file: None,
            timeouts: Arc::new(Timeouts::new(self.timeouts)),
            limits: Limits::default(),
        }
    }

    /// How much the clocks of two nodes may differ, whatever befalls them.
    pub(crate) fn clock_spread(&self) -> Duration {
        let offsets = || self.nodes.iter().map(|node| node.clock_offset_micros);
        let (least, most) = (offsets().min().unwrap_or(0), offsets().max().unwrap_or(0));
        let drift = self.nodes.iter().map(|node| node.clock_drift.unsigned_abs()).max().unwrap_or(0);
        let drifted = Duration::from_micros(2 * drift * RUN_MAX.as_secs());
        Duration::from_micros(most.abs_diff(least)) + 2 * CLOCK_STEP_MAX + drifted
    }

    /// Are there rows that live for a while only?
    pub(crate) fn do_rows_expire(&self) -> bool {
        self.clock_spread() <= SPREAD_MAX
    }

    /// May a node forget what it has acknowledged, when its power goes?
    pub(crate) fn may_lose_acknowledged(&self) -> bool {
        matches!(self.sync, SyncMode::Periodic { .. })
    }

    /// Who starts is told of all places that are others by now, if it is elsewhere itself or has lost its disk.
    fn ring(&self, node: usize, places: &Places) -> RingOptions {
        let is_new = places.internode(node) != listening(node) || places.replaced(node).is_some();
        let seed_count = if is_new { self.nodes.len() } else { self.seed_count };
        RingOptions {
            listen: places.internode(node),
            broadcast: places.internode(node),
            seeds: (0..seed_count).map(|seed| places.internode(seed)).collect(),
            replaces: places.replaced(node),
            num_tokens: 16,
            initial_tokens: Vec::new(),
            secret: None,
            tls: None,
            wants_compression: node.is_multiple_of(2),
            limits: RingLimits {
                message_bytes: 8 << 20,
                connection_count: 200,
                connection_count_per_address: 100,
            },
            timing: self.timing,
            handoff: Arc::default(),
        }
    }
}

fn roll_one_center(dice: &Dice) -> (String, Factors) {
    match dice.one_in(2) {
        true => ("{'class': 'SimpleStrategy', 'replication_factor': 3}".to_owned(), Factors::simple(3)),
        false => in_centers([3, 0]),
    }
}

/// No more replicas than a data centre has nodes, which are in them in turns.
fn roll_two_centers(dice: &Dice, node_count: usize) -> (String, Factors) {
    let largest = [node_count.div_ceil(2), node_count / 2];
    in_centers(*dice.pick(&[largest, largest, [2, 2], [2, 1], [1, 2]]))
}

fn in_centers(factors: [usize; 2]) -> (String, Factors) {
    let of_centers = DATA_CENTERS.iter().zip(factors).filter(|(_, factor)| *factor > 0);
    let of_centers: Vec<_> = of_centers.map(|(center, factor)| format!("'{center}': {factor}")).collect();
    let replication = format!("{{'class': 'NetworkTopologyStrategy', {}}}", of_centers.join(", "));
    (replication, Factors::of_centers(factors))
}

impl NodePlan {
    fn roll(dice: &Dice) -> NodePlan {
        let largest = *dice.pick(&[0, 5_000, CLOCK_OFFSET_MAX_MICROS]);
        let offset = dice.between(0, 2 * largest) as i64 - largest as i64;
        NodePlan {
            shard_count: dice.between(1, 2) as u16,
            clock_offset_micros: match dice.below(40) {
                0 => offset + CLOCK_WRONG_MICROS,
                1 => offset - CLOCK_WRONG_MICROS,
                _ => offset,
            },
            clock_drift: *dice.pick(&[0, 0, 30, -30, 200, -200]),
        }
    }
}
