//! What a read has shown, held against the model.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use protocol::{CellReader, Rows};

use super::model::{Look, Metadata, Model};
use super::statement::Read;
use super::tables::{Cell, MAP_KEYS, Register, Table};

/// A row as it came.
pub(crate) type Row = Vec<Option<Bytes>>;

/// The rows of a page.
///
/// # Errors
/// They are not whole.
pub(crate) fn rows_of(page: &Rows, read: &Read) -> Result<Vec<Row>, String> {
    let column_count = read.column_count();
    let mut cells = CellReader::new(page.cells.clone());
    let mut cell = || match cells.next_cell() {
        Some(Ok(cell)) => Ok(cell),
        other => Err(format!("a page ends too early: {other:?}")),
    };
    (0..page.row_count).map(|_| (0..column_count).map(|_| cell()).collect()).collect()
}

/// What some rows show, register by register, for the keys that are asked about.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) registers: BTreeMap<Register, Option<Vec<u8>>>,
    rows: BTreeSet<(i32, i32)>,
    statics: BTreeSet<i32>,
    metadata: BTreeMap<Register, Metadata>,
}

impl Shown {
    /// Takes rows in the order in which they came.
    ///
    /// # Errors
    /// They are out of order, come twice, or lie outside of what was asked for.
    pub(crate) fn take(&mut self, read: &Read, rows: &[Row]) -> Result<(), String> {
        let mut before: Option<(i32, i32)> = None;
        for row in rows {
            let key = int(&row[0])?.ok_or("a row without a key")?;
            if !read.keys.contains(&key) {
                continue;
            }
            let clustering = match read.table {
                Table::Narrow => Some(0),
                Table::Wide => int(&row[1])?,
            };
            if let Some(clustering) = clustering {
                let is_in_order = before.is_none_or(|(last_key, last)| {
                    last_key != key || if read.is_reversed { last < clustering } else { last > clustering }
                });
                if !is_in_order || !read.slice.contains(&clustering) {
                    return Err(format!("row {key}, {clustering} is out of order or was not asked for"));
                }
                before = Some((key, clustering));
            }
            self.take_row(read.table, key, clustering, row)?;
            if let (true, [.., timestamp, seconds_left]) = (read.has_metadata, &row[..]) {
                let told = Metadata { timestamp: long(timestamp)?, seconds_left: int(seconds_left)? };
                // A row that is there for its static cell alone has no other.
                let register = read.table.dated_cell(key, clustering.unwrap_or(-1));
                self.metadata.insert(register, told);
            }
        }
        Ok(())
    }

    fn take_row(&mut self, table: Table, key: i32, clustering: Option<i32>, row: &Row) -> Result<(), String> {
        let bytes = |cell: &Option<Bytes>| cell.as_ref().map(|bytes| bytes.to_vec());
        if table == Table::Wide {
            self.statics.insert(key);
            self.registers.insert(table.static_cell(key), bytes(&row[2]));
        }
        let Some(clustering) = clustering else { return Ok(()) };
        if !self.rows.insert((key, clustering)) {
            return Err(format!("row {key}, {clustering} comes twice"));
        }
        match table {
            Table::Narrow => {
                self.registers.insert(table.cell(key, 0, Cell::A), bytes(&row[1]));
                self.registers.insert(table.cell(key, 0, Cell::B), bytes(&row[2]));
            }
            Table::Wide => {
                self.registers.insert(table.cell(key, clustering, Cell::V), bytes(&row[3]));
                let entries = entries(&row[4])?;
                for entry in MAP_KEYS {
                    let value = entries.get(&entry).cloned();
                    self.registers.insert(table.cell(key, clustering, Cell::M(entry)), value);
                }
            }
        }
        Ok(())
    }

    /// Adds what is told by what did not come, and checks that it may be so.
    ///
    /// # Errors
    /// It can not be so.
    pub(crate) fn check(&mut self, read: &Read, model: &Model, look: Look) -> Result<(), String> {
        for key in &read.keys {
            self.complete(read, model, *key);
            self.check_rows(read, model, *key, look)?;
        }
        self.check_metadata(model, look)?;
        let wrong = self
            .registers
            .iter()
            .find(|(register, value)| !model.may_show(**register, value.as_deref(), look));
        match wrong {
            None => Ok(()),
            Some((register, value)) => Err(model.explain(*register, value.as_deref())),
        }
    }

    /// A row that did not come has nothing; one that came with nothing has been inserted.
    fn complete(&mut self, read: &Read, model: &Model, key: i32) {
        for clustering in model.rows(read.table, key).into_iter().filter(|row| read.slice.contains(row)) {
            let registers = read.table.row(key, clustering);
            if !self.rows.contains(&(key, clustering)) {
                self.registers.extend(registers.into_iter().map(|register| (register, None)));
            } else if registers
                .iter()
                .all(|register| self.registers.get(register).is_none_or(Option::is_none))
            {
                self.registers.insert(read.table.cell(key, clustering, Cell::Marker), Some(Vec::new()));
            }
        }
        // A partition of which nothing came at all has no static cell; of a slice without rows that says nothing.
        if read.table == Table::Wide && !self.statics.contains(&key) && !read.is_sliced {
            self.registers.insert(read.table.static_cell(key), None);
        }
    }

    /// Cells were written when they say, and live as long.
    fn check_metadata(&self, model: &Model, look: Look) -> Result<(), String> {
        for (register, told) in &self.metadata {
            let value = self.registers.get(register).and_then(Option::as_deref);
            if !model.may_tell(*register, value, *told, look) {
                return Err(format!("{told:?} is told, and {}", model.explain(*register, value)));
            }
        }
        Ok(())
    }

    /// How many cells were told to end.
    pub(crate) fn ending_count(&self) -> u64 {
        self.metadata.values().filter(|told| told.seconds_left.is_some()).count() as u64
    }

    /// Rows that surely are there have come, and none that can not be there.
    fn check_rows(&self, read: &Read, model: &Model, key: i32, look: Look) -> Result<(), String> {
        for clustering in model.rows(read.table, key).into_iter().filter(|row| read.slice.contains(row)) {
            let registers = read.table.row(key, clustering);
            let surely = registers.iter().find(|register| model.surely_shows(**register, look));
            if let (Some(register), false) = (surely, self.rows.contains(&(key, clustering))) {
                return Err(format!("a row is missing: {}", model.explain(*register, None)));
            }
        }
        let known = model.rows(read.table, key);
        match self.rows.iter().find(|(of, clustering)| *of == key && !known.contains(clustering)) {
            None => Ok(()),
            Some(row) => Err(format!("row {row:?} comes from nowhere")),
        }
    }
}

fn int(cell: &Option<Bytes>) -> Result<Option<i32>, String> {
    let Some(bytes) = cell else { return Ok(None) };
    let bytes = bytes.as_ref().try_into().map_err(|_| format!("{bytes:?} is no int"))?;
    Ok(Some(i32::from_be_bytes(bytes)))
}

fn long(cell: &Option<Bytes>) -> Result<Option<i64>, String> {
    let Some(bytes) = cell else { return Ok(None) };
    let bytes = bytes.as_ref().try_into().map_err(|_| format!("{bytes:?} is no bigint"))?;
    Ok(Some(i64::from_be_bytes(bytes)))
}

/// The entries of a map of ints to texts: a count, and each key and value behind its length.
fn entries(cell: &Option<Bytes>) -> Result<BTreeMap<i32, Vec<u8>>, String> {
    let mut entries = BTreeMap::new();
    let Some(bytes) = cell else { return Ok(entries) };
    let mut rest = bytes.as_ref();
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at_checked(count).ok_or("a map ends too early")?;
        rest = left;
        Ok::<_, String>(taken)
    };
    let number = |bytes: &[u8]| bytes.try_into().map(i32::from_be_bytes).map_err(|_| "no int".to_owned());
    let count = number(take(4)?)?;
    for _ in 0..count {
        let key_bytes = number(take(4)?)?;
        let key = number(take(key_bytes as usize)?)?;
        let value_bytes = number(take(4)?)?;
        entries.insert(key, take(value_bytes as usize)?.to_vec());
    }
    Ok(entries)
}
