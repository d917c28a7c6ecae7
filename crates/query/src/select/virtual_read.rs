//! A read of a made-up table: the same command that storage is given, over rows in memory.

use std::cmp::Ordering;
use std::collections::HashMap;

use read::{
    Begun, LivePage, PartitionRows, Place, ReadCommand, ReadError, ReadPage, ReadTarget, RowConsumer,
    TombstoneThresholds,
};
use rows::{ClusteringComparator, DeletionTime, PartitionKey, Slices};
use schema::Table;
use types::encoding;

/// In which order the partitions of a table come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartitionOrder {
    /// By token, as stored tables have it.
    Ring,
    /// By the values of the key, as Cassandra's virtual tables have it.
    Key,
}

/// Answers a command from all rows of a table.
///
/// # Errors
/// A row is too large for a page of its own.
pub(super) fn read(
    mut all: Vec<PartitionRows>,
    command: &ReadCommand,
    order: PartitionOrder,
) -> Result<ReadPage, ReadError> {
    let comparator = ClusteringComparator::new(command.table.clustering_types().clone());
    let wanted: HashMap<&[u8], usize> = match &command.target {
        ReadTarget::Keys(keys) => keys.iter().enumerate().map(|(place, key)| (&*key.bytes, place)).collect(),
        ReadTarget::Range(_) => HashMap::new(),
    };
    let compare = |a: &PartitionKey, b: &PartitionKey| match (&command.target, order) {
        (ReadTarget::Keys(_), _) => wanted.get(&*a.bytes).cmp(&wanted.get(&*b.bytes)),
        (ReadTarget::Range(_), PartitionOrder::Ring) => a.cmp(b),
        (ReadTarget::Range(_), PartitionOrder::Key) => compare_keys(&command.table, a, b),
    };
    match &command.target {
        ReadTarget::Range(range) => all.retain(|partition| range.contains(&partition.key)),
        ReadTarget::Keys(_) => all.retain(|partition| wanted.contains_key(&*partition.key.bytes)),
    }
    all.sort_by(|a, b| compare(&a.key, &b.key));
    merge_partitions(&mut all);
    if let Some(position) = &command.resume {
        all.retain(|partition| compare(&partition.key, &position.key).is_ge());
    }
    let mut page = LivePage::new(command, TombstoneThresholds::NONE);
    for partition in all {
        if give(partition, command, &comparator, &mut page)? {
            break;
        }
    }
    Ok(page.finish())
}

/// Gives what is asked for of a partition to the page; is that full by it?
fn give(
    mut partition: PartitionRows,
    command: &ReadCommand,
    comparator: &ClusteringComparator,
    page: &mut LivePage<'_>,
) -> Result<bool, ReadError> {
    let resume = command.resume.as_ref().filter(|position| position.key == partition.key);
    let slices = match resume.map(|position| &position.clustering) {
        None => command.slices.clone(),
        Some(Some(last)) => command.slices.after(last, command.reversed, comparator),
        // It gave its static row alone.
        Some(None) => return Ok(false),
    };
    sort_rows(&mut partition, &slices, command.reversed, comparator);
    let PartitionRows { key, static_row, rows } = partition;
    let static_row = static_row.map(|row| page.see(Place::Key(&key), row)).transpose()?.flatten();
    let resumed = command.resumed_in(&key);
    if !page.begin(Begun { key, deletion: DeletionTime::LIVE, static_row, resumed })? {
        return Ok(true);
    }
    for row in rows {
        if !page.wants_more() {
            break;
        }
        if let Some(row) = page.see(Place::Begun, row)?
            && page.take_row(row)?
        {
            return Ok(true);
        }
    }
    Ok(page.end())
}

/// By the first part of the key, then by the second, and so on.
fn compare_keys(table: &Table, a: &PartitionKey, b: &PartitionKey) -> Ordering {
    let columns = table.partition_key();
    let parts = |key| encoding::partition_key_parts(key, columns.len());
    match (parts(&a.bytes), parts(&b.bytes)) {
        (Ok(left), Ok(right)) => {
            let orders = columns.iter().zip(left.iter().zip(&right));
            orders.map(|(of, (a, b))| of.cql_type.compare(a, b)).fold(Ordering::Equal, Ordering::then)
        }
        // Made-up keys are whole.
        _ => a.bytes.cmp(&b.bytes),
    }
}

/// Neighbours of one key become one partition.
fn merge_partitions(all: &mut Vec<PartitionRows>) {
    let mut merged: Vec<PartitionRows> = Vec::with_capacity(all.len());
    for partition in all.drain(..) {
        match merged.last_mut() {
            Some(last) if last.key == partition.key => {
                last.rows.extend(partition.rows);
                last.static_row = last.static_row.take().or(partition.static_row);
            }
            _ => merged.push(partition),
        }
    }
    *all = merged;
}

/// Brings the rows that are asked for in the order asked for.
fn sort_rows(
    partition: &mut PartitionRows,
    slices: &Slices,
    reversed: bool,
    comparator: &ClusteringComparator,
) {
    partition.rows.sort_by(|a, b| comparator.compare_encoded(a.encoded_clustering(), b.encoded_clustering()));
    if !slices.is_all() {
        let slices = slices.as_slice();
        partition.rows.retain(|row| {
            // Slices are in order and apart: a row is in the last that begins before it, or in none.
            let clustering = row.clustering();
            let begun = slices
                .partition_point(|slice| comparator.compare_to_bound(&clustering, &slice.start).is_gt());
            begun.checked_sub(1).is_some_and(|last| slices[last].contains(comparator, &clustering))
        });
    }
    if reversed {
        partition.rows.reverse();
    }
}
