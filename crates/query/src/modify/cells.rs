//! From operations on a column to cells in a row.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rows::{CellRef, ColumnData, DeletionTime, Row, RowBuilder};
use types::encoding::{Fields, Parts};
use types::{CqlType, uuid};

use super::bind::Elements;
use super::operation::{ColumnChange, Operation};
use crate::QueryError;
use crate::error::refuse;
use crate::functions::ScalarFunction;
use crate::terms::{Bindings, Term, Value};

/// When the cells of a statement are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTime {
    /// µs.
    pub(crate) timestamp: i64,
    /// Seconds to live; 0 when nothing expires.
    pub(crate) time_to_live: u32,
    /// Seconds since 1970.
    pub(crate) now: u32,
}

impl WriteTime {
    pub(super) fn expiration(&self) -> u32 {
        // The greatest second that table files can hold.
        self.now.saturating_add(self.time_to_live).min(u32::MAX - 2)
    }

    pub(super) fn live<'v>(&self, value: &'v [u8]) -> CellRef<'v> {
        match self.time_to_live {
            0 => CellRef::live(self.timestamp, value),
            ttl => CellRef::expiring(self.timestamp, ttl, self.expiration(), value),
        }
    }

    pub(super) fn tombstone(&self) -> CellRef<'static> {
        CellRef::tombstone(self.timestamp, self.now)
    }

    pub(super) fn deletion(&self) -> DeletionTime {
        DeletionTime { timestamp: self.timestamp, local_deletion_time: self.now }
    }

    /// Hides what was before, but not what this statement writes.
    pub(super) fn overwrite(&self) -> DeletionTime {
        DeletionTime { timestamp: self.timestamp.saturating_sub(1), local_deletion_time: self.now }
    }
}

/// Gives the times under which elements are put before a list: ever earlier, and before 2010.
///
/// Cassandra mirrors the clock at 2010-01-01 and counts 100 ns steps within a millisecond down.
#[derive(Debug, Default)]
pub(crate) struct PrependClock(Mutex<Option<(i64, i64)>>);

const REFERENCE_MILLIS: i64 = 1_262_304_000_000;
const STEPS_MAX: i64 = 9_999;

impl PrependClock {
    /// The first of `count` steps, each one later than the one before and all earlier than any given so far.
    fn next(&self, now_millis: i64, count: i64) -> (i64, i64) {
        let millis = REFERENCE_MILLIS - (now_millis - REFERENCE_MILLIS);
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match *last {
            Some((last, steps)) if millis >= last => match steps - count {
                left if left >= 0 => (last, left),
                _ => (last - 1, STEPS_MAX - count),
            },
            _ => (millis, STEPS_MAX - count),
        };
        *last = Some(next);
        next
    }
}

/// What applying operations needs beside bound values.
pub(super) struct Applying<'a> {
    pub(super) time: WriteTime,
    pub(super) bindings: &'a Bindings<'a>,
    /// Bytes of all bound values.
    pub(super) value_bytes: usize,
    pub(super) prepends: &'a Arc<PrependClock>,
    /// Of a conditional change.
    pub(super) elements: Option<&'a Elements>,
    /// Which statement of its request it is.
    pub(super) number: u32,
    /// The row as it is, where it had to be read.
    pub(super) before: Option<&'a Row>,
}

impl Applying<'_> {
    /// The place of an element behind all that a list has: a time UUID.
    fn next_place(&self) -> [u8; 16] {
        let own = self.bindings.environment.time_uuid();
        let Some(elements) = self.elements else { return own };
        let low_half = own.last_chunk::<8>().map_or(0, |half| u64::from_be_bytes(*half));
        let ticks = self.time.timestamp.saturating_mul(10).saturating_add(uuid::ticks_at_millis(0));
        uuid::from_ticks(ticks.saturating_add(elements.fetch_add(1, Ordering::Relaxed)), low_half)
    }
}

/// Writes all that is done to a column into the row.
///
/// # Errors
/// A bound value is wrong for what is done with it.
pub(super) fn apply(
    change: &ColumnChange,
    applying: &Applying<'_>,
    row: &mut RowBuilder,
) -> Result<(), QueryError> {
    if change.cql_type.is_multi_cell() {
        return apply_multi_cell(change, applying, row);
    }
    if change.cql_type == CqlType::Counter {
        return add_to_counter(change, applying, row);
    }
    // A DELETE may name a column twice; the last word counts.
    match change.operations.last() {
        Some(Operation::Set(term)) => match term.bind(applying.bindings)? {
            Value::Unset => {}
            Value::Null => {
                row.cell(change.id, applying.time.tombstone());
            }
            Value::Set(value) => {
                row.cell(change.id, applying.time.live(&value));
            }
        },
        Some(Operation::Increase(adding, term)) => increase(change, (adding, term), applying, row)?,
        Some(_) => {
            row.cell(change.id, applying.time.tombstone());
        }
        None => {}
    }
    Ok(())
}

/// Writes what a column holds with something added. To null nothing can be added: it stays.
fn increase(
    change: &ColumnChange,
    (adding, term): (&ScalarFunction, &Term),
    applying: &Applying<'_>,
    row: &mut RowBuilder,
) -> Result<(), QueryError> {
    let Some(ColumnData::Simple(held)) = applying.before.and_then(|row| row.column(change.id)) else {
        return Ok(());
    };
    let more = match term.bind(applying.bindings)? {
        Value::Set(more) => more,
        Value::Null => refuse!("Invalid null value for an addition"),
        Value::Unset => return Ok(()),
    };
    let sum = adding.call(&[Some(held.value), Some(&more)], applying.bindings.environment)?;
    if let Some(sum) = sum {
        row.cell(change.id, applying.time.live(&sum));
    }
    Ok(())
}

/// Writes what is added to a counter, which nobody has counted yet.
fn add_to_counter(
    change: &ColumnChange,
    applying: &Applying<'_>,
    row: &mut RowBuilder,
) -> Result<(), QueryError> {
    let (mut deletion, mut sum) = (DeletionTime::LIVE, None::<i64>);
    let bound = |term: &Term| match term.bind(applying.bindings)? {
        Value::Set(value) => Ok(<[u8; 8]>::try_from(&*value).ok().map(i64::from_be_bytes)),
        Value::Null => refuse!("Invalid null value for counter increment"),
        Value::Unset => Ok(None),
    };
    for operation in &change.operations {
        let more = match operation {
            Operation::Add(term) => bound(term)?,
            Operation::Subtract(term) => match bound(term)? {
                Some(i64::MIN) => refuse!(
                    "The negation of {} overflows supported counter precision (signed 8 bytes integer)",
                    i64::MIN
                ),
                less => less.map(|less| -less),
            },
            _ => {
                deletion = applying.time.deletion();
                None
            }
        };
        sum = more.map(|more| sum.unwrap_or(0).wrapping_add(more)).or(sum);
    }
    let path = CellRef::increment_path(applying.number);
    let sum = sum.map(i64::to_be_bytes);
    let increment = sum.as_ref().map(|sum| CellRef::live(applying.time.timestamp, sum).with_path(&path));
    row.complex(change.id, deletion, increment);
    Ok(())
}

/// The cells of a multi-cell column while they are gathered.
struct Gathered<'a> {
    applying: &'a Applying<'a>,
    change: &'a ColumnChange,
    /// Path and value of the cells of a list as it is, if it had to be read.
    existing: Vec<(&'a [u8], &'a [u8])>,
    deletion: DeletionTime,
    /// Path and value; no value is a tombstone.
    cells: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn apply_multi_cell(
    change: &ColumnChange,
    applying: &Applying<'_>,
    row: &mut RowBuilder,
) -> Result<(), QueryError> {
    let existing = existing(change, applying.before);
    let mut gathered =
        Gathered { applying, change, existing, deletion: DeletionTime::LIVE, cells: Vec::new() };
    for operation in &change.operations {
        gathered.add(operation)?;
    }
    let path_type = path_type(&change.cql_type);
    let mut cells = gathered.cells;
    // Of equal paths the last one counts.
    cells.reverse();
    cells.sort_by(|(a, _), (b, _)| path_type.compare(a, b));
    cells.dedup_by(|(a, _), (b, _)| path_type.compare(a, b).is_eq());
    let time = applying.time;
    let cells = cells.iter().map(|(path, value)| match value {
        Some(value) => time.live(value).with_path(path),
        None => time.tombstone().with_path(path),
    });
    row.complex(change.id, gathered.deletion, cells);
    Ok(())
}

/// The type of the paths of a multi-cell column's cells.
fn path_type(of: &CqlType) -> CqlType {
    match of {
        CqlType::List { .. } => CqlType::Timeuuid,
        CqlType::Set { element, .. } => (**element).clone(),
        CqlType::Map { key, .. } => (**key).clone(),
        _ => CqlType::Smallint,
    }
}

impl Gathered<'_> {
    fn add(&mut self, operation: &Operation) -> Result<(), QueryError> {
        let bindings = self.applying.bindings;
        match operation {
            Operation::Set(term) => match term.bind(bindings)? {
                Value::Unset => Ok(()),
                Value::Null => {
                    self.deletion = self.applying.time.overwrite();
                    Ok(())
                }
                Value::Set(value) => {
                    self.deletion = self.applying.time.overwrite();
                    self.put_all(&value)
                }
            },
            Operation::Add(term) => match term.bind(bindings)? {
                Value::Set(value) => self.put_all(&value),
                Value::Null | Value::Unset => Ok(()),
            },
            Operation::Increase(..) => unreachable!("what is added to is a single cell"),
            Operation::Prepend(term) => match term.bind(bindings)? {
                Value::Set(value) => self.prepend(&value),
                Value::Null | Value::Unset => Ok(()),
            },
            Operation::Subtract(term) => match term.bind(bindings)? {
                Value::Set(value) => self.subtract(&value),
                Value::Null | Value::Unset => Ok(()),
            },
            Operation::SetIndex(index, value) => {
                let path = match self.index(index)? {
                    Some(path) => path,
                    None => refuse!("Invalid unset value for list index"),
                };
                self.put(path, value)
            }
            Operation::SetEntry(key, value) => {
                let key = match key.bind(bindings)? {
                    Value::Set(key) => key.into_owned(),
                    Value::Null => refuse!("Invalid null map key"),
                    Value::Unset => refuse!("Invalid unset map key"),
                };
                self.put(key, value)
            }
            Operation::SetField(index, value) => self.put(index.to_be_bytes().to_vec(), value),
            Operation::Delete => {
                self.deletion = self.applying.time.deletion();
                Ok(())
            }
            Operation::DeleteIndex(index) => {
                if let Some(path) = self.index(index)? {
                    self.cells.push((path, None));
                }
                Ok(())
            }
            Operation::DeleteEntry(key) => {
                let is_set = matches!(self.change.cql_type, CqlType::Set { .. });
                match key.bind(bindings)? {
                    Value::Set(key) => self.cells.push((key.into_owned(), None)),
                    Value::Null if is_set => refuse!("Invalid null set element"),
                    Value::Null => refuse!("Invalid null map key"),
                    Value::Unset if is_set => {}
                    Value::Unset => refuse!("Invalid unset map key"),
                }
                Ok(())
            }
            Operation::DeleteField(index) => {
                self.cells.push((index.to_be_bytes().to_vec(), None));
                Ok(())
            }
        }
    }

    fn put(&mut self, path: Vec<u8>, value: &Term) -> Result<(), QueryError> {
        match value.bind(self.applying.bindings)? {
            Value::Set(value) => self.cells.push((path, Some(value.into_owned()))),
            Value::Null => self.cells.push((path, None)),
            Value::Unset => {}
        }
        Ok(())
    }

    /// Adds every entry of a whole collection (or user type).
    fn put_all(&mut self, value: &[u8]) -> Result<(), QueryError> {
        match &self.change.cql_type {
            CqlType::List { .. } => {
                for part in parts(value, 1) {
                    let path = self.applying.next_place().to_vec();
                    self.cells.push((path, Some(part?.to_vec())));
                }
            }
            CqlType::Set { .. } => {
                for part in parts(value, 1) {
                    self.cells.push((part?.to_vec(), Some(Vec::new())));
                }
            }
            CqlType::Map { .. } => {
                let mut all = parts(value, 2);
                while let (Some(key), Some(value)) = (all.next(), all.next()) {
                    self.cells.push((key?.to_vec(), Some(value?.to_vec())));
                }
            }
            _ => {
                for (index, field) in Fields::new(value).map_while(Result::ok).enumerate() {
                    let path = u16::try_from(index).unwrap_or(u16::MAX).to_be_bytes().to_vec();
                    if let Some(field) = field {
                        self.cells.push((path, Some(field.to_vec())));
                    }
                }
            }
        }
        Ok(())
    }

    fn prepend(&mut self, value: &[u8]) -> Result<(), QueryError> {
        let environment = self.applying.bindings.environment;
        let elements: Vec<&[u8]> = parts(value, 1).collect::<Result<_, _>>()?;
        let low_half = environment.time_uuid().last_chunk::<8>().map_or(0, |half| u64::from_be_bytes(*half));
        // The last elements come first: later batches are earlier times.
        let mut end = elements.len();
        while end > 0 {
            let count = end.min(STEPS_MAX as usize);
            let (millis, first) = self.applying.prepends.next(environment.now_millis(), count as i64);
            for (offset, element) in elements[end - count..end].iter().enumerate() {
                let ticks = uuid::ticks_at_millis(millis).saturating_add(first + offset as i64);
                let path = uuid::from_ticks(ticks, low_half).to_vec();
                self.cells.push((path, Some(element.to_vec())));
            }
            end -= count;
        }
        Ok(())
    }

    fn subtract(&mut self, value: &[u8]) -> Result<(), QueryError> {
        let CqlType::List { element, .. } = &self.change.cql_type else {
            for part in parts(value, 1) {
                self.cells.push((part?.to_vec(), None));
            }
            return Ok(());
        };
        let mut unwanted: Vec<&[u8]> = parts(value, 1).collect::<Result<_, _>>()?;
        unwanted.sort_by(|a, b| element.compare(a, b));
        for (path, held) in &self.existing {
            if unwanted.binary_search_by(|other| element.compare(other, held)).is_ok() {
                self.cells.push((path.to_vec(), None));
            }
        }
        Ok(())
    }

    /// The path of the list's element at an index; `None` when it is unset.
    fn index(&self, index: &Term) -> Result<Option<Vec<u8>>, QueryError> {
        let value = match index.bind(self.applying.bindings)? {
            Value::Set(value) => value,
            Value::Null => refuse!("Invalid null value for list index"),
            Value::Unset => return Ok(None),
        };
        let Ok(bytes) = <[u8; 4]>::try_from(&*value) else { refuse!("Invalid null value for list index") };
        let index = i32::from_be_bytes(bytes);
        let existing = &self.existing;
        let is_write = self.change.operations.iter().any(|o| matches!(o, Operation::SetIndex(..)));
        if existing.is_empty() {
            if is_write {
                refuse!("Attempted to set an element on a list which is null");
            }
            refuse!("Attempted to delete an element from a list which is null");
        }
        match usize::try_from(index).ok().and_then(|index| existing.get(index)) {
            Some((path, _)) => Ok(Some(path.to_vec())),
            None => refuse!("List index {index} out of bound, list has size {}", existing.len()),
        }
    }
}

/// The cells of the column as it is, if something that is done to it asks for them.
fn existing<'a>(change: &ColumnChange, before: Option<&'a Row>) -> Vec<(&'a [u8], &'a [u8])> {
    match before.filter(|_| change.reads()).and_then(|row| row.column(change.id)) {
        Some(ColumnData::Complex(complex)) => complex.cells().map(|cell| (cell.path, cell.value)).collect(),
        _ => Vec::new(),
    }
}

/// The parts of a collection that was checked when it was bound.
fn parts(value: &[u8], per_entry: u64) -> impl Iterator<Item = Result<&[u8], QueryError>> {
    Parts::new(value, per_entry).into_iter().flatten().map(|part| match part {
        Ok(Some(part)) => Ok(part),
        Ok(None) => Err(QueryError::invalid("null is not supported inside collections")),
        Err(_) => Err(QueryError::invalid("Not enough bytes to read a collection")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_prepends_get_earlier_times() {
        let clock = PrependClock::default();
        let now = 1_700_000_000_000;
        let mut last: Option<(i64, i64)> = None;
        for (now, count) in [(now, 1), (now, 3), (now + 5, 2), (now + 4, 9000), (now + 4, 9000), (now + 9, 1)]
        {
            let (millis, first) = clock.next(now, count);
            assert!((0..=STEPS_MAX).contains(&first));
            if let Some((last_millis, last_first)) = last {
                assert!((millis, first + count - 1) < (last_millis, last_first));
            }
            last = Some((millis, first));
        }
    }
}
