//! Replicas that have missed something are made equal when they are there again, without anybody's command.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use cluster::membership::Known;
use schema::TableId;
use storage::StateError;
use storage::state_file::{read_state, write_state_below};
use types::Token;
use uuid::Uuid;

use super::missed::{GRID, Kept, Marks};
use super::{Compared, ReplicaError, RingSeat};

/// So often marks are kept that have changed.
const KEEP_EVERY: Duration = Duration::from_millis(100);
/// So often it is looked who is there again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where the marks of a shard are kept.
fn path(seat: &RingSeat) -> PathBuf {
    let shard = seat.shard().local();
    shard.layout().agreement().join(format!("missed-{}.json", shard.index()))
}

/// Reads the marks that an earlier run has kept.
///
/// # Errors
/// The disk fails, or the file is damaged: then nobody knows what others have missed.
async fn restore(seat: &RingSeat) -> Result<Marks, StateError> {
    let (path, runtime) = (path(seat), seat.shard().local().runtime().clone());
    let disk = Arc::clone(&runtime.disk);
    let kept: Option<Kept> = runtime.io.run(move || read_state(&*disk, &path)).await?;
    Ok(Marks::restored(kept.unwrap_or_default()))
}

/// Keeps marks that have changed, for as long as the seat is taken, and once more when the node stops.
pub(super) async fn keep_marks(seat: Weak<RingSeat>, known: Known) {
    let mut is_ending = false;
    while !is_ending {
        is_ending = tokio::time::timeout(KEEP_EVERY, known.until_ended()).await.is_ok();
        let Some(seat) = seat.upgrade() else { return };
        if let Err(error) = seat.keep_marks().await {
            tracing::warn!(%error, "what other nodes have missed can not be kept");
        }
    }
}

/// Heals, for as long as the seat is taken.
pub(super) async fn heal(seat: Weak<RingSeat>) {
    if let Some(seat) = seat.upgrade() {
        mark_unflushed(&seat);
        // Nothing is written over what is not read yet.
        let _keeping = seat.keeping().await;
        match restore(&seat).await {
            Ok(marks) => seat.marks().take_over(&marks),
            Err(error) => tracing::error!(
                %error, "what other nodes have missed before is not known: repair the keyspaces of this node"
            ),
        }
    }
    // Those that were compared with some of the replicas only. With the others they are when all live.
    let mut partial = BTreeSet::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(seat) = seat.upgrade() else { return };
        let are_all_alive = are_all_alive(seat.known());
        for node in seat.marks().nodes() {
            if !is_alive(seat.known(), node) {
                partial.remove(&node);
            } else if are_all_alive || !partial.contains(&node) {
                heal_node(&seat, node).await;
                partial.insert(node);
            }
        }
    }
}

fn is_alive(known: &Known, node: Uuid) -> bool {
    node == known.host_id() || known.other(node).is_alive()
}

fn are_all_alive(known: &Known) -> bool {
    let members = known.members();
    members
        .is_some_and(|members| members.list().iter().all(|member| is_alive(known, member.candidate.host_id)))
}

/// A run that was cut off may have sent its last writes to some of their replicas only, and marked nothing. What it had
/// not flushed was replayed and is in memory now: that is what others may have missed.
fn mark_unflushed(seat: &RingSeat) {
    let Some(replicas) = seat.replicas() else { return };
    let shard = seat.shard().local();
    let tables: Vec<TableId> = shard.with_schema(|schema| {
        let keyspaces = schema.keyspaces().values();
        keyspaces.flat_map(|keyspace| keyspace.tables.values()).map(|table| table.id()).collect()
    });
    for table in tables.into_iter().filter(|table| replicas.has(*table)) {
        // One that is not there has nothing in memory.
        let tokens = shard.table(table).map(|store| store.memtables().tokens()).unwrap_or_default();
        tokens.into_iter().for_each(|token| replicas.mark_others(table, token));
    }
}

impl RingSeat {
    /// Returns when all that was marked until now is on the disk.
    ///
    /// # Errors
    /// The disk fails.
    pub(crate) async fn keep_marks(&self) -> Result<(), StateError> {
        let _keeping = self.keeping().await;
        let Some(kept) = self.marks().take_changed() else { return Ok(()) };
        let (path, runtime) = (path(self), self.shard().local().runtime().clone());
        let disk = Arc::clone(&runtime.disk);
        let written = runtime.io.run(move || write_state_below(&*disk, &path, &kept)).await;
        written.inspect_err(|_| self.marks().note_change())
    }
}

/// Makes equal what a node has missed, slot by slot. A slot that could not be compared on all of its replicas stays
/// marked.
async fn heal_node(seat: &Rc<RingSeat>, node: Uuid) {
    let (mut mended_count, mut failed_count, mut left) = (0, 0, Vec::new());
    while let Some((table, slots)) = seat.marks().take(node) {
        for slot in slots {
            // When it is away again, what is left of its slots would fail one by one.
            let healed = match is_alive(seat.known(), node) {
                true => heal_slot(seat, (node, table), slot).await,
                false => Ok(Compared { partial_count: 1, ..Compared::default() }),
            };
            match healed {
                Ok(compared) => {
                    mended_count += compared.mended_count;
                    left.extend((compared.partial_count > 0).then_some((table, slot)));
                }
                Err(ReplicaError::NoTable) => {}
                Err(error) => {
                    failed_count += 1;
                    left.push((table, slot));
                    tracing::debug!(%node, slot, %error, "a slot could not be compared");
                }
            }
        }
    }
    left.into_iter().for_each(|(table, slot)| seat.marks().add_slot(node, table, slot));
    seat.marks().healing_is_over(node);
    if mended_count > 0 {
        tracing::info!(%node, mended_count, "partitions that differed after a node was away are equal again");
    }
    if failed_count > 0 {
        tracing::warn!(%node, failed_count, "slots that a node has missed something of could not be compared yet");
    }
}

/// A table that is gone has no rows to be compared.
async fn heal_slot(
    seat: &RingSeat,
    (node, table): (Uuid, TableId),
    slot: usize,
) -> Result<Compared, ReplicaError> {
    let first =
        slot.checked_sub(1).map_or(Token(i64::MIN + 1), |before| Token(GRID.last_token(before).0 + 1));
    let range = (first, GRID.last_token(slot));
    seat.make_range_equal(table, range, Some(node)).await
}
