//! `/v1/info`: one node.

use axum::Json;
use management::{ChunkCache, Info, Requests};

use super::answer::Answer;
use super::{ManagementState, NodeStats, memory, turns};

pub(super) async fn answer(state: &ManagementState) -> Answer<Info> {
    let stats = NodeStats::collect(&state.shards).await?;
    let view = &state.view;
    Ok(Json(Info {
        host_id: view.host_id.to_string(),
        gossip_active: view.ring().is_some_and(|known| !known.is_withdrawn()),
        native_transport_active: state.serves_clients(),
        load_bytes: stats.load_bytes(),
        uncompressed_load_bytes: stats.uncompressed_load_bytes(),
        generation: view.started_seconds,
        uptime_seconds: view.uptime_seconds(),
        memory_used_bytes: runtime::resident_bytes(),
        memory_max_bytes: view.options.memory_bytes,
        memory: view.memory_uses(&stats).iter().map(memory::answer).collect(),
        prepared_statements: memory::prepared_statements(
            view.client_memory.prepared(),
            view.options.prepared.bytes,
        ),
        data_center: view.options.data_center.clone(),
        rack: view.options.rack.clone(),
        exception_count: state.clients.exception_count(),
        chunk_cache: chunk_cache(&stats),
        requests: requests(state),
        memtable_bytes: stats.memtable_bytes,
        percent_repaired: Some(percent_repaired(&stats)),
        tokens: view.tokens().iter().map(i64::to_string).collect(),
        bootstrap_state: "COMPLETED".into(),
        turns: state.shards.turns().iter().enumerate().map(turns::answer).collect(),
        shard_count: state.shards.count() as u64,
        connection_count: state.connections.get() as u64,
        draining: state.is_draining(),
    }))
}

fn chunk_cache(stats: &NodeStats) -> ChunkCache {
    let cache = &stats.cache;
    ChunkCache {
        entries: cache.entry_count,
        size_bytes: cache.used_bytes,
        capacity_bytes: cache.capacity_bytes,
        misses: cache.miss_count,
        requests: cache.hit_count + cache.miss_count,
        index_bytes: cache.index_bytes,
        pinned_bytes: cache.pinned_bytes,
        disk_reads: cache.disk_read_count,
        disk_read_bytes: cache.disk_read_bytes,
    }
}

fn requests(state: &ManagementState) -> Requests {
    let shards = &state.requests.figures;
    Requests {
        held_bytes: state.view.client_memory.in_flight_bytes() as u64,
        capacity_bytes: state.requests.limit_bytes as u64,
        waiting_connections: shards.iter().map(|shard| shard.waiting_count() as u64).sum(),
        overloaded_count: shards.iter().map(|shard| shard.overloaded_count()).sum(),
    }
}

/// Nothing is repaired on a lone node; of nothing, all is.
fn percent_repaired(stats: &NodeStats) -> f64 {
    if stats.load_bytes() == 0 { 100.0 } else { 0.0 }
}
