//! SELECT of one row by its key: which plans are such, and how the row is shown. See [`crate::point`].

use rows::{RowInPlace, RowValues};
use types::CqlType;

use super::plan::{Limit, SelectPlan};
use super::rows::{Projection, Source, write_single_row};
use crate::catalog::Home;
use crate::response::RowSink;

/// The answer: at most one row.
#[derive(Clone, Copy, Debug)]
pub struct PointRow<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) row: Option<RowInPlace<'a>>,
    pub(crate) projection: &'a Projection,
}

impl PointRow<'_> {
    /// About how many bytes its cells take.
    pub fn byte_count(&self) -> usize {
        self.row.map_or(0, |row| 4 * self.projection.sources.len() + self.key.len() + row.byte_count())
    }

    /// Gives every cell to the sink; the number of rows.
    pub fn write(&self, sink: &mut impl RowSink) -> usize {
        let Some(row) = self.row else { return 0 };
        sink.expect(self.byte_count());
        match row {
            RowInPlace::Encoded(row) => write_single_row(self.projection, self.key, row, sink),
            RowInPlace::Values(values) => self.write_values(values, sink),
        }
        1
    }

    fn write_values(&self, values: &RowValues<'_>, sink: &mut impl RowSink) {
        let mut behind = values;
        for source in &self.projection.sources {
            let Source::Regular(index) = source else {
                // Such a table has no other columns.
                sink.cell(Some(self.key));
                continue;
            };
            let wanted = self.projection.regular_columns[*index].id;
            // Most often it is the next one.
            let is_next = behind.first().is_some_and(|(id, _)| *id == wanted);
            let place = match is_next {
                true => Some(values.len() - behind.len()),
                false => values.binary_search_by_key(&wanted, |(id, _)| *id).ok(),
            };
            sink.cell(place.map(|place| values[place].1));
            behind = place.map_or(behind, |place| &values[place + 1..]);
        }
    }
}

impl SelectPlan {
    /// The type of the key, if this is a plain selection of the row of one key, bound by the first marker,
    /// from a table that has one row a key.
    pub(super) fn find_point_key(&self) -> Option<CqlType> {
        let is_plain = self.home == Home::Stored
            && self.comparator.types().is_empty()
            && self.selectors.is_none()
            && !self.is_filtered
            && !self.is_distinct
            && self.sort.is_empty()
            && self.limit.as_ref().is_none_or(Limit::is_positive_constant)
            && self.per_partition_limit.is_none();
        match self.restrictions.single_key()?.plain_marker()? {
            (0, cql_type) if is_plain => Some(cql_type.clone()),
            _ => None,
        }
    }
}
