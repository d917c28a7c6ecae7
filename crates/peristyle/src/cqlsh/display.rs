//! Rows on the screen, drawn as cqlsh draws them.

use std::io::{self, Write};

/// A page of rows as text.
pub(crate) struct Page {
    pub(crate) names: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Page {
    /// A table: names to the left, values to the right.
    pub(crate) fn write_table(&self, out: &mut impl Write, with_header: bool) -> io::Result<()> {
        let widths: Vec<usize> = self
            .names
            .iter()
            .enumerate()
            .map(|(column, name)| {
                self.rows.iter().map(|row| width(&row[column])).fold(width(name), usize::max)
            })
            .collect();
        if with_header {
            let names = self.names.iter().zip(&widths).map(|(name, width)| padded(name, *width, Side::Left));
            writeln!(out, " {}", names.collect::<Vec<_>>().join(" | ").trim_end())?;
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            writeln!(out, "-{}-", rule.join("-+-"))?;
        }
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| padded(cell, *width, Side::Right));
            writeln!(out, " {}", cells.collect::<Vec<_>>().join(" | "))?;
        }
        Ok(())
    }

    /// One line per column (`EXPAND ON`).
    pub(crate) fn write_expanded(&self, out: &mut impl Write, rows_before: usize) -> io::Result<()> {
        let name_width = self.names.iter().map(|name| width(name)).max().unwrap_or(0);
        let value_width = self.rows.iter().flatten().map(|value| width(value)).max().unwrap_or(0);
        for (index, row) in self.rows.iter().enumerate() {
            writeln!(out, "@ Row {}", rows_before + index + 1)?;
            writeln!(out, "-{}-+-{}-", "-".repeat(name_width), "-".repeat(value_width))?;
            for (name, value) in self.names.iter().zip(row) {
                writeln!(out, " {} | {value}", padded(name, name_width, Side::Left))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Names in columns, as many as fit into 80 characters, read downwards (Python's `columnize`).
pub(crate) fn write_columns(out: &mut impl Write, names: &[String]) -> io::Result<()> {
    const WIDTH: usize = 80;
    if names.is_empty() {
        return writeln!(out, "<empty>");
    }
    let widths_with = |row_count: usize| -> Vec<usize> {
        names
            .chunks(row_count)
            .map(|column| column.iter().map(|name| width(name)).max().unwrap_or(0))
            .collect()
    };
    let fits = |row_count: &usize| {
        let widths = widths_with(*row_count);
        widths.iter().sum::<usize>() + 2 * (widths.len() - 1) <= WIDTH
    };
    let row_count = (1..names.len()).find(fits).unwrap_or(names.len());
    let widths = widths_with(row_count);
    for row in 0..row_count {
        let cells = names
            .chunks(row_count)
            .zip(&widths)
            .filter_map(|(column, width)| column.get(row).map(|name| padded(name, *width, Side::Left)));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  "))?;
    }
    Ok(())
}

enum Side {
    Left,
    Right,
}

fn padded(text: &str, to: usize, side: Side) -> String {
    let space = " ".repeat(to.saturating_sub(width(text)));
    match side {
        Side::Left => format!("{text}{space}"),
        Side::Right => format!("{space}{text}"),
    }
}

/// Columns a text takes on a terminal: wide East Asian characters and emoji take two, marks that
/// combine none.
pub(crate) fn width(text: &str) -> usize {
    let width_of = |character: char| match u32::from(character) {
        0x0300..=0x036f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    };
    text.chars().map(width_of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_table_looks_as_in_cqlsh() {
        let page =
            Page { names: texts(&["a", "name"]), rows: vec![texts(&["1", "x"]), texts(&["22", "日本"])] };
        let mut out = Vec::new();
        page.write_table(&mut out, true).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), " a  | name\n----+------\n  1 |    x\n 22 | 日本\n");
    }

    #[test]
    fn expanded_rows_are_numbered() {
        let page = Page { names: texts(&["a", "name"]), rows: vec![texts(&["1", "xyz"])] };
        let mut out = Vec::new();
        page.write_expanded(&mut out, 4).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "@ Row 5\n------+-----\n a    | 1\n name | xyz\n\n");
    }

    #[test]
    fn names_stand_in_columns_read_downwards() {
        let names: Vec<String> = (0..12).map(|index| format!("table_number_{index:02}")).collect();
        let mut out = Vec::new();
        write_columns(&mut out, &names).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("table_number_00  table_number_03  "), "{text}");
    }
}
