//! `/v1/tracing`: how many requests are traced though their clients have not asked for it.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use management::{Done, Tracing};

use super::ManagementState;
use super::answer::{Answer, Refusal};
use super::request::Body;

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/v1/tracing", get(answer).post(set))
}

async fn answer(State(state): State<ManagementState>) -> Answer<Tracing> {
    Ok(Json(Tracing { chance: state.clients.trace_chance().get() }))
}

async fn set(State(state): State<ManagementState>, Body(wanted): Body<Tracing>) -> Answer<Done> {
    if !state.clients.trace_chance().set(wanted.chance) {
        return Err(Refusal::wrong("Trace probability must be between 0 and 1"));
    }
    tracing::info!(chance = wanted.chance, "so many requests are traced from now on");
    Ok(Json(Done {}))
}
