//! Replicas that have missed something are brought it when they are there again, without anybody's command.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Weak;
use std::sync::Arc;
use std::time::Duration;

use cluster::membership::Known;
use schema::TableId;
use storage::state_file::{read_state, write_state_below};
use storage::{HeldLog, StateError};
use tokio::time::Instant;
use uuid::Uuid;

use super::logged::send_logged;
use super::marks::{Kept, Logged};
use super::slots::tokens_of;
use super::{Compared, ReplicaError, RingSeat};

/// So often marks are kept that have changed.
const KEEP_EVERY: Duration = Duration::from_millis(100);
/// So often it is looked who is there again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where the marks of a shard of the node are kept.
fn path(seat: &RingSeat, owner: usize) -> PathBuf {
    seat.shard().local().layout().agreement().join(format!("missed-{owner}.json"))
}

/// Reads the marks that an earlier run of the shard has kept.
///
/// # Errors
/// The disk fails, or the file is damaged: then nobody knows what others have missed.
async fn restore(seat: &RingSeat) -> Result<(), StateError> {
    let shard = seat.shard().local();
    let (path, runtime) = (path(seat, shard.index()), shard.runtime());
    let disk = Arc::clone(&runtime.disk);
    let kept: Option<Kept> = runtime.io.run(move || read_state(&*disk, &path)).await?;
    seat.own_marks().restore(kept.unwrap_or_default());
    Ok(())
}

/// Keeps marks that have changed, and of the log what they may need, for as long as the seat is taken; and marks once
/// more when the node stops.
pub(super) async fn keep_marks(seat: Weak<RingSeat>, known: Known) {
    let mut is_ending = false;
    while !is_ending {
        if let Some(seat) = seat.upgrade() {
            hold_log(&seat).await;
        }
        is_ending = tokio::time::timeout(KEEP_EVERY, known.until_ended()).await.is_ok();
        let Some(seat) = seat.upgrade() else { return };
        if let Err(error) = seat.keep_marks().await {
            tracing::warn!(%error, "what other nodes have missed can not be kept");
        }
    }
}

/// Holds of the log what marks may need, as long as it is not too much.
async fn hold_log(seat: &RingSeat) {
    let (log, marks, handoff) = (HeldLog(seat.shard().local()), seat.own_marks(), seat.marks().handoff());
    let now = Instant::now();
    marks.note_end(now, log.end());
    let is_too_long = log.held_bytes() > handoff.log_bytes_max;
    let is_late = |logged: &Logged| {
        logged.since.is_some_and(|since| now.saturating_duration_since(since) > handoff.window)
    };
    marks.give_up_log(|logged| is_too_long || is_late(logged));
    log.hold_from(marks.held_from());
    if let Err(error) = log.discard().await {
        tracing::debug!(%error, "log segments that are not held any more were not deleted");
    }
}

/// Heals, for as long as the seat is taken.
pub(super) async fn heal(seat: Weak<RingSeat>) {
    if let Some(seat) = seat.upgrade() {
        mark_unflushed(&seat);
        // Nothing is written over what is not read yet.
        let _keeping = seat.own_marks().keeping.lock().await;
        if let Err(error) = restore(&seat).await {
            tracing::error!(
                %error, "what other nodes have missed before is not known: repair the keyspaces of this node"
            );
        }
    }
    // Those that were compared with some of the replicas only. With the others they are when all live.
    let mut partial = BTreeSet::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(seat) = seat.upgrade() else { return };
        forget_who_is_gone(&seat);
        if seat.marks().handoff().is_paused() {
            continue;
        }
        let are_all_alive = are_all_alive(seat.known());
        for node in seat.own_marks().nodes() {
            if !is_alive(seat.known(), node) {
                partial.remove(&node);
                continue;
            }
            hand_logged(&seat, node).await;
            if are_all_alive || !partial.contains(&node) {
                heal_node(&seat, node).await;
                partial.insert(node);
            }
            seat.own_marks().healing_is_over(node);
        }
    }
}

fn is_alive(known: &Known, node: Uuid) -> bool {
    node == known.host_id() || known.other(node).is_alive()
}

/// Of those that count.
fn are_all_alive(known: &Known) -> bool {
    let Some(members) = known.members() else { return false };
    let mut counting = members.list().iter().filter(|member| member.state.has_rows());
    counting.all(|member| is_alive(known, member.candidate.host_id))
}

/// Who has their places is given everything.
fn forget_who_is_gone(seat: &RingSeat) {
    let Some(members) = seat.known().members() else { return };
    let gone = seat.own_marks().nodes().into_iter().filter(|node| members.get(*node).is_none());
    gone.for_each(|node| seat.own_marks().forget(Some(node)));
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
        for (owner, marks) in self.marks().all().iter().enumerate() {
            let _keeping = marks.keeping.lock().await;
            let Some(kept) = marks.take_changed() else { continue };
            let (path, runtime) = (path(self, owner), self.shard().local().runtime());
            let disk = Arc::clone(&runtime.disk);
            let written = runtime.io.run(move || write_state_below(&*disk, &path, &kept)).await;
            written.inspect_err(|_| marks.note_change())?;
        }
        Ok(())
    }
}

/// Sends a node what it has missed and is in this shard's log. What can not be had from there is compared.
async fn hand_logged(seat: &RingSeat, node: Uuid) {
    let Some(owed) = seat.own_marks().take_logged(node) else { return };
    let sent = match send_logged(seat, node, &owed).await {
        Ok(sent) => sent,
        Err(error) => {
            tracing::warn!(%node, %error, "what a node has missed can not be read in the log, and is compared");
            return seat.own_marks().compare_all(node, &owed.places);
        }
    };
    if !sent.refused.is_empty() {
        let slot_count = sent.refused.count();
        tracing::info!(%node, slot_count, "what a node has missed is compared: it can not be sent from the log");
        seat.own_marks().compare_all(node, &sent.refused);
    }
    if sent.rest_from.is_some() {
        seat.own_marks().owe(node, &Logged { from: sent.rest_from, ..owed });
    }
    if sent.mutation_count > 0 {
        let (mutation_count, byte_count) = (sent.mutation_count, sent.byte_count);
        seat.marks().handoff().count_sent(mutation_count);
        tracing::info!(%node, mutation_count, byte_count, "what a node has missed was sent to it");
    }
}

/// Makes equal what a node has missed, slot by slot. A slot that could not be compared on all of its replicas stays
/// marked.
async fn heal_node(seat: &RingSeat, node: Uuid) {
    let (mut mended_count, mut failed_count, mut left) = (0, 0, Vec::new());
    while let Some((table, slots)) = seat.own_marks().take_compared(node) {
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
    left.into_iter().for_each(|(table, slot)| seat.own_marks().compare(node, table, slot));
    if mended_count > 0 {
        seat.marks().handoff().count_mended(mended_count);
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
    seat.make_range_equal(table, tokens_of(slot), Some(node)).await
}
