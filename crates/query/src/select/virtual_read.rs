//! A read of a made-up table: the same command that storage is given, over rows in memory.

use rows::{ClusteringComparator, PartitionKey};
use storage::{PartitionRows, ReadCommand, ReadPage, ReadPosition, ReadTarget};

/// Answers a command from all rows of a table.
pub(super) fn read(mut all: Vec<PartitionRows>, command: &ReadCommand) -> ReadPage {
    let comparator = ClusteringComparator::new(command.table.clustering_types().clone());
    match &command.target {
        ReadTarget::Range(range) => {
            all.retain(|partition| range.contains(partition.key.token));
            all.sort_by(|a, b| a.key.cmp(&b.key));
            merge_partitions(&mut all);
        }
        ReadTarget::Keys(keys) => all = pick(all, keys),
    }
    if let Some(position) = &command.resume {
        let order: Vec<PartitionKey> = match &command.target {
            ReadTarget::Keys(keys) => keys.clone(),
            ReadTarget::Range(_) => Vec::new(),
        };
        let is_before = |key: &PartitionKey| match order.is_empty() {
            true => *key < position.key,
            false => {
                let place = |of: &PartitionKey| order.iter().position(|other| other == of);
                place(key) < place(&position.key)
            }
        };
        all.retain(|partition| !is_before(&partition.key));
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

fn pick(mut all: Vec<PartitionRows>, keys: &[PartitionKey]) -> Vec<PartitionRows> {
    let mut picked = Vec::new();
    for key in keys {
        let mut found: Vec<PartitionRows> = all.extract_if(.., |partition| partition.key == *key).collect();
        merge_partitions(&mut found);
        picked.append(&mut found);
    }
    picked
}

fn sort_rows(partition: &mut PartitionRows, command: &ReadCommand, comparator: &ClusteringComparator) {
    partition.rows.sort_by(|a, b| comparator.compare_encoded(a.encoded_clustering(), b.encoded_clustering()));
    if !command.slices.is_all() {
        let slices = command.slices.as_slice();
        partition.rows.retain(|row| slices.iter().any(|slice| slice.contains(comparator, &row.clustering())));
    }
    if command.reversed {
        partition.rows.reverse();
    }
}
