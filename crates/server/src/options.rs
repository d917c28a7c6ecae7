//! What a server is started with.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use assembly::{RingLimits, RingOptions, RingTls};
use cluster::membership::Encryption;
use cluster::raft::Timing;
use config::{CommitlogSync, Config, InternodeCompression, InternodeEncryption};
use coordinator::replicas::Handoff;
use query::Timeouts;
use read::TombstoneThresholds;
use storage::{CommitFailurePolicy, DiskFailurePolicy, StorageOptions, SyncMode};
use tls::{NameCheck, TlsFiles};

/// Cassandra's `commitlog_segment_size`.
const SEGMENT_BYTES_USUAL: u32 = 32 << 20;
const SEGMENT_BYTES_MIN: u32 = 4 << 20;
const _: () = assert!(SEGMENT_BYTES_MIN <= SEGMENT_BYTES_USUAL, "there are segments between them");

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// How the node keeps its data.
    pub storage: StorageOptions,
    /// Where CQL is spoken.
    pub listen: SocketAddr,
    /// The address that clients are told instead.
    pub broadcast_rpc: Option<IpAddr>,
    /// Where the management port is; none when it is off.
    pub management: Option<SocketAddr>,
    /// Where the token of the management port stands; without one, only programs of this machine reach it.
    pub management_token_file: Option<PathBuf>,
    /// The whole memory budget in bytes, for the management port to tell.
    pub memory_bytes: u64,
    /// What of it is for data, caches and requests.
    pub shared_bytes: u64,
    /// Name that drivers check to be the same on all nodes.
    pub cluster_name: String,
    /// This node's data centre.
    pub data_center: String,
    /// This node's rack.
    pub rack: String,
    /// How the node takes part in a ring; `None` when it is alone.
    pub ring: Option<RingOptions>,
    /// Where the secret of the ring stands, if it has one.
    pub internode_secret_file: Option<PathBuf>,
    /// What a client can ask for at most.
    pub limits: Limits,
    /// How long requests may take.
    pub timeouts: Arc<Timeouts>,
}

impl ServerOptions {
    /// What a configuration means on a machine with that many cores.
    pub fn from_config(config: &Config, core_count: u16) -> Self {
        let to_usize = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        // Each shard writes to one of the directories: none is to stay empty.
        let directory_count = u16::try_from(config.data_file_directories.len()).unwrap_or(1);
        let shard_count = config.shards.unwrap_or(core_count.max(directory_count)).max(1);
        let sync = match config.commitlog_sync {
            CommitlogSync::Group => SyncMode::Group { window: config.commitlog_sync_window },
            CommitlogSync::Periodic => {
                SyncMode::Periodic { period: config.commitlog_sync_period.max(Duration::from_millis(1)) }
            }
            CommitlogSync::Batch => SyncMode::Batch,
        };
        let shared_bytes = config.shared_bytes(shard_count);
        let storage = StorageOptions::new(&config.data_dir, shard_count, to_usize(shared_bytes));
        ServerOptions {
            storage: StorageOptions {
                sync,
                data_directories: config.data_file_directories.clone(),
                auto_snapshot: config.auto_snapshot,
                incremental_backups: config.incremental_backups,
                tombstones: TombstoneThresholds {
                    warn: config.tombstone_warn_threshold,
                    failure: config.tombstone_failure_threshold,
                },
                disk_failure_policy: disk_failure_policy(config),
                commit_failure_policy: commit_failure_policy(config),
                spell_table: Some(query::table_to_cql),
                compaction_bytes_per_second: config.compaction_bytes_per_second,
                concurrent_compactors: config.concurrent_compactors as usize,
                segment_bytes: segment_bytes(config.frame_bytes_max(shard_count)),
                ..storage
            },
            listen: config.listen,
            broadcast_rpc: config.broadcast_rpc_address,
            management: Some(config.management),
            management_token_file: config.management_token_file.clone(),
            memory_bytes: config.memory_bytes(),
            shared_bytes,
            cluster_name: config.cluster_name.clone(),
            data_center: config.datacenter.clone(),
            rack: config.rack.clone(),
            ring: ring_options(config, shard_count),
            internode_secret_file: config.internode_secret_file.clone(),
            timeouts: Arc::new(Timeouts::new(config.request_timeouts)),
            limits: Limits {
                connection_count: config.connections_max(shard_count) as usize,
                connection_count_per_address: config.connections_max_per_address(shard_count) as usize,
                frame_bytes: to_usize(config.frame_bytes_max(shard_count)),
                in_flight_bytes: to_usize(config.in_flight_bytes_max(shard_count)),
                request_wait: config.request_wait_max.unwrap_or(Duration::MAX),
                slow_query: config.slow_query_log_timeout,
                ..Limits::default()
            },
        }
    }
}

/// The secret is read when the node starts.
fn ring_options(config: &Config, shard_count: u16) -> Option<RingOptions> {
    Some(RingOptions {
        listen: config.internode_listen()?,
        broadcast: config.internode_broadcast()?,
        seeds: config.seed_addresses(),
        replaces: config.replaced_address(),
        num_tokens: config.num_tokens,
        initial_tokens: config.initial_tokens.clone(),
        secret: None,
        tls: ring_tls(config),
        wants_compression: config.internode_compression == InternodeCompression::All,
        limits: RingLimits {
            message_bytes: usize::try_from(config.internode_bytes_max(shard_count)).unwrap_or(usize::MAX),
            connection_count: config.internode_connections_max(shard_count) as usize,
            connection_count_per_address: config.internode_connections_max_per_address(shard_count) as usize,
        },
        timing: Timing::default(),
        handoff: Arc::new(handoff(&config.handoff)),
    })
}

fn handoff(config: &config::HandoffConfig) -> Handoff {
    let handoff = Handoff::new(config.window, config.log_bytes_max);
    handoff.enable(config.is_enabled);
    handoff.set_throttle(Some(config.bytes_per_second).filter(|bytes| *bytes > 0));
    config.disabled_centers.iter().for_each(|center| handoff.disable_for(center, true));
    handoff
}

/// Files are read when the node starts, and looked at from then on.
fn ring_tls(config: &Config) -> Option<RingTls> {
    let [certificate, key, authorities] = config.internode_tls_files()?.map(Path::to_owned);
    Some(RingTls {
        encryption: match config.internode_encryption {
            InternodeEncryption::None => Encryption::None,
            InternodeEncryption::Rack => Encryption::Rack,
            InternodeEncryption::Dc => Encryption::Dc,
            InternodeEncryption::All => Encryption::All,
        },
        files: TlsFiles { certificate, key, authorities },
        names: match config.internode_endpoint_verification {
            true => NameCheck::Address,
            false => NameCheck::None,
        },
    })
}

/// Bytes of a segment of the commit log. A record is half of one at most, and what the largest request comes to may be
/// twice the request. A start reads the last segment of each shard whole: it is no larger than it need be.
fn segment_bytes(frame_bytes_max: u64) -> u32 {
    let wanted = u32::try_from(4 * frame_bytes_max).unwrap_or(u32::MAX);
    wanted.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_USUAL)
}

fn disk_failure_policy(config: &Config) -> DiskFailurePolicy {
    match config.disk_failure_policy {
        config::DiskFailurePolicy::Stop => DiskFailurePolicy::Stop,
        config::DiskFailurePolicy::StopParanoid => DiskFailurePolicy::StopParanoid,
        config::DiskFailurePolicy::BestEffort => DiskFailurePolicy::BestEffort,
        config::DiskFailurePolicy::Ignore => DiskFailurePolicy::Ignore,
        config::DiskFailurePolicy::Die => DiskFailurePolicy::Die,
    }
}

fn commit_failure_policy(config: &Config) -> CommitFailurePolicy {
    match config.commit_failure_policy {
        config::CommitFailurePolicy::Stop => CommitFailurePolicy::Stop,
        config::CommitFailurePolicy::StopCommit => CommitFailurePolicy::StopCommit,
        config::CommitFailurePolicy::Ignore => CommitFailurePolicy::Ignore,
        config::CommitFailurePolicy::Die => CommitFailurePolicy::Die,
    }
}

/// What a client can ask for at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections of the whole node.
    pub connection_count: usize,
    /// Of them, from one address.
    pub connection_count_per_address: usize,
    /// Bytes of one frame's body.
    pub frame_bytes: usize,
    /// Bytes that connections hold for their clients, of the whole node.
    pub in_flight_bytes: usize,
    /// How long a request may have waited before it is begun; else it is refused.
    pub request_wait: Duration,
    /// A statement that takes longer is logged; `None` logs none.
    pub slow_query: Option<Duration>,
    /// How long a client may hold memory that others want, and neither take its answers nor send its request.
    pub stall: Duration,
    /// Requests being carried out for one connection; beyond it, the server reads no further.
    pub requests_per_connection: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connection_count: 20_000,
            connection_count_per_address: 20_000,
            frame_bytes: protocol::FRAME_BYTES_MAX_DEFAULT,
            in_flight_bytes: 256 << 20,
            request_wait: Duration::from_millis(500),
            slow_query: Some(Duration::from_millis(500)),
            stall: Duration::from_secs(10),
            requests_per_connection: 4096,
        }
    }
}
