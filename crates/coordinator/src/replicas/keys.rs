//! A read of several keys.
//!
//! ```text
//!   keys ─► the next of them ─► pieces: those of the same replicas, in the order of the ring ─┬─ each one read
//!                                                                                            └─ a page for each key
//!   in the order asked for: pages up to the first key that its piece did not come to the end of
//! ```
//!
//! What the page may take is shared by the pieces that are under way: one that begins is given its part of what those
//! before it have left. So a long list of small rows needs no more room than the rows do.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use futures_util::StreamExt;
use futures_util::stream;
use read::{ReadCommand, ReadPage, ReadPosition};
use replica::{READ_KEYS_MAX, Wanted};
use ring::GroupIndex;
use rows::PartitionKey;
use tokio::time::Instant;

use super::Replicas;
use super::error::ReplicaError;
use super::read::{is_row_too_large, wanted_of};
use crate::Consistency;
use crate::assemble::{Order, assemble};
use crate::read::rest;

/// So many pieces of one statement are read at once.
const PIECES_AT_ONCE: usize = 16;
/// So many keys are looked at for one page: whoever wants more reads on.
const KEYS_OF_PAGE_MAX: usize = PIECES_AT_ONCE * READ_KEYS_MAX;

/// Keys of the same replicas in the order of the ring, each with its place among those that are asked for.
type Piece<'k> = BTreeMap<&'k PartitionKey, usize>;

/// Does this node alone say what a read of these keys shows? Then its shards are asked as those of a node that is by
/// itself, each once for all of its keys.
pub(crate) fn is_alone_with(
    replicas: &Replicas,
    command: &ReadCommand,
    keys: &[PartitionKey],
    consistency: Consistency,
) -> bool {
    let table = command.table.id();
    let is_settled = |key: &PartitionKey| {
        replicas.admit(table, key.token, consistency).is_ok_and(|(plan, requirement)| {
            wanted_of(command, consistency, &plan, &requirement) == Wanted::Rows
        })
    };
    keys.iter().all(|key| {
        let partners = replicas.partners_to_read(table, key.token, consistency);
        partners.is_some_and(|partners| partners.nodes.is_empty()) && is_settled(key)
    })
}

impl Replicas {
    /// The page of several keys, in their order.
    pub(super) async fn read_keys(
        &self,
        command: &ReadCommand,
        keys: &[PartitionKey],
        consistency: Consistency,
        deadline: Instant,
    ) -> Result<ReadPage, ReplicaError> {
        let keys = rest(keys, command);
        let read = read_pieces(self, command, next_keys(command, &keys), consistency, deadline).await?;
        let mut pages: Vec<ReadPage> = read.into_iter().map_while(|page| page).collect();
        if pages.is_empty()
            && let Some(first) = keys.first()
        {
            // By itself it has all the room, and tells what is wrong with it.
            let alone = command.of_keys(vec![first.clone()]);
            pages.push(self.read_until(&alone, first.token, consistency, deadline).await?);
        }
        end_after(&mut pages, &keys);
        Ok(assemble(pages, Order::Keys(keys), command))
    }
}

/// The page of each key that its piece came to the end of, or ended in.
async fn read_pieces(
    replicas: &Replicas,
    command: &ReadCommand,
    keys: &[PartitionKey],
    consistency: Consistency,
    deadline: Instant,
) -> Result<Vec<Option<ReadPage>>, ReplicaError> {
    let mut pages = vec![None; keys.len()];
    let pieces = pieces_of(replicas, command, keys);
    let shares = &Shares::new(command.limits.bytes_max, pieces.len().clamp(1, PIECES_AT_ONCE));
    let reads = pieces.into_iter().map(|piece| async move {
        let keys: Vec<PartitionKey> = piece.keys().copied().cloned().collect();
        let (token, share) = (keys[0].token, shares.take());
        let mut part = command.of_keys(keys);
        part.limits.bytes_max = share;
        part.limits.bytes = part.limits.bytes.min(share);
        let read = replicas.read_until(&part, token, consistency, deadline).await;
        shares.give_back(share, read.as_ref().map_or(0, |page| page.given().bytes));
        (piece, read)
    });
    let mut reads = stream::iter(reads).buffer_unordered(PIECES_AT_ONCE);
    while let Some((piece, read)) = reads.next().await {
        match read {
            Ok(page) => deal_out(page, &piece, command, &mut pages),
            // It may be about one of them. The page ends before them, or the first is read by itself.
            Err(error) if is_row_too_large(&error) => {}
            Err(ReplicaError::ReadFailure { .. } | ReplicaError::Unavailable { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(pages)
}

/// Puts together those that have their replicas in common: as many as one request is about.
fn pieces_of<'k>(replicas: &Replicas, command: &ReadCommand, keys: &'k [PartitionKey]) -> Vec<Piece<'k>> {
    let home = replicas.home(command.table.id());
    let mut pieces = Vec::<(Option<GroupIndex>, Piece<'k>)>::new();
    for (place, key) in keys.iter().enumerate() {
        let group = home.as_ref().map(|home| home.group_of(key.token));
        // Only a part is to be read of the one in which the page before has ended.
        let is_resumed = command.resumed_in(key).is_some();
        let has_room = |(of, piece): &&mut (Option<GroupIndex>, Piece<'k>)| {
            *of == group && piece.len() < READ_KEYS_MAX && !piece.contains_key(key)
        };
        match pieces.iter_mut().find(has_room).filter(|_| !is_resumed) {
            Some((_, piece)) => _ = piece.insert(key, place),
            None => pieces.push((group.filter(|_| !is_resumed), BTreeMap::from([(key, place)]))),
        }
    }
    pieces.into_iter().map(|(_, piece)| piece).collect()
}

/// Those of the keys that a page is likely to have something of: all, but for a page that goes on in a partition of
/// many rows, which may fill it.
fn next_keys<'k>(command: &ReadCommand, keys: &'k [PartitionKey]) -> &'k [PartitionKey] {
    let is_within = keys.first().is_some_and(|first| command.resumed_in(first).is_some());
    let rows_max = usize::try_from(command.limits.row_count).unwrap_or(usize::MAX).max(1);
    let count_max = if is_within && !command.has_single_rows() { 1 } else { rows_max.min(KEYS_OF_PAGE_MAX) };
    &keys[..keys.len().min(count_max)]
}

/// Deals the page of a piece out to its keys, as far as it goes.
fn deal_out(page: ReadPage, piece: &Piece<'_>, command: &ReadCommand, pages: &mut [Option<ReadPage>]) {
    let ReadPage { partitions, next, tombstones } = page;
    let order = |key: &PartitionKey| next.as_ref().map_or(Ordering::Less, |next| key.cmp(&next.key));
    for (key, place) in piece {
        pages[*place] = match order(key) {
            Ordering::Less => Some(ReadPage::default()),
            // It has given as much as the page takes; of one row there is nothing more.
            Ordering::Equal if !command.has_single_rows() => {
                Some(ReadPage { next: next.clone(), ..ReadPage::default() })
            }
            Ordering::Equal => Some(ReadPage::default()),
            Ordering::Greater => None,
        };
    }
    let place_of = |key: &PartitionKey| piece.get(key).copied();
    for partition in partitions {
        if let Some(page) = place_of(&partition.key).and_then(|place| pages[place].as_mut()) {
            page.partitions.push(partition);
        }
    }
    for met in tombstones {
        if let Some(page) = place_of(&met.key).and_then(|place| pages[place].as_mut()) {
            page.tombstones.push(met);
        }
    }
}

/// The last of these pages is told to end where its key does, when there are more keys than pages.
fn end_after(pages: &mut [ReadPage], keys: &[PartitionKey]) {
    let page_count = pages.len();
    if page_count < keys.len()
        && let Some(last) = pages.last_mut()
    {
        last.next.get_or_insert_with(|| ReadPosition::behind(keys[page_count - 1].clone()));
    }
}

/// What a page may take, while several reads are under way that may each take a share of it.
///
/// What they have given and what they may give is never more than that.
struct Shares {
    left_bytes: Cell<usize>,
    left_count: Cell<usize>,
}

impl Shares {
    fn new(bytes_max: usize, at_once: usize) -> Self {
        Shares { left_bytes: Cell::new(bytes_max), left_count: Cell::new(at_once) }
    }

    /// For one read that begins: its part of what the others have left.
    fn take(&self) -> usize {
        let (bytes, count) = (self.left_bytes.get(), self.left_count.get());
        assert!(count > 0, "no more are read at once than there are shares");
        let share = bytes / count;
        self.left_bytes.set(bytes - share);
        self.left_count.set(count - 1);
        share
    }

    /// It is over, and has given so much.
    fn give_back(&self, share: usize, given_bytes: usize) {
        self.left_bytes.set(self.left_bytes.get() + share.saturating_sub(given_bytes));
        self.left_count.set(self.left_count.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_read_that_begins_has_its_part_of_what_is_left() {
        let shares = Shares::new(16_000, 16);
        let first: Vec<usize> = (0..16).map(|_| shares.take()).collect();
        assert_eq!(first, [1_000; 16]);
        shares.give_back(1_000, 100);
        assert_eq!(shares.take(), 900);
        // All that were first are over.
        (0..15).for_each(|_| shares.give_back(1_000, 100));
        shares.give_back(900, 0);
        assert_eq!(shares.take(), (16_000 - 16 * 100) / 16);
    }

    #[test]
    fn a_page_that_ends_early_tells_where() {
        let keys = ["a", "b", "c"].map(|name| PartitionKey::new(Bytes::from_static(name.as_bytes())));
        let mut pages = vec![ReadPage::default(); 2];
        end_after(&mut pages, &keys);
        assert_eq!(pages[0].next, None);
        assert_eq!(pages[1].next, Some(ReadPosition::behind(keys[1].clone())));
        let mut pages = vec![ReadPage::default(); 3];
        end_after(&mut pages, &keys);
        assert!(pages.iter().all(|page| page.next.is_none()), "all of it was read");
    }
}
