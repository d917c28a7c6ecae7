//! `/v1/tablestats`, and the same figures for Prometheus at `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use assembly::NodeView;
use axum::Json;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use management::{ChosenLength, ChunkLength, Keyspace, LengthCost, Prefetch, Table};
use schema::Schema;
use serde::Deserialize;
use storage::{ChunkLengthStats, PrefetchState, PrefetchStats, TableStats};

use super::answer::{Answer, Refusal};
use super::{
    ManagementState, NodeCompactions, NodeStats, compactions, latencies, memory, ring_metrics, turns,
};

/// What a request is about; nothing named means everything.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Selected {
    keyspace: Option<String>,
    table: Option<String>,
}

impl Selected {
    fn check(&self, schema: &Schema) -> Result<(), Refusal> {
        match (&self.keyspace, &self.table) {
            (None, Some(_)) => Err(Refusal::wrong("a table is named without its keyspace")),
            (Some(keyspace), _) if schema.keyspace(keyspace).is_none() => {
                Err(Refusal::missing(format!("Keyspace [{keyspace}] does not exist.")))
            }
            (Some(keyspace), Some(table)) if schema.table(keyspace, table).is_none() => {
                Err(Refusal::missing(format!("Unknown keyspace/cf pair ({keyspace}.{table})")))
            }
            _ => Ok(()),
        }
    }

    fn includes(&self, keyspace: &str, table: &str) -> bool {
        self.keyspace.as_ref().is_none_or(|only| only == keyspace)
            && self.table.as_ref().is_none_or(|only| only == table)
    }
}

pub(super) async fn answer(state: &ManagementState, selected: Selected) -> Answer<management::TableStats> {
    selected.check(&*state.schema().await?)?;
    let stats = NodeStats::collect(&state.shards).await?;
    let snapshots = snapshot_bytes(state).await?;
    let mut keyspaces: Vec<(TableStats, Keyspace)> = Vec::new();
    for ((keyspace, table), stats) in &stats.tables {
        if !selected.includes(keyspace, table) {
            continue;
        }
        if keyspaces.last().is_none_or(|(_, shown)| shown.name != *keyspace) {
            let shown = Keyspace { name: keyspace.clone(), ..Keyspace::default() };
            keyspaces.push((TableStats::default(), shown));
        }
        if let Some((total, shown)) = keyspaces.last_mut() {
            total.add(stats);
            let snapshots = snapshots.get(&(keyspace.clone(), table.clone())).copied().unwrap_or(0);
            shown.tables.push(shown_table(table, stats, snapshots));
        }
    }
    let with_total = |(total, shown): (TableStats, Keyspace)| Keyspace {
        read_count: total.read_count,
        read_total_us: total.read_nanos / 1000,
        write_count: total.write_count,
        write_total_us: total.write_nanos / 1000,
        pending_flushes: total.pending_flushes,
        ..shown
    };
    let keyspaces = keyspaces.into_iter().map(with_total).collect();
    Ok(Json(management::TableStats { keyspaces }))
}

/// Bytes that only snapshots hold, by keyspace and table.
async fn snapshot_bytes(state: &ManagementState) -> Result<BTreeMap<(String, String), u64>, Refusal> {
    let mut bytes: BTreeMap<(String, String), u64> = BTreeMap::new();
    for facts in state.shards.on(0, |shard| async move { shard.snapshots().list().await }).await?? {
        *bytes.entry((facts.keyspace, facts.table)).or_default() += facts.true_bytes;
    }
    Ok(bytes)
}

fn shown_table(name: &str, stats: &TableStats, snapshot_bytes: u64) -> Table {
    let (live, tombstones) = (stats.live_rows_per_read, stats.tombstones_per_read);
    let not_repaired = stats.repaired_bytes + stats.pending_repair_bytes;
    Table {
        name: name.into(),
        is_index: false,
        sstable_count: stats.sstable_count,
        old_sstable_count: stats.old_sstable_count,
        sstable_size_max_bytes: stats.sstable_bytes_max,
        space_live_bytes: stats.space_used_live,
        space_total_bytes: stats.space_used_total,
        space_snapshots_bytes: snapshot_bytes,
        off_heap_bytes: stats.file_index_bytes(),
        compressed_bytes: stats.compressed_bytes,
        uncompressed_bytes: stats.uncompressed_bytes,
        partition_count_estimate: stats.estimated_partition_count,
        memtable_cell_count: stats.memtable_cell_count,
        memtable_bytes: stats.memtable_data_size,
        memtable_off_heap_bytes: 0,
        memtable_switch_count: stats.memtable_switch_count,
        speculative_retries: stats.speculative_retries,
        read_count: stats.read_count,
        read_total_us: stats.read_nanos / 1000,
        write_count: stats.write_count,
        write_total_us: stats.write_nanos / 1000,
        pending_flushes: stats.pending_flushes,
        repaired_bytes: stats.repaired_bytes,
        unrepaired_bytes: stats.uncompressed_bytes.saturating_sub(not_repaired),
        pending_repair_bytes: stats.pending_repair_bytes,
        filter_false_positives: stats.filter_false_positives,
        filter_false_ratio: stats.filter_false_ratio(),
        filter_bytes: stats.filter_disk_bytes,
        filter_off_heap_bytes: stats.filter_bytes,
        index_summary_off_heap_bytes: stats.index_summary_bytes,
        compression_metadata_off_heap_bytes: stats.compression_metadata_bytes,
        partition_min_bytes: stats.partition_bytes.min,
        partition_max_bytes: stats.partition_bytes.max,
        partition_mean_bytes: stats.partition_bytes.mean(),
        live_cells_per_slice_mean: live.mean(),
        live_cells_per_slice_max: live.max,
        tombstones_per_slice_mean: tombstones.mean(),
        tombstones_per_slice_max: tombstones.max,
        droppable_tombstone_ratio: stats.droppable_tombstone_ratio(),
        damaged_files: stats.damaged_files.clone(),
        file_memory_bytes: stats.file_memory_bytes,
        current_sstable_count: Some(stats.current_sstable_count),
        current_compressed_bytes: stats.current_compressed_bytes,
        cache_hits: stats.cache_hit_count,
        cache_misses: stats.cache_miss_count,
        prefetch: stats.prefetch.as_ref().map(shown_prefetch),
        chunk_length: stats.chunk_length.as_ref().map(shown_chunk_length),
    }
}

/// What came into memory after the start, before anybody asked.
fn shown_prefetch(stats: &PrefetchStats) -> Prefetch {
    let state = match stats.state {
        PrefetchState::NotBegun => "not begun",
        PrefetchState::Going => "going on",
        PrefetchState::Full => "full",
        PrefetchState::Done => "done",
    };
    Prefetch {
        wanted: stats.wanted.text().into(),
        state: state.into(),
        planned_chunks: stats.planned_chunks,
        read_chunks: stats.read_chunks,
        read_bytes: stats.read_bytes,
    }
}

/// What is chosen for a table with `'chunk_length_in_kb': 'auto'`, and why.
fn shown_chunk_length(stats: &ChunkLengthStats) -> ChunkLength {
    let chosen = |(bytes, shards): (&u32, &u64)| ChosenLength { bytes: u64::from(*bytes), shards: *shards };
    let reads = &stats.cold_reads;
    let cost = |bytes| LengthCost { bytes: u64::from(bytes), read_bytes: reads.cost_mean(bytes) };
    ChunkLength {
        chosen: stats.shards_by_bytes.iter().map(chosen).collect(),
        cold_reads: reads.read_count,
        cold_range_reads: reads.range_count,
        cold_reads_min: ChunkLengthStats::READS_MIN,
        wanted_bytes_mean: reads.wanted_bytes_mean(),
        costs: ChunkLengthStats::CHOICES.map(cost).into(),
    }
}

type Figure = fn(&TableStats) -> f64;

/// Name, kind, help and source of each metric of a table.
const METRICS: [(&str, &str, &str, Figure); 12] = [
    ("peristyle_table_reads_total", "counter", "Reads on shards.", |stats| stats.read_count as f64),
    ("peristyle_table_read_seconds_total", "counter", "Time spent in reads.", |stats| {
        stats.read_nanos as f64 / 1e9
    }),
    ("peristyle_table_writes_total", "counter", "Writes on shards.", |stats| stats.write_count as f64),
    ("peristyle_table_write_seconds_total", "counter", "Time spent in writes.", |stats| {
        stats.write_nanos as f64 / 1e9
    }),
    ("peristyle_table_files", "gauge", "Live table files.", |stats| stats.sstable_count as f64),
    ("peristyle_table_current_files", "gauge", "Of them, those in the form the table asks for.", |stats| {
        stats.current_sstable_count as f64
    }),
    ("peristyle_table_live_bytes", "gauge", "Bytes of live table files.", |stats| {
        stats.space_used_live as f64
    }),
    ("peristyle_table_memtable_bytes", "gauge", "Bytes in memtables.", |stats| {
        stats.memtable_data_size as f64
    }),
    ("peristyle_table_cache_hits_total", "counter", "Chunks found in memory.", |stats| {
        stats.cache_hit_count as f64
    }),
    ("peristyle_table_cache_misses_total", "counter", "Chunks not found in memory.", |stats| {
        stats.cache_miss_count as f64
    }),
    ("peristyle_table_flushes_total", "counter", "Memtables written out.", |stats| {
        stats.memtable_switch_count as f64
    }),
    (
        "peristyle_table_speculative_retries_total",
        "counter",
        "Reads for which one more replica was asked, because another one was late.",
        |stats| stats.speculative_retries as f64,
    ),
];

/// The node's metrics in the Prometheus text format.
pub(super) async fn prometheus(state: &ManagementState) -> Result<Response, Refusal> {
    let stats = NodeStats::collect(&state.shards).await?;
    let compactions = NodeCompactions::collect(&state.shards).await?;
    let mut text = prometheus_text(&stats, state.connections.get(), state.view.uptime_seconds());
    let slow = (
        "peristyle_slow_queries_total",
        "counter",
        "Statements that took longer than slow_query_log_timeout.",
        state.clients.slow_queries().total_count() as f64,
    );
    for (name, kind, help, value) in
        compactions::metrics(&compactions.totals).into_iter().chain(batch_metrics(&state.view)).chain([slow])
    {
        _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    turns::append_metrics(state.shards.turns(), &mut text);
    let view = &state.view;
    latencies::append_metrics(view, &mut text);
    ring_metrics::append_metrics(view, &mut text);
    memory::append_metrics(&view.memory_uses(&stats), view.client_memory.prepared(), &mut text);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

/// Of logged batches.
fn batch_metrics(view: &NodeView) -> [(&'static str, &'static str, &'static str, f64); 3] {
    [
        (
            "peristyle_unfinished_batches",
            "gauge",
            "Logged batches that are recorded, or may be, and could not be finished or taken back yet.",
            view.unfinished_batch_count() as f64,
        ),
        (
            "peristyle_kept_batches",
            "gauge",
            "Logged batches that are kept for other nodes of the ring, or of an earlier run.",
            view.kept_batch_count() as f64,
        ),
        (
            "peristyle_replayed_batches_total",
            "counter",
            "Kept batches that nobody had finished, and that were written again.",
            view.replayed_batch_count() as f64,
        ),
    ]
}

fn prometheus_text(stats: &NodeStats, connection_count: usize, uptime_seconds: u64) -> String {
    let mut out = String::new();
    let mut single = |name: &str, kind: &str, help: &str, value: f64| {
        _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    };
    single("peristyle_connections", "gauge", "Connections of clients.", connection_count as f64);
    single("peristyle_uptime_seconds", "gauge", "Time since the start.", uptime_seconds as f64);
    for (name, kind, help, value) in [
        ("peristyle_cache_used_bytes", "gauge", "Bytes in the chunk cache.", stats.cache.used_bytes),
        ("peristyle_cache_index_bytes", "gauge", "Of them, index pages.", stats.cache.index_bytes),
        ("peristyle_cache_capacity_bytes", "gauge", "Bytes it may take.", stats.cache.capacity_bytes),
        (
            "peristyle_cache_pinned_bytes",
            "gauge",
            "Filters, chunk offsets and upper index levels, out of the cache's memory.",
            stats.cache.pinned_bytes,
        ),
        ("peristyle_cache_hits_total", "counter", "Chunks found in the cache.", stats.cache.hit_count),
        ("peristyle_cache_misses_total", "counter", "Chunks not found there.", stats.cache.miss_count),
        ("peristyle_disk_reads_total", "counter", "Reads of table files.", stats.cache.disk_read_count),
        ("peristyle_disk_read_bytes_total", "counter", "Bytes of them.", stats.cache.disk_read_bytes),
    ] {
        single(name, kind, help, value as f64);
    }
    if let Some(bytes) = runtime::resident_bytes() {
        single("process_resident_memory_bytes", "gauge", "Resident memory.", bytes as f64);
    }
    for (name, kind, help, figure) in METRICS {
        _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for ((keyspace, table), stats) in &stats.tables {
            // Names hold letters, digits and underscores only, so nothing needs escaping.
            _ = writeln!(out, "{name}{{keyspace=\"{keyspace}\",table=\"{table}\"}} {}", figure(stats));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use assembly::base_schema;

    #[test]
    fn missing_names_are_refused_in_cassandras_words() {
        let schema = base_schema().expect("schema");
        let check = |keyspace: Option<&str>, table: Option<&str>, expected: Option<&str>| {
            let selected =
                Selected { keyspace: keyspace.map(str::to_owned), table: table.map(str::to_owned) };
            let refused = selected.check(&schema).err().map(|refusal| format!("{refusal:?}"));
            assert!(
                match (&refused, expected) {
                    (None, None) => true,
                    (Some(refused), Some(expected)) => refused.contains(expected),
                    _ => false,
                },
                "{refused:?}"
            );
        };
        check(None, None, None);
        check(Some("system"), Some("local"), None);
        check(Some("nope"), None, Some("Keyspace [nope] does not exist."));
        check(Some("system"), Some("nope"), Some("Unknown keyspace/cf pair (system.nope)"));
        check(None, Some("local"), Some("without its keyspace"));
    }

    #[test]
    fn metrics_name_every_table_once() {
        let mut stats = NodeStats::default();
        let table = TableStats { read_count: 3, ..TableStats::default() };
        stats.tables.insert(("k".into(), "t".into()), table);
        let text = prometheus_text(&stats, 2, 10);
        assert!(text.contains("peristyle_table_reads_total{keyspace=\"k\",table=\"t\"} 3\n"));
        assert!(text.contains("# TYPE peristyle_connections gauge\nperistyle_connections 2\n"));
    }
}
