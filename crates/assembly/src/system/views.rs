//! `system_views`: the state of this node. A table about something that this server does not have
//! (repairs, streams, hints, storage-attached indexes) is empty, and a figure that is not measured
//! is null rather than zero.

use std::env::consts;

use read::PartitionRows;
use schema::Table;
use storage::{SliceStats, TableStats};

use super::made_up::{MadeUpRows, Timestamp, Value};
use super::view::{NodeView, PARTITIONER};
use crate::{Clients, NodeCompactions, NodeStats};

const MEBIBYTE: u64 = 1 << 20;

/// Does the table tell of things that each shard knows a part of?
pub(super) fn tells_of_all_shards(table: &Table) -> bool {
    let views = [
        "caches",
        "disk_usage",
        "local_read_latency",
        "local_write_latency",
        "max_partition_size",
        "max_sstable_size",
        "memory_use",
        "rows_per_read",
        "tombstones_per_read",
    ];
    match table.keyspace() {
        "system" => ["size_estimates", "table_estimates"].contains(&table.name()),
        "system_views" => views.contains(&table.name()),
        _ => false,
    }
}

/// All rows of a table of `system_views`.
pub(super) fn rows(table: &Table, view: &NodeView, stats: &NodeStats) -> Vec<PartitionRows> {
    let mut rows = MadeUpRows::new(table);
    match table.name() {
        "caches" => add_chunk_cache(&mut rows, stats),
        "disk_usage" => add_tables(&mut rows, stats, |stats| {
            [("mebibytes", stats.space_used_total.div_ceil(MEBIBYTE).into())]
        }),
        "local_read_latency" => add_tables(&mut rows, stats, |stats| [("count", stats.read_count.into())]),
        "local_write_latency" => add_tables(&mut rows, stats, |stats| [("count", stats.write_count.into())]),
        "max_partition_size" => add_tables(&mut rows, stats, |stats| {
            [("mebibytes", stats.partition_bytes.max.div_ceil(MEBIBYTE).into())]
        }),
        "max_sstable_size" => add_tables(&mut rows, stats, |stats| {
            [("mebibytes", stats.sstable_bytes_max.div_ceil(MEBIBYTE).into())]
        }),
        "memory_use" => view.memory_uses(stats).iter().for_each(|memory_use| {
            rows.add([
                ("name", memory_use.name.into()),
                ("held_bytes", memory_use.held_bytes.into()),
                ("share_bytes", memory_use.share_bytes.map_or(Value::Null, Value::from)),
            ]);
        }),
        "rows_per_read" => add_tables(&mut rows, stats, |stats| per_read(stats, stats.live_rows_per_read)),
        "tombstones_per_read" => {
            add_tables(&mut rows, stats, |stats| per_read(stats, stats.tombstones_per_read));
        }
        "settings" => settings(view).into_iter().for_each(|(name, value)| {
            rows.add([("name", name.into()), ("value", value.into())]);
        }),
        "system_properties" => {
            let properties = [
                ("os.arch", consts::ARCH),
                ("os.name", consts::OS),
                ("peristyle.version", env!("CARGO_PKG_VERSION")),
            ];
            for (name, value) in properties {
                rows.add([("name", name.into()), ("value", value.into())]);
            }
        }
        _ => {}
    }
    rows.finish()
}

/// Does the table tell of compactions?
pub(super) fn tells_of_compactions(table: &Table) -> bool {
    matches!(
        (table.keyspace(), table.name()),
        ("system", "compaction_history") | ("system_views", "sstable_tasks")
    )
}

/// The rows of `system.compaction_history`.
pub(super) fn compaction_rows(table: &Table, compactions: &NodeCompactions) -> Vec<PartitionRows> {
    let mut rows = MadeUpRows::new(table);
    for record in &compactions.history {
        let merged = record.rows_merged.iter();
        let merged =
            merged.map(|(files, count)| (files.to_be_bytes().to_vec(), count.to_be_bytes().to_vec()));
        rows.add([
            ("id", record.id.into()),
            ("bytes_in", record.bytes_in.into()),
            ("bytes_out", record.bytes_out.into()),
            ("columnfamily_name", (&record.table).into()),
            ("compacted_at", Timestamp(record.finished_ms).into()),
            ("compaction_properties", (&record.properties).into()),
            ("keyspace_name", (&record.keyspace).into()),
            ("rows_merged", Value::Map(merged.collect())),
        ]);
    }
    rows.finish()
}

/// The rows of `system_views.sstable_tasks`.
pub(super) fn task_rows(table: &Table, compactions: &NodeCompactions) -> Vec<PartitionRows> {
    let mut rows = MadeUpRows::new(table);
    for task in &compactions.active {
        let ratio = match task.total_bytes {
            0 => 0.0,
            total => task.completed_bytes as f64 / total as f64,
        };
        rows.add([
            ("keyspace_name", (&task.keyspace).into()),
            ("table_name", (&task.table).into()),
            ("task_id", task.id.into()),
            ("completion_ratio", ratio.into()),
            ("kind", task.kind.name().to_lowercase().into()),
            ("progress", task.completed_bytes.into()),
            ("sstables", i32::try_from(task.file_count).unwrap_or(i32::MAX).into()),
            ("target_directory", task.directory.display().to_string().into()),
            ("total", task.total_bytes.into()),
            ("total_compressed", task.total_compressed_bytes.into()),
            ("unit", "bytes".into()),
        ]);
    }
    rows.finish()
}

/// The rows of `system_views.clients`.
pub(super) fn client_rows(table: &Table, clients: &dyn Clients) -> Vec<PartitionRows> {
    let mut rows = MadeUpRows::new(table);
    for facts in clients.list() {
        let stage = if facts.protocol_version.is_some() { "ready" } else { "established" };
        rows.add([
            ("address", facts.address.ip().into()),
            ("port", i32::from(facts.address.port()).into()),
            ("client_options", (&facts.options).into()),
            ("connection_stage", stage.into()),
            ("driver_name", facts.driver_name.into()),
            ("driver_version", facts.driver_version.into()),
            ("keyspace_name", facts.keyspace.into()),
            ("protocol_version", facts.protocol_version.map(i32::from).into()),
            ("request_count", facts.request_count.into()),
            ("ssl_enabled", false.into()),
            ("username", "anonymous".into()),
        ]);
    }
    rows.finish()
}

/// All reads, and the greatest of the last five minutes; their distribution is not kept.
fn per_read(stats: &TableStats, recent: SliceStats) -> [(&'static str, Value); 2] {
    [("count", stats.read_count.into()), ("max", (recent.max as f64).into())]
}

fn add_chunk_cache(rows: &mut MadeUpRows<'_>, stats: &NodeStats) {
    let cache = stats.cache;
    let request_count = cache.hit_count + cache.miss_count;
    rows.add([
        ("name", "chunks".into()),
        ("capacity_bytes", cache.capacity_bytes.into()),
        ("entry_count", i32::try_from(cache.entry_count).unwrap_or(i32::MAX).into()),
        ("hit_count", cache.hit_count.into()),
        // Not a number before the first request, as from Cassandra.
        ("hit_ratio", (cache.hit_count as f64 / request_count as f64).into()),
        ("request_count", request_count.into()),
        ("size_bytes", cache.used_bytes.into()),
    ]);
}

fn add_tables<const N: usize>(
    rows: &mut MadeUpRows<'_>,
    stats: &NodeStats,
    tell: impl Fn(&TableStats) -> [(&'static str, Value); N],
) {
    for ((keyspace, table), stats) in &stats.tables {
        let key = [("keyspace_name", keyspace.into()), ("table_name", table.into())];
        rows.add_all(key.into_iter().chain(tell(stats)));
    }
}

fn data_directories(storage: &storage::StorageOptions) -> String {
    let layout = storage::Layout::of_options(storage);
    let shown: Vec<String> =
        layout.tables().written().iter().map(|path| path.display().to_string()).collect();
    shown.join(", ")
}

/// Settings under the names that Cassandra has for the same things.
fn settings(view: &NodeView) -> Vec<(&'static str, String)> {
    let options = &view.options;
    let storage = &options.storage;
    let internode = view.internode_listen();
    let sync = match storage.sync {
        storage::SyncMode::Group { .. } => "group",
        storage::SyncMode::Periodic { .. } => "periodic",
        storage::SyncMode::Batch => "batch",
    };
    let mebibytes = |bytes: u64| format!("{}MiB", bytes / MEBIBYTE);
    let mut settings = vec![
        ("authenticator", "AllowAllAuthenticator".into()),
        ("authorizer", "AllowAllAuthorizer".into()),
        ("broadcast_rpc_address", options.cql_broadcast.ip().to_string()),
        ("cluster_name", options.cluster_name.clone()),
        ("commitlog_segment_size", mebibytes(u64::from(storage.segment_bytes))),
        ("commitlog_sync", sync.into()),
        ("data_file_directories", format!("[{}]", data_directories(storage))),
        ("endpoint_snitch", view.snitch().into()),
        ("file_cache_size", mebibytes(storage.cache_bytes as u64)),
        ("listen_address", internode.ip().to_string()),
        ("memtable_heap_space", mebibytes(storage.memtable_bytes as u64)),
        ("native_transport_port", view.listen().port().to_string()),
        ("num_tokens", view.tokens().len().to_string()),
        ("partitioner", PARTITIONER.into()),
        ("rpc_address", view.listen().ip().to_string()),
        ("storage_port", internode.port().to_string()),
    ];
    settings.extend(options.settings.iter().cloned());
    settings
}
