//! `nodetool info`.

use std::io::Write;

use super::NodetoolError;
use super::numbers::{double, file_size};
use management::{Info, MemoryUse, PreparedStatements, Requests};

/// Prints one node. Lines of things that do not exist here (heap, key, row and counter caches) stay
/// with zeros, because scripts look for them; "heap" is the resident memory and the budget.
pub(super) fn print(info: &Info, all_tokens: bool, out: &mut impl Write) -> Result<(), NodetoolError> {
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut line = |name: &str, value: String| writeln!(out, "{name:<23}: {value}");
    line("ID", info.host_id.clone())?;
    line("Gossip active", info.gossip_active.to_string())?;
    line("Native Transport active", info.native_transport_active.to_string())?;
    line("Load", file_size(info.load_bytes))?;
    line("Uncompressed load", file_size(info.uncompressed_load_bytes))?;
    line("Generation No", info.generation.to_string())?;
    line("Uptime (seconds)", info.uptime_seconds.to_string())?;
    let (used, max) = (mebibytes(info.memory_used_bytes.unwrap_or(0)), mebibytes(info.memory_max_bytes));
    line("Heap Memory (MB)", format!("{used:.2} / {max:.2}"))?;
    line("Off Heap Memory (MB)", "0.00".to_owned())?;
    line("Data Center", info.data_center.clone())?;
    line("Rack", info.rack.clone())?;
    line("Exceptions", info.exception_count.to_string())?;
    for cache in ["Key Cache", "Row Cache", "Counter Cache"] {
        line(
            cache,
            "entries 0, size 0 bytes, capacity 0 bytes, 0 hits, 0 requests, NaN recent hit rate, \
             0 save period in seconds"
                .to_owned(),
        )?;
    }
    line("Chunk Cache", chunk_cache(info))?;
    let (index, pinned) = (file_size(info.chunk_cache.index_bytes), file_size(info.chunk_cache.pinned_bytes));
    line("Chunk Cache Use", format!("index pages {index}, pinned beside the cache {pinned}"))?;
    line("Memtables", file_size(info.memtable_bytes))?;
    line("Requests", requests(&info.requests))?;
    line("Prepared Statements", prepared_statements(&info.prepared_statements))?;
    info.memory.iter().try_for_each(|memory_use| line("Memory Use", memory_line(memory_use)))?;
    line("Percent Repaired", format!("{}%", double(info.percent_repaired.unwrap_or(100.0))))?;
    match info.tokens.as_slice() {
        [token] => line("Token", token.clone())?,
        tokens if all_tokens => tokens.iter().try_for_each(|token| line("Token", token.clone()))?,
        tokens => line("Token", format!("(invoke with -T/--tokens to see all {} tokens)", tokens.len()))?,
    }
    line("Bootstrap state", info.bootstrap_state.clone())?;
    for name in ["Bootstrap failed", "Decommissioning", "Decommission failed"] {
        line(name, "false".to_owned())?;
    }
    Ok(())
}

fn requests(requests: &Requests) -> String {
    format!(
        "size {}, capacity {}, {} connections waiting for room, {} answered Overloaded",
        file_size(requests.held_bytes),
        file_size(requests.capacity_bytes),
        requests.waiting_connections,
        requests.overloaded_count,
    )
}

fn prepared_statements(prepared: &PreparedStatements) -> String {
    format!(
        "entries {}, size {}, capacity {}, {} evicted",
        prepared.count,
        file_size(prepared.size_bytes),
        file_size(prepared.capacity_bytes),
        prepared.evicted_count,
    )
}

fn memory_line(memory_use: &MemoryUse) -> String {
    let share = memory_use.share_bytes.map(|bytes| format!(" of {}", file_size(bytes)));
    format!("{}{} {}", file_size(memory_use.held_bytes), share.unwrap_or_default(), memory_use.name)
}

/// We do not time misses one by one.
fn chunk_cache(info: &Info) -> String {
    let cache = &info.chunk_cache;
    let hits = cache.requests.saturating_sub(cache.misses);
    let rate =
        if cache.requests > 0 { format!("{:.3}", hits as f64 / cache.requests as f64) } else { "NaN".into() };
    format!(
        "entries {}, size {}, capacity {}, {} misses, {} requests, {rate} recent hit rate, NaN microseconds miss latency",
        cache.entries,
        file_size(cache.size_bytes),
        file_size(cache.capacity_bytes),
        cache.misses,
        cache.requests,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_is_printed_and_many_are_counted() {
        let mut info = Info { host_id: "h".into(), tokens: vec!["1".into()], ..Info::default() };
        let mut out = Vec::new();
        print(&info, false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("ID                     : h\nGossip active          : false\n"));
        assert!(text.contains("Token                  : 1\n"));
        info.tokens.push("2".into());
        let mut out = Vec::new();
        print(&info, false, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("see all 2 tokens"));
    }
}
