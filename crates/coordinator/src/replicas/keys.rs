//! A read of several keys: a few at a time, each from its own replicas.
//!
//! What the page may take is shared by the reads that are under way, and not by all keys: one that begins is given its
//! part of what those before it have left. So a long list of small rows needs no more room than the rows do.

use std::cell::Cell;

use futures_util::StreamExt;
use futures_util::stream;
use read::{Given, ReadCommand, ReadPage, ReadPosition, ReadTarget};
use replica::Wanted;
use rows::PartitionKey;
use tokio::time::Instant;

use super::Replicas;
use super::error::ReplicaError;
use super::read::{is_row_too_large, wanted_of};
use crate::Consistency;
use crate::assemble::{Order, assemble};
use crate::read::{of_all, rest};

/// So many keys of one statement are read at once.
const KEYS_AT_ONCE: usize = 16;

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
        let at_once = keys.len().clamp(1, KEYS_AT_ONCE);
        let shares = &Shares::new(command.limits.bytes_max, at_once);
        let reads = keys.iter().map(|key| async move {
            let share = shares.take();
            let mut part = of_key(command, key);
            part.limits.bytes_max = share;
            part.limits.bytes = part.limits.bytes.min(share);
            let read = self.read_until(&part, key.token, consistency, deadline).await;
            shares.give_back(share, read.as_ref().map_or(0, |page| page.given().bytes));
            read
        });
        let mut reads = stream::iter(reads).buffered(at_once);
        let (mut pages, mut given) = (Vec::<ReadPage>::with_capacity(keys.len()), Given::default());
        while !command.limits.are_reached(given)
            && let Some(read) = reads.next().await
        {
            match read {
                Ok(page) => {
                    given += page.given();
                    pages.push(page);
                }
                // It has rows, so that it can end before one that has no room.
                Err(error) if is_row_too_large(&error) && given.bytes > 0 => break,
                Err(error) => return Err(for_each(error, at_once)),
            }
            if pages.last().is_some_and(|page| page.next.is_some()) {
                break;
            }
        }
        drop(reads);
        end_after(&mut pages, &keys);
        Ok(assemble(pages, Order::Keys(keys), command))
    }
}

/// What is asked of one key.
fn of_key(command: &ReadCommand, key: &PartitionKey) -> ReadCommand {
    let target = ReadTarget::Keys(vec![key.clone()]);
    let resume = command.resume.clone().filter(|position| position.key == *key);
    ReadCommand { target, resume, ..command.clone() }
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

/// A row that is too large for the share of one key needs as much for each that is read beside it.
fn for_each(error: ReplicaError, at_once: usize) -> ReplicaError {
    match is_row_too_large(&error) {
        true => ReplicaError::Coordinator(of_all(error.into(), at_once)),
        false => error,
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
