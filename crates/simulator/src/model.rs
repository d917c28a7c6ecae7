//! What clients must see: every write that was acknowledged, merged by the rules of `rows`, with no
//! files, no memtables, no compaction.
//!
//! What this does not check: the rules of `rows` themselves (its own properties do), and the order
//! of writes of different clients, which have no key in common.

use std::collections::BTreeMap;

use read::PartitionRows;
use rows::{
    ClusteringComparator, ColumnData, DeletionTime, LiveRows, Mutation, PartitionKey, RangeTombstones, Row,
    RowBuilder, Slices, merge_rows,
};
use schema::{Schema, Table, TableId};

/// Something that happens whole or not at all.
#[derive(Clone, Debug)]
pub(crate) enum Unit {
    /// Mutations of one log record, or of one logged batch.
    Write(Vec<Mutation>),
    /// A table is emptied on all shards.
    Truncate { table: TableId },
}

/// All that was ever written to a partition, merged.
#[derive(Clone, Debug)]
struct Partition {
    deletion: DeletionTime,
    static_row: Option<Row>,
    /// In clustering order.
    rows: Vec<Row>,
    ranges: RangeTombstones,
}

/// What a read asks for, as far as the model cares.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    pub(crate) slices: &'a Slices,
    pub(crate) reversed: bool,
    pub(crate) rows_per_partition: u32,
    pub(crate) now: u32,
}

/// All partitions of all tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    partitions: BTreeMap<(TableId, PartitionKey), Partition>,
}

impl Model {
    /// Lets a unit happen.
    pub(crate) fn apply(&mut self, unit: &Unit, schema: &Schema) {
        match unit {
            Unit::Write(mutations) => mutations.iter().for_each(|mutation| self.write(mutation, schema)),
            Unit::Truncate { table } => self.drop_table(*table),
        }
    }

    /// Forgets what was in a table.
    pub(crate) fn drop_table(&mut self, table: TableId) {
        self.partitions.retain(|(id, _), _| *id != table);
    }

    fn write(&mut self, mutation: &Mutation, schema: &Schema) {
        let Some(table) = schema.table_by_id(mutation.table) else { return };
        let place = (mutation.table, mutation.key.clone());
        self.partitions.entry(place).or_default().write(mutation, table);
    }

    /// What a partition shows; `None` when it shows nothing.
    pub(crate) fn read(&self, table: &Table, key: &PartitionKey, view: &View<'_>) -> Option<PartitionRows> {
        self.partitions.get(&(table.id(), key.clone()))?.read(table, key, view)
    }

    /// The keys of a table that anything was ever written to, in ring order.
    pub(crate) fn keys(&self, table: TableId) -> Vec<PartitionKey> {
        self.partitions.keys().filter(|(id, _)| *id == table).map(|(_, key)| key.clone()).collect()
    }
}

impl Default for Partition {
    fn default() -> Self {
        Partition {
            deletion: DeletionTime::LIVE,
            static_row: None,
            rows: Vec::new(),
            ranges: RangeTombstones::new(),
        }
    }
}

impl Partition {
    fn write(&mut self, mutation: &Mutation, table: &Table) {
        let comparator = ClusteringComparator::new(table.clustering_types().clone());
        let merge = |rows: &[Row]| merge_rows(rows, DeletionTime::LIVE, table);
        self.deletion = self.deletion.max(mutation.deletion);
        if let Some(row) = &mutation.static_row {
            let rows: Vec<Row> = self.static_row.iter().chain([row]).cloned().collect();
            self.static_row = merge(&rows);
        }
        for row in &mutation.rows {
            let at = row.clustering();
            match self.rows.binary_search_by(|old| comparator.compare(&old.clustering(), &at)) {
                Ok(place) => {
                    if let Some(merged) = merge(&[self.rows[place].clone(), row.clone()]) {
                        self.rows[place] = merged;
                    }
                }
                Err(place) => self.rows.insert(place, row.clone()),
            }
        }
        for range in &mutation.ranges {
            self.ranges.insert(range.clone(), &comparator);
        }
    }

    fn read(&self, table: &Table, key: &PartitionKey, view: &View<'_>) -> Option<PartitionRows> {
        let comparator = ClusteringComparator::new(table.clustering_types().clone());
        let live = LiveRows { now: view.now, gc_before: 0 };
        let visible = |row: &Row, active: DeletionTime| {
            let merged = merge_rows(std::slice::from_ref(row), active, table)?;
            known(&live.filter(merged, &mut 0)?, table)
        };
        let static_row = self.static_row.as_ref().and_then(|row| visible(row, self.deletion));
        let is_in = |row: &&Row| {
            view.slices.as_slice().iter().any(|slice| slice.contains(&comparator, &row.clustering()))
        };
        let shown = |row: &Row| {
            let active = self.deletion.max(self.ranges.covering(&row.clustering(), &comparator));
            visible(row, active)
        };
        let mut rows: Vec<Row> = self.rows.iter().filter(is_in).filter_map(shown).collect();
        if view.reversed {
            rows.reverse();
        }
        rows.truncate(view.rows_per_partition as usize);
        let is_there = static_row.is_some() || !rows.is_empty();
        is_there.then(|| PartitionRows { key: key.clone(), static_row, rows: rows.into() })
    }
}

/// A row without the cells of columns that are no more.
fn known(row: &Row, table: &Table) -> Option<Row> {
    let mut builder = RowBuilder::with_encoded(row.encoded_clustering(), row.liveness(), row.deletion());
    for column in row.columns().filter(|column| table.column_by_id(column.id).is_some()) {
        match column.data {
            ColumnData::Simple(cell) => _ = builder.cell(column.id, cell),
            ColumnData::Complex(complex) => {
                _ = builder.complex(column.id, complex.deletion, complex.cells());
            }
        }
    }
    let kept = builder.finish();
    (!kept.is_empty()).then_some(kept)
}
