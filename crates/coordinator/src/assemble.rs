//! Pages of several shards become one.
//!
//! Each shard has read as if it were alone, up to the full limits. In the order asked for, partitions
//! are taken until the limits of the whole page are reached, or until a shard's page ended for its
//! own limits: what comes behind that partition on the shard is not known.

use std::collections::HashMap;

use rows::{PartitionKey, Row};
use storage::{PartitionRows, ReadCommand, ReadPage, ReadPosition};

/// The order of partitions in an answer.
pub(crate) enum Order {
    /// As the keys were given.
    Keys(Vec<PartitionKey>),
    /// Around the ring.
    Ring,
}

pub(crate) fn assemble(pages: Vec<ReadPage>, order: Order, command: &ReadCommand) -> ReadPage {
    let mut ends: HashMap<PartitionKey, ReadPosition> = HashMap::new();
    let mut partitions = Vec::new();
    let mut tombstone_count = 0;
    for page in pages {
        tombstone_count += page.tombstone_count;
        ends.extend(page.next.map(|position| (position.key.clone(), position)));
        partitions.extend(page.partitions);
    }
    match &order {
        Order::Ring => partitions.sort_by(|a: &PartitionRows, b| a.key.cmp(&b.key)),
        Order::Keys(keys) => {
            let places: HashMap<&PartitionKey, usize> =
                keys.iter().enumerate().map(|(place, key)| (key, place)).collect();
            partitions.sort_by_key(|partition| places.get(&partition.key).copied());
        }
    }
    let mut page = ReadPage { tombstone_count, ..ReadPage::default() };
    let mut row_count = 0u32;
    for mut partition in partitions {
        let end = ends.remove(&partition.key);
        let room = command.limits.row_count.saturating_sub(row_count) as usize;
        let resumed = command.resume.as_ref().filter(|position| position.key == partition.key);
        let before = resumed.map_or(0, |position| position.row_count);
        let is_cut = partition.rows.len() > room;
        partition.rows.truncate(room);
        row_count += u32::try_from(partition.rows.len().max(1)).unwrap_or(u32::MAX);
        let is_full = row_count >= command.limits.row_count;
        if is_cut || (is_full && end.is_none()) {
            page.next = Some(ReadPosition {
                key: partition.key.clone(),
                clustering: partition.rows.last().map(Row::clustering),
                row_count: before + u32::try_from(partition.rows.len()).unwrap_or(u32::MAX),
            });
        } else {
            page.next = end;
        }
        page.partitions.push(partition);
        if page.next.is_some() {
            return page;
        }
    }
    page
}
