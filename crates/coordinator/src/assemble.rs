//! Pages of several shards become one.
//!
//! Each shard has read as if it were alone, up to its share of the limits. In the order asked for, partitions are taken
//! until the limits of the whole page are reached, or until a shard's page ended for its own limits: what comes behind
//! that partition on the shard is not known.

use std::collections::HashSet;
use std::vec::IntoIter;

use read::{PartitionRows, PartitionTombstones, ReadCommand, ReadPage, ReadPosition};
use rows::PartitionKey;

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
    /// How many there were.
    partition_count: usize,
    tombstones: Vec<PartitionTombstones>,
    /// Where it ended: in its last partition, or in one of which it gives no row. That is what replicas tell together
    /// when one of them ended at rows that another one hides.
    next: Option<ReadPosition>,
}

impl Part {
    fn head(&self) -> Option<&PartitionKey> {
        self.partitions.as_slice().first().map(|partition| &partition.key)
    }

    /// Is this the key of what comes next?
    fn is_at(&self, key: &PartitionKey) -> bool {
        match self.head() {
            Some(head) => head == key,
            None => self.next.as_ref().is_some_and(|next| next.key == *key),
        }
    }

    /// Of what the shard came upon in a range, the share of the partitions that were taken: the others are read
    /// again, and what is between them, too.
    fn tombstones_taken(self) -> Vec<PartitionTombstones> {
        let (all, left) = (self.partition_count as u64, self.partitions.len() as u64);
        assert!(left <= all, "partitions are taken");
        let mut tombstones = self.tombstones;
        if left > 0 {
            tombstones.iter_mut().for_each(|met| met.count = met.count * (all - left) / all);
            tombstones.retain(|met| met.count > 0);
        }
        tombstones
    }
}

pub(crate) fn assemble(pages: Vec<ReadPage>, order: Order, command: &ReadCommand) -> ReadPage {
    let partition_count: usize = pages.iter().map(|page| page.partitions.len()).sum();
    let mut page = ReadPage { partitions: Vec::with_capacity(partition_count), ..ReadPage::default() };
    let part = |part: ReadPage| Part {
        partition_count: part.partitions.len(),
        partitions: part.partitions.into_iter(),
        tombstones: part.tombstones,
        next: part.next,
    };
    let mut parts: Vec<Part> = pages.into_iter().map(part).collect();
    let mut row_count = 0;
    match &order {
        Order::Ring => {
            while let Some(part) = least(&mut parts) {
                if take(part, &mut page, &mut row_count, command) {
                    break;
                }
            }
        }
        Order::Keys(keys) => {
            for key in keys {
                let part = parts.iter_mut().find(|part| part.is_at(key));
                if part.is_some_and(|part| take(part, &mut page, &mut row_count, command)) {
                    break;
                }
            }
        }
    }
    assert!(page.partitions.len() <= partition_count, "what is in the page is some shard's, and once");
    match order {
        Order::Ring => {
            parts.into_iter().for_each(|part| page.add_tombstones_of_range(part.tombstones_taken()))
        }
        Order::Keys(keys) => page.tombstones = tombstones_of_keys(parts, &keys, page.next.as_ref()),
    }
    page
}

/// Tombstones of keys up to the one at which the page ends: those behind it are read again.
fn tombstones_of_keys(
    parts: Vec<Part>,
    keys: &[PartitionKey],
    next: Option<&ReadPosition>,
) -> Vec<PartitionTombstones> {
    let all = parts.into_iter().flat_map(|part| part.tombstones);
    let Some(next) = next else { return all.collect() };
    let end = keys.iter().position(|key| *key == next.key).map_or(keys.len(), |index| index + 1);
    let read: HashSet<&PartitionKey> = keys[..end].iter().collect();
    all.filter(|met| read.contains(&met.key)).collect()
}

/// The part whose next partition comes first on the ring.
fn least(parts: &mut [Part]) -> Option<&mut Part> {
    let with_head = parts.iter().enumerate().filter_map(|(index, part)| Some((part.head()?, index)));
    let (_, index) = with_head.min()?;
    parts.get_mut(index)
}

/// Takes the next partition of a part over, or its end; is the page over by that?
fn take(part: &mut Part, page: &mut ReadPage, row_count: &mut u32, command: &ReadCommand) -> bool {
    let Some(mut partition) = part.partitions.next() else {
        page.next = part.next.take();
        return page.next.is_some();
    };
    let end = part.next.take_if(|position| position.key == partition.key);
    let room = command.limits.row_count.saturating_sub(*row_count) as usize;
    let is_cut = partition.rows.len() > room;
    partition.rows.truncate(room);
    *row_count = row_count.saturating_add(partition.row_count());
    let is_full = *row_count >= command.limits.row_count;
    page.next = if is_cut || (is_full && end.is_none()) {
        let before = command.resumed_in(&partition.key).unwrap_or(0);
        let given = u32::try_from(partition.rows.len()).unwrap_or(u32::MAX);
        Some(partition.position(before + given))
    } else {
        end
    };
    page.partitions.push(partition);
    page.next.is_some()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use read::{ReadLimits, ReadTarget};
    use rows::{DeletionTime, Liveness, Row, RowBuilder};
    use schema::{ColumnKind, TableBuilder, TableId};
    use types::CqlType;

    use super::*;

    fn key(name: &'static str) -> PartitionKey {
        PartitionKey::new(Bytes::from_static(name.as_bytes()))
    }

    fn command(row_count: u32, target: ReadTarget) -> ReadCommand {
        let table = TableBuilder::new(TableId(uuid::Uuid::from_u128(1)), "k", "t")
            .column("id", ColumnKind::PartitionKey(0), CqlType::Text)
            .build();
        let limits = ReadLimits { row_count, ..ReadLimits::PAGE };
        let table = Arc::new(table.unwrap_or_else(|error| panic!("{error}")));
        ReadCommand { limits, ..ReadCommand::new(table, target, 0) }
    }

    fn row() -> Row {
        RowBuilder::new(&rows::Clustering::EMPTY, Liveness::at(1), DeletionTime::LIVE).finish()
    }

    /// A shard's page with a row of each partition, and so many tombstones of these.
    fn page(partitions: &[&'static str], tombstones: &[(&'static str, u64)]) -> ReadPage {
        let partition =
            |name: &&'static str| PartitionRows { key: key(name), static_row: None, rows: [row()].into() };
        let met = |(name, count): &(&'static str, u64)| PartitionTombstones { key: key(name), count: *count };
        ReadPage {
            partitions: partitions.iter().map(partition).collect(),
            tombstones: tombstones.iter().map(met).collect(),
            ..ReadPage::default()
        }
    }

    #[test]
    fn tombstones_of_keys_behind_the_page_are_left_to_the_next_one() {
        let keys = ["a", "dead", "b", "c", "late"].map(key).to_vec();
        let parts =
            || vec![page(&["a", "c"], &[("a", 1), ("c", 2)]), page(&["b"], &[("dead", 4), ("late", 8)])];
        let target = || ReadTarget::Keys(keys.clone());
        let whole = assemble(parts(), Order::Keys(keys.clone()), &command(100, target()));
        assert_eq!((whole.next.is_none(), whole.tombstone_count()), (true, 15));
        let cut = assemble(parts(), Order::Keys(keys.clone()), &command(2, target()));
        assert_eq!(cut.next.as_ref().map(|next| &next.key), Some(&keys[2]));
        assert_eq!(cut.tombstone_count(), 5, "of a and of what lay before b");
    }

    /// Of "b" replicas told together no row, and not that there is none: the page went on with "c", and what "b" has was
    /// never shown.
    #[test]
    fn a_page_ends_where_a_part_ended_that_gives_no_row() {
        let keys = ["a", "b", "c"].map(key).to_vec();
        let next = ReadPosition { key: key("b"), clustering: Some(rows::Clustering::EMPTY), row_count: 0 };
        let ended = ReadPage { next: Some(next.clone()), ..page(&[], &[]) };
        let parts = vec![page(&["a"], &[]), ended, page(&["c"], &[])];
        let target = ReadTarget::Keys(keys.clone());
        let whole = assemble(parts, Order::Keys(keys), &command(100, target));
        let given: Vec<_> = whole.partitions.iter().map(|partition| partition.key.clone()).collect();
        assert_eq!((given, whole.next), (vec![key("a")], Some(next)));
    }

    #[test]
    fn of_a_range_the_share_counts_that_the_page_takes() {
        let mut names = ["a", "b", "c", "d"];
        names.sort_by_key(|name| key(name));
        let parts = || vec![page(&names[..1], &[(names[0], 10)]), page(&names[1..], &[(names[3], 30)])];
        let target = ReadTarget::Range(rows::RingRange::ALL);
        let whole = assemble(parts(), Order::Ring, &command(100, target.clone()));
        assert_eq!(whole.tombstone_count(), 40);
        let cut = assemble(parts(), Order::Ring, &command(2, target));
        assert_eq!(cut.tombstone_count(), 20, "a third of the second shard's");
    }
}
