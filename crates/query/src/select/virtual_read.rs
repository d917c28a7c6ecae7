//! A read of a made-up table: the same command that storage is given, over rows in memory.

use std::cmp::Ordering;
use std::collections::HashMap;

use read::{PartitionRows, ReadCommand, ReadPage, ReadPosition, ReadTarget};
use rows::{ClusteringComparator, PartitionKey};
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
pub(super) fn read(mut all: Vec<PartitionRows>, command: &ReadCommand, order: PartitionOrder) -> ReadPage {
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
    let mut page = ReadPage::default();
    let mut left = command.limits.row_count as usize;
    for mut partition in all {
        sort_rows(&mut partition, command, &comparator);
        let mut given = 0;
        if let Some(position) = command.resume.as_ref().filter(|position| position.key == partition.key) {
            let Some(last) = &position.clustering else { continue };
            given = position.row_count;
            partition.rows.retain(|row| {
                let order = comparator.compare_encoded(row.encoded_clustering(), last.as_encoded());
                if command.reversed { order.is_lt() } else { order.is_gt() }
            });
            if partition.rows.is_empty() {
                continue;
            }
        }
        partition.rows.truncate(command.limits.rows_per_partition.saturating_sub(given) as usize);
        let is_static_alone = partition.rows.is_empty();
        if is_static_alone && (partition.static_row.is_none() || given > 0) {
            continue;
        }
        if left == 0 {
            page.next =
                page.partitions.last().map(|last: &PartitionRows| position_after(last, &command.resume));
            return page;
        }
        let was = partition.rows.len();
        partition.rows.truncate(left);
        let cut = was > partition.rows.len();
        left -= partition.rows.len().max(1).min(left);
        page.partitions.push(partition);
        if cut {
            page.next = page.partitions.last().map(|last| position_after(last, &command.resume));
            return page;
        }
    }
    page
}

fn position_after(partition: &PartitionRows, resume: &Option<ReadPosition>) -> ReadPosition {
    let before = resume
        .as_ref()
        .filter(|position| position.key == partition.key)
        .map_or(0, |position| position.row_count);
    let given = u32::try_from(partition.rows.len()).unwrap_or(u32::MAX);
    ReadPosition {
        key: partition.key.clone(),
        clustering: partition.rows.last().map(rows::Row::clustering),
        row_count: before.saturating_add(given),
    }
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

fn sort_rows(partition: &mut PartitionRows, command: &ReadCommand, comparator: &ClusteringComparator) {
    partition.rows.sort_by(|a, b| comparator.compare_encoded(a.encoded_clustering(), b.encoded_clustering()));
    if !command.slices.is_all() {
        let slices = command.slices.as_slice();
        partition.rows.retain(|row| {
            // Slices are in order and apart: a row is in the last that begins before it, or in none.
            let clustering = row.clustering();
            let begun = slices
                .partition_point(|slice| comparator.compare_to_bound(&clustering, &slice.start).is_gt());
            begun.checked_sub(1).is_some_and(|last| slices[last].contains(comparator, &clustering))
        });
    }
    if command.reversed {
        partition.rows.reverse();
    }
}
