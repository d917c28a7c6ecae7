//! Bytes to rows and markers.
//!
//! An item is read in two steps: its head, which tells where it stands and where it ends, so that
//! it can be passed over; then its body. Buffers are kept from item to item.

use bytes::{Bytes, BytesMut};
use rows::{
    Bound, BoundKind, CellMerge, CellRef, Clustering, DeletionTime, Liveness, Marker, NO_DELETION_TIME, Row,
    RowBuilder, context,
};
use schema::ColumnId;
use smallvec::SmallVec;
use stdx::cursor::Cursor;
use stdx::vint;

use super::clustering::{marker_sides, read_components};
use super::layout::{Columns, FileColumn, Layout};
use super::{ParseError, RelativeTimes, flags, read_value};

/// Reads rows and markers.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Clustering or prefix of the last head, in the form of [`Clustering`].
    clustering: Vec<u8>,
    /// Columns of the row being read, in the file's order.
    columns: Vec<Found>,
    /// Which columns of the file the row has, when not all.
    subset: Subset,
    /// Where rows are put together.
    built: Vec<u8>,
    /// Where they lie then.
    shared: BytesMut,
    /// Bytes of all rows so far.
    built_bytes: usize,
}

/// What an item is, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: HeadKind,
    /// Where the body begins, from the start of the item.
    pub(crate) body_start: usize,
    /// Bytes of the whole item.
    pub(crate) item_bytes: u64,
    flags: u8,
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadKind {
    /// A row, or a static row.
    Row,
    /// A marker, of that kind.
    Marker(u8),
    /// The end of the partition.
    End,
}

/// A column of a row, found but not yet put into the row.
#[derive(Clone, Copy, Debug)]
struct Found {
    slot: u16,
    cell: FoundCell,
}

/// A cell by where its bytes are; or, for a multi-cell column, where its cells are.
#[derive(Clone, Copy, Debug)]
struct FoundCell {
    timestamp: i64,
    ttl: u32,
    local_deletion_time: u32,
    start: usize,
    end: usize,
}

/// What a row in memory takes for a column beside its value, at most but for times.
const COLUMN_OVERHEAD_BYTES: usize = 8;

/// And for a cell of many beside its path and value, most often.
const CELL_OVERHEAD_BYTES: usize = 14;

/// Memory that rows share, at most: as much as were read before, so that a lone row takes only its own.
const SHARED_BYTES: usize = 32 << 10;

/// Places of columns in the file's order, rising.
type Subset = SmallVec<[u16; 32]>;

type Parsed<T> = Result<T, ParseError>;

impl Decoder {
    /// One that has read the head of an item with that clustering or prefix.
    pub(crate) fn behind_head(clustering: Vec<u8>) -> Self {
        Decoder { clustering, ..Decoder::default() }
    }

    /// Reads the head of the item at the start of `bytes`. Static rows only where they belong.
    pub(crate) fn head(&mut self, layout: &Layout, bytes: &[u8], is_static: bool) -> Parsed<Head> {
        let mut input = Cursor::new(bytes);
        let item_flags = input.u8()?;
        if item_flags & flags::END_OF_PARTITION != 0 {
            return Ok(Head { kind: HeadKind::End, body_start: 1, item_bytes: 1, flags: item_flags });
        }
        let extended = if item_flags & flags::EXTENSION != 0 { input.u8()? } else { 0 };
        let known = flags::EXTENDED_STATIC | flags::EXTENDED_SHADOWABLE;
        if extended & !known != 0 || (extended & flags::EXTENDED_STATIC != 0) != is_static {
            return Err(ParseError::Malformed("flags of a row"));
        }
        self.clustering.clear();
        let kind = if item_flags & flags::MARKER != 0 {
            let kind = input.u8()?;
            if marker_sides(kind).is_none() || is_static {
                return Err(ParseError::Malformed("kind of a marker"));
            }
            let count = usize::from(input.u16()?);
            read_components(&layout.clustering, count, &mut input, &mut self.clustering)?;
            HeadKind::Marker(kind)
        } else {
            let count = if is_static { 0 } else { layout.clustering.len() };
            read_components(&layout.clustering, count, &mut input, &mut self.clustering)?;
            HeadKind::Row
        };
        let body_bytes = input.vint()?;
        let body_start = input.position();
        let item_bytes = (body_start as u64).saturating_add(body_bytes);
        Ok(Head { kind, body_start, item_bytes, flags: item_flags })
    }

    /// Keeps bytes, in memory shared with the rows.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Bytes {
        if self.shared.capacity() < bytes.len() {
            return Bytes::copy_from_slice(bytes);
        }
        self.shared.extend_from_slice(bytes);
        self.shared.split().freeze()
    }

    /// Clustering or prefix of the last head, encoded.
    pub(crate) fn clustering(&self) -> &[u8] {
        &self.clustering
    }

    /// Where the marker whose head was read last stands.
    pub(crate) fn marker_place(&self, head: &Head) -> Option<Bound> {
        let HeadKind::Marker(kind) = head.kind else { return None };
        let (is_before, ..) = marker_sides(kind)?;
        let kind = if is_before { BoundKind::InclusiveStart } else { BoundKind::ExclusiveStart };
        Some(Bound { kind, prefix: self.prefix().ok()? })
    }

    fn prefix(&self) -> Parsed<Clustering> {
        Clustering::from_encoded(bytes::Bytes::copy_from_slice(&self.clustering))
            .map_err(|_| ParseError::Malformed("a clustering"))
    }

    /// Reads the body of a marker whose head was read last.
    pub(crate) fn marker(&self, layout: &Layout, kind: u8, body: &[u8]) -> Parsed<Marker> {
        let (is_before, ends, starts) =
            marker_sides(kind).ok_or(ParseError::Malformed("kind of a marker"))?;
        let mut input = Cursor::new(body);
        input.vint()?;
        let mut side = |is_there: bool| -> Parsed<DeletionTime> {
            Ok(if is_there { layout.stats.read_deletion(&mut input)? } else { DeletionTime::LIVE })
        };
        let (left, right) = (side(ends)?, side(starts)?);
        Ok(Marker { prefix: self.prefix()?, is_before, left, right })
    }

    /// Reads the body of a row whose head was read last. `None` when nothing of it is left for
    /// the table as it is now.
    pub(crate) fn row(
        &mut self,
        layout: &Layout,
        head: &Head,
        is_static: bool,
        body: &[u8],
    ) -> Parsed<Option<Row>> {
        let columns = layout.columns(is_static);
        let mut input = Cursor::new(body);
        let (liveness, deletion) = read_times(layout, head, &mut input)?;
        let has_all = head.flags & flags::ALL_COLUMNS != 0;
        if !has_all {
            read_subset(columns.list.len(), &mut input, &mut self.subset)?;
        }
        let count = if has_all { columns.list.len() } else { self.subset.len() };
        let reader = CellReader::new(layout, head, liveness, body);
        let columns_bytes = body.len() + count * COLUMN_OVERHEAD_BYTES;
        let mut builder = if self.built_bytes == 0 {
            RowBuilder::with_capacity(&self.clustering, liveness, deletion, columns_bytes)
        } else {
            let memory = std::mem::take(&mut self.built);
            let mut builder = RowBuilder::reusing(memory, &self.clustering, liveness, deletion);
            builder.reserve(columns_bytes);
            builder
        };
        if has_all && columns.is_simple_by_id {
            for column in &columns.list {
                if let Some(id) = column.id_if_kept()
                    && let Some(value) = reader.value_of_row(column.fixed_bytes, &mut input)
                {
                    builder.value_of_row(id, value);
                    continue;
                }
                let cell = reader.read_cell(column.fixed_bytes, false, &mut input)?;
                put_cell(&mut builder, column, cell);
            }
            return Ok(self.built(builder));
        }
        self.columns.clear();
        self.columns.reserve(count);
        for index in 0..count {
            let slot = if has_all { index as u16 } else { self.subset[index] };
            let column = &columns.list[usize::from(slot)];
            let cell = if column.is_complex {
                reader.find_complex(&mut input)?
            } else {
                reader.find_cell(column, &mut input)?
            };
            self.columns.push(Found { slot, cell });
        }
        if has_all {
            for slot in &columns.by_id {
                build(&mut builder, &reader, columns, &self.columns[usize::from(*slot)])?;
            }
        } else {
            let id = |found: &Found| columns.list[usize::from(found.slot)].id;
            self.columns.retain(|found| id(found).is_some());
            if !self.columns.is_sorted_by_key(id) {
                self.columns.sort_unstable_by_key(id);
            }
            for found in &self.columns {
                build(&mut builder, &reader, columns, found)?;
            }
        }
        Ok(self.built(builder))
    }

    /// Adds a row with that head to what other versions have come to, where its cells lie. `None` when the
    /// merge is of no use: it has more than single cells, say, or is damaged.
    pub(crate) fn merge_into<'b>(
        layout: &'b Layout,
        head: &Head,
        body: &'b [u8],
        merge: &mut CellMerge<'b>,
    ) -> Option<()> {
        let columns = &layout.regulars;
        if !columns.is_simple {
            return None;
        }
        let mut input = Cursor::new(body);
        let (liveness, deletion) = read_times(layout, head, &mut input).ok()?;
        merge.add_row(liveness, deletion)?;
        let (has_all, mut subset) = (head.flags & flags::ALL_COLUMNS != 0, Subset::new());
        if !has_all {
            read_subset(columns.list.len(), &mut input, &mut subset).ok()?;
        }
        let reader = CellReader::new(layout, head, liveness, body);
        let mut add = |column: &FileColumn| {
            let cell = reader.read_cell(column.fixed_bytes, false, &mut input).ok()?;
            column.id_of(&cell).map_or(Some(()), |id| merge.add_cell(id, cell))
        };
        match has_all {
            true => columns.list.iter().try_for_each(add),
            false => subset.iter().try_for_each(|slot| add(&columns.list[usize::from(*slot)])),
        }
    }

    /// Gives the values of a row with that head, where they lie and ascending by column; `None` when they are not all
    /// that is to be said of it: not all were written with the row, to stay, or not all columns are the table's.
    pub(crate) fn values<'b>(
        layout: &Layout,
        head: &Head,
        body: &'b [u8],
        mut put: impl FnMut(ColumnId, &'b [u8]),
    ) -> Option<()> {
        const USUAL: u8 = flags::TIMESTAMP | flags::ALL_COLUMNS;
        let columns = &layout.regulars;
        if head.flags & (USUAL | flags::TTL | flags::DELETION) != USUAL || !columns.is_simple_by_id {
            return None;
        }
        let mut input = Cursor::new(body);
        input.vint().ok()?;
        let timestamp = layout.stats.read_timestamp(&mut input).ok()?;
        if Liveness::at(timestamp).is_none() {
            return None;
        }
        for column in &columns.list {
            let id = column.id_if_kept()?;
            if input.u8().ok()? != flags::CELL_ROW_TIMESTAMP {
                return None;
            }
            put(id, read_value(column.fixed_bytes, &mut input).ok()?);
        }
        Some(())
    }

    /// A row that was put together; `None` when nothing is in it. The first, which may be the only one, has
    /// memory of its own, that is not copied again.
    fn built(&mut self, builder: RowBuilder) -> Option<Row> {
        let row = if self.built_bytes == 0 {
            builder.finish()
        } else {
            let (row, memory) = builder.finish_into(&mut self.shared, self.built_bytes.min(SHARED_BYTES));
            self.built = memory;
            row
        };
        self.built_bytes = self.built_bytes.saturating_add(row.as_encoded().len());
        (!row.is_empty()).then_some(row)
    }
}

/// Puts a cell into the row, unless its column is gone or was when it was written.
fn put_cell(builder: &mut RowBuilder, column: &FileColumn, cell: CellRef<'_>) {
    if let Some(id) = column.id_of(&cell) {
        builder.cell(id, cell);
    }
}

/// Puts the shares of a counter into the row.
fn put_counter(builder: &mut RowBuilder, id: ColumnId, cell: &CellRef<'_>) -> Parsed<()> {
    let CellRef { timestamp, local_deletion_time, value, .. } = *cell;
    if cell.is_tombstone() {
        builder.complex(id, DeletionTime { timestamp, local_deletion_time }, []);
        return Ok(());
    }
    let (deletion, shares) = context::read(value).ok_or(ParseError::Malformed("context of a counter"))?;
    builder.complex(id, deletion, shares);
    Ok(())
}

/// Reads what stands before the cells of a row: its liveness and its deletion.
fn read_times(layout: &Layout, head: &Head, input: &mut Cursor<'_>) -> Parsed<(Liveness, DeletionTime)> {
    let stats = &layout.stats;
    input.vint()?;
    let mut liveness = Liveness::NONE;
    if head.flags & flags::TIMESTAMP != 0 {
        liveness = Liveness::at(stats.read_timestamp(input)?);
        if head.flags & flags::TTL != 0 {
            let ttl = stats.read_ttl(input)?;
            let local = stats.read_local_deletion_time(input)?;
            liveness = Liveness::expiring(liveness.timestamp, ttl, local);
        }
    }
    let deletion = match head.flags & flags::DELETION {
        0 => DeletionTime::LIVE,
        _ => stats.read_deletion(input)?,
    };
    Ok((liveness, deletion))
}

/// Puts a column found into the row.
fn build(builder: &mut RowBuilder, reader: &CellReader<'_>, columns: &Columns, found: &Found) -> Parsed<()> {
    let column = &columns.list[usize::from(found.slot)];
    let Some(id) = column.id else { return Ok(()) };
    let is_gone = |timestamp: i64| column.dropped_time_us.is_some_and(|dropped| timestamp <= dropped);
    if !column.is_complex {
        let FoundCell { timestamp, ttl, local_deletion_time, start, end } = found.cell;
        let value = &reader.body[start..end];
        let cell = CellRef { timestamp, ttl, local_deletion_time, path: b"", value };
        match column.id_of(&cell).filter(|_| column.is_counter) {
            Some(id) => put_counter(builder, id, &cell)?,
            None => put_cell(builder, column, cell),
        }
        return Ok(());
    }
    // The cells were walked once when they were found, so that they parse.
    let mut input = Cursor::new(&reader.body[found.cell.start..found.cell.end]);
    let mut deletion = DeletionTime::LIVE;
    if reader.has_complex_deletion {
        deletion = reader.layout.stats.read_deletion(&mut input)?;
        if is_gone(deletion.timestamp) {
            deletion = DeletionTime::LIVE;
        }
    }
    let count = input.vint()?;
    builder.reserve(input.remaining() + count as usize * CELL_OVERHEAD_BYTES);
    let cells = (0..count).map_while(|_| reader.read_path_cell(&mut input).ok());
    builder.complex(id, deletion, cells.filter(|cell| !is_gone(cell.timestamp)));
    Ok(())
}

/// Reads cells of one row.
#[derive(Clone, Copy)]
struct CellReader<'a> {
    layout: &'a Layout,
    liveness: Liveness,
    has_complex_deletion: bool,
    body: &'a [u8],
}

impl<'a> CellReader<'a> {
    fn new(layout: &'a Layout, head: &Head, liveness: Liveness, body: &'a [u8]) -> Self {
        let has_complex_deletion = head.flags & flags::COMPLEX_DELETION != 0;
        CellReader { layout, liveness, has_complex_deletion, body }
    }

    fn find_cell(&self, column: &FileColumn, input: &mut Cursor<'a>) -> Parsed<FoundCell> {
        let cell = self.read_cell(column.fixed_bytes, false, input)?;
        let end = input.position();
        Ok(FoundCell {
            timestamp: cell.timestamp,
            ttl: cell.ttl,
            local_deletion_time: cell.local_deletion_time,
            start: end - cell.value.len(),
            end,
        })
    }

    /// Walks the cells of a multi-cell column, to know where it ends.
    fn find_complex(&self, input: &mut Cursor<'a>) -> Parsed<FoundCell> {
        let start = input.position();
        if self.has_complex_deletion {
            self.layout.stats.read_deletion(input)?;
        }
        for _ in 0..input.vint()? {
            self.read_path_cell(input)?;
        }
        let (timestamp, ttl, local_deletion_time) = (0, 0, NO_DELETION_TIME);
        Ok(FoundCell { timestamp, ttl, local_deletion_time, start, end: input.position() })
    }

    fn read_path_cell(&self, input: &mut Cursor<'a>) -> Parsed<CellRef<'a>> {
        self.read_cell(None, true, input)
    }

    /// The value of a cell that was written with its row, to stay, as most are; `None`, and nothing is read, of
    /// any other, and of what is cut off.
    #[inline]
    fn value_of_row(&self, fixed: Option<usize>, input: &mut Cursor<'a>) -> Option<&'a [u8]> {
        let [flags::CELL_ROW_TIMESTAMP, behind @ ..] = input.rest() else { return None };
        if self.liveness.is_none() {
            return None;
        }
        let (length, behind) = match (fixed, behind) {
            (Some(length), behind) => (length, behind),
            (None, [length @ 0..vint::ONE_BYTE_END, behind @ ..]) => (usize::from(*length), behind),
            (None, _) => return None,
        };
        let value = behind.get(..length)?;
        input.skip(input.remaining() - behind.len() + length).ok()?;
        Some(value)
    }

    #[inline]
    fn read_cell(&self, fixed: Option<usize>, has_path: bool, input: &mut Cursor<'a>) -> Parsed<CellRef<'a>> {
        let cell_flags = input.u8()?;
        if cell_flags == flags::CELL_ROW_TIMESTAMP && !has_path {
            // What most cells are: written with the row, to stay.
            let (timestamp, value) = (self.liveness.timestamp, read_value(fixed, input)?);
            let local_deletion_time = NO_DELETION_TIME;
            return Ok(CellRef { timestamp, ttl: 0, local_deletion_time, path: b"", value });
        }
        self.read_unusual_cell(cell_flags, fixed, has_path, input)
    }

    fn read_unusual_cell(
        &self,
        cell_flags: u8,
        fixed: Option<usize>,
        has_path: bool,
        input: &mut Cursor<'a>,
    ) -> Parsed<CellRef<'a>> {
        let stats = &self.layout.stats;
        let uses_row_ttl = cell_flags & flags::CELL_ROW_TTL != 0;
        let timestamp = match cell_flags & flags::CELL_ROW_TIMESTAMP {
            0 => stats.read_timestamp(input)?,
            _ => self.liveness.timestamp,
        };
        let ends = cell_flags & (flags::CELL_DELETED | flags::CELL_EXPIRING) != 0;
        let local_deletion_time = match (uses_row_ttl, ends) {
            (true, _) => self.liveness.local_expiration_time,
            (false, true) => stats.read_local_deletion_time(input)?,
            (false, false) => NO_DELETION_TIME,
        };
        let ttl = match (uses_row_ttl, cell_flags & flags::CELL_EXPIRING != 0) {
            (true, _) => self.liveness.ttl,
            (false, true) => stats.read_ttl(input)?,
            (false, false) => 0,
        };
        let path = if has_path { input.vint_bytes()? } else { b"" };
        let value = if cell_flags & flags::CELL_EMPTY != 0 { &[] } else { read_value(fixed, input)? };
        Ok(CellRef { timestamp, ttl, local_deletion_time, path, value })
    }
}

/// Reads which columns a row has: places in the file's order, rising.
fn read_subset(total: usize, input: &mut Cursor<'_>, subset: &mut Subset) -> Parsed<()> {
    subset.clear();
    let all = u16::try_from(total).map_err(|_| ParseError::Malformed("too many columns"))?;
    let encoded = input.vint()?;
    if encoded == 0 {
        subset.extend(0..all);
        return Ok(());
    }
    if total < 64 {
        if encoded >> total != 0 {
            return Err(ParseError::Malformed("subset of columns"));
        }
        subset.extend((0..all).filter(|slot| encoded >> slot & 1 == 0));
        return Ok(());
    }
    let missing = usize::try_from(encoded).ok().filter(|missing| *missing <= total);
    let missing = missing.ok_or(ParseError::Malformed("subset of columns"))?;
    let present = total - missing;
    let tells_present = present < total / 2;
    let mut next = 0u16;
    for _ in 0..if tells_present { present } else { missing } {
        let slot = input.vint()?;
        let slot = u16::try_from(slot).ok().filter(|slot| *slot >= next && *slot < all);
        let slot = slot.ok_or(ParseError::Malformed("subset of columns"))?;
        if tells_present {
            subset.push(slot);
        } else {
            subset.extend(next..slot);
        }
        next = slot + 1;
    }
    if !tells_present {
        subset.extend(next..all);
    }
    Ok(())
}
