//! What a statement answers: rows, page after page.

use std::sync::Arc;

use futures_util::Stream;
use query::{ColumnSpec, QueryOptions, SchemaChange};

use crate::page::Page;
use crate::row::{FromRow, Row};
use crate::session::Session;
use crate::worker::{Answer, Work};
use crate::{Call, Error};

/// The answer to a statement: its rows, of which one page is in memory at a time. Statements that give
/// no rows have an answer without columns.
///
/// | | blocks | awaits |
/// |---|---|---|
/// | row by row | `for row in rows` | [`Rows::next_row`], [`Rows::stream`] |
/// | row by row, as Rust values | [`Rows::typed`] | |
/// | all, as Rust values | `rows.all::<T>().wait()` | `rows.all::<T>().await` |
/// | the first, as Rust values | `rows.first::<T>().wait()` | `rows.first::<T>().await` |
#[derive(Debug)]
pub struct Rows {
    page: Arc<Page>,
    /// The first row of the page that was not given yet.
    next_row: usize,
    /// How to come to the page behind this one.
    more: Option<Box<More>>,
    warnings: Vec<String>,
    schema_change: Option<SchemaChange>,
}

/// What is done again for each page.
#[derive(Debug)]
struct More {
    session: Session,
    keyspace: Option<String>,
    work: Work,
    /// With the place where the next page begins.
    options: QueryOptions,
}

impl Rows {
    pub(crate) fn new(
        answer: Answer,
        session: Session,
        keyspace: Option<String>,
        work: Work,
        mut options: QueryOptions,
    ) -> Self {
        let more = answer.page.paging_state.clone().map(|paging_state| {
            options.paging_state = Some(paging_state);
            Box::new(More { session, keyspace, work, options })
        });
        Rows {
            page: Arc::new(answer.page),
            next_row: 0,
            more,
            warnings: answer.warnings,
            schema_change: answer.schema_change,
        }
    }

    /// The columns; none when the statement gives no rows.
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.page.columns
    }

    /// What should be known although nothing failed, of all pages so far.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What the statement changed in the schema, if it did.
    pub fn schema_change(&self) -> Option<&SchemaChange> {
        self.schema_change.as_ref()
    }

    /// The next row, from the next page if need be; `None` after the last.
    ///
    /// # Errors
    /// A page could not be read; a later call tries it again.
    ///
    /// # Cancel safety
    /// Dropped, no row is lost.
    pub async fn next_row(&mut self) -> Result<Option<Row>, Error> {
        loop {
            if let Some(row) = self.row_at_hand() {
                return Ok(Some(row));
            }
            if !self.turn_page().await? {
                return Ok(None);
            }
        }
    }

    /// The rows as a stream.
    pub fn stream(self) -> impl Stream<Item = Result<Row, Error>> + Send + Unpin {
        Box::pin(futures_util::stream::try_unfold(self, |mut rows| async move {
            Ok(rows.next_row().await?.map(|row| (row, rows)))
        }))
    }

    /// The rows as Rust values, blocking at the end of each page.
    pub fn typed<T: FromRow>(self) -> impl Iterator<Item = Result<T, Error>> {
        self.into_iter().map(|row| T::from_row(&row?))
    }

    /// All rows as Rust values.
    pub fn all<T: FromRow + Send + 'static>(mut self) -> Call<'static, Vec<T>> {
        Call::new(async move {
            let mut all = Vec::new();
            while let Some(row) = self.next_row().await? {
                all.push(T::from_row(&row)?);
            }
            Ok(all)
        })
    }

    /// The first row as Rust values; `None` when there is none.
    pub fn first<T: FromRow + Send + 'static>(mut self) -> Call<'static, Option<T>> {
        Call::new(async move { self.next_row().await?.map(|row| T::from_row(&row)).transpose() })
    }

    fn row_at_hand(&mut self) -> Option<Row> {
        if self.next_row >= self.page.row_count {
            return None;
        }
        let row = Row::new(Arc::clone(&self.page), self.next_row);
        self.next_row += 1;
        Some(row)
    }

    /// Reads the next page in place of this one; false when there is none.
    async fn turn_page(&mut self) -> Result<bool, Error> {
        let Some(more) = &mut self.more else { return Ok(false) };
        let answer =
            more.session.carry_out(more.keyspace.clone(), more.work.clone(), more.options.clone()).await?;
        match &answer.page.paging_state {
            Some(paging_state) => more.options.paging_state = Some(paging_state.clone()),
            None => self.more = None,
        }
        for warning in answer.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        self.page = Arc::new(answer.page);
        self.next_row = 0;
        Ok(true)
    }
}

impl IntoIterator for Rows {
    type Item = Result<Row, Error>;
    type IntoIter = RowIterator;

    fn into_iter(self) -> RowIterator {
        RowIterator { rows: Some(self) }
    }
}

/// Rows one by one, blocking at the end of each page. It ends after an error.
#[derive(Debug)]
pub struct RowIterator {
    /// Gone after the last row, or an error.
    rows: Option<Rows>,
}

impl Iterator for RowIterator {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.rows.as_mut()?;
        let next = match rows.row_at_hand() {
            Some(row) => return Some(Ok(row)),
            None => runtime::block_on(rows.next_row()),
        };
        if !matches!(next, Ok(Some(_))) {
            self.rows = None;
        }
        next.transpose()
    }
}
