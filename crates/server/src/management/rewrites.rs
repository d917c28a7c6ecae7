//! Table files written anew in the form that their tables ask for now.

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use futures_util::StreamExt;
use management::Rewritten;
use schema::TableId;
use serde::Deserialize;
use storage::{RewriteFiles, RewriteRequest, StorageError, unless_dropped};

use super::ManagementState;
use super::actions::Target;
use super::answer::{Answer, Refusal};
use super::request::OptionalBody;

pub(super) fn routes() -> Router<ManagementState> {
    Router::new().route("/v1/upgradesstables", post(upgrade))
}

/// What to write anew. With none of the two, files of an old version.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    keyspace: Option<String>,
    tables: Option<Vec<String>>,
    /// All files.
    include_all: bool,
    /// Those that are compressed otherwise than the table asks for.
    other_compression: bool,
    /// Only files that were made by then, ms since 1970.
    max_timestamp: Option<u64>,
    /// How many files at once, at most; each shard writes one at a time. 0, or nothing: as many as may be.
    jobs: usize,
}

impl Wanted {
    fn request(&self) -> Result<RewriteRequest, Refusal> {
        let files = match (self.include_all, self.other_compression) {
            (true, true) => {
                return Err(Refusal::wrong("include_all and other_compression exclude each other"));
            }
            (true, false) => RewriteFiles::All,
            (false, true) => RewriteFiles::OtherCompression,
            (false, false) => RewriteFiles::OldVersion,
        };
        Ok(RewriteRequest { files, created_max_ms: self.max_timestamp })
    }
}

async fn upgrade(
    State(state): State<ManagementState>,
    OptionalBody(wanted): OptionalBody<Wanted>,
) -> Answer<Rewritten> {
    if state.is_draining() {
        return Err(Refusal::conflict("the node is draining"));
    }
    let request = wanted.request()?;
    let schema = state.schema().await?;
    let tables = Target { keyspace: wanted.keyspace, tables: wanted.tables }.resolve(&schema)?;
    let shard_count = state.shards.count();
    let job_count = if wanted.jobs == 0 { shard_count } else { wanted.jobs.min(shard_count) };
    let rewriting = (0..shard_count).map(|shard| rewrite(&state, shard, tables.clone(), request));
    let done: Vec<_> = futures_util::stream::iter(rewriting).buffer_unordered(job_count).collect().await;
    let mut aborted = std::collections::BTreeSet::new();
    for of_shard in done {
        let keyspaces = of_shard?.into_iter().filter_map(|table| schema.table_by_id(table));
        aborted.extend(keyspaces.map(|table| table.keyspace().to_owned()));
    }
    let (table_count, aborted_keyspaces) = (tables.len() as u64, aborted.into_iter().collect());
    Ok(Json(Rewritten { table_count, aborted_keyspaces }))
}

/// On one shard, table after table; gives those where somebody stopped it.
async fn rewrite(
    state: &ManagementState,
    shard: usize,
    tables: Vec<TableId>,
    request: RewriteRequest,
) -> Result<Vec<TableId>, StorageError> {
    let done = state.shards.on(shard, move |shard| async move {
        let mut aborted = Vec::new();
        for table in tables {
            let rewritten = async { Ok(shard.table(table)?.rewrite(request).await?) };
            if unless_dropped(rewritten.await)? == Some(false) {
                aborted.push(table);
            }
        }
        Ok(aborted)
    });
    done.await?
}
