//! Every value of one column with every value of the next: what IN on several columns of a key comes to.
//!
//! ```text
//!   a IN (1, 2) AND b = 5 AND c IN (7, 8)   =   (1, 5, 7) (1, 5, 8) (2, 5, 7) (2, 5, 8)
//! ```
//!
//! A few lists of a few hundred values are a few million combinations, each with values of up to 64 KiB: so they are
//! counted before any of them is put together.

use runtime::Io;

use super::restriction::{Point, Restriction};
use crate::QueryError;
use crate::error::refuse;
use crate::terms::Bindings;

/// Most combinations: nobody writes so many.
pub(crate) const COMBINATIONS_MAX: usize = 65_535;
/// More values or combinations are brought in order, and made into keys, on another thread.
const HERE_MAX: usize = 4 << 10;
/// Most bytes of all their values: as much as the largest request.
const COMBINATION_BYTES_MAX: usize = 16 << 20;

/// The values that each of several restrictions allows, in the order of the columns.
pub(super) struct Product {
    /// Of what, for who is told that it is too large.
    what: &'static str,
    lists: Vec<Vec<Point>>,
    count: usize,
}

impl Product {
    /// Nothing yet: one combination of no values.
    pub(super) fn new(what: &'static str) -> Self {
        Product { what, lists: Vec::new(), count: 1 }
    }

    /// Goes on with the values of another restriction, brought in order and freed from doubles by `arrange`.
    ///
    /// # Errors
    /// A value is null, unset or not of its type, or the combinations are too many or too long.
    pub(super) async fn push(
        &mut self,
        restriction: &Restriction,
        bindings: &Bindings<'_>,
        io: &Io,
        arrange: impl FnOnce(&mut Vec<Point>) + Send + 'static,
    ) -> Result<(), QueryError> {
        let mut points = restriction.bind_points(self.what, bindings)?;
        let is_long = points.len() > HERE_MAX;
        let arranging = move || {
            arrange(&mut points);
            points
        };
        let points = if is_long { io.run(arranging).await } else { arranging() };
        self.count *= points.len();
        self.lists.push(points);
        self.check()
    }

    fn check(&self) -> Result<(), QueryError> {
        if self.count > COMBINATIONS_MAX {
            return Err(too_many(self.what, self.count));
        }
        let bytes = |list: &Vec<Point>| list.iter().flatten().map(Vec::len).sum::<usize>();
        let times = |list: &Vec<Point>| self.count.checked_div(list.len()).unwrap_or(0);
        let all_bytes: usize = self.lists.iter().map(|list| bytes(list) * times(list)).sum();
        if self.lists.len() > 1 && all_bytes > COMBINATION_BYTES_MAX {
            refuse!(
                "The combinations of the IN restrictions on {} have {all_bytes} bytes: more than the \
                 {COMBINATION_BYTES_MAX} that they may have",
                self.what
            );
        }
        Ok(())
    }

    /// What becomes of all combinations: made on another thread, if they are many.
    pub(super) async fn make<T: Send + 'static>(
        self,
        io: &Io,
        make: impl FnOnce(&Product) -> T + Send + 'static,
    ) -> T {
        if self.count > HERE_MAX { io.run(move || make(&self)).await } else { make(&self) }
    }

    /// All combinations, the last column changing fastest: in order, if each list is.
    pub(super) fn iter(&self) -> impl Iterator<Item = Vec<&[u8]>> {
        (0..self.count).map(|index| self.at(index))
    }

    fn at(&self, index: usize) -> Vec<&[u8]> {
        let mut period = self.count;
        let mut values = Vec::with_capacity(self.lists.len());
        for list in &self.lists {
            period /= list.len();
            values.extend(list[index / period % list.len()].iter().map(Vec::as_slice));
        }
        values
    }
}

/// In the words of Cassandra's guardrail `in_select_cartesian_product`.
pub(crate) fn too_many(what: &str, count: usize) -> QueryError {
    QueryError::invalid(stdx::brief!(
        "Aborting query because the cartesian product of the IN restrictions on {what} produces {count} values, \
         this exceeds fail threshold of {COMBINATIONS_MAX}."
    ))
}
