//! `/v1/members/remove`: a member that is lost is taken out of the ring.

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use cluster::metadata::Command;
use management::Done;
use serde::Deserialize;
use uuid::Uuid;

use super::ManagementState;
use super::answer::{Answer, Refusal};
use super::request::Body;

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/v1/members/remove", post(remove))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    host_id: String,
}

async fn remove(State(state): State<ManagementState>, Body(wanted): Body<Wanted>) -> Answer<Done> {
    let wrong = || Refusal::wrong(format!("`{}` is no host id", wanted.host_id));
    let host_id = Uuid::parse_str(&wanted.host_id).map_err(|_| wrong())?;
    let proposer = state.view.proposer().ok_or_else(|| Refusal::conflict("this node is in no ring"))?;
    if state.view.hears(host_id) {
        return Err(Refusal::conflict(format!("node {host_id} is alive, and keeps its place")));
    }
    let removed = proposer.propose(Command::Remove { host_id }).await;
    removed.map_err(|error| Refusal::conflict(error.to_string()))?;
    tracing::warn!(%host_id, "a member was removed from the ring");
    Ok(Json(Done {}))
}
