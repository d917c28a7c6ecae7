//! Rows of a part of the ring are compared on all replicas that live, and made equal.
//!
//! Page by page: this node's rows are hashed, and others are asked for the hash of theirs. Only where they differ rows
//! go over the network, and what one lacks is written to it. What is compared is all there is, tombstones too.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::future::join_all;
use read::{ReadCommand, ReadLimits, ReadTarget, UnfilteredPage};
use replica::{Answer, Request, Wanted};
use ring::NodeIndex;
use rows::RingRange;
use schema::{Table, TableId};
use tokio::time::Instant;
use types::Token;
use uuid::Uuid;

use super::error::ReplicaError;
use super::read::{Held, digest, lacking, whole_of};
use super::{Missed, Replicas, misanswered};
use crate::Consistency;

/// Rows of a page that is compared, and bytes, at most.
const PAGE_ROWS: u32 = 2_000;
const PAGE_BYTES: usize = 1 << 20;
/// How long one may take to be compared.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// A page that takes longer is tried again with an eighth of it, three times at most.
const HALVINGS: u32 = 3;
const HALVINGS_MAX: u32 = 3 * HALVINGS;
const _: () = assert!(PAGE_ROWS >> HALVINGS_MAX > 0 && PAGE_BYTES >> HALVINGS_MAX > 0, "a page has a row");

/// What became of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Pages that were compared.
    pub page_count: u64,
    /// Of these, so many differed somewhere.
    pub differing_count: u64,
    /// Partitions that were written to a replica which lacked something of them.
    pub mended_count: u64,
    /// Stretches of which a replica that counts did not live: it may have what the others lack.
    pub partial_count: u64,
}

/// How large pages are now. What a node lacks of a page is written to it within [`PATIENCE`], and a slow disk takes a
/// few rows a second: of pages that are too large for it, it would get the same rows again and again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageSize {
    halvings: u32,
}

impl PageSize {
    fn limits(self) -> ReadLimits {
        let (row_count, bytes) = (PAGE_ROWS >> self.halvings, PAGE_BYTES >> self.halvings);
        ReadLimits { row_count, bytes, ..ReadLimits::PAGE }
    }

    /// One took too long; `false` when they can not be smaller.
    fn shrink(&mut self) -> bool {
        let may_shrink = self.halvings < HALVINGS_MAX;
        self.halvings = HALVINGS_MAX.min(self.halvings + HALVINGS);
        may_shrink
    }

    /// One was compared in time.
    fn grow(&mut self) {
        self.halvings = self.halvings.saturating_sub(1);
    }
}

/// Rows that are made equal.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// Their table.
    pub(super) table: Arc<Table>,
    /// The table on whose replicas they are: the same, but for those of `system.operations`.
    pub(super) place: TableId,
}

impl Piece {
    /// The rows of a table.
    pub(super) fn of(table: &Arc<Table>) -> Piece {
        Piece { table: Arc::clone(table), place: table.id() }
    }
}

/// On which replicas of a partition rows are made equal. Those are meant that live.
#[derive(Clone, Copy, Debug)]
pub enum Participants<'a> {
    /// On all of them.
    All,
    /// On all of them, and this node must live where it is one.
    AllWith(Uuid),
    /// On those of these nodes.
    These(&'a BTreeSet<Uuid>),
}

impl Participants<'_> {
    /// May the node be one of them?
    pub(super) fn takes_in(&self, node: Uuid) -> bool {
        match self {
            Participants::All | Participants::AllWith(_) => true,
            Participants::These(nodes) => nodes.contains(&node),
        }
    }
}

impl AddAssign for Compared {
    fn add_assign(&mut self, more: Compared) {
        self.page_count += more.page_count;
        self.differing_count += more.differing_count;
        self.mended_count += more.mended_count;
        self.partial_count += more.partial_count;
    }
}

/// As [`Replicas::make_range_equal`], by the schema of now.
pub(super) async fn make_range_equal_now(
    replicas: &Replicas,
    table: TableId,
    range: (Token, Token),
    on: Participants<'_>,
) -> Result<Compared, ReplicaError> {
    let table = replicas.shard.local().with_schema(|schema| schema.table_by_id(table).cloned());
    replicas.make_range_equal(&table.ok_or(ReplicaError::NoTable)?, range, on, PATIENCE).await
}

impl Replicas {
    /// Makes the rows of a table between two tokens equal on replicas that live.
    ///
    /// # Errors
    /// Fewer than two live, or one could not be asked or mended: what was made equal so far stays so.
    pub async fn make_range_equal(
        &self,
        table: &Arc<Table>,
        range: (Token, Token),
        on: Participants<'_>,
        patience: Duration,
    ) -> Result<Compared, ReplicaError> {
        let size = Cell::default();
        let piece = Piece::of(table);
        self.make_range_equal_telling(&piece, range, (on, patience, &size), &mut |_, _| {}).await
    }

    /// The same, with pages as large as they were the last time. It tells up to which token it has come, and whether
    /// all replicas that count were compared there.
    pub(super) async fn make_range_equal_telling(
        &self,
        Piece { table, place }: &Piece,
        (mut first, last): (Token, Token),
        (on, patience, kept_size): (Participants<'_>, Duration, &Cell<PageSize>),
        tell: &mut dyn FnMut(Token, bool),
    ) -> Result<Compared, ReplicaError> {
        let (mut compared, mut size) = (Compared::default(), kept_size.get());
        let all_live = |nodes: &[NodeIndex]| nodes.iter().all(|node| self.view.is_alive(*node));
        loop {
            let end = self.end_of_replicas(*place, first, last)?;
            let (nodes, are_all) = self.alive_of(*place, end, on)?;
            compared.partial_count += u64::from(!are_all);
            let range = RingRange::ALL.cut(first, end);
            let now = self.shard.local().now_seconds();
            let mut command = ReadCommand::new(Arc::clone(table), ReadTarget::Range(range), now);
            loop {
                command.limits = size.limits();
                let page = match self.compare_page(&nodes, &command, patience, &mut compared).await {
                    Err(ReplicaError::ReadTimeout { .. }) if all_live(&nodes) && size.shrink() => {
                        kept_size.set(size);
                        continue;
                    }
                    page => page?,
                };
                size.grow();
                kept_size.set(size);
                match page.next {
                    Some(next) => {
                        // The partition in which a page ends may go on.
                        tell(Token(next.key.token.0.saturating_sub(1)), are_all);
                        command.resume = Some(next);
                    }
                    None => break,
                }
            }
            tell(end, are_all);
            if end >= last {
                return Ok(compared);
            }
            first = Token(end.0 + 1);
        }
    }

    /// The replicas that live, this node first if it is one, and whether those are all; `Unavailable` when there are
    /// none to be compared. Of one replica alone there is nothing to compare.
    fn alive_of(
        &self,
        place: TableId,
        token: Token,
        on: Participants<'_>,
    ) -> Result<(Vec<NodeIndex>, bool), ReplicaError> {
        let (plan, _) = self.admit(place, token, Consistency::One)?;
        let mut nodes = self.view.nearest_first(&plan);
        let is_wanted = |node: &NodeIndex| match on {
            Participants::AllWith(wanted) => wanted == self.view.host_of(*node),
            Participants::All | Participants::These(_) => false,
        };
        let was_wanted = nodes.iter().any(is_wanted);
        nodes.retain(|node| self.view.is_alive(*node) && on.takes_in(self.view.host_of(*node)));
        let is_missing = was_wanted && !nodes.iter().any(is_wanted);
        // Of one replica alone there is nothing to compare, unless it is not meant.
        match is_missing || nodes.is_empty() || (nodes.len() < 2 && plan.nodes.len() > 1) {
            true => {
                let (consistency, required) = (Consistency::Two, 2);
                Err(ReplicaError::Unavailable { consistency, required, alive: 1 })
            }
            false => {
                let counts = |node: &&NodeIndex| self.view.has_rows(**node);
                let are_all = plan.nodes.iter().filter(counts).all(|node| nodes.contains(node));
                Ok((nodes, are_all))
            }
        }
    }

    /// Compares one page; gives it as it is on all of them then.
    async fn compare_page(
        &self,
        nodes: &[NodeIndex],
        command: &ReadCommand,
        patience: Duration,
        compared: &mut Compared,
    ) -> Result<UnfilteredPage, ReplicaError> {
        let deadline = Instant::now() + patience;
        let timed_out = |received: usize| ReplicaError::ReadTimeout {
            received: u32::try_from(received).unwrap_or(u32::MAX),
            required: u32::try_from(nodes.len()).unwrap_or(u32::MAX),
        };
        compared.page_count += 1;
        let (first, others) = nodes.split_first().expect("an admitted partition has replicas");
        let page =
            self.read_from(*first, Wanted::WrittenRows, command, deadline).await.map_err(|_| timed_out(0))?;
        let hash = digest(command, &page)?;
        let hashes = join_all(others.iter().map(|node| self.digest_from(*node, command, deadline))).await;
        if hashes.iter().all(|answer| *answer == Ok(hash)) {
            return Ok(page);
        }
        compared.differing_count += 1;
        let pages =
            join_all(others.iter().map(|node| self.read_from(*node, Wanted::WrittenRows, command, deadline)))
                .await;
        let mut held = vec![Held { node: *first, page }];
        for (node, page) in others.iter().zip(pages) {
            held.push(Held { node: *node, page: page.map_err(|_| timed_out(held.len()))? });
        }
        let whole = whole_of(command, &held)?;
        let lacking = lacking(command, &whole, &held)?;
        for (_, mutations) in &lacking {
            compared.mended_count += mutations.len() as u64;
        }
        let mends = lacking.iter().map(|(node, mutations)| self.repair(*node, mutations, deadline));
        match join_all(mends).await.iter().filter(|mended| mended.is_err()).count() {
            0 => Ok(whole),
            failed => Err(timed_out(nodes.len() - failed)),
        }
    }

    async fn digest_from(
        &self,
        node: NodeIndex,
        command: &ReadCommand,
        deadline: Instant,
    ) -> Result<read::PageDigest, Missed> {
        let wanted = Wanted::Digest;
        let answer = match self.view.peer(node) {
            None => replica::read(&self.shard, wanted, command.clone()).await,
            Some(peer) => {
                let put = |out: &mut BytesMut| Request::put_read(wanted, command, out);
                self.ask(peer, [command.table.id()], deadline, put).await?
            }
        };
        match answer {
            Answer::Digest(digest) => Ok(digest),
            Answer::Failed(failure) => Err(Missed::Failed(failure)),
            _ => Err(misanswered()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_take_too_long_are_smaller_and_grow_again() {
        let mut size = PageSize::default();
        let rows = |size: PageSize| size.limits().row_count;
        assert_eq!((rows(size), size.limits().bytes), (2_000, 1 << 20));
        assert_eq!((size.shrink(), rows(size)), (true, 250));
        assert_eq!((size.shrink(), rows(size), size.limits().bytes), (true, 31, 16 << 10));
        assert_eq!((size.shrink(), rows(size)), (true, 3));
        assert_eq!((size.shrink(), rows(size)), (false, 3));
        size.grow();
        assert_eq!(rows(size), 7);
        (0..9).for_each(|_| size.grow());
        assert_eq!(rows(size), 2_000);
    }
}
