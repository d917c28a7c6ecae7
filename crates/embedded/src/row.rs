//! A row, and rows as Rust values.

use std::sync::Arc;

use query::ColumnSpec;

use crate::page::Page;
use crate::{Error, FromCql};

/// A row of an answer. Cheap to clone: rows of one page share its memory, which is freed with the last of
/// them.
#[derive(Clone)]
pub struct Row {
    page: Arc<Page>,
    index: usize,
}

impl Row {
    pub(crate) fn new(page: Arc<Page>, index: usize) -> Self {
        Row { page, index }
    }

    /// The columns.
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.page.columns
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.page.columns.len()
    }

    /// Are there no columns?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a column, by its name or its index. Names are as CQL shows them: lower case unless
    /// quoted, and of the first when several columns share one.
    ///
    /// # Errors
    /// [`Error::NoColumn`], or [`Error::Read`] when the value does not go into the type.
    ///
    /// # Example
    /// ```
    /// # let database = embedded::Database::in_memory()?;
    /// let rows = database.query("SELECT key, tokens FROM system.local", ()).wait()?;
    /// for row in rows {
    ///     let row = row?;
    ///     let key: &str = row.get("key")?;
    ///     let tokens = row.get::<Vec<String>>(1)?;
    ///     assert_eq!((key, tokens.len()), ("local", 16));
    /// }
    /// # Ok::<(), embedded::Error>(())
    /// ```
    pub fn get<'a, T: FromCql<'a>>(&'a self, column: impl ColumnIndex) -> Result<T, Error> {
        let index = column.find(self.columns()).ok_or_else(|| {
            let names: Vec<&str> = self.columns().iter().map(|column| &*column.name).collect();
            Error::NoColumn { column: column.shown(), columns: names.join(", ") }
        })?;
        self.at(index)
    }

    /// The whole row as Rust values.
    ///
    /// # Errors
    /// [`Error::ColumnCount`], or [`Error::Read`] when a value does not go into its type.
    pub fn to<T: FromRow>(&self) -> Result<T, Error> {
        T::from_row(self)
    }

    /// The bytes of a value in CQL's native encoding; `None` when it is null or there is no such column.
    pub fn bytes(&self, index: usize) -> Option<&[u8]> {
        self.page.cell(self.index, index)
    }

    fn at<'a, T: FromCql<'a>>(&'a self, index: usize) -> Result<T, Error> {
        let column = &self.page.columns[index];
        T::from_cql(&column.cql_type, self.bytes(index))
            .map_err(|source| Error::Read { column: column.name.to_string(), source })
    }
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        for (index, column) in self.columns().iter().enumerate() {
            let text = self.bytes(index).map(|bytes| column.cql_type.to_cql_literal(bytes));
            map.entry(&&*column.name, &format_args!("{}", text.as_deref().unwrap_or("null")));
        }
        map.finish()
    }
}

/// What names a column of a row: its name, or its index from 0.
pub trait ColumnIndex {
    /// Its index among the columns, if it is there.
    fn find(&self, columns: &[ColumnSpec]) -> Option<usize>;
    /// How errors show it.
    fn shown(&self) -> String;
}

impl ColumnIndex for usize {
    fn find(&self, columns: &[ColumnSpec]) -> Option<usize> {
        Some(*self).filter(|index| *index < columns.len())
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl ColumnIndex for &str {
    fn find(&self, columns: &[ColumnSpec]) -> Option<usize> {
        columns.iter().position(|column| *column.name == **self)
    }

    fn shown(&self) -> String {
        (*self).to_owned()
    }
}

impl ColumnIndex for &String {
    fn find(&self, columns: &[ColumnSpec]) -> Option<usize> {
        ColumnIndex::find(&self.as_str(), columns)
    }

    fn shown(&self) -> String {
        (*self).clone()
    }
}

/// What a row can be turned into: a tuple of values in the order of the columns (`(T,)` for one column),
/// or a type of yours.
///
/// # Example
/// ```
/// use embedded::{Database, Error, FromRow, Row};
///
/// struct Node {
///     key: String,
///     cluster: String,
/// }
///
/// impl FromRow for Node {
///     fn from_row(row: &Row) -> Result<Self, Error> {
///         Ok(Node { key: row.get("key")?, cluster: row.get("cluster_name")? })
///     }
/// }
///
/// # let database = Database::in_memory()?;
/// let nodes: Vec<Node> = database.query("SELECT * FROM system.local", ()).wait()?.all().wait()?;
/// assert_eq!((nodes[0].key.as_str(), nodes[0].cluster.as_str()), ("local", "Test Cluster"));
/// # Ok::<(), Error>(())
/// ```
pub trait FromRow: Sized {
    /// Takes the row's values out.
    ///
    /// # Errors
    /// The row has other columns, or values that do not fit.
    fn from_row(row: &Row) -> Result<Self, Error>;
}

impl FromRow for Row {
    fn from_row(row: &Row) -> Result<Self, Error> {
        Ok(row.clone())
    }
}

macro_rules! from_row_for_tuple {
    ($count:literal: $($name:ident $index:tt),*) => {
        impl<$($name: for<'a> FromCql<'a>),*> FromRow for ($($name,)*) {
            fn from_row(row: &Row) -> Result<Self, Error> {
                if row.len() != $count {
                    return Err(Error::ColumnCount { expected: $count, got: row.len() });
                }
                Ok(($(row.at::<$name>($index)?,)*))
            }
        }
    };
}

from_row_for_tuple!(1: A 0);
from_row_for_tuple!(2: A 0, B 1);
from_row_for_tuple!(3: A 0, B 1, C 2);
from_row_for_tuple!(4: A 0, B 1, C 2, D 3);
from_row_for_tuple!(5: A 0, B 1, C 2, D 3, E 4);
from_row_for_tuple!(6: A 0, B 1, C 2, D 3, E 4, F 5);
from_row_for_tuple!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
from_row_for_tuple!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
from_row_for_tuple!(9: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
from_row_for_tuple!(10: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
from_row_for_tuple!(11: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
from_row_for_tuple!(12: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
from_row_for_tuple!(13: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);
from_row_for_tuple!(14: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13);
from_row_for_tuple!(15: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14);
from_row_for_tuple!(16: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15);
