//! A node that has taken the place of a lost one gets its rows, before it counts as a replica.
//!
//! ```text
//!   the ring has agreed on it ──► it is written to from then on, and counts as one that is away
//!   range by range: all its other replicas live, and know of it ──► their rows are compared and made equal
//!   all ranges of all tables ──► it proposes that it has its rows ──► it is read and serves
//! ```
//!
//! What was acknowledged by the lost node and others before is on one of these others, so all of them are asked; one
//! that was given up, or is joining itself, is not waited for. What is acknowledged meanwhile is on a majority of those
//! that are read, without this node. In between lies what was planned before they knew and is acknowledged later: none
//! of them answers to that once it knows (`ReplicaService`), so each of them must, before it is read.
//!
//! How far it has come is kept in `ring/filling.json`, so that a start goes on from there.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::metadata::{Command, MemberState};
use runtime::Plant;
use schema::TableId;
use serde::{Deserialize, Serialize};
use storage::{StateError, StorageError};
use tokio::time::{Instant, sleep};
use types::Token;
use uuid::Uuid;

use super::equal::{PATIENCE, PageSize, Participants, Piece};
use super::repair::FIRST_TOKEN;
use super::{Compared, ReplicaError, RingSeat};
use crate::Coordinator;

/// How far it has come is kept there.
const FILE: &str = "filling.json";
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);
/// So often the log says how far it has come, and what it waits for.
const TELL_AFTER: Duration = Duration::from_secs(5);
/// So often it is kept how far it has come.
const KEEP_EVERY: Duration = Duration::from_secs(1);

/// How far it has come: a state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    /// Whose; another node's is of no use.
    host_id: Uuid,
    /// By piece: all rows up to that token are equal.
    upto: BTreeMap<Uuid, i64>,
}

/// What goes on.
struct Filling<'s> {
    seat: &'s RingSeat,
    progress: RefCell<Progress>,
    compared: RefCell<Compared>,
    /// Of pages, on disks as slow as those that there are.
    size: Cell<PageSize>,
    waits_for: RefCell<Option<String>>,
    /// Keyspaces of which something had no other replica.
    lost: RefCell<BTreeSet<String>>,
}

/// Gets the rows of this node, if it has taken the place of another one, and says so to the ring.
pub async fn fill(coordinator: Coordinator) {
    let Some(seat) = coordinator.seat().map(Rc::clone) else { return };
    seat.known().is_member().await;
    if state(&seat) != Some(MemberState::Joining) {
        return;
    }
    let progress = restore(&seat).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "which rows this node has got is not known: it begins again");
        Progress { host_id: seat.known().host_id(), upto: BTreeMap::new() }
    });
    let filling = Filling {
        seat: &seat,
        progress: RefCell::new(progress),
        compared: RefCell::default(),
        size: Cell::default(),
        waits_for: RefCell::default(),
        lost: RefCell::default(),
    };
    tracing::info!("this node gets the rows of the place that it has taken, and serves when it has them");
    let working = async {
        while state(&seat) == Some(MemberState::Joining) {
            if filling.is_full().await && filling.settle().await.is_ok() {
                let host_id = seat.known().host_id();
                if let Err(error) = seat.proposer().propose(Command::Filled { host_id }).await {
                    tracing::warn!(%error, "that this node has its rows is not agreed on yet");
                }
            }
            sleep(PAUSE).await;
        }
    };
    tokio::select! {
        biased;
        () = working => {}
        () = filling.keep() => {}
        () = filling.tell() => {}
    }
    let Compared { page_count, mended_count, .. } = *filling.compared.borrow();
    tracing::info!(page_count, mended_count, "this node has the rows of the place that it has taken");
}

/// How this node stands in the ring.
fn state(seat: &RingSeat) -> Option<MemberState> {
    Some(seat.known().members()?.get(seat.known().host_id())?.state)
}

async fn restore(seat: &RingSeat) -> Result<Progress, StateError> {
    let kept: Option<Progress> = seat.read_kept(FILE).await?;
    let host_id = seat.known().host_id();
    let own = kept.filter(|kept| kept.host_id == host_id);
    Ok(own.unwrap_or(Progress { host_id, upto: BTreeMap::new() }))
}

impl Progress {
    /// Where it goes on in a piece; `None` when it is through.
    fn next_token(&self, piece: Uuid) -> Option<Token> {
        match self.upto.get(&piece) {
            None => Some(FIRST_TOKEN),
            Some(upto) => upto.checked_add(1).map(Token),
        }
    }

    /// All rows of a piece up to that token are equal now.
    fn note(&mut self, piece: Uuid, upto: Token) {
        let before = self.upto.insert(piece, upto.0);
        assert!(before.is_none_or(|before| before <= upto.0), "rows that this node has got it has");
    }
}

impl Filling<'_> {
    /// Does this node have all rows of all tables now? Returns after what could be done.
    async fn is_full(&self) -> bool {
        if self.seat.has_planted(Plant::UnfilledTakenForFull) {
            return true;
        }
        let mut is_full = true;
        for piece in self.pieces() {
            is_full &= self.is_piece_full(&piece).await;
        }
        // A table may have been made meanwhile.
        is_full && self.pieces().iter().all(|piece| self.next_token(piece).is_none())
    }

    /// The tables that are on the ring, and what has come of operations in their keyspaces: what a quorum knew to be
    /// done it must know now.
    fn pieces(&self) -> Vec<Piece> {
        let tables = self.seat.replicas().map(|replicas| replicas.tables()).unwrap_or_default();
        let operations = self
            .seat
            .shard()
            .local()
            .with_schema(|schema| schema.table("system", "operations").map(Arc::clone));
        let one_of_each: BTreeMap<_, _> = tables.iter().map(|table| (table.keyspace(), table.id())).collect();
        let of_keyspace =
            |place: TableId| operations.clone().map(|operations| Piece { table: operations, place });
        let of_operations = one_of_each.into_values().filter_map(of_keyspace);
        tables.iter().map(Piece::of).chain(of_operations).collect()
    }

    fn next_token(&self, piece: &Piece) -> Option<Token> {
        self.progress.borrow().next_token(key_of(piece))
    }

    fn note(&self, piece: &Piece, upto: Token) {
        self.progress.borrow_mut().note(key_of(piece), upto);
    }

    async fn is_piece_full(&self, piece: &Piece) -> bool {
        let table = &piece.table;
        while let Some(first) = self.next_token(piece) {
            match self.fill_range(piece, first).await {
                Ok(last) => self.note(piece, last),
                // It is gone, or the ring is.
                Err(ReplicaError::NoTable) => return true,
                Err(error) => {
                    tracing::debug!(table = table.name(), %error, "some rows of this node could not be compared yet");
                    return false;
                }
            }
        }
        true
    }

    /// Makes equal what begins with that token and has one set of replicas; its last token.
    async fn fill_range(&self, piece: &Piece, first: Token) -> Result<Token, ReplicaError> {
        let replicas = self.seat.replicas().ok_or(ReplicaError::NoTable)?;
        let last = replicas.end_of_replicas(piece.place, first, Token::MAX)?;
        let keyspace = self
            .seat
            .shard()
            .local()
            .with_schema(|schema| schema.keyspace_of(piece.place).map(|keyspace| keyspace.name.clone()));
        let keyspace = keyspace.ok_or(ReplicaError::NoTable)?;
        let plan = replicas.view.plan(&keyspace, last).ok_or(ReplicaError::NoTable)?;
        let here = replicas.view.here();
        let others = plan.nodes.iter().filter(|node| **node != here && replicas.view.has_rows(**node));
        let others: Vec<_> = others.copied().collect();
        if !plan.nodes.contains(&here) {
            return Ok(last);
        }
        if others.is_empty() {
            if self.lost.borrow_mut().insert(keyspace.clone()) {
                tracing::warn!(
                    keyspace = &*keyspace,
                    "rows of which the lost node had the only replica are lost"
                );
            }
            return Ok(last);
        }
        let fence = self.seat.known().fence();
        let is_ready = |node: &ring::NodeIndex| {
            replicas.view.is_alive(*node)
                && replicas.view.ring_epoch(*node).is_some_and(|epoch| epoch >= fence)
        };
        if let Some(absent) = others.iter().find(|node| !is_ready(node)) {
            *self.waits_for.borrow_mut() = Some(replicas.view.address_of(*absent).ip().to_string());
            let required = u32::try_from(others.len()).unwrap_or(u32::MAX);
            let consistency = crate::Consistency::All;
            return Err(ReplicaError::Unavailable { consistency, required, alive: required - 1 });
        }
        let mut tell = |upto: Token, are_all: bool| {
            *self.waits_for.borrow_mut() = None;
            if are_all && upto >= first {
                self.note(piece, upto);
            }
        };
        let (on, range) = (Participants::AllWith(self.seat.known().host_id()), (first, last));
        let options = (on, PATIENCE, &self.size);
        let compared = replicas.make_range_equal_telling(piece, range, options, &mut tell).await?;
        *self.compared.borrow_mut() += compared;
        match compared.partial_count {
            0 => Ok(last),
            _ => {
                let (consistency, required) = (crate::Consistency::All, 2);
                Err(ReplicaError::Unavailable { consistency, required, alive: 1 })
            }
        }
    }

    /// Returns when the rows that it has got are on the disk, whatever the sync mode.
    async fn settle(&self) -> Result<(), StorageError> {
        let shards = self.seat.shard();
        for owner in 0..shards.shards().count() {
            shards.on_when_free(owner, |shard| async move { shard.settle().await }).await??;
        }
        Ok(())
    }

    /// Keeps how far it has come, for as long as it goes on.
    async fn keep(&self) {
        let mut kept = self.progress.borrow().clone();
        loop {
            sleep(KEEP_EVERY).await;
            let now = self.progress.borrow().clone();
            if now == kept {
                continue;
            }
            if let Err(error) = self.settle().await {
                tracing::warn!(%error, "which rows this node has got is not kept yet");
                continue;
            }
            match self.seat.write_kept(FILE, now.clone()).await {
                Ok(()) => kept = now,
                Err(error) => tracing::warn!(%error, "which rows this node has got can not be kept"),
            }
        }
    }

    /// Tells how far it has come, for as long as it goes on.
    async fn tell(&self) {
        let begun = Instant::now();
        loop {
            sleep(TELL_AFTER).await;
            let pieces = self.pieces();
            let table_count = pieces.len();
            let full_count = pieces.iter().filter(|piece| self.next_token(piece).is_none()).count();
            let Compared { page_count, mended_count, .. } = *self.compared.borrow();
            let waits_for = self.waits_for.borrow().clone().unwrap_or_else(|| "nobody".to_owned());
            let elapsed = begun.elapsed().as_secs();
            tracing::info!(
                full_count,
                table_count,
                page_count,
                mended_count,
                waits_for,
                elapsed,
                "this node gets its rows, and does not serve yet"
            );
        }
    }
}

/// What stands for a piece in what is kept: a table's id, and another one for the operations of its keyspace.
fn key_of(Piece { table, place }: &Piece) -> Uuid {
    if table.id() == *place { place.0 } else { Uuid::from_u128(table.id().0.as_u128() ^ place.0.as_u128()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: Uuid = Uuid::from_u128(7);

    #[test]
    fn it_goes_on_behind_what_it_has_up_to_the_end_of_the_ring() {
        let mut progress = Progress::default();
        assert_eq!(progress.next_token(PIECE), Some(FIRST_TOKEN));
        progress.note(PIECE, Token(-7));
        assert_eq!(progress.next_token(PIECE), Some(Token(-6)));
        progress.note(PIECE, Token::MAX);
        assert_eq!(progress.next_token(PIECE), None);
    }

    #[test]
    fn it_never_falls_back() {
        let mut progress = Progress::default();
        progress.note(PIECE, Token(7));
        progress.note(PIECE, Token(7));
        let noted = runtime::caught(|| progress.note(PIECE, Token(6)));
        assert_eq!(noted.expect_err("it is seen").what, "rows that this node has got it has");
    }
}
