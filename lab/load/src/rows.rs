//! Answers with rows of one column: what is asked of a server before the load.
//!
//! ```text
//!   | kind = 2 | flags | columns = 1 | keyspace, table | name, type | rows | value … |
//! ```

use crate::Outcome;

const ROWS: u32 = 2;
/// Of the metadata's flags.
const HAS_MORE_PAGES: u32 = 0x02;

/// The values of the only column; a null is left out.
pub(crate) fn only_column(body: &[u8]) -> Outcome<Vec<Vec<u8>>> {
    let mut bytes = Bytes(body);
    if bytes.int()? != ROWS {
        return Err("an answer without rows".into());
    }
    let flags = bytes.int()?;
    if bytes.int()? != 1 {
        return Err("an answer of several columns".into());
    }
    if flags & HAS_MORE_PAGES != 0 {
        return Err("an answer of several pages".into());
    }
    // Keyspace and table may be told once for all columns, which is the same with one.
    for _ in ["keyspace", "table", "column"] {
        bytes.string()?;
    }
    bytes.pass_type()?;
    let count = bytes.int()?;
    let values = (0..count).map(|_| bytes.value()).collect::<Outcome<Vec<_>>>()?;
    Ok(values.into_iter().flatten().map(<[u8]>::to_vec).collect())
}

/// The elements of a list or a set; keys and values of a map in turn.
pub(crate) fn elements(collection: &[u8], of_each: u32) -> Outcome<Vec<&[u8]>> {
    let mut bytes = Bytes(collection);
    let count = bytes.int()? * of_each;
    (0..count).map(|_| Ok(bytes.value()?.unwrap_or_default())).collect()
}

/// What is left of an answer.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Outcome<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or("an answer that is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    fn short(&mut self) -> Outcome<u16> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn int(&mut self) -> Outcome<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn string(&mut self) -> Outcome<&'a [u8]> {
        let length = self.short()?;
        self.take(usize::from(length))
    }

    fn value(&mut self) -> Outcome<Option<&'a [u8]>> {
        let length = self.int()?;
        // A length below zero is a null.
        if length > i32::MAX as u32 { Ok(None) } else { self.take(length as usize).map(Some) }
    }

    /// Types of collections hold types; of the others that come here only a number is told.
    fn pass_type(&mut self) -> Outcome<()> {
        let inner_count = match self.short()? {
            0x20 | 0x22 => 1,
            0x21 => 2,
            _ => 0,
        };
        (0..inner_count).try_for_each(|_| self.pass_type())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_sets_is_read() {
        let mut body =
            b"\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x06system\0\x05local\0\x06tokens\0\x22\0\x0d".to_vec();
        let value = b"\0\0\0\x02\0\0\0\x02-7\0\0\0\x019";
        body.extend_from_slice(b"\0\0\0\x02\0\0\0\x0f");
        body.extend_from_slice(value);
        body.extend_from_slice(b"\xff\xff\xff\xff");
        let values = only_column(&body).unwrap();
        assert_eq!(values, [value.to_vec()]);
        assert_eq!(elements(&values[0], 1).unwrap(), [&b"-7"[..], b"9"]);
        assert!(only_column(&body[..40]).is_err());
    }
}
