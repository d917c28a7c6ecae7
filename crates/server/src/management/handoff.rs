//! `/v1/handoff`: what other nodes have missed, and how it is handed to them.

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use cluster::metadata::Member;
use coordinator::replicas::Marks;
use management::{Done, Handoffs, PendingNode};
use serde::Deserialize;
use tokio::time::Instant;

use super::ManagementState;
use super::answer::{Answer, Refusal};
use super::request::{Body, OptionalBody};

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/v1/handoff", get(show).post(set)).route("/v1/handoff/forget", post(forget))
}

async fn show(State(state): State<ManagementState>) -> Answer<Handoffs> {
    // A lone node would keep what others miss, if there were any.
    let Some(marks) = state.view.marks() else {
        return Ok(Json(Handoffs { is_enabled: true, ..Handoffs::default() }));
    };
    let handoff = marks.handoff();
    let nodes = state.view.nodes().into_iter().filter_map(|member| pending(&state, marks, member));
    Ok(Json(Handoffs {
        is_enabled: handoff.is_enabled(),
        is_paused: handoff.is_paused(),
        bytes_per_second: handoff.throttle(),
        window_ms: u64::try_from(handoff.window.as_millis()).unwrap_or(u64::MAX),
        disabled_data_centers: handoff.disabled_centers(),
        nodes: nodes.collect(),
    }))
}

/// What a member has missed, if it has.
fn pending(state: &ManagementState, marks: &Marks, Member { candidate, .. }: Member) -> Option<PendingNode> {
    let pending = marks.pending(candidate.host_id);
    let is_up = state.view.ring().is_none_or(|ring| ring.other(candidate.host_id).is_up());
    let age = pending.since.map(|since| Instant::now().saturating_duration_since(since));
    let node = PendingNode {
        host_id: candidate.host_id.to_string(),
        address: candidate.address.ip().to_string(),
        rack: candidate.rack,
        data_center: candidate.data_center,
        is_up,
        logged_count: pending.logged_count as u64,
        compared_count: pending.compared_count as u64,
        oldest_age_ms: age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
    };
    (node.logged_count + node.compared_count > 0).then_some(node)
}

/// What is to be another than it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    is_enabled: Option<bool>,
    is_paused: Option<bool>,
    /// 0 for no limit.
    bytes_per_second: Option<u64>,
    /// Keep nothing for a data centre, or something again.
    disable_for: Option<String>,
    enable_for: Option<String>,
}

async fn set(State(state): State<ManagementState>, Body(wanted): Body<Wanted>) -> Answer<Done> {
    let handoff = marks(&state)?.handoff();
    for center in wanted.disable_for.iter().chain(&wanted.enable_for) {
        if !state.view.nodes().iter().any(|member| member.candidate.data_center == *center) {
            return Err(Refusal::wrong(format!("there is no data centre '{center}' in the ring")));
        }
    }
    tracing::info!(?wanted, "what other nodes miss is handed to them in another way");
    if let Some(is_enabled) = wanted.is_enabled {
        handoff.enable(is_enabled);
    }
    if let Some(is_paused) = wanted.is_paused {
        handoff.pause(is_paused);
    }
    if let Some(bytes) = wanted.bytes_per_second {
        handoff.set_throttle(Some(bytes).filter(|bytes| *bytes > 0));
    }
    wanted.disable_for.iter().for_each(|center| handoff.disable_for(center, true));
    wanted.enable_for.iter().for_each(|center| handoff.disable_for(center, false));
    Ok(Json(Done {}))
}

/// Of whom; of all, if nobody is named.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Whom {
    address: Option<String>,
}

async fn forget(
    State(state): State<ManagementState>,
    OptionalBody(whom): OptionalBody<Whom>,
) -> Answer<Done> {
    let marks = marks(&state)?;
    let Some(address) = whom.address else {
        tracing::warn!("what other nodes have missed is forgotten: repair what they have to be equal in");
        marks.forget(None);
        return Ok(Json(Done {}));
    };
    let nodes = state.view.nodes();
    let is_meant = |member: &&Member| {
        let of_ring = member.candidate.address;
        of_ring.to_string() == address || of_ring.ip().to_string() == address
    };
    let Some(member) = nodes.iter().find(is_meant) else {
        return Err(Refusal::wrong(format!("there is no node {address} in the ring")));
    };
    tracing::warn!(address, "what a node has missed is forgotten: repair what it has to be equal in");
    marks.forget(Some(member.candidate.host_id));
    Ok(Json(Done {}))
}

fn marks(state: &ManagementState) -> Result<&Marks, Refusal> {
    state.view.marks().ok_or_else(|| Refusal::conflict("the node is alone: there is nobody to miss anything"))
}
