//! One walk over untrusted bytes of a row with every length checked.

use super::*;

struct Checker<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Checker<'a> {
    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], RowError> {
        let error = RowError { offset: self.offset, bytes: self.bytes.len(), what };
        let taken = self.bytes.get(self.offset..).and_then(|rest| rest.get(..count)).ok_or(error)?;
        self.offset += count;
        Ok(taken)
    }

    fn run(&mut self, what: &'static str) -> Result<&'a [u8], RowError> {
        let head = self.take(4, what)?;
        self.take(u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize, what)
    }

    fn flags(&mut self, known: u8, what: &'static str) -> Result<u8, RowError> {
        let offset = self.offset;
        let flags = self.take(1, what)?[0];
        if flags & !known != 0 {
            return Err(RowError { offset, bytes: self.bytes.len(), what });
        }
        Ok(flags)
    }

    fn cell(&mut self, flags: u8, has_path: bool) -> Result<(), RowError> {
        let fixed = if flags & CELL_ROW_TIMESTAMP == 0 { 8 } else { 0 }
            + if flags & CELL_ENDS != 0 { 4 } else { 0 }
            + if flags & CELL_EXPIRING != 0 { 4 } else { 0 };
        self.take(fixed, "cell times")?;
        if has_path {
            self.run("cell path")?;
        }
        self.run("cell value").map(|_| ())
    }
}

const CELL_FLAGS: u8 = CELL_ROW_TIMESTAMP | CELL_ENDS | CELL_EXPIRING;

pub(super) fn check(bytes: &[u8]) -> Result<(), RowError> {
    let mut row = Checker { bytes, offset: 0 };
    let clustering = row.run("clustering")?;
    Clustering::from_encoded(Bytes::copy_from_slice(clustering)).map_err(|error| RowError {
        offset: 4 + error.offset,
        bytes: bytes.len(),
        what: "clustering component",
    })?;
    let row_flags = row.flags(ROW_LIVENESS | ROW_LIVENESS_TTL | ROW_DELETION | ROW_PLAIN, "row flags")?;
    let (has_liveness, is_plain) = (row_flags & ROW_LIVENESS != 0, row_flags & ROW_PLAIN != 0);
    let contradicts = |flags: u8| {
        // What a row says of itself must hold: a plain one is handed out unread.
        (flags & CELL_ROW_TIMESTAMP != 0 && !has_liveness)
            || (flags & (CELL_ENDS | CELL_COMPLEX_DELETION) != 0 && is_plain)
    };
    let refuse = |offset, what| RowError { offset, bytes: bytes.len(), what };
    if (row_flags & ROW_LIVENESS_TTL != 0 && !has_liveness)
        || (is_plain && row_flags & (ROW_LIVENESS_TTL | ROW_DELETION) != 0)
    {
        return Err(refuse(row.offset - 1, "contradicting row flags"));
    }
    let fixed = if has_liveness { 8 } else { 0 }
        + if row_flags & ROW_LIVENESS_TTL != 0 { 8 } else { 0 }
        + if row_flags & ROW_DELETION != 0 { 12 } else { 0 };
    row.take(fixed, "row times")?;
    let mut last_id = None;
    while row.offset < bytes.len() {
        let id = row.take(2, "column id")?;
        let id = u16::from_le_bytes([id[0], id[1]]);
        if last_id.is_some_and(|last| last >= id) {
            return Err(refuse(row.offset - 2, "order of column ids"));
        }
        last_id = Some(id);
        let flags = row.flags(CELL_FLAGS | CELL_COMPLEX | CELL_COMPLEX_DELETION, "cell flags")?;
        if contradicts(flags) || flags & (CELL_COMPLEX | CELL_COMPLEX_DELETION) == CELL_COMPLEX_DELETION {
            return Err(refuse(row.offset - 1, "contradicting cell flags"));
        }
        if flags & CELL_COMPLEX == 0 {
            row.cell(flags, false)?;
            continue;
        }
        let body = row.run("complex column")?;
        let base = row.offset - body.len();
        let mut cells = Checker { bytes: body, offset: 0 };
        let mut walk = || -> Result<(), RowError> {
            cells.take(if flags & CELL_COMPLEX_DELETION != 0 { 12 } else { 0 }, "complex deletion")?;
            while cells.offset < body.len() {
                let flags = cells.flags(CELL_FLAGS, "cell flags")?;
                if contradicts(flags) {
                    return Err(RowError {
                        offset: cells.offset - 1,
                        bytes: body.len(),
                        what: "contradicting cell flags",
                    });
                }
                cells.cell(flags, true)?;
            }
            Ok(())
        };
        walk().map_err(|error| RowError { offset: base + error.offset, bytes: bytes.len(), ..error })?;
    }
    Ok(())
}
