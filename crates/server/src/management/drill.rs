//! Drills: a node is told not to talk to another one, as if the network between them were cut. `peristyle cluster cut`
//! tells both.

use std::net::IpAddr;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use management::Done;
use serde::Deserialize;

use super::ManagementState;
use super::answer::{Answer, Refusal};
use super::request::{Nothing, OptionalBody, Parameters};

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/ring/cut", post(cut)).route("/ring/heal", post(heal))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Other {
    address: IpAddr,
}

async fn cut(
    State(state): State<ManagementState>,
    Parameters(other): Parameters<Other>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Answer<Done> {
    let known = state.view.ring().ok_or_else(|| Refusal::wrong("this node is in no ring"))?;
    if !known.cut_off(other.address) {
        return Err(Refusal::wrong(format!("no member of the ring is at {}", other.address)));
    }
    tracing::warn!(address = %other.address, "this node is told not to talk to another one");
    Ok(Json(Done {}))
}

async fn heal(
    State(state): State<ManagementState>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Answer<Done> {
    let known = state.view.ring().ok_or_else(|| Refusal::wrong("this node is in no ring"))?;
    known.heal();
    tracing::info!("this node talks to all others again");
    Ok(Json(Done {}))
}
