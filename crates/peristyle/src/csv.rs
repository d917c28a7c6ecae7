//! CSV in the dialect of Python's `csv` module as cqlsh uses it: a quote inside of quotes is escaped
//! with a backslash, and a backslash escapes outside of quotes too.
//!
//! (The `csv` crate reads escapes only inside of quotes, and so misreads files that cqlsh wrote.)

use std::io::{BufRead, Write};

/// The characters with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: u8,
    pub(crate) escape: u8,
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect { delimiter: b',', quote: b'"', escape: b'\\' }
    }
}

/// One field of a record, as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) text: String,
    /// It stood in quotes, so an empty one is a text and not a null.
    pub(crate) is_quoted: bool,
}

/// A field is longer than this: quotes do not match, most likely.
const FIELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads records.
pub(crate) struct Reader<R> {
    input: R,
    dialect: Dialect,
    line: Vec<u8>,
}

impl<R: BufRead> Reader<R> {
    pub(crate) fn new(input: R, dialect: Dialect) -> Reader<R> {
        Reader { input, dialect, line: Vec::new() }
    }

    /// The next record; `None` at the end. Empty lines are skipped.
    ///
    /// # Errors
    /// The input cannot be read, ends inside quotes, or is not UTF-8.
    pub(crate) fn record(&mut self) -> std::io::Result<Option<Vec<Field>>> {
        loop {
            self.line.clear();
            if self.input.read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            if !self.line.trim_ascii().is_empty() {
                return self.fields().map(Some);
            }
        }
    }

    /// Takes the line at hand apart, reading on while quotes are open.
    fn fields(&mut self) -> std::io::Result<Vec<Field>> {
        let mut fields = Vec::new();
        let (mut field, mut is_quoted, mut inside) = (Vec::new(), false, false);
        let mut index = 0;
        loop {
            let Some(&byte) = self.line.get(index) else {
                if !inside {
                    break;
                }
                if field.len() > FIELD_BYTES_MAX || self.input.read_until(b'\n', &mut self.line)? == 0 {
                    return Err(malformed("the file ends inside quotes"));
                }
                continue;
            };
            let next = self.line.get(index + 1).copied();
            let Dialect { delimiter, quote, escape } = self.dialect;
            match byte {
                // Where the escape is the quote itself, a doubled quote is one.
                byte if byte == escape && byte == quote && inside && next == Some(quote) => {
                    field.push(quote);
                    index += 1;
                }
                byte if byte == escape
                    && byte != quote
                    && next.is_some_and(|next| !matches!(next, b'\r' | b'\n')) =>
                {
                    field.extend(next);
                    index += 1;
                }
                byte if byte == quote && inside => inside = false,
                byte if byte == quote && field.is_empty() && !is_quoted => (inside, is_quoted) = (true, true),
                byte if inside => field.push(byte),
                byte if byte == delimiter => {
                    fields.push(taken(&mut field, &mut is_quoted)?);
                }
                b'\n' => break,
                b'\r' if next == Some(b'\n') || next.is_none() => {}
                byte => field.push(byte),
            }
            index += 1;
        }
        fields.push(taken(&mut field, &mut is_quoted)?);
        Ok(fields)
    }
}

fn taken(field: &mut Vec<u8>, is_quoted: &mut bool) -> std::io::Result<Field> {
    let text = String::from_utf8(std::mem::take(field)).map_err(|_| malformed("the file is not UTF-8"))?;
    Ok(Field { text, is_quoted: std::mem::take(is_quoted) })
}

fn malformed(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what)
}

/// Writes one record. A null is written bare even when it is empty; an empty text gets quotes.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn write_record<'a>(
    out: &mut impl Write,
    dialect: Dialect,
    null: &str,
    fields: impl IntoIterator<Item = Option<&'a str>>,
) -> std::io::Result<()> {
    for (index, field) in fields.into_iter().enumerate() {
        if index > 0 {
            out.write_all(&[dialect.delimiter])?;
        }
        match field {
            None => out.write_all(null.as_bytes())?,
            Some(text) => write_field(out, dialect, text, text == null)?,
        }
    }
    out.write_all(b"\n")
}

fn write_field(out: &mut impl Write, dialect: Dialect, text: &str, must_quote: bool) -> std::io::Result<()> {
    let Dialect { delimiter, quote, escape } = dialect;
    let is_special = |byte: &u8| [delimiter, quote, escape, b'\r', b'\n'].contains(byte);
    if !must_quote && !text.bytes().any(|byte| is_special(&byte)) && text.trim() == text {
        return out.write_all(text.as_bytes());
    }
    let mut quoted = vec![quote];
    for byte in text.bytes() {
        if byte == quote || byte == escape {
            quoted.push(escape);
        }
        quoted.push(byte);
    }
    quoted.push(quote);
    out.write_all(&quoted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<Vec<String>> {
        let mut reader = Reader::new(text.as_bytes(), Dialect::default());
        let mut records = Vec::new();
        while let Some(record) = reader.record().unwrap() {
            records.push(record.into_iter().map(|field| field.text).collect());
        }
        records
    }

    #[test]
    fn quotes_escapes_and_line_ends_are_understood() {
        let text = "a,\"b,\\\"c\\\"\",d\\,e\r\n\n\"two\nlines\",,x";
        assert_eq!(read(text), [vec!["a", "b,\"c\"", "d,e"], vec!["two\nlines", "", "x"]]);
    }

    #[test]
    fn a_file_that_ends_inside_quotes_is_refused() {
        let mut reader = Reader::new(b"a,\"b".as_slice(), Dialect::default());
        assert!(reader.record().is_err());
    }

    #[test]
    fn an_empty_text_is_told_from_null() {
        let mut out = Vec::new();
        write_record(&mut out, Dialect::default(), "", [None, Some(""), Some("x")]).unwrap();
        assert_eq!(out, b",\"\",x\n");
        let record = Reader::new(out.as_slice(), Dialect::default()).record().unwrap().unwrap();
        assert_eq!(record.iter().map(|field| field.is_quoted).collect::<Vec<_>>(), [false, true, false]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(fields in prop::collection::vec(".*", 1..5), doubled in any::<bool>()) {
            let dialect = Dialect { escape: if doubled { b'"' } else { b'\\' }, ..Dialect::default() };
            let mut out = Vec::new();
            write_record(&mut out, dialect, "", fields.iter().map(|field| Some(field.as_str()))).unwrap();
            let record = Reader::new(out.as_slice(), dialect).record().unwrap().unwrap();
            let texts: Vec<String> = record.into_iter().map(|field| field.text).collect();
            prop_assert_eq!(texts, fields);
        }
    }
}
