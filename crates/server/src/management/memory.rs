//! What the node has in memory, by use, for `/v1/info` and for metrics.

use std::fmt::Write;

use assembly::MemoryUse;
use management::PreparedStatements;
use query::PreparedFigures;

/// One use.
pub(super) fn answer(memory_use: &MemoryUse) -> management::MemoryUse {
    management::MemoryUse {
        name: memory_use.name.into(),
        held_bytes: memory_use.held_bytes,
        share_bytes: memory_use.share_bytes,
    }
}

/// What there is of prepared statements, which have a share of so many bytes.
pub(super) fn prepared_statements(figures: PreparedFigures, capacity_bytes: usize) -> PreparedStatements {
    PreparedStatements {
        count: figures.count as u64,
        size_bytes: (figures.text_bytes + figures.plan_bytes) as u64,
        capacity_bytes: capacity_bytes as u64,
        evicted_count: figures.evicted_count,
    }
}

/// Appends all uses, and the prepared statements, in Prometheus' text form.
pub(super) fn append_metrics(uses: &[MemoryUse], prepared: PreparedFigures, out: &mut String) {
    let name = "peristyle_memory_bytes";
    _ = write!(out, "# HELP {name} What the process has in memory, by use.\n# TYPE {name} gauge\n");
    for memory_use in uses {
        _ = writeln!(out, "{name}{{use=\"{}\"}} {}", memory_use.name, memory_use.held_bytes);
    }
    for (name, kind, help, value) in [
        (
            "peristyle_prepared_statements",
            "gauge",
            "Prepared statements that are known.",
            prepared.count as u64,
        ),
        (
            "peristyle_prepared_statements_evicted_total",
            "counter",
            "Prepared statements that made room for others.",
            prepared.evicted_count,
        ),
    ] {
        _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
}
