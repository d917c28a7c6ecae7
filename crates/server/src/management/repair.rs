//! `/v1/repair`: tables made equal on all their replicas.

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use management::Repaired;
use schema::{Schema, TableId};
use serde::Deserialize;

use super::ManagementState;
use super::actions::Target;
use super::answer::{Answer, Refusal};
use super::request::OptionalBody;

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/v1/repair", post(repair))
}

/// What to repair; no keyspace are all that are on the ring.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    keyspace: Option<String>,
    tables: Option<Vec<String>>,
    /// Only ranges of which the node is the first replica.
    primary_range: bool,
}

/// Table after table. Whoever goes away ends it behind the table that is being compared.
async fn repair(
    State(state): State<ManagementState>,
    OptionalBody(wanted): OptionalBody<Wanted>,
) -> Answer<Repaired> {
    if state.is_draining() {
        return Err(Refusal::conflict("the node is draining"));
    }
    let schema = state.schema().await?;
    let mut tables = Target { keyspace: wanted.keyspace, tables: wanted.tables }.resolve(&schema)?;
    tables.retain(|table| is_on_ring(&schema, *table));
    let mut repaired = Repaired::default();
    // A lone node has nothing to compare with.
    let Some(repairer) = state.view.repairer() else { return Ok(Json(repaired)) };
    for table in tables {
        let compared = repairer.repair(table, wanted.primary_range).await;
        let compared = compared.map_err(|error| Refusal::failed(&error))?;
        repaired.page_count += compared.page_count;
        repaired.differing_count += compared.differing_count;
        repaired.mended_count += compared.mended_count;
        repaired.table_count += 1;
    }
    Ok(Json(repaired))
}

fn is_on_ring(schema: &Schema, table: TableId) -> bool {
    let keyspace = schema.keyspace_of(table);
    keyspace.is_some_and(|keyspace| !keyspace.replication.class.ends_with("LocalStrategy"))
}
