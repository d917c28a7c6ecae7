//! How long requests may take, and another limit for one kind of them.

use std::time::Duration;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use management::{Done, Timeouts};
use query::TimeoutKind;
use serde::Deserialize;

use super::ManagementState;
use super::answer::{Answer, Refusal};
use super::request::Body;

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/v1/timeouts", get(all).post(set))
}

async fn all(State(state): State<ManagementState>) -> Answer<Timeouts> {
    let timeouts = &state.view.options.timeouts;
    let millis = |kind: TimeoutKind| (kind.name().to_owned(), millis(timeouts.get(kind)));
    Ok(Json(Timeouts { milliseconds: TimeoutKind::ALL.map(millis).into_iter().collect() }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    kind: String,
    milliseconds: u64,
}

async fn set(State(state): State<ManagementState>, Body(wanted): Body<Wanted>) -> Answer<Done> {
    let Some(kind) = TimeoutKind::ALL.into_iter().find(|kind| kind.name() == wanted.kind) else {
        let names = TimeoutKind::ALL.map(TimeoutKind::name).join(", ");
        return Err(Refusal::wrong(format!("there is no timeout '{}': {names}", wanted.kind)));
    };
    if wanted.milliseconds == 0 {
        return Err(Refusal::wrong("a timeout is at least a millisecond"));
    }
    state.view.options.timeouts.set(kind, Duration::from_millis(wanted.milliseconds));
    tracing::info!(kind = kind.name(), milliseconds = wanted.milliseconds, "a request timeout is set");
    Ok(Json(Done {}))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
