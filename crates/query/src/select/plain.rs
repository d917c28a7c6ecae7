//! SELECT of one row by its key: which plans are such, and how the row is shown. See [`crate::plain`].

use coordinator::ShownRow;
use rows::RowInPlace;
use types::CqlType;

use super::cells::{InPlace, RowHead, Writing};
use super::plan::{Limit, SelectPlan};
use super::rows::Projection;
use crate::catalog::Home;
use crate::response::RowSink;

/// The answer: at most one row.
#[derive(Debug)]
pub struct PlainRow<'a>(pub(crate) ShownRow<'a, Projection>);

impl PlainRow<'_> {
    /// About how many bytes its cells take.
    pub fn byte_count(&self) -> usize {
        let ShownRow { key, row, view: projection } = &self.0;
        row.map_or(0, |row| 4 * projection.sources.len() + key.len() + row.byte_count())
    }

    /// Gives every cell to the sink; the number of rows.
    pub fn write(&self, sink: &mut impl RowSink) -> usize {
        let Some(row) = self.0.row else { return 0 };
        sink.expect(self.byte_count());
        let (head, mut writing) = (RowHead::of_key(self.0.view, self.0.key), Writing::default());
        match row {
            RowInPlace::Encoded(row) => writing.write_encoded(&head, Some(row), sink),
            RowInPlace::Values(values) => writing.write(&head, &mut InPlace::new(values), sink),
        }
        1
    }
}

impl SelectPlan {
    /// The type of the key, if this is a plain selection of the row of one key, bound by the first marker,
    /// from a table that has one row a key.
    pub(super) fn find_plain_key(&self) -> Option<CqlType> {
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
