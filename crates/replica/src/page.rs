//! An [`UnfilteredPage`] on its way back: rows with all their tombstones.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use read::{PartitionTombstones, ReadCommand, ReadTarget, UnfilteredPage, UnfilteredPartition};
use rows::{ClusteringComparator, Marker, PartitionHeader, Unfiltered};

use crate::body::{
    BodyError, Reader, put_bool, put_clustering, put_deletion, put_key, put_list, put_option, put_row,
};
use crate::fits::{is_item, is_static_row};
use crate::read_request::{position, put_position};

const ITEM_ROW: u8 = 0;
const ITEM_MARKER: u8 = 1;

pub(crate) fn put_page(out: &mut BytesMut, page: &UnfilteredPage) {
    put_list(out, &page.partitions, |out, partition| {
        let PartitionHeader { key, deletion, static_row } = &partition.header;
        put_key(out, key);
        put_deletion(out, *deletion);
        put_option(out, static_row.as_ref(), put_row);
        put_list(out, &partition.items, put_item);
        put_bool(out, partition.is_cut);
    });
    put_option(out, page.next.as_ref(), put_position);
    put_list(out, &page.tombstones, |out, met| {
        put_key(out, &met.key);
        out.put_u64_le(met.count);
    });
}

pub(crate) fn page(reader: &mut Reader) -> Result<UnfilteredPage, BodyError> {
    let partitions = reader.list("partitions", |reader| {
        let header = PartitionHeader {
            key: reader.key()?,
            deletion: reader.deletion()?,
            static_row: reader.option("static row", Reader::row)?,
        };
        let items = reader.list("items", item)?;
        Ok(UnfilteredPartition { header, items, is_cut: reader.bool("cut")? })
    })?;
    let next = reader.option("position", position)?;
    let tombstones = reader.list("tombstones", |reader| {
        Ok(PartitionTombstones { key: reader.key()?, count: reader.u64("tombstones")? })
    })?;
    Ok(UnfilteredPage { partitions, next, tombstones })
}

fn put_item(out: &mut BytesMut, item: &Unfiltered) {
    match item {
        Unfiltered::Row(row) => {
            out.put_u8(ITEM_ROW);
            put_row(out, row);
        }
        Unfiltered::Marker(marker) => {
            out.put_u8(ITEM_MARKER);
            put_clustering(out, &marker.prefix);
            put_bool(out, marker.is_before);
            put_deletion(out, marker.left);
            put_deletion(out, marker.right);
        }
    }
}

fn item(reader: &mut Reader) -> Result<Unfiltered, BodyError> {
    match reader.u8("item")? {
        ITEM_ROW => reader.row().map(Unfiltered::Row),
        ITEM_MARKER => Ok(Unfiltered::Marker(Marker {
            prefix: reader.clustering()?,
            is_before: reader.bool("side")?,
            left: reader.deletion()?,
            right: reader.deletion()?,
        })),
        _ => Err(reader.wrong("item")),
    }
}

/// Does a page that another node sent fit the table, and is it in the order on which merging it with others relies?
/// What comes from a network must not trip an assertion there.
///
/// Of keys, partitions come in the order asked for, each at most once; of a range, in ring order. Items of a partition
/// come in clustering order, or the other way round.
pub fn is_in_order(page: &UnfilteredPage, command: &ReadCommand) -> bool {
    let fits = |partition: &UnfilteredPartition| {
        partition.header.static_row.iter().all(|row| is_static_row(row, &command.table))
            && partition.items.iter().all(|item| is_item(item, &command.table))
    };
    page.partitions.iter().all(fits)
        && is_end_of(page, command)
        && are_partitions_in_order(page, command)
        && are_items_in_order(page, command)
}

/// Does it end where it can: in what was asked for, and not before what it gave, nor before where it began?
fn is_end_of(page: &UnfilteredPage, command: &ReadCommand) -> bool {
    let Some(next) = &page.next else { return true };
    match &command.target {
        ReadTarget::Keys(asked) => asked.contains(&next.key),
        ReadTarget::Range(range) => {
            let last = page.partitions.last().map(|partition| &partition.header.key);
            let began = command.resume.as_ref().map(|position| &position.key);
            range.contains(&next.key) && last.into_iter().chain(began).all(|key| *key <= next.key)
        }
    }
}

fn are_partitions_in_order(page: &UnfilteredPage, command: &ReadCommand) -> bool {
    let mut keys = page.partitions.iter().map(|partition| &partition.header.key);
    match &command.target {
        ReadTarget::Keys(asked) => {
            let mut asked = asked.iter();
            keys.all(|key| asked.any(|asked| asked == key))
        }
        ReadTarget::Range(range) => {
            keys.clone().is_sorted_by(|one, other| one < other) && keys.all(|key| range.contains(key))
        }
    }
}

fn are_items_in_order(page: &UnfilteredPage, command: &ReadCommand) -> bool {
    let comparator = ClusteringComparator::new(Arc::clone(command.table.clustering_types()));
    let is_reversed = command.reversed && matches!(command.target, ReadTarget::Keys(_));
    page.partitions.iter().all(|partition| {
        partition.items.is_sorted_by(|one, other| {
            let order = one.place_to(other, &comparator);
            if is_reversed { order.is_gt() } else { order.is_lt() }
        })
    })
}
