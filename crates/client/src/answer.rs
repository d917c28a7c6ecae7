//! Answers, and rows taken apart.

use std::sync::Arc;

use bytes::Bytes;
use protocol::{CellReader, ColumnSpec, Prepared, Response, ResponseEnvelope, ResultMetadata, Rows};

use crate::ClientError;

/// One row: a cell per column, `None` for null.
pub type Row = Vec<Option<Bytes>>;

/// The answer to one request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Stream it came on; as [`Connection::send`](crate::Connection::send) gave it.
    pub stream: i16,
    /// What the server said, an ERROR too.
    pub envelope: ResponseEnvelope,
}

/// Rows of one page.
#[derive(Clone, Debug)]
pub struct ResultRows {
    /// The columns.
    pub metadata: Arc<ResultMetadata>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Where the next page begins, if there is one.
    pub paging_state: Option<Bytes>,
}

impl Answer {
    /// Turns an ERROR into an error.
    ///
    /// # Errors
    /// [`ClientError::Server`].
    pub fn checked(self) -> Result<Answer, ClientError> {
        match self.envelope.response {
            Response::Error(error) => Err(ClientError::Server(error)),
            _ => Ok(self),
        }
    }

    /// The rows of a page.
    ///
    /// # Errors
    /// The answer is an error or something else than rows, or its cells are malformed.
    pub fn rows(self) -> Result<ResultRows, ClientError> {
        match self.checked()?.envelope.response {
            Response::Rows(rows) => ResultRows::of(&rows),
            other => Err(unexpected("rows", &other)),
        }
    }

    /// A statement that was prepared.
    ///
    /// # Errors
    /// The answer is an error or something else.
    pub fn prepared(self) -> Result<Prepared, ClientError> {
        match self.checked()?.envelope.response {
            Response::Prepared(prepared) => Ok(prepared),
            other => Err(unexpected("a prepared statement", &other)),
        }
    }
}

impl ResultRows {
    /// Takes rows apart.
    ///
    /// # Errors
    /// Cells are cut or missing.
    pub fn of(rows: &Rows) -> Result<ResultRows, ClientError> {
        let mut cells = CellReader::new(rows.cells.clone());
        let column_count = rows.metadata.columns().len();
        let mut taken = Vec::new();
        for _ in 0..rows.row_count {
            let mut row = Vec::with_capacity(column_count);
            for _ in 0..column_count {
                let cell = cells.next_cell().ok_or_else(|| ClientError::Unexpected {
                    expected: "a cell",
                    got: "the end of the rows".to_owned(),
                })?;
                row.push(cell?);
            }
            taken.push(row);
        }
        Ok(ResultRows {
            metadata: rows.metadata.clone(),
            rows: taken,
            paging_state: rows.paging_state.clone(),
        })
    }

    /// The columns.
    pub fn columns(&self) -> &[ColumnSpec] {
        self.metadata.columns()
    }

    /// Where a column stands, by name.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|column| &*column.name == name)
    }
}

pub(crate) fn unexpected(expected: &'static str, got: &Response) -> ClientError {
    let mut got = format!("{got:?}");
    if let Some((end, _)) = got.char_indices().nth(200) {
        got.truncate(end);
    }
    ClientError::Unexpected { expected, got }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use protocol::put_cell;
    use types::CqlType;

    use super::*;

    fn rows(cells: &[Option<&[u8]>], row_count: u32) -> Rows {
        let column = |name: &str| ColumnSpec {
            keyspace: "ks".into(),
            table: "t".into(),
            name: name.into(),
            cql_type: CqlType::Blob,
        };
        let mut out = BytesMut::new();
        cells.iter().for_each(|cell| put_cell(&mut out, *cell));
        Rows {
            metadata: Arc::new(ResultMetadata::new(vec![column("a"), column("b")])),
            no_metadata: false,
            new_metadata_id: None,
            paging_state: None,
            row_count,
            cells: out.freeze(),
        }
    }

    #[test]
    fn cells_become_rows() {
        let rows = ResultRows::of(&rows(&[Some(b"1"), None, Some(b""), Some(b"2")], 2)).unwrap();
        assert_eq!(rows.rows.len(), 2);
        assert_eq!(rows.rows[0], [Some(Bytes::from_static(b"1")), None]);
        assert_eq!(rows.column_index("b"), Some(1));
    }

    #[test]
    fn a_row_that_is_cut_is_an_error() {
        assert!(ResultRows::of(&rows(&[Some(b"1"), None, Some(b"")], 2)).is_err());
    }
}
