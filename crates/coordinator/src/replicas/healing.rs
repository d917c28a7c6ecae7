//! Replicas that have missed something are brought it when they are there again, without anybody's command.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Weak;
use std::sync::Arc;
use std::time::Duration;

use cluster::membership::Known;
use runtime::Plant;
use schema::{Schema, TableId};
use storage::{HeldLog, Shard, StateError};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::equal::{Participants, make_range_equal_now};
use super::logged::{SentLogged, send_logged};
use super::marks::{NOTE_EVERY, ShardMarks};
use super::owed::Kept;
use super::settled::{End, owe_unsettled};
use super::slots::tokens_of;
use super::{ReplicaError, Replicas, RingSeat};

/// So often it is looked who is there again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where the marks of a shard of the node are kept.
fn file_of(owner: usize) -> String {
    format!("missed-{owner}.json")
}

/// Reads the marks that an earlier run of the shard has kept; the first one reads also those of shards that are no
/// more, and gives their files.
///
/// # Errors
/// The disk fails, or a file is damaged: then nobody knows what others have missed.
async fn restore(seat: &RingSeat) -> Result<Vec<PathBuf>, StateError> {
    let (index, shard_count) = (seat.shard().local().index(), seat.marks().shard_count());
    let (gone, mut files) = ((shard_count..).take_while(|_| index == 0), Vec::new());
    for owner in std::iter::once(index).chain(gone) {
        let file = file_of(owner);
        let kept: Option<Kept> = seat.read_kept(&file).await?;
        match kept {
            Some(kept) => {
                seat.own_marks().restore(kept);
                files.extend((owner != index).then(|| seat.path_of_kept(&file)));
            }
            None if owner == index => {}
            // Shards are numbered without a gap.
            None => break,
        }
    }
    Ok(files)
}

/// Removes files of shards that are no more: their marks are kept with those of the first one.
async fn remove_read(seat: &RingSeat, files: Vec<PathBuf>) {
    if files.is_empty() || !seat.keep(seat.shard().local().index()).await.is_ok_and(|is_kept| is_kept) {
        return;
    }
    let runtime = seat.shard().local().runtime();
    let disk = Arc::clone(&runtime.disk);
    let remove = move || files.iter().try_for_each(|file| disk.remove_file(file));
    if let Err(error) = runtime.io.run(remove).await {
        tracing::warn!(%error, "marks of shards that are no more are still there");
    }
}

/// Keeps marks that have changed, and of the log what they may need, for as long as the seat is taken: also while the
/// node stops, and writes what it has in memory.
pub(super) async fn keep_marks(seat: Weak<RingSeat>, known: Known) {
    loop {
        if let Some(seat) = seat.upgrade() {
            hold_log(&seat).await;
        }
        if known.ended().is_some() {
            sleep(NOTE_EVERY).await;
        } else {
            _ = tokio::time::timeout(NOTE_EVERY, known.until_ended()).await;
        }
        let Some(seat) = seat.upgrade() else { return };
        let kept = seat.keep(seat.shard().local().index()).await.map(drop);
        if let Err(error) = kept.and(seat.keep_settled(known.ended().is_some()).await) {
            tracing::warn!(%error, "what other nodes have missed can not be kept");
        }
    }
}

/// Holds of the log what marks may need, as long as it is there, not too much and not too old.
async fn hold_log(seat: &RingSeat) {
    let shard = seat.shard().local();
    let (log, marks, handoff) = (HeldLog(shard), seat.own_marks(), seat.marks().handoff());
    let now = Instant::now();
    marks.note_end(now, End::of(shard, seat.marks().shard_count()));
    if let Some(before) = seat.marks().settled_before() {
        marks.settle(before, log.synced_to());
    }
    let (is_too_long, begins) = (log.held_bytes() > handoff.log_bytes_max, log.begins());
    let given_up = marks.give_up_log(|table, from, since| {
        let age = now.saturating_duration_since(since);
        is_too_long || from < begins || age > handoff.window || age > gc_grace(shard, table)
    });
    given_up.iter().for_each(|(node, places)| seat.marks().compare_all(*node, places));
    log.hold_from(marks.held_from());
    log.keep_from(marks.kept_from(is_too_long));
    if let Err(error) = log.discard().await {
        tracing::debug!(%error, "log segments that are not held any more were not deleted");
    }
}

/// What was written longer ago may be deleted by now, and the deletion forgotten.
pub(super) fn gc_grace(shard: &Shard, table: TableId) -> Duration {
    let seconds = |schema: &Schema| {
        let table = schema.table_by_id(table)?;
        Some(table.options().gc_grace_seconds)
    };
    Duration::from_secs(shard.with_schema(seconds).unwrap_or(0).into())
}

/// Heals, for as long as the seat is taken.
pub(super) async fn heal(seat: Weak<RingSeat>) {
    if let Some(seat) = seat.upgrade() {
        // Nothing is written over what is not read yet.
        let mut is_read = seat.own_marks().keeping.lock().await;
        let files = restore(&seat).await.unwrap_or_else(|error| {
            tracing::error!(
                %error, "what other nodes have missed before is not known: repair the keyspaces of this node"
            );
            Vec::new()
        });
        *is_read = true;
        drop(is_read);
        owe_unsettled(&seat).await;
        remove_read(&seat, files).await;
    }
    let mut alive = BTreeSet::new();
    loop {
        sleep(LOOK_EVERY).await;
        let Some(seat) = seat.upgrade() else { return };
        forget_who_is_gone(&seat);
        let (living, are_all) = who_lives(seat.known());
        let before = std::mem::replace(&mut alive, living);
        if are_all || !alive.is_subset(&before) {
            seat.own_marks().stop_waiting();
        }
        let mut missing = seat.own_marks().nodes();
        missing.retain(|node| is_alive(seat.known(), *node));
        // That is soon done, and comparing may take long.
        for node in &missing {
            hand_logged(&seat, *node).await;
        }
        for node in missing {
            heal_node(&seat, node).await;
        }
    }
}

/// May anything be handed to a node now?
fn may_hand(seat: &RingSeat, node: Uuid) -> bool {
    is_alive(seat.known(), node) && !seat.marks().handoff().is_paused()
}

fn is_alive(known: &Known, node: Uuid) -> bool {
    node == known.host_id() || known.other(node).is_alive()
}

/// Of those that count; and are they all?
fn who_lives(known: &Known) -> (BTreeSet<Uuid>, bool) {
    let Some(members) = known.members() else { return (BTreeSet::new(), false) };
    let counting = members.list().iter().filter(|member| member.state.has_rows());
    let nodes: BTreeSet<Uuid> = counting.map(|member| member.candidate.host_id).collect();
    let alive: BTreeSet<Uuid> = nodes.iter().copied().filter(|node| is_alive(known, *node)).collect();
    let are_all = alive == nodes;
    (alive, are_all)
}

/// Who has their places is given everything.
fn forget_who_is_gone(seat: &RingSeat) {
    let Some(members) = seat.known().members() else { return };
    let is_gone = |node: &Uuid| members.get(*node).is_none() && !seat.has_planted(Plant::GoneRemembered);
    let gone = seat.own_marks().nodes().into_iter().filter(is_gone);
    gone.for_each(|node| seat.own_marks().forget(Some(node)));
}

impl RingSeat {
    /// Returns when all that was marked until now is on the disk, for all shards.
    ///
    /// # Errors
    /// The disk fails.
    pub(crate) async fn keep_marks(&self) -> Result<(), StateError> {
        for owner in 0..self.marks().shard_count() {
            // One that has just started reads what it had first.
            while !self.keep(owner).await? {
                sleep(NOTE_EVERY).await;
            }
        }
        Ok(())
    }

    /// Keeps the marks of a shard that have changed, if those of its earlier run were read.
    pub(super) async fn keep(&self, owner: usize) -> Result<bool, StateError> {
        let marks = self.marks().of(owner);
        let is_read = marks.keeping.lock().await;
        if !*is_read {
            return Ok(false);
        }
        let Some(kept) = marks.take_changed() else { return Ok(true) };
        let written = self.write_kept(&file_of(owner), kept).await;
        written.inspect_err(|_| marks.note_change())?;
        Ok(true)
    }
}

/// Sends a node what it has missed and is in this shard's log. What can not be had from there is compared.
async fn hand_logged(seat: &RingSeat, node: Uuid) {
    if !may_hand(seat, node) {
        return;
    }
    let Some(owed) = seat.own_marks().take_logged(node) else { return };
    let sent = send_logged(seat, node, &owed).await.unwrap_or_else(|error| {
        tracing::warn!(%node, %error, "what a node has missed can not be read in the log, and is compared");
        SentLogged { refused: owed.places().clone(), ..SentLogged::default() }
    });
    if !sent.refused.is_empty() {
        let slot_count = sent.refused.count();
        tracing::info!(%node, slot_count, "what a node has missed is compared: it can not be sent from the log");
        seat.marks().compare_all(node, &sent.refused);
    }
    if let Some(from) = sent.rest_from {
        seat.own_marks().owe(node, &owed.rest(from));
    }
    // Added again before: what is taken is kept at every moment.
    seat.own_marks().sending_is_over(node);
    if sent.mutation_count > 0 {
        let (mutation_count, byte_count) = (sent.mutation_count, sent.byte_count);
        seat.marks().handoff().count_sent(mutation_count);
        tracing::info!(%node, mutation_count, byte_count, "what a node has missed was sent to it");
    }
}

/// Makes equal what a node has missed, slot by slot, and with it what others have missed of the same slots. A slot that
/// could not be compared on all of its replicas stays marked, and waits for others to be there.
async fn heal_node(seat: &RingSeat, node: Uuid) {
    let marks = seat.own_marks();
    let (mut mended_count, mut failed_count, mut left) = (0, 0, Vec::new());
    while may_hand(seat, node)
        && let Some((table, slots)) = marks.take_compared(node)
    {
        for slot in slots {
            // When it is away again, what is left of its slots would fail one by one.
            let Some(replicas) = seat.replicas().filter(|_| may_hand(seat, node)) else {
                left.push((table, slot));
                continue;
            };
            match heal_slot(marks, &replicas, (node, table), slot).await {
                Ok(count) => mended_count += count,
                Err(error) => {
                    failed_count += 1;
                    left.push((table, slot));
                    tracing::debug!(%node, slot, %error, "a slot could not be compared");
                }
            }
        }
    }
    left.into_iter().for_each(|(table, slot)| marks.compare(node, table, slot));
    marks.healing_is_over();
    if mended_count > 0 {
        seat.marks().handoff().count_mended(mended_count);
        tracing::info!(%node, mended_count, "partitions that differed after a node was away are equal again");
    }
    if failed_count > 0 {
        tracing::warn!(%node, failed_count, "slots that a node has missed something of could not be compared yet");
    }
}

/// Makes a slot equal, and sees to the marks of the others that have missed something of it; how many partitions
/// differed? A table that is gone has no rows to be compared.
///
/// # Errors
/// It could not be compared, and the others are marked as before.
async fn heal_slot(
    marks: &ShardMarks,
    replicas: &Replicas,
    (node, table): (Uuid, TableId),
    slot: usize,
) -> Result<u64, ReplicaError> {
    // Those without which it is not compared on all.
    let view = &replicas.view;
    let counts = |other| view.index_of(other).is_some_and(|other| view.has_rows(other));
    let others = marks.take_of_others(table, slot, counts);
    match make_range_equal_now(replicas, table, tokens_of(slot), Participants::AllWith(node)).await {
        Ok(compared) => {
            if compared.partial_count > 0 {
                others.iter().chain([&node]).for_each(|node| marks.wait(*node, table, slot));
            }
            Ok(compared.mended_count)
        }
        Err(ReplicaError::NoTable) => Ok(0),
        Err(error) => {
            others.iter().for_each(|other| marks.compare(*other, table, slot));
            Err(error)
        }
    }
}
