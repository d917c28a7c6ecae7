//! Compactions: what goes on, what ended, and what can be asked of them.

use assembly::NodeCompactions;
use axum::Json;
use management::{
    Compacted, Compaction, CompactionHistory, Compactions, CompactionsStopped, Done, PendingCompactions,
    TablesDone,
};
use schema::TableId;
use serde::Deserialize;
use storage::{
    ActiveCompaction, CompactionKind, CompactionRecord, CompactionRequest, CompactionTotals, StorageError,
};
use types::Token;
use uuid::Uuid;

use super::ManagementState;
use super::actions::{Target, on_tables};
use super::answer::{Answer, Refusal};
use super::request::token;

/// `/v1/compactions`.
pub(super) async fn answer(state: &ManagementState) -> Answer<Compactions> {
    let NodeCompactions { active, history, totals } = NodeCompactions::collect(&state.shards).await?;
    let uptime_seconds = state.view.uptime_seconds();
    let uptime = i64::try_from(uptime_seconds).unwrap_or(i64::MAX);
    let now_ms = state.view.started_seconds.saturating_add(uptime).saturating_mul(1_000);
    let is_recent = |record: &&CompactionRecord| now_ms - record.finished_ms < 900_000;
    let pending = totals.pending.iter().map(|((keyspace, table), count)| PendingCompactions {
        keyspace: keyspace.clone(),
        table: table.clone(),
        count: *count,
    });
    Ok(Json(Compactions {
        concurrent_compactors: totals.concurrent,
        throughput_bytes_per_second: totals.bytes_per_second,
        pending: pending.collect(),
        completed: totals.completed,
        compacted_bytes: totals.bytes,
        compacted_compressed_bytes: totals.compressed_bytes,
        aborted: totals.aborted,
        dropped_files: totals.dropped_files,
        reduced: totals.reduced,
        left_out_files: totals.left_out_files,
        completed_in_15_minutes: history.iter().filter(is_recent).count() as u64,
        uptime_seconds,
        active: active.into_iter().map(shown_active).collect(),
    }))
}

fn shown_active(active: ActiveCompaction) -> management::ActiveCompaction {
    management::ActiveCompaction {
        id: active.id.to_string(),
        kind: active.kind.name().into(),
        completed_bytes: active.completed_bytes,
        total_bytes: active.total_bytes,
        total_compressed_bytes: active.total_compressed_bytes,
        files: active.file_count,
        directory: active.directory.display().to_string(),
        keyspace: active.keyspace,
        table: active.table,
    }
}

/// `/v1/compactionhistory`, the latest first.
pub(super) async fn history(state: &ManagementState) -> Answer<CompactionHistory> {
    let history = NodeCompactions::collect(&state.shards).await?.history;
    Ok(Json(CompactionHistory { compactions: history.into_iter().map(shown_record).collect() }))
}

fn shown_record(record: CompactionRecord) -> Compaction {
    Compaction {
        id: record.id.to_string(),
        compacted_at_ms: record.finished_ms,
        bytes_in: record.bytes_in,
        bytes_out: record.bytes_out,
        rows_merged: record.rows_merged.iter().map(|(files, count)| (*files, *count)).collect(),
        keyspace: record.keyspace,
        table: record.table,
        properties: record.properties,
    }
}

/// What to compact.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Wanted {
    keyspace: Option<String>,
    tables: Option<Vec<String>>,
    split_output: bool,
    start_token: Option<String>,
    end_token: Option<String>,
    user_defined: Option<Vec<String>>,
}

/// Compacts all files of tables, some of them, or files that are named.
pub(super) async fn compact(state: &ManagementState, wanted: Wanted) -> Answer<Compacted> {
    if state.is_draining() {
        return Err(Refusal::conflict("the node is draining"));
    }
    let tokens = tokens(wanted.start_token.as_deref(), wanted.end_token.as_deref())?;
    let target = Target { keyspace: wanted.keyspace, tables: wanted.tables };
    if let Some(names) = wanted.user_defined {
        if target.keyspace.is_some() || target.tables.is_some() || tokens.is_some() || wanted.split_output {
            return Err(Refusal::wrong("`user_defined` names files: nothing else goes with it"));
        }
        let file_count = Some(compact_files(state, &names).await?);
        return Ok(Json(Compacted { file_count, table_count: None }));
    }
    let request = CompactionRequest { split_output: wanted.split_output, tokens, files: None };
    let Json(TablesDone { table_count }) = on_tables(state, target, move |shard, table| {
        let request = request.clone();
        async move { Ok(shard.table(table)?.compact(&request).await?) }
    })
    .await?;
    Ok(Json(Compacted { table_count: Some(table_count), file_count: None }))
}

fn tokens(first: Option<&str>, last: Option<&str>) -> Result<Option<(Token, Token)>, Refusal> {
    let token = |text: Option<&str>, open: i64| match text.filter(|text| !text.is_empty()) {
        None => Ok(Token(open)),
        Some(text) => token(text),
    };
    if first.is_none() && last.is_none() {
        return Ok(None);
    }
    Ok(Some((token(first, i64::MIN)?, token(last, i64::MAX)?)))
}

/// Compacts files by their names, each table's together.
async fn compact_files(state: &ManagementState, names: &[String]) -> Result<u64, Refusal> {
    let mut ids: Vec<Uuid> = Vec::new();
    for name in names.iter().flat_map(|names| names.split(',')).map(str::trim).filter(|name| !name.is_empty())
    {
        let wrong = || Refusal::wrong(format!("{name} is not the name of a table file"));
        ids.push(CompactionRequest::file_id(name).ok_or_else(wrong)?);
    }
    if ids.is_empty() {
        return Err(Refusal::wrong("`user_defined` names no file"));
    }
    let mut file_count = 0_u64;
    for shard in 0..state.shards.count() {
        let ids = ids.clone();
        let done = state.shards.on(shard, move |shard| async move {
            let mut known = 0;
            for (table, files) in shard.tables_of_files(&ids) {
                known += files.len();
                let request = CompactionRequest { files: Some(files), ..CompactionRequest::default() };
                shard.table(table)?.compact(&request).await?;
            }
            Ok::<_, StorageError>(known)
        });
        file_count += done.await?? as u64;
    }
    if file_count == 0 {
        return Err(Refusal::missing("none of the files belongs to a table"));
    }
    Ok(file_count)
}

/// `/v1/compactions/throughput`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Throughput {
    bytes_per_second: u64,
}

pub(super) async fn set_throughput(state: &ManagementState, wanted: Throughput) -> Answer<Done> {
    state
        .shards
        .on(0, move |shard| async move { shard.compactor().set_rate(wanted.bytes_per_second) })
        .await?;
    Ok(Json(Done {}))
}

/// `/v1/compactions/auto`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Auto {
    keyspace: Option<String>,
    tables: Option<Vec<String>>,
    enabled: bool,
}

pub(super) async fn set_auto(state: &ManagementState, wanted: Auto) -> Answer<TablesDone> {
    let is_on = wanted.enabled;
    let target = Target { keyspace: wanted.keyspace, tables: wanted.tables };
    on_tables(state, target, move |shard, table: TableId| async move {
        shard.table(table)?.set_auto_compaction(is_on);
        Ok(())
    })
    .await
}

/// `/v1/compactions/stop`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Stop {
    id: Option<Uuid>,
    kind: Option<StopKind>,
}

/// What can be told apart of what goes on.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StopKind {
    /// Whatever makes fewer files of several, or less of one.
    Compaction,
    /// Files that are written anew as they are.
    UpgradeSstables,
}

impl StopKind {
    fn kinds(self) -> &'static [CompactionKind] {
        use CompactionKind::{Compaction, MajorCompaction, TombstoneCompaction, UpgradeSstables};
        match self {
            StopKind::Compaction => &[Compaction, TombstoneCompaction, MajorCompaction],
            StopKind::UpgradeSstables => &[UpgradeSstables],
        }
    }
}

pub(super) async fn stop(state: &ManagementState, wanted: Stop) -> Answer<CompactionsStopped> {
    let kinds = wanted.kind.map_or(CompactionKind::ALL.as_slice(), StopKind::kinds);
    let mut stopped = 0;
    for shard in 0..state.shards.count() {
        let stop =
            state.shards.on(shard, move |shard| async move { shard.compactor().stop(wanted.id, kinds) });
        stopped += stop.await?;
    }
    Ok(Json(CompactionsStopped { stopped: stopped as u64 }))
}

/// Name, kind, help and value of each metric of compactions.
pub(super) fn metrics(totals: &CompactionTotals) -> [(&'static str, &'static str, &'static str, f64); 6] {
    [
        (
            "peristyle_compactions_completed_total",
            "counter",
            "Compactions that ended well.",
            totals.completed as f64,
        ),
        (
            "peristyle_compactions_aborted_total",
            "counter",
            "Compactions stopped or failed.",
            totals.aborted as f64,
        ),
        (
            "peristyle_compactions_pending",
            "gauge",
            "Compactions that go on, and that are left to do by estimate.",
            totals.pending.values().sum::<u64>() as f64,
        ),
        (
            "peristyle_compacted_bytes_total",
            "counter",
            "Uncompressed bytes compactions read.",
            totals.bytes as f64,
        ),
        (
            "peristyle_compacted_disk_bytes_total",
            "counter",
            "Bytes on the disk compactions read.",
            totals.compressed_bytes as f64,
        ),
        (
            "peristyle_compaction_dropped_files_total",
            "counter",
            "Expired table files dropped unread.",
            totals.dropped_files as f64,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_numbers_and_a_side_may_be_left_open() {
        assert_eq!(tokens(None, None).expect("none"), None);
        assert_eq!(tokens(Some("-5"), None).expect("one"), Some((Token(-5), Token(i64::MAX))));
        assert!(tokens(Some("x"), None).is_err());
    }
}
