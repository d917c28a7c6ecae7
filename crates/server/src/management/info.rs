//! `/v1/info`: one node.

use axum::Json;
use serde_json::json;

use super::answer::Answer;
use super::{ManagementState, NodeStats, memory, turns};

pub(super) async fn answer(state: &ManagementState) -> Answer {
    let stats = NodeStats::collect(&state.shards).await?;
    let (view, cache, requests) = (&state.view, stats.cache, &state.requests.figures);
    let tokens: Vec<String> = view.tokens.iter().map(i64::to_string).collect();
    Ok(Json(json!({
        "host_id": view.host_id.to_string(),
        "gossip_active": false,
        "native_transport_active": state.serves_clients(),
        "load_bytes": stats.load_bytes(),
        "uncompressed_load_bytes": stats.uncompressed_load_bytes(),
        "generation": view.started_seconds,
        "uptime_seconds": view.uptime_seconds(),
        "memory_used_bytes": runtime::resident_bytes(),
        "memory_max_bytes": view.options.memory_bytes,
        "data_center": view.options.data_center,
        "rack": view.options.rack,
        "exception_count": state.clients.exception_count(),
        "chunk_cache": {
            "entries": cache.entry_count,
            "size_bytes": cache.used_bytes,
            "capacity_bytes": cache.capacity_bytes,
            "misses": cache.miss_count,
            "requests": cache.hit_count + cache.miss_count,
            "index_bytes": cache.index_bytes,
            "pinned_bytes": cache.pinned_bytes,
            "disk_reads": cache.disk_read_count,
            "disk_read_bytes": cache.disk_read_bytes,
        },
        "requests": {
            "held_bytes": view.client_memory.in_flight_bytes(),
            "capacity_bytes": state.requests.limit_bytes,
            "waiting_connections": requests.iter().map(|shard| shard.waiting_count()).sum::<usize>(),
            "overloaded_count": requests.iter().map(|shard| shard.overloaded_count()).sum::<u64>(),
        },
        "turns": state.shards.turns().iter().enumerate().map(turns::answer).collect::<Vec<_>>(),
        "memtable_bytes": stats.memtable_bytes,
        "memory": view.memory_uses(&stats).iter().map(memory::answer).collect::<Vec<_>>(),
        "prepared_statements": memory::prepared_statements(
            view.client_memory.prepared(),
            view.options.prepared.bytes,
        ),
        "percent_repaired": percent_repaired(&stats),
        "tokens": tokens,
        "shard_count": state.shards.count(),
        "connection_count": state.connections.get(),
        "bootstrap_state": "COMPLETED",
        "draining": state.is_draining(),
    })))
}

/// Nothing is repaired on a lone node; of nothing, all is.
fn percent_repaired(stats: &NodeStats) -> f64 {
    if stats.load_bytes() == 0 { 100.0 } else { 0.0 }
}
