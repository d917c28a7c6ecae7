//! What a node shows, compared with what it must show.

use std::collections::BTreeMap;

use read::PartitionRows;
use rows::{PartitionKey, Slices};
use schema::{Schema, TableId};

use crate::model::{Model, View};
use crate::world;

/// All that the node shows at one moment.
pub(crate) struct Shown {
    pub(crate) now: u32,
    pub(crate) partitions: BTreeMap<TableId, Vec<PartitionRows>>,
}

impl Shown {
    /// What differs from the model, among the keys that are asked about.
    pub(crate) fn difference(
        &self,
        model: &Model,
        schema: &Schema,
        concerns: &impl Fn(&PartitionKey) -> bool,
    ) -> Option<String> {
        let slices = Slices::all();
        let view = View { slices: &slices, reversed: false, rows_per_partition: u32::MAX, now: self.now };
        for table in world::tables(schema) {
            let keys = model.keys(table.id()).into_iter().filter(|key| concerns(key));
            let expected: Vec<_> = keys.filter_map(|key| model.read(&table, &key, &view)).collect();
            let shown = self.partitions.get(&table.id()).into_iter().flatten();
            let shown: Vec<_> = shown.filter(|partition| concerns(&partition.key)).cloned().collect();
            if let Some(found) = difference(&shown, &expected) {
                return Some(format!("table {}, now {}: {found}", table.name(), self.now));
            }
        }
        None
    }
}

/// The first thing that differs, in words.
pub(crate) fn difference(read: &[PartitionRows], expected: &[PartitionRows]) -> Option<String> {
    if read == expected {
        return None;
    }
    let keys = |partitions: &[PartitionRows]| -> Vec<_> {
        partitions.iter().map(|partition| partition.key.bytes.clone()).collect()
    };
    if keys(read) != keys(expected) {
        return Some(format!("read keys {:?}, expected {:?}", keys(read), keys(expected)));
    }
    let (read, expected) = read.iter().zip(expected).find(|(read, expected)| read != expected)?;
    let key = &read.key.bytes;
    if read.static_row != expected.static_row {
        return Some(format!(
            "key {key:?}: static {:?}, expected {:?}",
            read.static_row, expected.static_row
        ));
    }
    let place = read.rows.iter().zip(&expected.rows).position(|(read, expected)| read != expected);
    let place = place.unwrap_or(read.rows.len().min(expected.rows.len()));
    Some(format!(
        "key {key:?}: {} rows, expected {}; row {place} is {:?}, expected {:?}",
        read.rows.len(),
        expected.rows.len(),
        read.rows.get(place).map(details),
        expected.rows.get(place).map(details)
    ))
}

/// A row in words that can be compared by eye.
pub(crate) fn details(row: &rows::Row) -> String {
    let mut text = format!("{:?} {:?}", row.encoded_clustering(), row.liveness());
    for column in row.columns() {
        match column.data {
            rows::ColumnData::Simple(cell) => {
                text += &format!(
                    "; {}: ts {} ttl {} ldt {} {} bytes",
                    column.id.0,
                    cell.timestamp,
                    cell.ttl,
                    cell.local_deletion_time,
                    cell.value.len()
                );
            }
            rows::ColumnData::Complex(complex) => {
                text += &format!("; {}: {:?}", column.id.0, complex.cells().collect::<Vec<_>>());
            }
        }
    }
    text
}
