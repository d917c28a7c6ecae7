//! A table with every kind of column, and strategies for small values that collide often.

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use rows::{
    Bound, BoundKind, CellRef, Clustering, ClusteringBuilder, ClusteringComparator, DeletionTime,
    LARGE_ROW_BYTES, Liveness, NO_DELETION_TIME, RangeTombstone, Row, RowBuilder, Slice,
};
use schema::{ClusteringOrder, ColumnId, ColumnKind, Table, TableBuilder, TableId};
use types::CqlType;

pub(crate) const STATIC_TEXT: ColumnId = ColumnId(3);
pub(crate) const TEXT: ColumnId = ColumnId(4);
pub(crate) const SET: ColumnId = ColumnId(5);
pub(crate) const MAP: ColumnId = ColumnId(6);

/// The moment most tests look from; cells expire before and after it.
pub(crate) const NOW: u32 = 50;

/// `(pk int, up int, down int, s text static, t text, st set<int>, m map<text, int>,
/// PRIMARY KEY (pk, up, down)) WITH CLUSTERING ORDER BY (up ASC, down DESC)`
pub(crate) fn table() -> Arc<Table> {
    let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: false };
    let map = CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(CqlType::Int), frozen: false };
    let table = TableBuilder::new(TableId(uuid::Uuid::from_u128(7)), "k", "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("up", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int)
        .column("down", ColumnKind::Clustering(1, ClusteringOrder::Desc), CqlType::Int)
        .column("s", ColumnKind::Static, CqlType::Text)
        .column("t", ColumnKind::Regular, CqlType::Text)
        .column("st", ColumnKind::Regular, set)
        .column("m", ColumnKind::Regular, map);
    Arc::new(table.build().expect("a valid table"))
}

pub(crate) fn comparator() -> ClusteringComparator {
    ClusteringComparator::new(Arc::clone(table().clustering_types()))
}

/// Where a row stands: two small numbers.
pub(crate) type Place = (i32, i32);

pub(crate) fn clustering(place: Place) -> Clustering {
    let mut builder = ClusteringBuilder::new();
    builder.push(Some(&place.0.to_be_bytes())).push(Some(&place.1.to_be_bytes()));
    builder.finish()
}

/// Where rows with a text are large, if they have a collection too.
const LARGE: Place = (3, 3);

/// Every place there is, in clustering order.
pub(crate) fn all_places() -> Vec<Place> {
    (0..4).flat_map(|up| (0..4).rev().map(move |down| (up, down))).collect()
}

pub(crate) fn place() -> impl Strategy<Value = Place> {
    (0..4i32, 0..4i32)
}

/// A cell without its path: everything that decides who wins.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    timestamp: i64,
    ttl: u32,
    local_deletion_time: u32,
    value: Vec<u8>,
}

impl Cell {
    pub(crate) fn as_ref(&self) -> CellRef<'_> {
        CellRef {
            timestamp: self.timestamp,
            ttl: self.ttl,
            local_deletion_time: self.local_deletion_time,
            path: b"",
            value: &self.value,
        }
    }
}

pub(crate) fn cell(timestamps: impl Strategy<Value = i64>) -> impl Strategy<Value = Cell> {
    let end = prop_oneof![Just(None), Just(Some((0, 40))), (1..4u32, 48..53u32).prop_map(Some)];
    (timestamps, end, vec(0..3u8, 0..3)).prop_map(|(timestamp, end, value)| match end {
        None => Cell { timestamp, ttl: 0, local_deletion_time: NO_DELETION_TIME, value },
        Some((0, local_deletion_time)) => Cell { timestamp, ttl: 0, local_deletion_time, value: vec![] },
        Some((ttl, local_deletion_time)) => Cell { timestamp, ttl, local_deletion_time, value },
    })
}

pub(crate) fn deletion(timestamps: impl Strategy<Value = i64>) -> impl Strategy<Value = DeletionTime> {
    let some = (timestamps, 38..42u32)
        .prop_map(|(timestamp, local_deletion_time)| DeletionTime { timestamp, local_deletion_time });
    prop_oneof![2 => Just(DeletionTime::LIVE), 1 => some]
}

pub(crate) fn liveness(timestamps: impl Strategy<Value = i64>) -> impl Strategy<Value = Liveness> {
    (timestamps, 0..4u32, 48..53u32).prop_map(|(timestamp, kind, expiration)| match kind {
        0 => Liveness::NONE,
        1 => Liveness::at(timestamp),
        ttl => Liveness::expiring(timestamp, ttl, expiration),
    })
}

/// Timestamps of one source: few, so that ties are common.
pub(crate) fn any_timestamp() -> BoxedStrategy<i64> {
    (0..6i64).boxed()
}

/// A row at that place; it may be empty.
pub(crate) fn row_at(at: Place, timestamps: BoxedStrategy<i64>) -> impl Strategy<Value = Row> {
    let cells = |paths: std::ops::Range<u8>| {
        option::of((deletion(timestamps.clone()), btree_map(paths, cell(timestamps.clone()), 0..4)))
    };
    let simple = option::of(cell(timestamps.clone()));
    (liveness(timestamps.clone()), deletion(timestamps.clone()), simple, cells(0..4), cells(0..4)).prop_map(
        move |(liveness, deletion, text, set, map)| {
            let mut builder = RowBuilder::new(&clustering(at), liveness, deletion);
            let mut text = text.clone();
            if let Some(cell) = &mut text {
                if at == LARGE && cell.as_ref().is_live(0) {
                    cell.value.resize(LARGE_ROW_BYTES, 0);
                }
                builder.cell(TEXT, cell.as_ref());
            }
            if let Some((deletion, cells)) = &set {
                let paths: Vec<_> =
                    cells.iter().map(|(path, cell)| (i32::from(*path).to_be_bytes(), cell)).collect();
                builder.complex(
                    SET,
                    *deletion,
                    paths.iter().map(|(path, cell)| cell.as_ref().with_path(path)),
                );
            }
            if let Some((deletion, cells)) = &map {
                let paths: Vec<_> = cells.iter().map(|(path, cell)| ([b'a' + path], cell)).collect();
                builder.complex(
                    MAP,
                    *deletion,
                    paths.iter().map(|(path, cell)| cell.as_ref().with_path(path)),
                );
            }
            builder.finish()
        },
    )
}

pub(crate) fn row(timestamps: BoxedStrategy<i64>) -> impl Strategy<Value = Row> {
    place().prop_flat_map(move |at| row_at(at, timestamps.clone()))
}

pub(crate) fn static_row(timestamps: BoxedStrategy<i64>) -> impl Strategy<Value = Row> {
    cell(timestamps).prop_map(|cell| {
        let mut builder = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
        builder.cell(STATIC_TEXT, cell.as_ref());
        builder.finish()
    })
}

fn bound(kinds: [BoundKind; 2]) -> impl Strategy<Value = Bound> {
    let prefix = prop_oneof![
        1 => Just(Clustering::EMPTY),
        3 => (0..4i32).prop_map(|up| {
            let mut builder = ClusteringBuilder::new();
            builder.push(Some(&up.to_be_bytes()));
            builder.finish()
        }),
        3 => place().prop_map(clustering),
    ];
    (prefix, any::<bool>()).prop_map(move |(prefix, inclusive)| match prefix.is_empty() || inclusive {
        true => Bound { kind: kinds[0], prefix },
        false => Bound { kind: kinds[1], prefix },
    })
}

/// Any slice, an empty one too.
pub(crate) fn slice() -> impl Strategy<Value = Slice> {
    let start = bound([BoundKind::InclusiveStart, BoundKind::ExclusiveStart]);
    let end = bound([BoundKind::InclusiveEnd, BoundKind::ExclusiveEnd]);
    (start, end).prop_map(|(start, end)| Slice { start, end })
}

pub(crate) fn range(timestamps: BoxedStrategy<i64>) -> impl Strategy<Value = RangeTombstone> {
    (slice(), timestamps, 38..42u32).prop_map(|(slice, timestamp, local_deletion_time)| RangeTombstone {
        slice,
        deletion: DeletionTime { timestamp, local_deletion_time },
    })
}
