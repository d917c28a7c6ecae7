//! Moving data in and out: import, refresh, snapshots, backups.

use std::path::PathBuf;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use management::{
    Backups, FailedImport, Imported, Refreshed, Snapshot, Snapshots, SnapshotsCleared, TablesDone,
};
use schema::{Schema, TableId};
use serde::Deserialize;
use storage::{
    ClearFilter, ImportOptions, ImportSummary, SnapshotFacts, StorageError, TableError, check_snapshot_name,
    unless_dropped,
};

use super::ManagementState;
use super::answer::{Answer, Refusal};
use super::request::Body;

/// The paths of this file.
pub(super) fn routes() -> Router<ManagementState> {
    Router::new()
        .route("/v1/import", post(import))
        .route("/v1/refresh", post(refresh))
        .route("/v1/snapshot", post(snapshot))
        .route("/v1/snapshots", get(snapshots))
        .route("/v1/snapshots/clear", post(clear))
        .route("/v1/backups", get(backups).post(set_backups))
}

/// What an import is of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Import {
    keyspace: String,
    table: String,
    #[serde(default)]
    directories: Vec<PathBuf>,
    #[serde(default)]
    copy_data: bool,
    #[serde(default)]
    keep_level: bool,
    #[serde(default)]
    keep_repaired: bool,
    #[serde(default)]
    skip_verify: bool,
}

impl Import {
    fn options(&self) -> ImportOptions {
        let Import { copy_data, keep_level, keep_repaired, skip_verify, .. } = *self;
        ImportOptions { copy_data, keep_level, keep_repaired, skip_verify }
    }
}

/// What a snapshot is of; no tables are all of the keyspaces, no keyspaces are all.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SnapshotOf {
    tag: String,
    keyspaces: Vec<String>,
    table: Option<String>,
    skip_flush: bool,
}

/// Which snapshots go.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Clear {
    tag: Option<String>,
    all: bool,
    keyspaces: Vec<String>,
}

/// Whether backups are kept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedBackups {
    enabled: bool,
}

fn no_keyspace(name: &str) -> Refusal {
    Refusal::missing(format!("Keyspace [{name}] does not exist."))
}

fn table_of(schema: &Schema, keyspace: &str, table: &str) -> Result<TableId, Refusal> {
    if schema.keyspace(keyspace).is_none() {
        return Err(no_keyspace(keyspace));
    }
    let found = schema.table(keyspace, table).map(|table| table.id());
    found.ok_or_else(|| Refusal::missing(format!("Unknown keyspace/cf pair ({keyspace}.{table})")))
}

fn check_running(state: &ManagementState) -> Result<(), Refusal> {
    match state.is_draining() {
        true => Err(Refusal::conflict("the node is draining")),
        false => Ok(()),
    }
}

/// Imports directories one by one; one that fails is told, and leaves the others in.
async fn import(State(state): State<ManagementState>, Body(wanted): Body<Import>) -> Answer<Imported> {
    check_running(&state)?;
    if wanted.directories.is_empty() || wanted.directories.iter().any(|directory| !directory.is_absolute()) {
        return Err(Refusal::wrong("`directories` are named, one at least, with their full paths"));
    }
    let table = table_of(&*state.schema().await?, &wanted.keyspace, &wanted.table)?;
    let (mut failed, mut file_count, mut partition_count) = (Vec::new(), 0, 0);
    for directory in &wanted.directories {
        match bring_in(&state, table, Some(directory.clone()), wanted.options()).await {
            Ok(done) => {
                file_count += done.file_count as u64;
                partition_count += done.partition_count;
            }
            Err(error) => {
                tracing::error!(directory = %directory.display(), %error, "import failed");
                let directory = directory.display().to_string();
                failed.push(FailedImport { directory, reason: error.to_string() });
            }
        }
    }
    Ok(Json(Imported { file_count, partition_count, failed }))
}

/// Imports a directory, or what was placed in the table's own. It goes on to its end, also when whoever
/// asked hangs up: what is half done would be taken back by the next start.
async fn bring_in(
    state: &ManagementState,
    table: TableId,
    directory: Option<PathBuf>,
    options: ImportOptions,
) -> Result<ImportSummary, StorageError> {
    let shards = state.shards.clone();
    let work = async move {
        match directory {
            Some(directory) => shards.import(table, directory, options).await,
            None => shards.refresh(table, options).await,
        }
    };
    let ended = runtime::spawn_local("management", runtime::caught_in(work)).await;
    match ended {
        Ok(done) => done?,
        Err(_) => Err(TableError::ShuttingDown.into()),
    }
}

async fn refresh(State(state): State<ManagementState>, Body(wanted): Body<Import>) -> Answer<Refreshed> {
    check_running(&state)?;
    if !wanted.directories.is_empty() {
        return Err(Refusal::wrong("a refresh takes no `directories` but the table's own"));
    }
    let table = table_of(&*state.schema().await?, &wanted.keyspace, &wanted.table)?;
    let done = bring_in(&state, table, None, wanted.options()).await?;
    Ok(Json(Refreshed { file_count: done.file_count as u64, partition_count: done.partition_count }))
}

async fn snapshot(
    State(state): State<ManagementState>,
    Body(wanted): Body<SnapshotOf>,
) -> Answer<TablesDone> {
    check_running(&state)?;
    // Also where there is no table to keep.
    check_snapshot_name(&wanted.tag)?;
    let schema = state.schema().await?;
    let tables = tables_of(&schema, &wanted)?;
    for table in &tables {
        unless_dropped(state.shards.snapshot(*table, &wanted.tag, wanted.skip_flush).await)?;
    }
    Ok(Json(TablesDone { table_count: tables.len() as u64 }))
}

fn tables_of(schema: &Schema, wanted: &SnapshotOf) -> Result<Vec<TableId>, Refusal> {
    if let Some(table) = &wanted.table {
        let [keyspace] = wanted.keyspaces.as_slice() else {
            return Err(Refusal::wrong("You must supply a keyspace name"));
        };
        return Ok(vec![table_of(schema, keyspace, table)?]);
    }
    if let Some(missing) = wanted.keyspaces.iter().find(|name| schema.keyspace(name).is_none()) {
        return Err(no_keyspace(missing));
    }
    let is_wanted = |name: &String| wanted.keyspaces.is_empty() || wanted.keyspaces.contains(name);
    let keyspaces = schema.keyspaces().iter().filter(|(name, _)| is_wanted(name));
    Ok(keyspaces.flat_map(|(_, keyspace)| keyspace.tables.values()).map(|table| table.id()).collect())
}

async fn kept_snapshots(state: &ManagementState) -> Result<Vec<SnapshotFacts>, StorageError> {
    Ok(state.shards.on(0, |shard| async move { shard.snapshots().list().await }).await??)
}

async fn snapshots(State(state): State<ManagementState>) -> Answer<Snapshots> {
    let found = kept_snapshots(&state).await?;
    Ok(Json(Snapshots { snapshots: found.into_iter().map(shown).collect() }))
}

fn shown(facts: SnapshotFacts) -> Snapshot {
    let SnapshotFacts { tag, keyspace, table, true_bytes, disk_bytes, created_at, expires_at, .. } = facts;
    Snapshot { tag, keyspace, table, true_bytes, disk_bytes, created_at, expires_at }
}

async fn clear(
    State(state): State<ManagementState>,
    Body(Clear { tag, all, keyspaces }): Body<Clear>,
) -> Answer<SnapshotsCleared> {
    let tag = tag.filter(|tag| !tag.is_empty());
    match (&tag, all) {
        (None, false) => return Err(Refusal::wrong("Specify snapshot name or --all")),
        (Some(_), true) => return Err(Refusal::wrong("Specify only one of snapshot name or --all")),
        _ => {}
    }
    let schema = state.schema().await?;
    // Snapshots outlive their keyspace: those that are kept when it is dropped are for that very day.
    let kept = kept_snapshots(&state).await?;
    let is_known =
        |name: &str| schema.keyspace(name).is_some() || kept.iter().any(|snapshot| snapshot.keyspace == name);
    if let Some(missing) = keyspaces.iter().find(|name| !is_known(name)) {
        return Err(no_keyspace(missing));
    }
    let filter = ClearFilter { tag, keyspaces };
    let count =
        state.shards.on(0, move |shard| async move { shard.snapshots().clear(filter).await }).await??;
    Ok(Json(SnapshotsCleared { snapshot_count: count as u64 }))
}

async fn backups(State(state): State<ManagementState>) -> Answer<Backups> {
    let enabled = state.shards.on(0, |shard| async move { shard.snapshots().are_backups_kept() }).await?;
    Ok(Json(Backups { enabled }))
}

async fn set_backups(
    State(state): State<ManagementState>,
    Body(WantedBackups { enabled }): Body<WantedBackups>,
) -> Answer<Backups> {
    state.shards.on(0, move |shard| async move { shard.snapshots().keep_backups(enabled) }).await?;
    Ok(Json(Backups { enabled }))
}
