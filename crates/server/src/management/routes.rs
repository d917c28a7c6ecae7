//! The paths of the port.

use axum::extract::State;
use axum::middleware::map_request;
use axum::routing::{get, post};
use axum::{Json, Router};
use management::{Compacted, CompactionsStopped, Done, Status, TableStats, TablesDone, Version};

use super::actions::{self, Target};
use super::answer::{Answer, Refusal};
use super::request::{Body, Nothing, OptionalBody, Parameters, refuse_parameters};
use super::{ManagementState, compactions, info, status, table_stats};
use assembly::RELEASE_VERSION;

pub(super) fn router(state: ManagementState) -> Router {
    Router::new()
        .route("/v1/version", get(version))
        .route(
            "/v1/info",
            get(|State(state): State<ManagementState>| async move { info::answer(&state).await }),
        )
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
        .route("/v1/drain", post(drain))
        .route("/v1/stop", post(stop))
        .route(
            "/metrics",
            get(|State(state): State<ManagementState>| async move { table_stats::prometheus(&state).await }),
        )
        .merge(super::moving::routes())
        .merge(super::faults::routes())
        .merge(super::rewrites::routes())
        .merge(super::repair::routes())
        .merge(super::timeouts::routes())
        .merge(super::latencies::routes())
        .merge(super::trace_chance::routes())
        .merge(super::gossip::routes())
        .merge(super::handoff::routes())
        .merge(super::services::routes())
        .merge(super::members::routes())
        .route_layer(map_request(refuse_parameters))
        .merge(super::ring::routes())
        .route("/v1/status", get(status_of))
        .route("/v1/tablestats", get(stats_of))
        .merge(super::drill::routes())
        .fallback(|| async { Refusal::missing("no such path") })
        .method_not_allowed_fallback(|| async { Refusal::other_method() })
        .with_state(state)
}

async fn version() -> Answer<Version> {
    Ok(Json(Version {
        release_version: RELEASE_VERSION.into(),
        product: "Peristyle".into(),
        product_version: env!("CARGO_PKG_VERSION").into(),
        git_sha: option_env!("PERISTYLE_GIT_SHA").unwrap_or("unknown").into(),
    }))
}

async fn status_of(
    State(state): State<ManagementState>,
    Parameters(selected): Parameters<status::Selected>,
) -> Answer<Status> {
    status::answer(&state, selected).await
}

async fn stats_of(
    State(state): State<ManagementState>,
    Parameters(selected): Parameters<table_stats::Selected>,
) -> Answer<TableStats> {
    table_stats::answer(&state, selected).await
}

async fn flush(
    State(state): State<ManagementState>,
    OptionalBody(target): OptionalBody<Target>,
) -> Answer<TablesDone> {
    actions::flush(&state, target).await
}

async fn drain(
    State(state): State<ManagementState>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Answer<Done> {
    actions::drain(&state).await
}

async fn stop(
    State(state): State<ManagementState>,
    OptionalBody(Nothing {}): OptionalBody<Nothing>,
) -> Answer<Done> {
    actions::stop(&state)
}

async fn compact(
    State(state): State<ManagementState>,
    OptionalBody(wanted): OptionalBody<compactions::Wanted>,
) -> Answer<Compacted> {
    compactions::compact(&state, wanted).await
}

async fn set_auto_compaction(
    State(state): State<ManagementState>,
    Body(wanted): Body<compactions::Auto>,
) -> Answer<TablesDone> {
    compactions::set_auto(&state, wanted).await
}

async fn stop_compactions(
    State(state): State<ManagementState>,
    OptionalBody(wanted): OptionalBody<compactions::Stop>,
) -> Answer<CompactionsStopped> {
    compactions::stop(&state, wanted).await
}

async fn set_compaction_throughput(
    State(state): State<ManagementState>,
    Body(wanted): Body<compactions::Throughput>,
) -> Answer<Done> {
    compactions::set_throughput(&state, wanted).await
}
