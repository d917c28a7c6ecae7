//! What a node does for clients and says to others, switched off and on while it runs: `nodetool disablebinary`,
//! `enablebinary`, `disablegossip`, `enablegossip`. Whether it is on stands in `/v1/info`.

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use management::Done;
use serde::Deserialize;
use storage::Demand;

use super::ManagementState;
use super::answer::{Answer, Refusal};
use super::request::Body;

pub(super) fn routes() -> Router<ManagementState> {
    Router::new()
        .route("/v1/native_transport", post(set_native_transport))
        .route("/v1/gossip", post(set_gossip))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    enabled: bool,
}

/// In Cassandra's words: a node that was drained is only to be stopped. So is one whose disk has failed.
fn check_may_start(state: &ManagementState, service: &str) -> Result<(), Refusal> {
    let why = match state.shards.health().demand().get() {
        _ if state.is_draining() => "the node was drained",
        Demand::Serve => return Ok(()),
        Demand::StopClients | Demand::Die => "a disk has failed",
    };
    Err(Refusal::conflict(format!("Unable to start {service} because {why}.")))
}

async fn set_native_transport(
    State(state): State<ManagementState>,
    Body(Wanted { enabled }): Body<Wanted>,
) -> Answer<Done> {
    let turn = state.entrance.turn().await;
    if !enabled {
        tracing::info!("clients are let go");
        turn.disable().await;
        return Ok(Json(Done {}));
    }
    check_may_start(&state, "native transport")?;
    turn.enable(state.view.ring()).map_err(|error| {
        let address = state.entrance.address();
        Refusal::conflict(format!(
            "Unable to start native transport: {address} can not be listened on: {error}"
        ))
    })?;
    tracing::info!("clients are let in");
    Ok(Json(Done {}))
}

async fn set_gossip(
    State(state): State<ManagementState>,
    Body(Wanted { enabled }): Body<Wanted>,
) -> Answer<Done> {
    let known = state.view.ring().ok_or_else(|| Refusal::conflict("this node is in no ring"))?;
    let _turn = state.entrance.turn().await;
    if enabled {
        check_may_start(&state, "gossip")?;
        tracing::info!("this node tells the others that it lives");
    } else {
        tracing::warn!("this node tells the others nothing any more: they take it to be down");
        if state.serves_clients() {
            tracing::warn!("clients still connect to it; disablebinary ends that");
        }
    }
    known.withdraw(!enabled);
    Ok(Json(Done {}))
}
