//! INSERT and UPDATE of one row by its key, written the plain way.
//!
//! `INSERT INTO … VALUES (?, …)` and `UPDATE … SET a = ? … WHERE key = ?`, prepared, are most of what
//! applications write. What such a statement changes follows from the plan but for the bytes, so the
//! values are put from the frame into the mutation, checked on the way.

use coordinator::Coordinator;
use rows::{DeletionTime, Mutation, MutationMemory, RowBuilder};
use runtime::Plant;
use schema::ColumnId;
use smallvec::SmallVec;
use types::{CqlType, Token};

use super::bind::liveness;
use super::cells::WriteTime;
use super::operation::{ColumnChange, Operation};
use super::plan::ModifyPlan;
use crate::restrictions::{StatementType, check_key_length};
use crate::terms::Term;

/// Of a row in a mutation, what its head and the heads of its cells take.
const ROW_HEAD_BYTES: usize = 48;
const CELL_HEAD_BYTES: usize = 16;

/// Where each part of the row is among the values.
#[derive(Clone, Debug)]
pub(crate) struct PlainChange {
    key: Marked,
    /// Ascending by id.
    columns: Vec<(ColumnId, Marked)>,
    value_count: usize,
}

/// A marker, and what its value must be.
#[derive(Clone, Debug)]
struct Marked {
    index: usize,
    cql_type: CqlType,
}

impl Marked {
    fn of(term: &Term) -> Option<Marked> {
        term.plain_marker().map(|(index, cql_type)| Marked { index, cql_type: cql_type.clone() })
    }

    fn value<'v>(&self, values: &[&'v [u8]]) -> Option<&'v [u8]> {
        let value = *values.get(self.index)?;
        self.cql_type.validate(value).is_ok().then_some(value)
    }
}

impl ModifyPlan {
    /// How it is written the plain way, if it sets single cells of the row of one key to bound values and nothing
    /// else.
    pub(super) fn find_plain(&self) -> Option<PlainChange> {
        let is_plain = matches!(self.statement, StatementType::Insert | StatementType::Update)
            && self.comparator.types().is_empty()
            && self.using.timestamp.is_none()
            && self.using.time_to_live.is_none()
            && self.statics.is_empty()
            && !self.is_of_counters;
        let key = Marked::of(self.restrictions.single_key()?)?;
        let column = |change: &ColumnChange| match change.operations.as_slice() {
            [Operation::Set(term)] if !change.cql_type.is_multi_cell() => {
                Some((change.id, Marked::of(term)?))
            }
            _ => None,
        };
        let columns = self.regulars.iter().map(column).collect::<Option<Vec<_>>>().filter(|_| is_plain)?;
        let value_count = 1 + columns.len();
        Some(PlainChange { key, columns, value_count })
    }

    /// The mutation of a write of one row of these values, if they are right for it. It is made in the
    /// `memory` for those of a token, or in some of its own.
    pub(crate) fn plain_mutation<'v, 'm>(
        &self,
        bound: impl Iterator<Item = &'v [u8]>,
        time: impl FnOnce() -> WriteTime,
        memory: impl FnOnce(Token) -> Option<&'m mut MutationMemory>,
    ) -> Option<Mutation> {
        let change = self.plain.as_ref()?;
        // To collect them calls a function that is not inlined: 280 instructions of a write of ten values.
        let mut values: SmallVec<[&[u8]; 16]> = SmallVec::new();
        bound.for_each(|value| values.push(value));
        let key = change.key.value(&values).filter(|_| values.len() == change.value_count)?;
        check_key_length(key.len()).ok()?;
        let mut row_bytes = ROW_HEAD_BYTES;
        for (_, column) in &change.columns {
            row_bytes += column.value(&values)?.len() + CELL_HEAD_BYTES;
        }
        let time = time();
        let liveness = liveness(self.statement, &time);
        let write = |bytes| {
            let mut row = RowBuilder::appending(bytes, b"", liveness, DeletionTime::LIVE);
            for (id, column) in &change.columns {
                row.cell(*id, time.live(values[column.index]));
            }
            row
        };
        let (table, token) = (self.table.id(), Token::of(key));
        Some(match memory(token) {
            Some(memory) => memory.mutation_of_row(table, (token, key), row_bytes, write),
            None => Mutation::of_row(table, (token, key), row_bytes, write),
        })
    }

    /// The time of a write of one row, whose request may have a timestamp (µs since 1970).
    pub(crate) fn plain_time(&self, coordinator: &Coordinator, timestamp: Option<i64>) -> WriteTime {
        let time_to_live = self.table.options().default_time_to_live;
        WriteTime {
            timestamp: timestamp
                .filter(|_| !coordinator.has_planted(Plant::TimestampIgnored))
                .unwrap_or_else(|| coordinator.next_timestamp()),
            time_to_live,
            // Nothing but an end of life asks for it.
            now: if time_to_live == 0 { 0 } else { coordinator.now_seconds() },
        }
    }
}
