//! What can be done to a node: flush, drain, stop.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use cluster::membership::FAREWELL;
use management::{Done, TablesDone};
use schema::{Schema, Table, TableId};
use serde::Deserialize;
use storage::{Shard, StorageError, unless_dropped};

use super::ManagementState;
use super::answer::{Answer, Refusal};

/// What an action is about: all tables, those of a keyspace, or some of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Target {
    pub(super) keyspace: Option<String>,
    pub(super) tables: Option<Vec<String>>,
}

impl Target {
    pub(super) fn resolve(&self, schema: &Schema) -> Result<Vec<TableId>, Refusal> {
        if self.tables.as_ref().is_some_and(Vec::is_empty) {
            return Err(Refusal::wrong("`tables` names none; leave it out for all"));
        }
        let Some(name) = &self.keyspace else {
            if self.tables.is_some() {
                return Err(Refusal::wrong("tables are named without their keyspace"));
            }
            let tables = schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values());
            return Ok(tables.map(|table| table.id()).collect());
        };
        let missing = || Refusal::missing(format!("Keyspace [{name}] does not exist."));
        let keyspace = schema.keyspace(name).ok_or_else(missing)?;
        let id = |table: &Arc<Table>| table.id();
        let Some(tables) = &self.tables else {
            return Ok(keyspace.tables.values().map(id).collect());
        };
        let missing = |table: &String| Refusal::missing(format!("Unknown keyspace/cf pair ({name}.{table})"));
        tables.iter().map(|table| keyspace.tables.get(table).map(id).ok_or_else(|| missing(table))).collect()
    }
}

/// Writes memtables out.
pub(super) async fn flush(state: &ManagementState, target: Target) -> Answer<TablesDone> {
    if state.is_draining() {
        return Err(Refusal::conflict("the node is draining"));
    }
    on_tables(state, target, |shard, table| async move { shard.flush(table).await }).await
}

/// Does something for each of the tables, shard after shard.
pub(super) async fn on_tables<Act, Doing>(
    state: &ManagementState,
    target: Target,
    act: Act,
) -> Answer<TablesDone>
where
    Act: Fn(Rc<Shard>, TableId) -> Doing + Clone + Send + 'static,
    Doing: Future<Output = Result<(), StorageError>> + 'static,
{
    let tables = target.resolve(&*state.schema().await?)?;
    let table_count = tables.len() as u64;
    for shard in 0..state.shards.count() {
        let (tables, act) = (tables.clone(), act.clone());
        let done = state.shards.on(shard, move |shard| async move {
            for table in tables {
                unless_dropped(act(Rc::clone(&shard), table).await)?;
            }
            Ok::<_, StorageError>(())
        });
        done.await??;
    }
    Ok(Json(TablesDone { table_count }))
}

/// Stops accepting writes and connections, and writes all tables out. In a ring the others are told first.
pub(super) async fn drain(state: &ManagementState) -> Answer<Done> {
    let turn = state.entrance.turn().await;
    let was_draining = state.is_draining.swap(true, Ordering::SeqCst);
    if !was_draining {
        tracing::info!("draining");
    }
    turn.close();
    if let Some(known) = state.view.ring().filter(|_| !was_draining) {
        // Others ask it for nothing any more before it refuses anything; what they have asked ends meanwhile. Who
        // drains it, too, waits for that.
        known.withdraw(true);
        tokio::time::sleep(FAREWELL).await;
    }
    drop(turn);
    // All shards refuse writes before the first is drained to its end.
    let count = state.shards.count();
    let draining = (0..count).map(|shard| state.shards.on(shard, |shard| async move { shard.drain().await }));
    for drained in futures_util::future::join_all(draining).await {
        drained??;
    }
    if !was_draining {
        tracing::info!("drained");
    }
    Ok(Json(Done {}))
}

/// Asks for a stop of the node, which happens after the answer.
pub(super) fn stop(state: &ManagementState) -> Answer<Done> {
    state.stop.send_replace(true);
    Ok(Json(Done {}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assembly::base_schema;

    #[test]
    fn a_target_is_everything_a_keyspace_or_some_tables() {
        let schema = base_schema().expect("schema");
        let resolve = |keyspace: Option<&str>, tables: Option<&[&str]>| {
            let keyspace = keyspace.map(str::to_owned);
            let tables = tables.map(|tables| tables.iter().map(|table| (*table).to_owned()).collect());
            Target { keyspace, tables }.resolve(&schema).map(|tables| tables.len())
        };
        assert_eq!(resolve(None, None).expect("tables"), 49);
        assert_eq!(resolve(Some("system_traces"), None).expect("tables"), 2);
        assert_eq!(resolve(Some("system_traces"), Some(&["events"])).expect("tables"), 1);
        assert!(resolve(Some("system_traces"), Some(&["nope"])).is_err());
        assert!(resolve(None, Some(&["events"])).is_err());
        assert!(resolve(None, Some(&[])).is_err() && resolve(Some("system_traces"), Some(&[])).is_err());
    }
}
