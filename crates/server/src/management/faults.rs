//! How the node's disks are, and what has failed.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use storage::{CommitFailurePolicy, DataDirectory, Demand, DiskFailurePolicy, FaultRecord};

use super::ManagementState;
use super::answer::Answer;

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/v1/faults", get(answer))
}

async fn answer(State(state): State<ManagementState>) -> Answer {
    let health = state.shards.health();
    let (faults, fault_count) = health.faults();
    let shown_directory =
        |directory: &DataDirectory| json!({ "path": directory.path, "writable": directory.is_writable });
    let shown = |fault: &FaultRecord| -> Value {
        json!({ "at_ms": fault.at_ms, "kind": fault.kind.name(), "act": fault.act, "what": fault.what })
    };
    Ok(Json(json!({
        "disk_failure_policy": disk_policy(health.disk_policy()),
        "commit_failure_policy": commit_policy(health.commit_policy()),
        "native_transport_active": state.serves_clients(),
        "stopped_by_failure": *health.demand().borrow() > Demand::Serve,
        "directories": health.directories().iter().map(shown_directory).collect::<Vec<_>>(),
        "fault_count": fault_count,
        "faults": faults.iter().map(shown).collect::<Vec<_>>(),
    })))
}

fn disk_policy(policy: DiskFailurePolicy) -> &'static str {
    match policy {
        DiskFailurePolicy::Stop => "stop",
        DiskFailurePolicy::StopParanoid => "stop_paranoid",
        DiskFailurePolicy::BestEffort => "best_effort",
        DiskFailurePolicy::Ignore => "ignore",
        DiskFailurePolicy::Die => "die",
    }
}

fn commit_policy(policy: CommitFailurePolicy) -> &'static str {
    match policy {
        CommitFailurePolicy::Stop => "stop",
        CommitFailurePolicy::StopCommit => "stop_commit",
        CommitFailurePolicy::Ignore => "ignore",
        CommitFailurePolicy::Die => "die",
    }
}
