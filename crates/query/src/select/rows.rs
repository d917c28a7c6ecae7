//! Rows on their way to the client: stored rows projected in place, or computed cells.

use std::borrow::Cow;

use read::PartitionRows;
use rows::{ColumnData, Columns, ComplexRef, Row, Shown};
use schema::ColumnId;
use types::CqlType;
use types::encoding;

use crate::response::RowSink;

/// Where the cell of a result column comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// Component of the partition key.
    PartitionKey(usize),
    /// Component of the clustering.
    Clustering(usize),
    /// Slot of a static column: index in [`Projection::static_columns`].
    Static(usize),
    /// Slot of a regular column: index in [`Projection::regular_columns`].
    Regular(usize),
}

/// A column whose cells are looked for in rows.
#[derive(Clone, Debug)]
pub(crate) struct SlotColumn {
    pub(crate) id: ColumnId,
    /// Its type, to put multi-cell values together.
    pub(crate) cql_type: CqlType,
}

/// Which cells of stored rows make the columns of a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Projection {
    /// For each column of the result where it comes from.
    pub(crate) sources: Vec<Source>,
    /// Static columns looked for, ascending by id.
    pub(crate) static_columns: Vec<SlotColumn>,
    /// Regular columns looked for, ascending by id.
    pub(crate) regular_columns: Vec<SlotColumn>,
    /// How many columns the partition key has.
    pub(crate) partition_key_count: usize,
    /// How many clustering columns there are.
    pub(crate) clustering_count: usize,
    /// Does a partition that has nothing but its static row give a row?
    pub(crate) static_rows_alone: bool,
    /// Do the regular columns stand in the result as they do in a row, each once?
    pub(crate) is_in_order: bool,
}

impl Projection {
    /// Says where the columns of the result come from.
    pub(crate) fn put_sources(&mut self, sources: Vec<Source>) {
        let slot = |source: &Source| match source {
            Source::Regular(index) => Some(*index),
            _ => None,
        };
        self.is_in_order = sources.iter().filter_map(slot).eq(0..self.regular_columns.len());
        self.sources = sources;
    }
}

/// Pages as storage gave them, cut to what the statement asked for.
#[derive(Debug, Default)]
pub(crate) struct StoredRows {
    pub(crate) partitions: Vec<PartitionRows>,
}

impl StoredRows {
    pub(crate) fn row_count(&self) -> usize {
        self.partitions.iter().map(|partition| partition.row_count() as usize).sum()
    }

    /// About how many bytes the rows take in an answer.
    fn byte_count(&self, projection: &Projection) -> usize {
        let of_row = |row: &Row| row.as_encoded().len();
        let of_partition = |partition: &PartitionRows| {
            let lengths = 4 * projection.sources.len() + partition.key.bytes.len();
            let each = lengths + partition.static_row.as_ref().map_or(0, of_row);
            partition.row_count() as usize * each + partition.rows.iter().map(of_row).sum::<usize>()
        };
        self.partitions.iter().map(of_partition).sum()
    }

    pub(crate) fn write(&self, projection: &Projection, sink: &mut impl RowSink) {
        if !projection.is_in_order {
            return self.write_by_slots(projection, sink);
        }
        sink.expect(self.byte_count(projection));
        let mut view = RowView::without_regulars(projection);
        for partition in &self.partitions {
            view.enter_partition(partition);
            partition.shown_rows().for_each(|row| view.write_in_order(row, sink));
        }
    }

    fn write_by_slots(&self, projection: &Projection, sink: &mut impl RowSink) {
        let mut view = RowView::new(projection);
        for partition in &self.partitions {
            view.enter_partition(partition);
            partition.shown_rows().for_each(|row| {
                view.enter_row(row);
                view.write(sink);
            });
        }
    }
}

/// Gives the cells of the only row of a partition, whose key is one column, to the sink.
pub(super) fn write_single_row(projection: &Projection, key: &[u8], row: &Row, sink: &mut impl RowSink) {
    if !projection.is_in_order {
        let mut view = RowView::new(projection);
        view.enter_key(key);
        view.enter_row(Some(row));
        return view.write(sink);
    }
    let (mut columns, mut scratch) = (row.columns(), Vec::new());
    for source in &projection.sources {
        match source {
            Source::Regular(index) => {
                sink.cell(seek(&mut columns, &projection.regular_columns[*index], &mut scratch));
            }
            // Such a table has no other columns.
            Source::PartitionKey(_) | Source::Clustering(_) | Source::Static(_) => sink.cell(Some(key)),
        }
    }
}

/// What a client sees of the next column asked for.
#[inline]
fn seek<'s, 'a: 's>(
    columns: &mut Columns<'a>,
    wanted: &SlotColumn,
    scratch: &'s mut Vec<u8>,
) -> Option<&'s [u8]> {
    match columns.seek(wanted.id) {
        Shown::Nothing => None,
        Shown::Value(value) => Some(value),
        Shown::Cells(cells) => shown(wanted, ColumnData::Complex(cells), scratch),
    }
}

/// One row seen through a projection: every slot filled by one walk over the row's cells.
pub(crate) struct RowView<'a> {
    projection: &'a Projection,
    partition_key: Vec<&'a [u8]>,
    clustering: Vec<Option<&'a [u8]>>,
    statics: Vec<Option<ColumnData<'a>>>,
    regulars: Vec<Option<ColumnData<'a>>>,
    scratch: Vec<u8>,
}

impl<'a> RowView<'a> {
    pub(crate) fn new(projection: &'a Projection) -> Self {
        let regulars = vec![None; projection.regular_columns.len()];
        RowView { regulars, ..RowView::without_regulars(projection) }
    }

    /// For [`RowView::write_in_order`] alone, which needs no slots for regular columns.
    fn without_regulars(projection: &'a Projection) -> Self {
        RowView {
            projection,
            partition_key: Vec::with_capacity(projection.partition_key_count),
            clustering: vec![None; projection.clustering_count],
            statics: vec![None; projection.static_columns.len()],
            regulars: Vec::new(),
            scratch: Vec::new(),
        }
    }

    pub(crate) fn enter_partition(&mut self, partition: &'a PartitionRows) {
        self.enter_key(&partition.key.bytes);
        self.statics.fill(None);
        if let Some(row) = &partition.static_row {
            fill(row, &self.projection.static_columns, &mut self.statics);
        }
    }

    fn enter_key(&mut self, key: &'a [u8]) {
        self.partition_key.clear();
        split_key(key, self.projection.partition_key_count, &mut self.partition_key);
    }

    /// The next row; `None` for the row of nulls that stands for a static row alone.
    pub(crate) fn enter_row(&mut self, row: Option<&'a Row>) {
        self.clustering.fill(None);
        self.regulars.fill(None);
        let Some(row) = row else { return };
        self.enter_clustering(row);
        fill(row, &self.projection.regular_columns, &mut self.regulars);
    }

    fn enter_clustering(&mut self, row: &'a Row) {
        if self.projection.clustering_count > 0 {
            for (slot, component) in self.clustering.iter_mut().zip(row.clustering_components()) {
                *slot = component;
            }
        }
    }

    /// Gives the cells of a row to the sink as its columns are passed, where the projection
    /// [is in their order](Projection::is_in_order); of no row, those of a static row alone.
    fn write_in_order(&mut self, row: Option<&'a Row>, sink: &mut impl RowSink) {
        self.clustering.fill(None);
        if let Some(row) = row {
            self.enter_clustering(row);
        }
        let projection = self.projection;
        let mut columns = row.map(Row::columns);
        let mut scratch = std::mem::take(&mut self.scratch);
        for source in &projection.sources {
            let Source::Regular(index) = source else {
                sink.cell(self.value(*source, &mut scratch));
                continue;
            };
            let wanted = &projection.regular_columns[*index];
            sink.cell(columns.as_mut().and_then(|columns| seek(columns, wanted, &mut scratch)));
        }
        self.scratch = scratch;
    }

    /// Gives the cells of the result's columns to the sink.
    pub(crate) fn write(&mut self, sink: &mut impl RowSink) {
        let mut scratch = std::mem::take(&mut self.scratch);
        for source in &self.projection.sources {
            sink.cell(self.value(*source, &mut scratch));
        }
        self.scratch = scratch;
    }

    /// The value of a source; multi-cell values are put together in `scratch`.
    pub(crate) fn value<'s>(&self, source: Source, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        let (slots, columns, index) = match source {
            Source::PartitionKey(index) => return self.partition_key.get(index).copied(),
            Source::Clustering(index) => return self.clustering.get(index).copied().flatten(),
            Source::Static(index) => (&self.statics, &self.projection.static_columns, index),
            Source::Regular(index) => (&self.regulars, &self.projection.regular_columns, index),
        };
        shown(&columns[index], slots[index]?, scratch)
    }

    /// The value of a source, for keeping.
    pub(crate) fn owned_value(&self, source: Source) -> Option<Cow<'a, [u8]>> {
        if let Some(ColumnData::Complex(_)) = self.data(source) {
            let mut bytes = Vec::new();
            return self.value(source, &mut bytes).is_some().then_some(Cow::Owned(bytes));
        }
        match source {
            Source::PartitionKey(index) => self.partition_key.get(index).copied().map(Cow::Borrowed),
            Source::Clustering(index) => self.clustering.get(index).copied().flatten().map(Cow::Borrowed),
            _ => match self.data(source)? {
                ColumnData::Simple(cell) => Some(Cow::Borrowed(cell.value)),
                ColumnData::Complex(_) => None,
            },
        }
    }

    /// The cells of a static or regular source.
    pub(crate) fn data(&self, source: Source) -> Option<ColumnData<'a>> {
        match source {
            Source::Static(index) => self.statics[index],
            Source::Regular(index) => self.regulars[index],
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

/// Takes a partition key apart. A damaged key gives what can be read of it.
fn split_key<'a>(key: &'a [u8], count: usize, parts: &mut Vec<&'a [u8]>) {
    if count == 1 {
        parts.push(key);
        return;
    }
    let mut rest = key;
    while parts.len() < count {
        let Some((head, tail)) = rest.split_first_chunk::<2>() else { return };
        let length = usize::from(u16::from_be_bytes(*head));
        let Some((part, tail)) = tail.split_at_checked(length) else { return };
        parts.push(part);
        rest = tail.get(1..).unwrap_or_default();
    }
}

/// Both run ascending by id: one walk fills all slots.
fn fill<'a>(row: &'a Row, columns: &[SlotColumn], slots: &mut [Option<ColumnData<'a>>]) {
    let mut next = 0;
    if columns.is_empty() {
        return;
    }
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

/// The live cells of a multi-cell column as one value; false when there are none.
pub(crate) fn write_complex(cql_type: &CqlType, complex: ComplexRef<'_>, out: &mut Vec<u8>) -> bool {
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

/// Cells that were computed, one after the other: `i32` length (-1 for null) and value each.
#[derive(Debug, Default)]
pub(crate) struct ComputedRows {
    cells: Vec<u8>,
    row_count: usize,
}

impl ComputedRows {
    /// Adds rows that were computed apart.
    pub(crate) fn append(&mut self, mut others: ComputedRows) {
        self.cells.append(&mut others.cells);
        self.row_count += others.row_count;
    }

    /// Ends a row whose cells have been given.
    pub(crate) fn end_row(&mut self) {
        self.row_count += 1;
    }

    pub(crate) fn row_count(&self) -> usize {
        self.row_count
    }

    pub(crate) fn byte_count(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn write(&self, sink: &mut impl RowSink) {
        let mut rest = self.cells.as_slice();
        while let Some((head, tail)) = rest.split_first_chunk::<4>() {
            match usize::try_from(i32::from_be_bytes(*head)) {
                Err(_) => {
                    sink.cell(None);
                    rest = tail;
                }
                Ok(length) => {
                    let (value, tail) = tail.split_at(length);
                    sink.cell(Some(value));
                    rest = tail;
                }
            }
        }
    }
}

impl RowSink for ComputedRows {
    fn cell(&mut self, value: Option<&[u8]>) {
        encoding::write_bytes(value, &mut self.cells);
    }
}
