//! `/v1/gossip` and `/v1/network`: what the node knows of the others, and what goes between them.

use assembly::{RELEASE_VERSION, schema_versions};
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use cluster::membership::{About, Counted, Known, MessageTotals, SILENCE};
use cluster::metadata::Member;
use management::{Gossip, KnownNode, Messages, Network, ReadRepairs};
use schema::Schema;

use super::ManagementState;
use super::answer::Answer;

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/v1/gossip", get(gossip)).route("/v1/network", get(network))
}

async fn gossip(State(state): State<ManagementState>) -> Answer<Gossip> {
    let (schema, view) = (state.schema().await?, &state.view);
    let mut members = view.nodes();
    members.sort_by_key(|node| node.candidate.address);
    let nodes = members.into_iter().map(|member| known(&state, &schema, member)).collect();
    Ok(Json(Gossip {
        ring_epoch: view.ring().map(|ring| ring.ring_epoch()),
        silence_max_ms: millis(SILENCE),
        nodes,
    }))
}

fn known(state: &ManagementState, schema: &Schema, Member { candidate, tokens, .. }: Member) -> KnownNode {
    let view = &state.view;
    let is_self = candidate.host_id == view.host_id;
    let other = view.ring().filter(|_| !is_self).map(|ring| ring.other(candidate.host_id));
    let started = match &other {
        Some(other) => other.incarnation().map(|micros| micros / 1_000_000),
        None => u64::try_from(view.started_seconds).ok(),
    };
    let versions = schema_versions(view, schema);
    let version = versions.iter().find(|(_, nodes)| nodes.contains(&candidate.address));
    KnownNode {
        address: candidate.address.ip().to_string(),
        is_self,
        generation: started,
        serves_clients: other.as_ref().map_or_else(|| state.serves_clients(), |other| other.is_up()),
        silence_ms: other.as_ref().and_then(|other| other.silence()).map(millis),
        schema_epoch: other.as_ref().map_or(schema.epoch(), |other| other.schema_epoch()),
        schema_version: version.map(|(version, _)| version.to_string()),
        data_center: candidate.data_center,
        rack: candidate.rack,
        release_version: RELEASE_VERSION.into(),
        host_id: candidate.host_id.to_string(),
        internal_address: candidate.address.to_string(),
        native_address: candidate.cql_address.to_string(),
        token: tokens.first().map(i64::to_string),
    }
}

async fn network(State(state): State<ManagementState>) -> Answer<Network> {
    let view = &state.view;
    let mut read_repairs = ReadRepairs::default();
    for counts in view.read_repairs() {
        read_repairs.compared += counts.compared();
        read_repairs.mismatched += counts.mismatched();
    }
    let counted = view.ring().map(Known::counted).unwrap_or_default();
    let [replica_messages, agreement_messages] =
        [About::Replica, About::Agreement].map(|about| messages(&counted, about));
    let mode = mode(&state).to_owned();
    Ok(Json(Network { mode, read_repairs, replica_messages, agreement_messages }))
}

/// Cassandra's word for what the node does.
fn mode(state: &ManagementState) -> &'static str {
    match state.view.ring() {
        _ if state.is_draining() => "DRAINED",
        Some(ring) if !ring.is_member_now() => "JOINING",
        _ => "NORMAL",
    }
}

fn messages(counted: &[Counted], about: About) -> Messages {
    let totals: MessageTotals = counted.iter().filter(|counted| counted.about == about).collect();
    Messages { pending: totals.pending, completed: totals.answered, dropped: totals.lost }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
