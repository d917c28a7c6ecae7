//! JSON laid out as sstabledump lays it out: objects and arrays on lines of their own, or compact.

use std::io::{self, Write};

/// Writes JSON piece by piece. Whether pieces go on one line can be switched at any place.
pub(super) struct Json<'a> {
    out: &'a mut dyn Write,
    /// Entries so far of each object and array that is open; a name counts, its value does not.
    open: Vec<usize>,
    after_name: bool,
    pub(super) compact_objects: bool,
    pub(super) compact_arrays: bool,
}

impl<'a> Json<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Json { out, open: Vec::new(), after_name: false, compact_objects: false, compact_arrays: false }
    }

    fn indent(&mut self, compact: bool) -> io::Result<()> {
        if compact {
            return self.out.write_all(b" ");
        }
        write!(self.out, "\n{}", "  ".repeat(self.open.len()))
    }

    /// What stands before an entry.
    fn before(&mut self, compact: bool) -> io::Result<()> {
        let Some(count) = self.open.last_mut() else { return Ok(()) };
        *count += 1;
        if *count > 1 {
            self.out.write_all(b",")?;
        }
        self.indent(compact)
    }

    fn before_value(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.after_name) { Ok(()) } else { self.before(self.compact_arrays) }
    }

    pub(super) fn name(&mut self, name: &str) -> io::Result<()> {
        self.before(self.compact_objects)?;
        self.after_name = true;
        write!(self.out, "{} : ", quoted(name))
    }

    /// A value that is JSON already.
    pub(super) fn raw(&mut self, value: &str) -> io::Result<()> {
        self.before_value()?;
        self.out.write_all(value.as_bytes())
    }

    pub(super) fn text(&mut self, value: &str) -> io::Result<()> {
        self.raw(&quoted(value))
    }

    pub(super) fn field(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.name(name)?;
        self.text(value)
    }

    pub(super) fn raw_field(&mut self, name: &str, value: impl ToString) -> io::Result<()> {
        self.name(name)?;
        self.raw(&value.to_string())
    }

    pub(super) fn begin(&mut self, bracket: char) -> io::Result<()> {
        self.before_value()?;
        self.open.push(0);
        write!(self.out, "{bracket}")
    }

    pub(super) fn end(&mut self, bracket: char) -> io::Result<()> {
        let compact = if bracket == '}' { self.compact_objects } else { self.compact_arrays };
        match self.open.pop() {
            Some(0) | None => self.out.write_all(b" ")?,
            Some(_) => self.indent(compact)?,
        }
        write!(self.out, "{bracket}")
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
