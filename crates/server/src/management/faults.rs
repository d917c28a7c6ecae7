//! How the node's disks are, what has failed, and how table files are looked through and mended.

use std::path::Path;
use std::rc::Rc;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use management::{Directory, Fault, Faults, FileReport, FileReports};
use schema::TableId;
use storage::{
    CommitFailurePolicy, DataDirectory, Demand, DiskFailurePolicy, FaultRecord, FileVerdict, ScrubbedFile,
    Shard, StorageError, unless_dropped,
};

use super::ManagementState;
use super::actions::Target;
use super::answer::{Answer, Refusal};
use super::request::OptionalBody;

pub(super) fn routes() -> Router<ManagementState> {
    Router::new()
        .route("/v1/faults", get(answer))
        .route("/v1/verify", post(verify))
        .route("/v1/scrub", post(scrub))
}

async fn answer(State(state): State<ManagementState>) -> Answer<Faults> {
    let quarantined = state.shards.on(0, |shard| async move { storage::quarantined(&shard).await }).await??;
    let health = state.shards.health();
    let (faults, fault_count) = health.faults();
    let directory = |directory: &DataDirectory| Directory {
        path: text_of(&directory.path),
        writable: directory.is_writable,
    };
    let fault = |fault: &FaultRecord| Fault {
        at_ms: fault.at_ms,
        kind: fault.kind.name().into(),
        act: fault.act.into(),
        what: fault.what.clone(),
    };
    Ok(Json(Faults {
        disk_failure_policy: disk_policy(health.disk_policy()).into(),
        commit_failure_policy: commit_policy(health.commit_policy()).into(),
        native_transport_active: state.serves_clients(),
        stopped_by_failure: health.demand().get() > Demand::Serve,
        directories: health.directories().iter().map(directory).collect(),
        quarantined: quarantined.iter().map(|path| text_of(path)).collect(),
        fault_count,
        faults: faults.iter().map(fault).collect(),
    }))
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}

/// The tables that a body names; without one, all.
async fn tables(state: &ManagementState, target: Target) -> Result<Vec<TableId>, Refusal> {
    if state.is_draining() {
        return Err(Refusal::conflict("the node is draining"));
    }
    target.resolve(&*state.schema().await?)
}

async fn verify(
    State(state): State<ManagementState>,
    OptionalBody(target): OptionalBody<Target>,
) -> Answer<FileReports> {
    files_of(
        &state,
        target,
        |shard, table| async move { Ok(shard.table(table)?.verify().await?) },
        shown_verdict,
    )
    .await
}

fn shown_verdict(file: &FileVerdict) -> FileReport {
    FileReport { path: text_of(&file.path), problem: file.problem.clone(), ..FileReport::default() }
}

async fn scrub(
    State(state): State<ManagementState>,
    OptionalBody(target): OptionalBody<Target>,
) -> Answer<FileReports> {
    files_of(
        &state,
        target,
        |shard, table| async move { Ok(shard.table(table)?.scrub().await?) },
        shown_scrubbed,
    )
    .await
}

/// What each shard says of the files of each table that the body names.
async fn files_of<T, Work, Doing>(
    state: &ManagementState,
    target: Target,
    work: Work,
    shown: fn(&T) -> FileReport,
) -> Answer<FileReports>
where
    T: Send + 'static,
    Work: Fn(Rc<Shard>, TableId) -> Doing + Copy + Send + 'static,
    Doing: Future<Output = Result<Vec<T>, StorageError>> + 'static,
{
    let mut files = Vec::new();
    for table in tables(state, target).await? {
        for shard in 0..state.shards.count() {
            let done = state.shards.on(shard, move |shard| work(shard, table)).await?;
            files.extend(unless_dropped(done)?.iter().flatten().map(shown));
        }
    }
    Ok(Json(FileReports { files }))
}

fn shown_scrubbed(file: &ScrubbedFile) -> FileReport {
    let problem = Some(file.problem.clone());
    FileReport { path: text_of(&file.path), problem, kept: Some(file.kept), lost: Some(file.lost) }
}

fn disk_policy(policy: DiskFailurePolicy) -> &'static str {
    match policy {
        DiskFailurePolicy::Stop => "stop",
        DiskFailurePolicy::StopParanoid => "stop_paranoid",
        DiskFailurePolicy::BestEffort => "best_effort",
        DiskFailurePolicy::Ignore => "ignore",
        DiskFailurePolicy::Die => "die",
    }
}

fn commit_policy(policy: CommitFailurePolicy) -> &'static str {
    match policy {
        CommitFailurePolicy::Stop => "stop",
        CommitFailurePolicy::StopCommit => "stop_commit",
        CommitFailurePolicy::Ignore => "ignore",
        CommitFailurePolicy::Die => "die",
    }
}
