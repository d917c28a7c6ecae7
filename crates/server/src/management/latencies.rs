//! How long requests of clients have taken, for `/v1/latencies` and for metrics.

use std::fmt::Write;
use std::time::Duration;

use assembly::NodeView;
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use management::{Latencies, Latency};
use query::RequestKind;
use stdx::histogram::Counts;

use super::ManagementState;
use super::answer::Answer;

/// Metrics tell times up to 2²⁶ µs, 67 s, apart.
const LONGEST_POWER: u32 = 26;

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/v1/latencies", get(answer))
}

async fn answer(State(state): State<ManagementState>) -> Answer<Latencies> {
    let of = |kind: RequestKind| (kind.name().to_owned(), latency(&state.view.latencies.lately(kind)));
    Ok(Json(Latencies { requests: RequestKind::ALL.map(of).into_iter().collect() }))
}

/// Zeros where nothing was counted.
fn latency(counts: &Counts) -> Latency {
    let micros =
        |time: Option<Duration>| time.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    let percentile = |percent: f64| micros(counts.percentile(percent));
    Latency {
        count: counts.count(),
        p50_micros: percentile(50.0),
        p75_micros: percentile(75.0),
        p95_micros: percentile(95.0),
        p98_micros: percentile(98.0),
        p99_micros: percentile(99.0),
        p999_micros: percentile(99.9),
        min_micros: micros(counts.shortest()),
        max_micros: percentile(100.0),
    }
}

/// Appends histograms of all shards together in Prometheus' text form.
pub(super) fn append_metrics(view: &NodeView, out: &mut String) {
    let name = "peristyle_request_seconds";
    _ = write!(
        out,
        "# HELP {name} How long requests of clients took, with all that they waited for.\n# TYPE {name} histogram\n"
    );
    for kind in RequestKind::ALL {
        let (counts, kind) = (view.latencies.all(kind), kind.name());
        for (time, count) in counts.below(LONGEST_POWER) {
            _ = writeln!(out, "{name}_bucket{{kind=\"{kind}\",le=\"{}\"}} {count}", time.as_secs_f64());
        }
        let count = counts.count();
        _ = writeln!(out, "{name}_bucket{{kind=\"{kind}\",le=\"+Inf\"}} {count}");
        _ = writeln!(out, "{name}_sum{{kind=\"{kind}\"}} {}", counts.total().as_secs_f64());
        _ = writeln!(out, "{name}_count{{kind=\"{kind}\"}} {count}");
    }
}
