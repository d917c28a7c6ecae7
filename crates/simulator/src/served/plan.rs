//! What a seed has in mind for a life of a node: how it is set up, and how it ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use server::{Limits, ServerOptions};
use storage::{DiskFailurePolicy, StorageOptions, SyncMode};

use super::client::PROMISE_TAKES_MAX;
use super::manager;
use crate::Fate;
use crate::dice::Dice;

/// Beyond the period itself, what `periodic` may lose: the sync that was under way.
const SYNC_MAX: Duration = Duration::from_millis(100);

/// Where a node keeps its data on its disk.
pub(super) const DIRECTORY: &str = "/peristyle";

/// How long a node may be down: as good as not at all, for longer than some values live, and than tombstones are kept.
const RESTS_SECONDS: [u64; 6] = [0, 0, 2, 60, 7_200, 11 * 24 * 3_600];

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// After a while, whatever goes on then.
    Of(Fate),
    /// So many changes of the disk after so many bursts of requests were sent: in the midst of them.
    InBurst {
        /// Is it statements of the operator that count, instead of bursts?
        is_of_operator: bool,
        burst_count: u64,
        change_count: u64,
        /// Does the power go, or is it the process alone?
        is_power_cut: bool,
    },
}

impl Ending {
    fn roll(dice: &Dice) -> Ending {
        let time = Duration::from_millis(dice.between(1, 20_000));
        match dice.below(9) {
            0 => Ending::Of(Fate::LiveOn),
            1 => Ending::Of(Fate::KillAfter(time)),
            2 | 3 => Ending::Of(Fate::PowerCutAfter(time)),
            4 | 5 => Ending::Of(Fate::PowerCutAfterChanges(dice.between(1, 2_000))),
            which => {
                let is_of_operator = dice.one_in(2);
                Ending::InBurst {
                    is_of_operator,
                    burst_count: dice.between(0, if is_of_operator { 1 } else { 40 }),
                    change_count: dice.between(0, 30),
                    is_power_cut: which != 6,
                }
            }
        }
    }

    /// Is what was not synced in doubt?
    pub(super) fn is_power_cut(self) -> bool {
        match self {
            Ending::Of(Fate::LiveOn | Fate::KillAfter(_)) => false,
            Ending::Of(Fate::PowerCutAfter(_) | Fate::PowerCutAfterChanges(_)) => true,
            Ending::InBurst { is_power_cut, .. } => is_power_cut,
        }
    }
}

/// What a seed has in mind for a life.
pub(super) struct Plan {
    pub(super) shard_count: u16,
    pub(super) sync: SyncMode,
    pub(super) memtable_bytes: usize,
    pub(super) segment_bytes: u32,
    pub(super) cache_bytes: usize,
    pub(super) ending: Ending,
    pub(super) flush_at_stop: bool,
    /// Do reads of the disk fail, and give wrong bytes, now and then?
    pub(super) spoils_reads: bool,
    pub(super) io_delay_max: Duration,
    /// How far this node's wall clock is from the others', if somebody sets it between two lives.
    pub(super) clock_skew_micros: i64,
    /// How long the node was down before, if nobody does.
    pub(super) rest: Duration,
}

impl Plan {
    pub(super) fn roll(dice: &Dice) -> Plan {
        let period = Duration::from_millis(*dice.pick(&[10, 300, 10_000]));
        let syncs = [
            SyncMode::Group { window: Duration::ZERO },
            SyncMode::Group { window: Duration::from_millis(3) },
            SyncMode::Batch,
            SyncMode::Periodic { period },
        ];
        Plan {
            shard_count: *dice.pick(&[1, 2, 2, 3, 4]),
            sync: *dice.pick(&syncs),
            memtable_bytes: dice.between(100_000, 1_500_000) as usize,
            segment_bytes: *dice.pick(&[64 << 10, 256 << 10, 1 << 20]),
            cache_bytes: *dice.pick(&[0, 20_000, 4_000_000]),
            ending: Ending::roll(dice),
            flush_at_stop: dice.one_in(2),
            spoils_reads: dice.one_in(3),
            io_delay_max: Duration::from_micros(dice.between(0, 6_000)),
            rest: Duration::from_secs(*dice.pick(&RESTS_SECONDS)),
            clock_skew_micros: dice.between(0, 7_200_000_000) as i64 - 3_600_000_000,
        }
    }

    pub(super) fn options(&self, address: SocketAddr) -> ServerOptions {
        let storage = StorageOptions {
            sync: self.sync,
            segment_bytes: self.segment_bytes,
            memtable_bytes: self.memtable_bytes,
            cache_bytes: self.cache_bytes,
            log_bytes: 0,
            // A node that were to serve nobody after the first failure would not be tried any further.
            disk_failure_policy: match self.spoils_reads {
                true => DiskFailurePolicy::Ignore,
                false => DiskFailurePolicy::default(),
            },
            ..StorageOptions::new(DIRECTORY, self.shard_count, 64 << 20)
        };
        ServerOptions {
            storage,
            listen: address,
            broadcast_rpc: None,
            management: Some(SocketAddr::new(address.ip(), manager::PORT)),
            management_token_file: None,
            memory_bytes: 64 << 20,
            shared_bytes: 64 << 20,
            cluster_name: "Simulation".into(),
            data_center: "datacenter1".into(),
            rack: "rack1".into(),
            ring: None,
            internode_secret_file: None,
            timeouts: Arc::default(),
            limits: Limits::default(),
        }
    }

    /// How long before a crash an acknowledgement is no promise yet.
    pub(super) fn promise_takes(&self) -> Option<Duration> {
        match self.sync {
            SyncMode::Periodic { period } => {
                assert!(period + SYNC_MAX <= PROMISE_TAKES_MAX, "the model keeps what may be lost");
                Some(period + SYNC_MAX)
            }
            _ => None,
        }
    }
}
