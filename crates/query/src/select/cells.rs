//! From a stored row to the cells of an answer.
//!
//! ```text
//!   encoded ─┬─ columns, passed once as the result has them ──┐
//!            └─ slots, filled by one walk, in any order ──────┼─► Regulars ─┐
//!   values in place ──────────────────────────────────────────┘             ├─► Writing::write ─► sink
//!   key, clustering, static row ─► RowHead ─────────────────────────────────┘
//! ```
//!
//! Whoever computes, filters or groups looks at a row by its slots, too ([`RowView`]).

use std::borrow::Cow;

use read::PartitionRows;
use rows::{ColumnData, Columns, ComplexRef, Row, RowValues, Shown, counter_value};
use types::{CqlType, encoding};

use super::rows::{Projection, SlotColumn, Source};
use crate::response::RowSink;

/// The regular columns of one row.
pub(super) trait Regulars {
    /// What a client sees of a column; multi-cell values are put together in `scratch`.
    fn value<'s>(
        &'s mut self,
        slot: usize,
        wanted: &SlotColumn,
        scratch: &'s mut Vec<u8>,
    ) -> Option<&'s [u8]>;
}

/// Those of an encoded row, which are asked for in their order; none of a static row alone.
impl Regulars for Option<Columns<'_>> {
    #[inline]
    fn value<'s>(&'s mut self, _: usize, wanted: &SlotColumn, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]> {
        match self.as_mut()?.seek(wanted.id) {
            Shown::Nothing => None,
            Shown::Value(value) => Some(value),
            Shown::Cells(cells) => shown(wanted, ColumnData::Complex(cells), scratch),
        }
    }
}

/// What a row has in the slots of a projection's columns.
type Slots<'a> = Vec<Option<ColumnData<'a>>>;

impl Regulars for Slots<'_> {
    fn value<'s>(
        &'s mut self,
        slot: usize,
        wanted: &SlotColumn,
        scratch: &'s mut Vec<u8>,
    ) -> Option<&'s [u8]> {
        shown(wanted, self[slot]?, scratch)
    }
}

/// Values where they lie.
pub(super) struct InPlace<'a> {
    values: &'a RowValues<'a>,
    /// Which is the next behind the one asked for last.
    next: usize,
}

impl<'a> InPlace<'a> {
    pub(super) fn new(values: &'a RowValues<'a>) -> Self {
        InPlace { values, next: 0 }
    }
}

impl Regulars for InPlace<'_> {
    #[inline]
    fn value<'s>(&'s mut self, _: usize, wanted: &SlotColumn, _: &'s mut Vec<u8>) -> Option<&'s [u8]> {
        // Most often it is the next one.
        let place = match self.values.get(self.next) {
            Some((id, _)) if *id == wanted.id => self.next,
            _ => self.values.binary_search_by_key(&wanted.id, |(id, _)| *id).ok()?,
        };
        self.next = place + 1;
        Some(self.values[place].1)
    }
}

/// Writes rows, in memory that serves for all.
#[derive(Default)]
pub(super) struct Writing<'a> {
    slots: Slots<'a>,
    scratch: Vec<u8>,
}

impl<'a> Writing<'a> {
    /// Gives the cells of an encoded row to the sink; of none, those of a static row alone.
    pub(super) fn write_encoded(
        &mut self,
        head: &RowHead<'_>,
        row: Option<&'a Row>,
        sink: &mut impl RowSink,
    ) {
        if head.projection.is_in_order {
            return self.write(head, &mut row.map(Row::columns), sink);
        }
        let mut slots = std::mem::take(&mut self.slots);
        fill_slots(row, &head.projection.regular_columns, &mut slots);
        self.write(head, &mut slots, sink);
        self.slots = slots;
    }

    /// Gives the cells of the result's columns to the sink.
    #[inline]
    pub(super) fn write(
        &mut self,
        head: &RowHead<'_>,
        regulars: &mut impl Regulars,
        sink: &mut impl RowSink,
    ) {
        let projection = head.projection;
        for source in &projection.sources {
            sink.cell(match source {
                Source::Regular(slot) => {
                    regulars.value(*slot, &projection.regular_columns[*slot], &mut self.scratch)
                }
                _ => head.value(*source, &mut self.scratch),
            });
        }
    }
}

/// What a row has beside its regular columns.
pub(super) struct RowHead<'a> {
    projection: &'a Projection,
    /// Whole; a key of one column is its value. None before the first partition.
    partition_key: Option<&'a [u8]>,
    /// Of a key of several columns.
    key_parts: Vec<&'a [u8]>,
    clustering: Vec<Option<&'a [u8]>>,
    statics: Slots<'a>,
}

impl<'a> RowHead<'a> {
    pub(super) fn new(projection: &'a Projection) -> Self {
        RowHead {
            projection,
            partition_key: None,
            key_parts: Vec::new(),
            clustering: vec![None; projection.clustering_count],
            statics: vec![None; projection.static_columns.len()],
        }
    }

    /// That of the only row of a partition, whose key is one column.
    #[inline]
    pub(super) fn of_key(projection: &'a Projection, key: &'a [u8]) -> Self {
        RowHead {
            projection,
            partition_key: Some(key),
            key_parts: Vec::new(),
            clustering: Vec::new(),
            statics: Vec::new(),
        }
    }

    pub(super) fn enter_partition(&mut self, partition: &'a PartitionRows) {
        self.partition_key = Some(&partition.key.bytes);
        if self.projection.partition_key_count > 1 {
            split_key(&partition.key.bytes, self.projection.partition_key_count, &mut self.key_parts);
        }
        fill_slots(partition.static_row.as_ref(), &self.projection.static_columns, &mut self.statics);
    }

    /// The next row; `None` for the row of nulls that stands for a static row alone.
    pub(super) fn enter_row(&mut self, row: Option<&'a Row>) {
        self.clustering.fill(None);
        if let Some(row) = row.filter(|_| self.projection.clustering_count > 0) {
            for (slot, component) in self.clustering.iter_mut().zip(row.clustering_components()) {
                *slot = component;
            }
        }
    }

    /// The value of a source other than a regular column; multi-cell values are put together in `scratch`.
    fn value<'s>(&self, source: Source, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        match source {
            Source::Static(slot) => {
                shown(&self.projection.static_columns[slot], self.statics[slot]?, scratch)
            }
            key => self.of_keys(key),
        }
    }

    /// The value of a source in one of the keys.
    fn of_keys(&self, source: Source) -> Option<&'a [u8]> {
        match source {
            Source::PartitionKey(_) if self.projection.partition_key_count == 1 => self.partition_key,
            Source::PartitionKey(index) => self.key_parts.get(index).copied(),
            Source::Clustering(index) => self.clustering.get(index).copied().flatten(),
            Source::Static(_) | Source::Regular(_) => None,
        }
    }
}

/// One row seen through a projection: every slot filled by one walk over the row's cells.
pub(crate) struct RowView<'a> {
    head: RowHead<'a>,
    regulars: Slots<'a>,
}

impl<'a> RowView<'a> {
    pub(crate) fn new(projection: &'a Projection) -> Self {
        RowView { head: RowHead::new(projection), regulars: vec![None; projection.regular_columns.len()] }
    }

    pub(crate) fn enter_partition(&mut self, partition: &'a PartitionRows) {
        self.head.enter_partition(partition);
    }

    /// The next row; `None` for the row of nulls that stands for a static row alone.
    pub(crate) fn enter_row(&mut self, row: Option<&'a Row>) {
        self.head.enter_row(row);
        fill_slots(row, &self.head.projection.regular_columns, &mut self.regulars);
    }

    /// The value of a source; multi-cell values are put together in `scratch`.
    pub(crate) fn value<'s>(&self, source: Source, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        match source {
            Source::Regular(slot) => {
                shown(&self.head.projection.regular_columns[slot], self.regulars[slot]?, scratch)
            }
            other => self.head.value(other, scratch),
        }
    }

    /// The value of a source, for keeping.
    pub(crate) fn owned_value(&self, source: Source) -> Option<Cow<'a, [u8]>> {
        match self.data(source) {
            Some(ColumnData::Simple(cell)) => Some(Cow::Borrowed(cell.value)),
            Some(ColumnData::Complex(_)) => {
                let mut bytes = Vec::new();
                self.value(source, &mut bytes).is_some().then_some(Cow::Owned(bytes))
            }
            None => self.head.of_keys(source).map(Cow::Borrowed),
        }
    }

    /// The cells of a static or regular source.
    pub(crate) fn data(&self, source: Source) -> Option<ColumnData<'a>> {
        match source {
            Source::Static(slot) => self.head.statics[slot],
            Source::Regular(slot) => self.regulars[slot],
            Source::PartitionKey(_) | Source::Clustering(_) => None,
        }
    }
}

/// What a client sees of a column's cells; multi-cell values are put together in `scratch`.
fn shown<'s>(column: &SlotColumn, data: ColumnData<'s>, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]> {
    match data {
        ColumnData::Simple(cell) => Some(cell.value),
        ColumnData::Complex(complex) => {
            scratch.clear();
            write_complex(&column.cql_type, complex, scratch).then_some(scratch.as_slice())
        }
    }
}

/// Takes a partition key apart, into memory that serves for all. A damaged key gives what can be read of it, unlike
/// `encoding::partition_key_parts`, which refuses it.
fn split_key<'a>(key: &'a [u8], count: usize, parts: &mut Vec<&'a [u8]>) {
    parts.clear();
    let mut rest = key;
    while parts.len() < count {
        let Some((head, tail)) = rest.split_first_chunk::<2>() else { return };
        let length = usize::from(u16::from_be_bytes(*head));
        let Some((part, tail)) = tail.split_at_checked(length) else { return };
        parts.push(part);
        rest = tail.get(1..).unwrap_or_default();
    }
}

/// Fills the slots of these columns from a row. Both run ascending by id: one walk fills all.
fn fill_slots<'a>(row: Option<&'a Row>, columns: &[SlotColumn], slots: &mut Slots<'a>) {
    slots.clear();
    slots.resize(columns.len(), None);
    let Some(row) = row.filter(|_| !columns.is_empty()) else { return };
    let mut next = 0;
    for column in row.columns() {
        while columns[next].id < column.id {
            next += 1;
            if next == columns.len() {
                return;
            }
        }
        if columns[next].id == column.id {
            slots[next] = Some(column.data);
            next += 1;
            if next == columns.len() {
                return;
            }
        }
    }
}

/// The live cells of a column with paths as one value; false when there are none.
fn write_complex(cql_type: &CqlType, complex: ComplexRef<'_>, out: &mut Vec<u8>) -> bool {
    if *cql_type == CqlType::Counter {
        let is_counting = complex.cells().next().is_some();
        out.extend_from_slice(&counter_value(complex).to_be_bytes());
        return is_counting;
    }
    let start = out.len();
    out.reserve(complex.byte_count());
    if let CqlType::UserDefined { definition, .. } = cql_type {
        let mut cells = complex.cells().peekable();
        if cells.peek().is_none() {
            return false;
        }
        for index in 0..definition.fields.len() {
            let position =
                |path: &[u8]| path.try_into().map(u16::from_be_bytes).map_or(usize::MAX, usize::from);
            while cells.next_if(|cell| position(cell.path) < index).is_some() {}
            let cell = cells.next_if(|cell| position(cell.path) == index);
            encoding::write_bytes(cell.map(|cell| cell.value), out);
        }
        return true;
    }
    out.extend_from_slice(&[0; 4]);
    let mut count = 0i32;
    for cell in complex.cells() {
        match cql_type {
            CqlType::Set { .. } => encoding::write_bytes(Some(cell.path), out),
            CqlType::Map { .. } => {
                encoding::write_bytes(Some(cell.path), out);
                encoding::write_bytes(Some(cell.value), out);
            }
            _ => encoding::write_bytes(Some(cell.value), out),
        }
        count = count.saturating_add(1);
    }
    out[start..start + 4].copy_from_slice(&count.to_be_bytes());
    count > 0
}
