//! The paths of the port.

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, Request, State};
use axum::http::header::ORIGIN;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;

use super::actions::{self, Target};
use super::answer::{Answer, Refusal};
use super::table_stats::Selected;
use super::{ManagementState, compactions, info, status, table_stats};
use assembly::RELEASE_VERSION;

/// Bytes of a request's body, at most: names of tables.
const BODY_BYTES_MAX: usize = 1 << 20;

pub(super) fn router(state: ManagementState) -> Router {
    Router::new()
        .route("/v1/version", get(version))
        .route(
            "/v1/info",
            get(|State(state): State<ManagementState>| async move { info::answer(&state).await }),
        )
        .route("/v1/status", get(status_of))
        .route("/v1/tablestats", get(stats_of))
        .route("/v1/flush", post(flush))
        .route("/v1/compact", post(compact))
        .route(
            "/v1/compactions",
            get(|State(state): State<ManagementState>| async move { compactions::answer(&state).await }),
        )
        .route(
            "/v1/compactionhistory",
            get(|State(state): State<ManagementState>| async move { compactions::history(&state).await }),
        )
        .route("/v1/compactions/auto", post(set_auto_compaction))
        .route("/v1/compactions/stop", post(stop_compactions))
        .route("/v1/compactions/throughput", post(set_compaction_throughput))
        .route(
            "/v1/drain",
            post(|State(state): State<ManagementState>| async move { actions::drain(&state).await }),
        )
        .route("/v1/stop", post(|State(state): State<ManagementState>| async move { actions::stop(&state) }))
        .route(
            "/metrics",
            get(|State(state): State<ManagementState>| async move { table_stats::prometheus(&state).await }),
        )
        .merge(super::moving::routes())
        .merge(super::faults::routes())
        .merge(super::rewrites::routes())
        .fallback(|| async { Refusal::missing("no such path") })
        .method_not_allowed_fallback(|| async { Refusal::wrong("this path takes another method") })
        .layer(axum::extract::DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(axum::middleware::from_fn(refuse_web_pages))
        .with_state(state)
}

/// A web page that somebody looks at on this machine could reach a port on loopback too. Browsers
/// say where such a request comes from; tools do not.
async fn refuse_web_pages(request: Request, next: Next) -> Response {
    if request.headers().contains_key(ORIGIN) {
        return Refusal::forbidden("not for web pages").into_response();
    }
    next.run(request).await
}

type Parameters = Result<Query<Selected>, QueryRejection>;
type Body = Result<Json<Target>, JsonRejection>;

fn parameters(given: Parameters) -> Result<Selected, Refusal> {
    given.map(|Query(selected)| selected).map_err(|error| Refusal::wrong(error.body_text()))
}

/// The body; nothing at all means everything.
fn target(given: Body) -> Result<Target, Refusal> {
    body_or_default(given)
}

fn body_or_default<T: Default>(given: Result<Json<T>, JsonRejection>) -> Result<T, Refusal> {
    match given {
        Err(JsonRejection::MissingJsonContentType(_)) => Ok(T::default()),
        given => body(given),
    }
}

fn body<T>(given: Result<Json<T>, JsonRejection>) -> Result<T, Refusal> {
    given.map(|Json(body)| body).map_err(|error| Refusal::wrong(error.body_text()))
}

async fn version() -> Answer {
    Ok(Json(json!({
        "release_version": RELEASE_VERSION,
        "product": "Peristyle",
        "product_version": env!("CARGO_PKG_VERSION"),
        "git_sha": option_env!("PERISTYLE_GIT_SHA").unwrap_or("unknown"),
    })))
}

async fn status_of(State(state): State<ManagementState>, given: Parameters) -> Answer {
    status::answer(&state, parameters(given)?).await
}

async fn stats_of(State(state): State<ManagementState>, given: Parameters) -> Answer {
    table_stats::answer(&state, parameters(given)?).await
}

async fn flush(State(state): State<ManagementState>, given: Body) -> Answer {
    actions::flush(&state, target(given)?).await
}

async fn compact(
    State(state): State<ManagementState>,
    given: Result<Json<compactions::Wanted>, JsonRejection>,
) -> Answer {
    compactions::compact(&state, body_or_default(given)?).await
}

async fn set_auto_compaction(
    State(state): State<ManagementState>,
    given: Result<Json<compactions::Auto>, JsonRejection>,
) -> Answer {
    compactions::set_auto(&state, body(given)?).await
}

async fn stop_compactions(
    State(state): State<ManagementState>,
    given: Result<Json<compactions::Stop>, JsonRejection>,
) -> Answer {
    compactions::stop(&state, body_or_default(given)?).await
}

async fn set_compaction_throughput(
    State(state): State<ManagementState>,
    given: Result<Json<compactions::Throughput>, JsonRejection>,
) -> Answer {
    compactions::set_throughput(&state, body(given)?).await
}
