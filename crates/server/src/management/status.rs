//! `/v1/status`: all nodes, and what each has.

use assembly::Placed;
use axum::Json;
use cluster::metadata::{Member, MemberState};
use management::{Node, Status};
use ring::Strategy;
use schema::{Keyspace, Schema};
use serde::Deserialize;

use super::answer::{Answer, Refusal};
use super::{ManagementState, NodeStats};

const DIFFERENT_SETTINGS: &str = "Non-system keyspaces don't have the same replication settings, effective ownership information is meaningless";
const LOCAL: &str = "Ownership values for keyspaces with LocalStrategy are meaningless";

/// Whose replicas ownership is told of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Selected {
    keyspace: Option<String>,
}

pub(super) async fn answer(state: &ManagementState, selected: Selected) -> Answer<Status> {
    let schema = state.schema().await?;
    let note = note(&schema, selected.keyspace.as_deref())?;
    let load_bytes = NodeStats::collect(&state.shards).await?.load_bytes();
    let view = &state.view;
    let shown = match note {
        Some(_) => None,
        None => selected.keyspace.as_deref().or(Some(shown_keyspace(&schema))),
    };
    let placed = match shown.and_then(|name| schema.keyspace(name)) {
        Some(keyspace) => Placed::new(view, &keyspace.replication),
        // Then it is told how much of the ring is a node's alone.
        None => Placed::by(view, &Strategy::Simple { factor: 1 }),
    };
    let node = |(Member { candidate, tokens, state }, share): (Member, f64)| Node {
        data_center: candidate.data_center,
        rack: candidate.rack,
        address: candidate.address.ip().to_string(),
        host_id: candidate.host_id.to_string(),
        is_up: view.hears(candidate.host_id),
        state: if state == MemberState::Joining { "joining" } else { "normal" }.into(),
        load_bytes: match view.ring().filter(|_| candidate.host_id != view.host_id) {
            Some(ring) => ring.other(candidate.host_id).load_bytes(),
            None => Some(load_bytes),
        },
        token_count: tokens.len() as u64,
        token: tokens.first().map(i64::to_string),
        tokens: tokens.iter().map(i64::to_string).collect(),
        owns: Some(share),
        owns_is_effective: note.is_none(),
    };
    let mut members: Vec<(Member, f64)> = placed.nodes.into_iter().zip(placed.shares).collect();
    members.sort_by_key(|(member, _)| member.candidate.address);
    let nodes = members.into_iter().map(node).collect();
    Ok(Json(Status { nodes, note: note.map(str::to_owned) }))
}

/// Whose ownership is told when no keyspace is asked for: all of those have the same replication.
fn shown_keyspace(schema: &Schema) -> &str {
    let mut users = schema.keyspaces().values().filter(|keyspace| !is_system(keyspace));
    users.next().map_or("system_traces", |keyspace| &keyspace.name)
}

/// Why ownership means little, if it does.
fn note(schema: &Schema, keyspace: Option<&str>) -> Result<Option<&'static str>, Refusal> {
    if let Some(name) = keyspace {
        let missing = || Refusal::missing(format!("Keyspace [{name}] does not exist."));
        let keyspace = schema.keyspace(name).ok_or_else(missing)?;
        return Ok(keyspace.replication.class.ends_with("LocalStrategy").then_some(LOCAL));
    }
    let mut replications = schema.keyspaces().values().filter(|keyspace| !is_system(keyspace));
    let first = replications.next();
    let differ =
        replications.any(|keyspace| first.is_some_and(|first| first.replication != keyspace.replication));
    Ok(differ.then_some(DIFFERENT_SETTINGS))
}

fn is_system(keyspace: &Keyspace) -> bool {
    matches!(
        keyspace.name.as_str(),
        "system" | "system_schema" | "system_auth" | "system_distributed" | "system_traces"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use assembly::base_schema;
    use schema::{Replication, Transformation};

    fn with(schema: &Schema, name: &str, factor: &str) -> Schema {
        let options = [("replication_factor".to_owned(), factor.to_owned())].into();
        let replication =
            Replication { class: "org.apache.cassandra.locator.SimpleStrategy".into(), options };
        Transformation::CreateKeyspace { name: name.into(), replication, durable_writes: true }
            .apply(schema)
            .expect("created")
    }

    #[test]
    fn ownership_means_nothing_when_keyspaces_are_replicated_differently() {
        let base = base_schema().expect("schema");
        assert_eq!(note(&base, None).expect("note"), None);
        let alike = with(&with(&base, "a", "1"), "b", "1");
        assert_eq!(note(&alike, None).expect("note"), None);
        let different = with(&alike, "c", "2");
        assert_eq!(note(&different, None).expect("note"), Some(DIFFERENT_SETTINGS));
        assert_eq!(note(&different, Some("c")).expect("note"), None);
        assert_eq!(note(&different, Some("system")).expect("note"), Some(LOCAL));
        assert!(note(&different, Some("nope")).is_err());
    }
}
