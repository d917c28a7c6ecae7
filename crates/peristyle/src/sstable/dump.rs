//! Rows as JSON, as Cassandra's sstabledump prints them.

use std::io::{self, Write};

use rows::{
    CellRef, Clustering, ColumnData, DeletionTime, Liveness, Marker, PartitionHeader, RingRange, Row, Slices,
    Step, Unfiltered, UnfilteredCursor, context,
};
use schema::{Column, Table};
use sstable::DirectChunks;
use types::calendar::Day;
use types::{CqlType, quote_if_needed};

use super::json::Json;
use super::{Opened, ToolError};

struct Dump<'a> {
    json: Json<'a>,
    table: &'a Table,
    raw_time: bool,
    now: i64,
}

/// Prints all partitions.
pub(super) fn dump(opened: &Opened, raw_time: bool, out: &mut dyn Write) -> Result<(), ToolError> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |time| time.as_secs() as i64);
    let mut dump = Dump { json: Json::new(out), table: &opened.table, raw_time, now };
    let mut cursor = opened.file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all());
    let mut is_open = false;
    dump.json.begin('[')?;
    loop {
        let position = cursor.position();
        match cursor.step()? {
            Step::Header(header) => {
                if std::mem::replace(&mut is_open, true) {
                    dump.end_partition()?;
                }
                dump.header(&header, cursor.position())?;
            }
            Step::Item(Unfiltered::Row(row)) => dump.row(&row, Some(position), position)?,
            Step::Item(Unfiltered::Marker(marker)) => dump.marker(&marker)?,
            Step::Need(_) => {}
            Step::End => break,
        }
    }
    if is_open {
        dump.end_partition()?;
    }
    dump.json.end(']')?;
    Ok(())
}

impl Dump<'_> {
    fn header(&mut self, header: &PartitionHeader, position: u64) -> io::Result<()> {
        self.json.begin('{')?;
        self.json.field("table kind", "REGULAR")?;
        self.json.name("partition")?;
        self.json.begin('{')?;
        self.json.name("key")?;
        (self.json.compact_objects, self.json.compact_arrays) = (true, true);
        self.json.begin('[')?;
        for (column, value) in self.table.partition_key().iter().zip(key_parts(self.table, &header.key.bytes))
        {
            self.json.text(&column.cql_type.to_text(value))?;
        }
        self.json.end(']')?;
        (self.json.compact_objects, self.json.compact_arrays) = (false, false);
        self.json.raw_field("position", position)?;
        self.deletion(header.deletion)?;
        self.json.end('}')?;
        self.json.name("rows")?;
        self.json.begin('[')?;
        match &header.static_row {
            Some(row) => self.row(row, None, position),
            None => Ok(()),
        }
    }

    fn end_partition(&mut self) -> io::Result<()> {
        self.json.end(']')?;
        self.json.end('}')
    }

    /// A row; a static one has no place among the others.
    fn row(&mut self, row: &Row, place: Option<u64>, position: u64) -> io::Result<()> {
        self.json.begin('{')?;
        self.json.field("type", if place.is_some() { "row" } else { "static_block" })?;
        self.json.raw_field("position", position)?;
        if place.is_some() {
            self.clustering(&row.clustering())?;
        }
        let liveness = row.liveness();
        if !liveness.is_none() {
            self.json.compact_objects = false;
            self.json.name("liveness_info")?;
            self.json.compact_objects = true;
            self.json.begin('{')?;
            let time = self.micros(liveness.timestamp);
            self.json.field("tstamp", &time)?;
            if liveness.is_expiring() {
                let at = liveness.local_expiration_time;
                self.ttl(liveness.ttl, at)?;
            }
            self.json.end('}')?;
            self.json.compact_objects = false;
        }
        self.deletion(row.deletion())?;
        self.json.name("cells")?;
        self.json.begin('[')?;
        let table = self.table;
        let mut columns: Vec<(&Column, ColumnData<'_>)> =
            row.columns().filter_map(|found| Some((table.column_by_id(found.id)?, found.data))).collect();
        columns.sort_by_key(|(column, _)| (column.cql_type.is_multi_cell(), column.name.as_bytes()));
        for (column, data) in columns {
            match data {
                ColumnData::Simple(cell) => self.cell(column, &cell, false, liveness)?,
                ColumnData::Complex(shares) if column.cql_type == CqlType::Counter => {
                    let mut memory = Vec::new();
                    let cell = context::write(shares, &mut memory).map_err(io::Error::other)?;
                    self.cell(column, &cell, false, liveness)?;
                }
                ColumnData::Complex(complex) => {
                    if !complex.deletion.is_live() {
                        self.json.compact_objects = true;
                        self.json.begin('{')?;
                        self.json.field("name", &quote_if_needed(&column.name))?;
                        self.deletion(complex.deletion)?;
                        self.json.compact_objects = true;
                        self.json.end('}')?;
                        self.json.compact_objects = false;
                    }
                    for cell in complex.cells() {
                        self.cell(column, &cell, true, liveness)?;
                    }
                }
            }
        }
        self.json.end(']')?;
        self.json.end('}')
    }

    fn cell(&mut self, column: &Column, cell: &CellRef<'_>, has_path: bool, row: Liveness) -> io::Result<()> {
        self.json.begin('{')?;
        self.json.compact_objects = true;
        self.json.field("name", &quote_if_needed(&column.name))?;
        let mut of = column.cql_type.clone();
        if has_path {
            let (path, value) = element(&column.cql_type, cell.path);
            self.json.name("path")?;
            self.json.compact_arrays = true;
            self.json.begin('[')?;
            self.json.text(&path)?;
            self.json.end(']')?;
            self.json.compact_arrays = false;
            of = value;
        }
        if cell.is_tombstone() {
            self.json.name("deletion_info")?;
            self.json.begin('{')?;
            let time = self.seconds(cell.local_deletion_time);
            self.json.field("local_delete_time", &time)?;
            self.json.end('}')?;
            self.json.compact_objects = false;
        } else {
            let value = match (&of, cell.value.first_chunk::<8>()) {
                (CqlType::Empty, _) => "\"\"".to_owned(),
                // sstabledump takes the first bytes of a counter's context for its value.
                (CqlType::Counter, Some(head)) => i64::from_be_bytes(*head).to_string(),
                _ => of.to_json(Some(cell.value)),
            };
            self.json.raw_field("value", value)?;
        }
        if row.is_none() || cell.timestamp != row.timestamp {
            let time = self.micros(cell.timestamp);
            self.json.field("tstamp", &time)?;
        }
        if cell.is_expiring() && (row.is_none() || cell.ttl != row.ttl) {
            self.ttl(cell.ttl, cell.local_deletion_time)?;
        }
        self.json.end('}')?;
        self.json.compact_objects = false;
        Ok(())
    }

    fn ttl(&mut self, ttl: u32, at: u32) -> io::Result<()> {
        self.json.raw_field("ttl", ttl)?;
        let time = self.seconds(at);
        self.json.field("expires_at", &time)?;
        self.json.raw_field("expired", i64::from(at) < self.now)
    }

    fn marker(&mut self, marker: &Marker) -> io::Result<()> {
        self.json.begin('{')?;
        let is_boundary = !marker.left.is_live() && !marker.right.is_live();
        self.json
            .field("type", if is_boundary { "range_tombstone_boundary" } else { "range_tombstone_bound" })?;
        // A start that is before its prefix takes it in; an end that is before it leaves it out.
        let sides = [("start", marker.right, marker.is_before), ("end", marker.left, !marker.is_before)];
        for (name, deletion, takes_in) in sides {
            if !deletion.is_live() {
                self.json.name(name)?;
                self.json.begin('{')?;
                self.json.field("type", if takes_in { "inclusive" } else { "exclusive" })?;
                self.clustering(&marker.prefix)?;
                self.deletion(deletion)?;
                self.json.end('}')?;
            }
        }
        self.json.end('}')?;
        self.json.compact_objects = false;
        Ok(())
    }

    fn clustering(&mut self, clustering: &Clustering) -> io::Result<()> {
        let values: Vec<Option<&[u8]>> = clustering.components().collect();
        if values.is_empty() {
            return Ok(());
        }
        self.json.name("clustering")?;
        (self.json.compact_objects, self.json.compact_arrays) = (true, true);
        self.json.begin('[')?;
        for (index, column) in self.table.clustering().iter().enumerate() {
            match values.get(index) {
                Some(value) => self.json.raw(&column.cql_type.to_json(*value))?,
                None => self.json.text("*")?,
            }
        }
        self.json.end(']')?;
        (self.json.compact_objects, self.json.compact_arrays) = (false, false);
        Ok(())
    }

    fn deletion(&mut self, deletion: DeletionTime) -> io::Result<()> {
        if deletion.is_live() {
            return Ok(());
        }
        self.json.name("deletion_info")?;
        self.json.compact_objects = true;
        self.json.begin('{')?;
        let (marked, local) = (self.micros(deletion.timestamp), self.seconds(deletion.local_deletion_time));
        self.json.field("marked_deleted", &marked)?;
        self.json.field("local_delete_time", &local)?;
        self.json.end('}')?;
        self.json.compact_objects = false;
        Ok(())
    }

    fn micros(&self, time: i64) -> String {
        if self.raw_time {
            time.to_string()
        } else {
            instant(time.div_euclid(1_000_000), time.rem_euclid(1_000_000))
        }
    }

    fn seconds(&self, time: u32) -> String {
        if self.raw_time { time.to_string() } else { instant(i64::from(time), 0) }
    }
}

/// Path of an element as text, and the type of its value.
fn element(of: &CqlType, path: &[u8]) -> (String, CqlType) {
    match of {
        CqlType::Set { element, .. } => (element.to_text(path), CqlType::Empty),
        CqlType::Map { key, value, .. } => (key.to_text(path), CqlType::clone(value)),
        CqlType::List { element, .. } => (CqlType::Timeuuid.to_text(path), CqlType::clone(element)),
        CqlType::UserDefined { definition, .. } => {
            let index = path.first_chunk::<2>().map(|bytes| usize::from(u16::from_be_bytes(*bytes)));
            let field = index.and_then(|index| definition.fields.get(index));
            field.map_or((String::new(), CqlType::Blob), |(name, of)| (name.clone(), of.clone()))
        }
        other => (String::new(), other.clone()),
    }
}

/// Values of the parts of a partition key.
fn key_parts<'a>(table: &Table, key: &'a [u8]) -> Vec<&'a [u8]> {
    if table.partition_key().len() == 1 {
        return vec![key];
    }
    let (mut parts, mut rest) = (Vec::new(), key);
    while let Some((length, tail)) = rest.split_first_chunk::<2>() {
        let Some((part, tail)) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length))) else {
            break;
        };
        parts.push(part);
        rest = tail.get(1..).unwrap_or_default();
    }
    parts
}

/// `2024-01-01T00:00:00.000100Z`, with as many digits as are needed, by threes.
fn instant(seconds: i64, micros: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let Day { year, month, day } = Day::from_epoch_days(days);
    let fraction = match micros {
        0 => String::new(),
        _ if micros % 1000 == 0 => format!(".{:03}", micros / 1000),
        _ => format!(".{micros:06}"),
    };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn dumps(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("fixtures are in the repository") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                dumps(&path, found);
            } else if path.to_string_lossy().ends_with("-dump.json") {
                found.push(path);
            }
        }
    }

    #[test]
    fn dumps_are_those_of_sstabledump_to_the_byte() {
        let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats");
        let mut found = Vec::new();
        dumps(&formats.join("cassandra-da"), &mut found);
        dumps(&formats.join("cassandra-big"), &mut found);
        assert!(found.len() > 60, "{}", found.len());
        for path in found {
            let data = path.to_string_lossy().replace("-dump.json", "-Data.db");
            let mut out = Vec::new();
            dump(&Opened::open(Path::new(&data)).expect("opens"), false, &mut out).expect("reads");
            let theirs = std::fs::read(&path).expect("there");
            // The cell of a counter shows when its last share was given, and not when its client had asked.
            let is_of_counters = data.contains("/counters/");
            match is_of_counters {
                true => assert_eq!(without_times(&out), without_times(&theirs)),
                false => assert!(out == theirs, "{data}"),
            }
        }
    }

    fn without_times(dump: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(dump);
        let without = |line: &str| line.split("\"tstamp\"").next().unwrap_or_default().to_owned();
        text.lines().map(without).collect()
    }
}
