//! A page of the result while it fills.

use read::{PartitionRows, ReadPosition};
use rows::PartitionKey;

use super::paging::PagingState;
use super::rows::StoredRows;

/// How much is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amounts {
    /// Rows that LIMIT allows from here on.
    pub(super) left: u32,
    pub(super) per_partition: u32,
    /// Rows of this page.
    pub(super) page: u32,
}

/// Rows of a result, and where the page after them begins.
pub(super) struct Page {
    pub(super) rows: StoredRows,
    /// `None` of the last page.
    pub(super) next: Option<PagingState>,
}

/// A page that takes rows until it has as many as were asked for: of what storage gave within its own limits, those
/// that passed the filter.
///
/// It never has more: `row_count` is at most what the page and LIMIT allow.
pub(super) struct Filling {
    rows: StoredRows,
    row_count: u32,
    amounts: Amounts,
    /// The last partition, and how many rows it has given on this page and those before.
    given: Option<(PartitionKey, u32)>,
}

impl Filling {
    /// An empty page, from the start or from where the one before ended.
    pub(super) fn new(amounts: Amounts, resumed_at: Option<&ReadPosition>) -> Self {
        let given = resumed_at.map(|position| (position.key.clone(), position.row_count));
        Filling { rows: StoredRows::default(), row_count: 0, amounts, given }
    }

    /// Has it no row yet?
    pub(super) fn is_empty(&self) -> bool {
        self.row_count == 0
    }

    /// How many rows are still asked for.
    pub(super) fn missing(&self) -> u32 {
        self.amounts.page.min(self.amounts.left) - self.row_count
    }

    /// Takes what there is room for, of each partition what is allowed.
    pub(super) fn take(&mut self, partitions: Vec<PartitionRows>) {
        let row_count = partitions.iter().map(|partition| u64::from(partition.row_count())).sum::<u64>();
        match u32::try_from(row_count) {
            Ok(row_count) if self.amounts.per_partition == u32::MAX && row_count <= self.missing() => {
                self.take_all(partitions, row_count);
            }
            _ => partitions.into_iter().for_each(|partition| self.take_some(partition)),
        }
    }

    /// Takes partitions over without a look at each, as of most pages.
    fn take_all(&mut self, partitions: Vec<PartitionRows>, row_count: u32) {
        let Some(last) = partitions.last() else { return };
        self.given = Some((last.key.clone(), self.given_by(&last.key).saturating_add(last.row_count())));
        self.row_count += row_count;
        if self.rows.partitions.is_empty() {
            self.rows.partitions = partitions;
        } else {
            let mut partitions = partitions.into_iter();
            partitions.next().into_iter().for_each(|first| self.join(first));
            self.rows.partitions.extend(partitions);
        }
    }

    fn take_some(&mut self, mut partition: PartitionRows) {
        let before = self.given_by(&partition.key);
        let allowed = self.amounts.per_partition.saturating_sub(before).min(self.missing());
        if allowed == 0 {
            return;
        }
        partition.rows.truncate(allowed as usize);
        let row_count = partition.row_count();
        self.row_count += row_count;
        self.given = Some((partition.key.clone(), before.saturating_add(row_count)));
        self.join(partition);
    }

    /// How many rows a partition has given so far.
    fn given_by(&self, key: &PartitionKey) -> u32 {
        self.given.as_ref().filter(|(last, _)| last == key).map_or(0, |(_, row_count)| *row_count)
    }

    /// A partition that goes on from one taken before joins it.
    fn join(&mut self, partition: PartitionRows) {
        match self.rows.partitions.last_mut() {
            Some(last) if last.key == partition.key => last.rows.extend(partition.rows),
            _ => self.rows.partitions.push(partition),
        }
    }

    /// The page, nothing coming after it.
    pub(super) fn into_last(self) -> Page {
        Page { rows: self.rows, next: None }
    }

    /// The page, with as many rows as were asked for or as there is room for: another begins after it if LIMIT allows
    /// more.
    pub(super) fn into_full(self) -> Page {
        let left = match self.amounts.left {
            u32::MAX => u32::MAX,
            left => left - self.row_count,
        };
        let next = match (self.rows.partitions.last(), self.given) {
            (Some(last), Some((_, row_count))) if left > 0 => {
                Some(PagingState { left, position: last.position(row_count) })
            }
            _ => None,
        };
        Page { rows: self.rows, next }
    }
}

#[cfg(test)]
mod tests {
    use read::RowList;
    use rows::{ClusteringBuilder, DeletionTime, Liveness, RowBuilder};

    use super::*;

    fn partition(key: &'static str, clusterings: std::ops::Range<u8>) -> PartitionRows {
        let row = |value: u8| {
            let mut clustering = ClusteringBuilder::new();
            clustering.push(Some(&[value]));
            RowBuilder::new(&clustering.finish(), Liveness::NONE, DeletionTime::LIVE).finish()
        };
        let rows: RowList = clusterings.map(row).collect();
        PartitionRows { key: PartitionKey::new(key.as_bytes().into()), static_row: None, rows }
    }

    /// What a page holds, `a3 b1`, and of the next how many rows are left and were given of its partition.
    fn shown(page: &Page) -> (String, Option<(u32, u32)>) {
        let held = |one: &PartitionRows| format!("{}{}", one.key.bytes.escape_ascii(), one.rows.len());
        let held = page.rows.partitions.iter().map(held).collect::<Vec<_>>().join(" ");
        (held, page.next.as_ref().map(|next| (next.left, next.position.row_count)))
    }

    const NO_LIMIT: Amounts = Amounts { left: u32::MAX, per_partition: u32::MAX, page: u32::MAX };

    #[test]
    fn a_page_ends_in_the_middle_of_a_partition_and_the_next_goes_on_there() {
        let mut first = Filling::new(Amounts { page: 4, left: 10, ..NO_LIMIT }, None);
        first.take(vec![partition("a", 0..3), partition("b", 0..5)]);
        assert_eq!(first.missing(), 0);
        let first = first.into_full();
        assert_eq!(shown(&first), ("a3 b1".to_owned(), Some((6, 1))));

        let resumed_at = first.next.map(|next| next.position);
        let amounts = Amounts { page: 4, left: 6, per_partition: 3 };
        let mut second = Filling::new(amounts, resumed_at.as_ref());
        second.take(vec![partition("b", 1..5), partition("c", 0..1)]);
        assert_eq!(shown(&second.into_last()), ("b2 c1".to_owned(), None), "b has given one before");
    }

    #[test]
    fn pages_that_fit_are_taken_whole_and_a_partition_that_goes_on_is_one() {
        let mut page = Filling::new(Amounts { page: 10, ..NO_LIMIT }, None);
        page.take(vec![partition("a", 0..3)]);
        page.take(vec![partition("a", 3..5), partition("b", 0..0)]);
        assert_eq!(page.missing(), 4, "a static row alone counts as one");
        assert_eq!(shown(&page.into_last()), ("a5 b0".to_owned(), None));
    }

    #[test]
    fn nothing_comes_after_the_limit() {
        let mut page = Filling::new(Amounts { page: 10, left: 2, ..NO_LIMIT }, None);
        page.take(vec![partition("a", 0..3)]);
        assert_eq!(shown(&page.into_full()), ("a2".to_owned(), None));
    }
}
