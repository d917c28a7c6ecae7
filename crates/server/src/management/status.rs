//! `/v1/status`: the ring, which today is one node.

use axum::Json;
use management::{Node, Status};
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
    let stats = NodeStats::collect(&state.shards).await?;
    let view = &state.view;
    let node = Node {
        data_center: view.options.data_center.clone(),
        rack: view.options.rack.clone(),
        address: view.listen().ip().to_string(),
        host_id: view.host_id.to_string(),
        is_up: true,
        state: "normal".into(),
        load_bytes: Some(stats.load_bytes()),
        token_count: view.tokens().len() as u64,
        token: view.tokens().first().map(i64::to_string),
        owns: Some(1.0),
        owns_is_effective: note.is_none(),
    };
    Ok(Json(Status { nodes: vec![node], note: note.map(str::to_owned) }))
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
