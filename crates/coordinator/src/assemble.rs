//! Pages of several shards become one.
//!
//! Each shard has read as if it were alone, up to the full limits. In the order asked for, partitions
//! are taken until the limits of the whole page are reached, or until a shard's page ended for its
//! own limits: what comes behind that partition on the shard is not known.

use std::vec::IntoIter;

use rows::{PartitionKey, Row};
use storage::{PartitionRows, ReadCommand, ReadPage, ReadPosition};

/// The order of partitions in an answer.
pub(crate) enum Order {
    /// As the keys were given.
    Keys(Vec<PartitionKey>),
    /// Around the ring.
    Ring,
}

/// The page of one shard, taken apart.
struct Part {
    partitions: IntoIter<PartitionRows>,
    /// Where it ended, in its last partition.
    next: Option<ReadPosition>,
}

impl Part {
    fn head(&self) -> Option<&PartitionKey> {
        self.partitions.as_slice().first().map(|partition| &partition.key)
    }
}

pub(crate) fn assemble(pages: Vec<ReadPage>, order: Order, command: &ReadCommand) -> ReadPage {
    let partition_count = pages.iter().map(|page| page.partitions.len()).sum();
    let mut page = ReadPage { partitions: Vec::with_capacity(partition_count), ..ReadPage::default() };
    let part = |part: ReadPage| {
        match order {
            Order::Keys(_) => page.tombstones.extend(part.tombstones),
            Order::Ring => page.add_tombstones_of_range(part.tombstones),
        }
        Part { partitions: part.partitions.into_iter(), next: part.next }
    };
    let mut parts: Vec<Part> = pages.into_iter().map(part).collect();
    let mut row_count = 0;
    match order {
        Order::Ring => {
            while let Some(part) = least(&mut parts) {
                if take(part, &mut page, &mut row_count, command) {
                    break;
                }
            }
        }
        Order::Keys(keys) => {
            for key in &keys {
                let part = parts.iter_mut().find(|part| part.head() == Some(key));
                if part.is_some_and(|part| take(part, &mut page, &mut row_count, command)) {
                    break;
                }
            }
        }
    }
    page
}

/// The part whose next partition comes first on the ring.
fn least(parts: &mut [Part]) -> Option<&mut Part> {
    let with_head = parts.iter().enumerate().filter_map(|(index, part)| Some((part.head()?, index)));
    let (_, index) = with_head.min()?;
    parts.get_mut(index)
}

/// Takes the next partition of a part over; is the page over by that?
fn take(part: &mut Part, page: &mut ReadPage, row_count: &mut u32, command: &ReadCommand) -> bool {
    let Some(mut partition) = part.partitions.next() else { return false };
    let end = part.next.take_if(|position| position.key == partition.key);
    let room = command.limits.row_count.saturating_sub(*row_count) as usize;
    let resumed = command.resume.as_ref().filter(|position| position.key == partition.key);
    let before = resumed.map_or(0, |position| position.row_count);
    let is_cut = partition.rows.len() > room;
    partition.rows.truncate(room);
    let given = u32::try_from(partition.rows.len()).unwrap_or(u32::MAX);
    *row_count = row_count.saturating_add(given.max(1));
    let is_full = *row_count >= command.limits.row_count;
    page.next = if is_cut || (is_full && end.is_none()) {
        let clustering = partition.rows.last().map(Row::clustering);
        Some(ReadPosition { key: partition.key.clone(), clustering, row_count: before + given })
    } else {
        end
    };
    page.partitions.push(partition);
    page.next.is_some()
}
