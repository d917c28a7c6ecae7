//! What the driver knows of hosts, tokens and replicas, held against what the server says.

use std::collections::{BTreeMap, BTreeSet};

use scylla::client::session::Session;
use scylla::cluster::ClusterState;
use scylla::frame::response::result::TableSpec;

use crate::places::Row;
use crate::{Outcome, equal};

/// Tokens by address.
pub(crate) fn tokens_of_hosts_up(session: &Session) -> BTreeMap<String, BTreeSet<i64>> {
    let mut found: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for (token, node) in session.get_cluster_state().replica_locator().ring().iter() {
        if node.is_connected() {
            found.entry(node.address.ip().to_string()).or_default().insert(token.value());
        }
    }
    found
}

pub(crate) async fn finds_replicas(session: &Session, rows: &[Row]) -> Outcome {
    let state = session.get_cluster_state();
    for row in rows {
        let name = format!("replicas of row {} of {}", row.key, row.keyspace);
        equal(&replicas(&state, row)?, &row.replicas, &name)?;
    }
    let owned: Vec<&Row> = rows.iter().filter(|row| row.replicas.len() == 1).collect();
    for row in &owned {
        let text = format!("INSERT INTO {}.rows (id, v) VALUES (?, 'v')", row.keyspace);
        let done = session.execute_unpaged(&session.prepare(text).await?, (row.key,)).await?;
        let asked = done.request_coordinator().connection_address().ip().to_string();
        equal(&asked, &row.replicas[0], &format!("who was asked for row {} of {}", row.key, row.keyspace))?;
    }
    assert!(!owned.is_empty(), "failed: there are rows with one replica");
    println!("ok: replicas of {} rows, {} sent to their only one", rows.len(), owned.len());
    Ok(())
}

/// In the order of the ring.
fn replicas(state: &ClusterState, row: &Row) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let token = state.compute_token(&row.keyspace, "rows", &(row.key,))?;
    let strategy = &state.get_keyspace(&row.keyspace).ok_or("the keyspace is not in the metadata")?.strategy;
    let table = TableSpec::borrowed(&row.keyspace, "rows");
    let found = state.replica_locator().replicas_for_token(token, strategy, None, &table);
    Ok(found.into_replicas_ordered().into_iter().map(|(node, _)| node.address.ip().to_string()).collect())
}
