//! How a page of a range is read when several shards hold parts of it.
//!
//! The ring is cut into many small pieces that belong to the shards in turn, and a page of a scan
//! is the rows of a *stretch* of few of them:
//!
//! ```text
//!   tokens →   | 0 | 1 | 2 | 0 | 1 | 2 | 0 | 1 | …          the shards' pieces
//!                    |◄── stretch ──►|                      likely to hold the rows wanted
//! ```
//!
//! So only the shards of the stretch are asked, and none reads far beyond what is wanted. How long
//! a stretch has to be is estimated from the partitions on this shard; when it gave too little, a
//! longer one follows. The answer never depends on the estimate.

use std::ops::ControlFlow;

use read::{Given, ReadCommand, ReadLimits, ReadPage, ReadPosition, ReadTarget};
use rows::RingRange;
use storage::StorageError;
use types::Token;

use crate::admission::Admitted;
use crate::assemble::Order;
use crate::read::Parts;
use crate::{Coordinator, CoordinatorError};

/// Each stretch that follows a short one is so many times as long.
const WIDENING: u128 = 8;
/// A stretch of that many pieces a shard is spread evenly enough to ask each for its share.
const EVEN_PIECES: u64 = 8;
const _: () = assert!(WIDENING > 1, "stretches come to the range's end");

/// A page of a range of the ring, while it is put together from stretches.
pub(crate) struct Stretches<'c> {
    command: &'c ReadCommand,
    range: &'c RingRange,
    page: ReadPage,
    given: Given,
    /// Where the next one begins.
    first: Token,
}

impl<'c> Stretches<'c> {
    /// From where the last page ended.
    pub(crate) fn new(command: &'c ReadCommand, range: &'c RingRange) -> Self {
        let resumed = command.resume.as_ref().map(|position| position.key.token);
        let first = resumed.map_or(range.first_token(), |token| token.max(range.first_token()));
        Stretches { command, range, page: ReadPage::default(), given: Given::default(), first }
    }

    /// Where the next one begins.
    pub(crate) fn first(&self) -> Token {
        self.first
    }

    /// How many rows are missing: one at least, as long as the page is not full.
    pub(crate) fn missing(&self) -> u32 {
        self.command.limits.after(self.given).row_count.max(1)
    }

    /// What is asked of the next one, which ends there.
    pub(crate) fn next_until(&self, last: Token) -> ReadCommand {
        let limits = ReadLimits { row_count: self.missing(), ..self.command.limits.after(self.given) };
        let target = ReadTarget::Range(self.range.cut(self.first, last));
        ReadCommand { target, limits, ..self.command.clone() }
    }

    /// Has it any row, so that it can end before one that has no room?
    pub(crate) fn can_end(&self) -> bool {
        self.given.bytes > 0
    }

    /// Ends it where it stands: what comes next has no room.
    pub(crate) fn end(mut self) -> ReadPage {
        self.page.next = end_after(&self.page);
        self.page
    }

    /// Takes what was read of the one that ends there; the page, when it is over.
    pub(crate) fn take(mut self, read: ReadPage, last: Token) -> ControlFlow<ReadPage, Self> {
        self.given += read.given();
        self.page.add_tombstones_of_range(read.tombstones);
        self.page.partitions.extend(read.partitions);
        self.page.next = read.next;
        let range_last = self.range.last_token();
        if self.page.next.is_some() || last >= range_last || self.first > range_last {
            return ControlFlow::Break(self.page);
        }
        if self.given.bytes >= self.command.limits.bytes {
            return ControlFlow::Break(self.end());
        }
        assert!(
            self.first <= last && last < range_last,
            "the next stretch is behind this one, and in the range"
        );
        self.first = Token(last.0 + 1);
        ControlFlow::Continue(self)
    }
}

/// A page of a range of the ring, read from this node's shards.
pub(crate) struct RangeRead<'c> {
    coordinator: &'c Coordinator,
    command: &'c ReadCommand,
    range: &'c RingRange,
}

impl<'c> RangeRead<'c> {
    pub(crate) fn new(coordinator: &'c Coordinator, command: &'c ReadCommand, range: &'c RingRange) -> Self {
        RangeRead { coordinator, command, range }
    }

    pub(crate) async fn read(self, admitted: Admitted) -> Result<ReadPage, CoordinatorError> {
        let RangeRead { coordinator, command, range } = self;
        let sharding = coordinator.shard().shards().sharding();
        let local = coordinator.shard().local();
        let here = local.table(command.table.id()).map_or(0, |table| table.partition_count_estimate());
        let partition_count = u128::from(here) * sharding.shard_count() as u128;
        let (mut stretches, mut widening) = (Stretches::new(command, range), 1);
        loop {
            let (first, missing) = (stretches.first(), stretches.missing());
            let length = stretch_tokens(missing, partition_count).saturating_mul(widening);
            let last = end_of(first, length).min(range.last_token());
            let owners = sharding.shards_within(first, last).count();
            let is_even = sharding.piece_count(first, last) >= EVEN_PIECES * owners as u64;
            let share = if is_even { share_of(missing, owners) } else { missing };
            let whole = stretches.next_until(last);
            let read = match read_stretch(coordinator, admitted, whole, (first, last), share).await {
                Err(CoordinatorError::Storage(StorageError::RowTooLarge { .. })) if stretches.can_end() => {
                    return Ok(stretches.end());
                }
                read => read?,
            };
            stretches = match stretches.take(read, last) {
                ControlFlow::Break(page) => return Ok(page),
                ControlFlow::Continue(more) => more,
            };
            widening *= WIDENING;
        }
    }
}

async fn read_stretch(
    coordinator: &Coordinator,
    admitted: Admitted,
    whole: ReadCommand,
    (first, last): (Token, Token),
    share: u32,
) -> Result<ReadPage, CoordinatorError> {
    let owners: Vec<usize> = coordinator.shard().shards().sharding().shards_within(first, last).collect();
    if let [owner] = *owners {
        return coordinator.read_from(admitted, owner, &whole).await;
    }
    let part = |owner| {
        let limits = ReadLimits { row_count: share, ..whole.limits };
        (owner, ReadCommand { limits, ..whole.clone() })
    };
    let parts = owners.into_iter().map(part).collect();
    Parts::new(coordinator, &whole, parts).read(admitted, Order::Ring).await
}

/// Where a page goes on that ends with its last partition.
fn end_after(page: &ReadPage) -> Option<ReadPosition> {
    page.partitions.last().map(|last| ReadPosition::behind(last.key.clone()))
}

/// How many tokens are likely to hold that many rows, if every partition has one. Two standard
/// deviations more than on average: another round costs more than a few rows too many.
fn stretch_tokens(rows: u32, partition_count: u128) -> u128 {
    let wanted = u128::from(rows) + 2 * u128::from(rows.isqrt()) + 2;
    let ring = 1u128 << 64;
    (wanted * ring).checked_div(partition_count).unwrap_or(ring)
}

/// The last of so many tokens.
fn end_of(first: Token, length: u128) -> Token {
    let last = i128::from(first.0) + i128::try_from(length).unwrap_or(i128::MAX / 2) - 1;
    Token(i64::try_from(last).unwrap_or(i64::MAX).max(first.0))
}

/// What one of several shards is asked for when all have about the same to give.
fn share_of(rows: u32, owners: usize) -> u32 {
    let even = rows / u32::try_from(owners.max(1)).unwrap_or(u32::MAX);
    even.saturating_add(2 * even.isqrt() + 2).min(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_as_long_as_the_rows_wanted_are_rare() {
        assert_eq!(stretch_tokens(1, 0), 1 << 64);
        assert!(stretch_tokens(100, 50) > 1 << 64);
        let some = stretch_tokens(100, 1_000_000);
        assert!(some > (1 << 64) / 10_000 && some < (1 << 64) / 8_000);
        assert_eq!(end_of(Token(5), 10), Token(14));
        assert_eq!(end_of(Token(i64::MIN), 1 << 64), Token(i64::MAX));
        assert_eq!(end_of(Token(i64::MAX), u128::MAX), Token(i64::MAX));
    }

    #[test]
    fn a_share_is_a_little_more_than_an_even_part_and_never_more_than_all() {
        assert_eq!(share_of(5000, 2), 2600 + 2);
        assert_eq!(share_of(3, 2), 3);
        assert_eq!(share_of(u32::MAX, 1), u32::MAX);
    }
}
