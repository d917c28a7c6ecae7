//! What we read in Cassandra's files against what `sstabledump` printed of them.
//!
//! Both are brought into lines and compared. Values of numbers, text and booleans are compared;
//! those of other types (each with a notation of its own) are not: `files_of_cassandra_read_and_write_the_same_bytes`
//! holds their bytes.

use std::io::Read;
use std::sync::Arc;

use rows::{
    CellRef, Clustering, ColumnData, DeletionTime, Marker, NO_DELETION_TIME, PartitionHeader, RingRange, Row,
    Slices, Unfiltered, context,
};
use runtime::{Disk, OsDisk};
use schema::{Column, Table};
use serde_json::Value;
use types::CqlType;

use crate::fixture_tests::{big_fixtures, collect, fixtures};
use crate::{Component, Descriptor, DirectChunks, TableFile, table_of_header};

fn dump(descriptor: &Descriptor) -> Value {
    let disk = OsDisk::new();
    let name = descriptor.file_name(Component::Data).replace("Data.db", "dump.json");
    let path = descriptor.directory.join(&name);
    if let Ok(text) = disk.read(&path) {
        return serde_json::from_slice(&text).expect("JSON");
    }
    let packed = disk.read(&descriptor.directory.join(format!("{name}.gz"))).expect("a dump");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("packed text");
    serde_json::from_str(&text).expect("JSON")
}

/// µs since 1970 of `2024-01-01T00:00:00.000100Z`.
fn micros(text: &str) -> i64 {
    let number = |range: std::ops::Range<usize>| text[range].parse::<i64>().expect("digits");
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let shifted = if month > 2 { year } else { year - 1 };
    let days = 365 * shifted + shifted.div_euclid(4) - shifted.div_euclid(100)
        + shifted.div_euclid(400)
        + (153 * ((month + 9) % 12) + 2) / 5
        + day
        - 719_469;
    let seconds = days * 86_400 + number(11..13) * 3600 + number(14..16) * 60 + number(17..19);
    let fraction = text[19..].trim_matches(['.', 'Z']);
    seconds * 1_000_000 + format!("{fraction:0<6}").parse::<i64>().unwrap_or(0)
}

fn seconds(text: &str) -> i64 {
    micros(text) / 1_000_000
}

fn is_plain(of: &CqlType) -> bool {
    matches!(
        of,
        CqlType::Int
            | CqlType::Bigint
            | CqlType::Smallint
            | CqlType::Tinyint
            | CqlType::Text
            | CqlType::Ascii
            | CqlType::Boolean
    )
}

fn our_value(of: &CqlType, bytes: &[u8]) -> String {
    match of {
        _ if !is_plain(of) || bytes.is_empty() && !matches!(of, CqlType::Text | CqlType::Ascii) => "?".into(),
        CqlType::Text | CqlType::Ascii => format!("{:?}", String::from_utf8_lossy(bytes)),
        CqlType::Boolean => (bytes[0] != 0).to_string(),
        _ => types::varint::format(bytes),
    }
}

fn their_value(of: &CqlType, value: &Value) -> String {
    match value {
        _ if !is_plain(of) => "?".into(),
        Value::String(text) if matches!(of, CqlType::Text | CqlType::Ascii) => format!("{text:?}"),
        Value::String(text) if text.is_empty() => "?".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Element type of the paths, and of the values, of a multi-cell column.
fn parts(of: &CqlType) -> (CqlType, CqlType) {
    match of {
        CqlType::Set { element, .. } => (CqlType::clone(element), CqlType::Empty),
        CqlType::Map { key, value, .. } => (CqlType::clone(key), CqlType::clone(value)),
        CqlType::List { element, .. } => (CqlType::Timeuuid, CqlType::clone(element)),
        other => (CqlType::Timeuuid, other.clone()),
    }
}

struct Lines {
    table: Arc<Table>,
    lines: Vec<String>,
}

impl Lines {
    fn key(&self, values: impl Iterator<Item = String>) -> String {
        values.collect::<Vec<_>>().join(", ")
    }

    fn our_clustering(&self, clustering: &Clustering) -> String {
        let types = self.table.clustering_types().iter();
        self.key(
            clustering.components().zip(types).map(|(value, (of, _))| our_value(of, value.unwrap_or(b""))),
        )
    }

    fn their_clustering(&self, place: &Value) -> String {
        let values = place["clustering"].as_array().cloned().unwrap_or_default();
        let values = values.into_iter().filter(|value| value != "*");
        let types = self.table.clustering_types().iter();
        self.key(values.zip(types).map(|(value, (of, _))| their_value(of, &value)))
    }

    fn our_deletion(&mut self, what: &str, deletion: DeletionTime) {
        if !deletion.is_live() {
            let DeletionTime { timestamp, local_deletion_time } = deletion;
            self.lines.push(format!("  {what} deleted {timestamp} {local_deletion_time}"));
        }
    }

    fn their_deletion(&mut self, what: &str, info: &Value) {
        if let Some(marked) = info["marked_deleted"].as_str() {
            let local = seconds(info["local_delete_time"].as_str().expect("beside it"));
            self.lines.push(format!("  {what} deleted {} {local}", micros(marked)));
        }
    }

    fn column(&self, name: &str) -> Column {
        self.table.column(name).expect("a column of the table").clone()
    }

    fn our_row(&mut self, row: &Row, is_static: bool) {
        let what = if is_static {
            "static".into()
        } else {
            format!("row {}", self.our_clustering(&row.clustering()))
        };
        self.lines.push(what);
        let liveness = row.liveness();
        if !liveness.is_none() {
            self.lines.push(format!(
                "  live {}{}",
                liveness.timestamp,
                ends(liveness.ttl, liveness.local_expiration_time)
            ));
        }
        self.our_deletion("row", row.deletion());
        let columns = row
            .columns()
            .map(|column| (self.table.column_by_id(column.id).expect("known").clone(), column.data));
        let mut columns: Vec<_> = columns.collect();
        columns.sort_by_key(|(column, _)| (column.cql_type.is_multi_cell(), column.name.clone()));
        for (column, data) in columns {
            match data {
                ColumnData::Simple(cell) => self.our_cell(&column, &cell, None),
                ColumnData::Complex(shares) if column.cql_type == CqlType::Counter => {
                    let mut memory = Vec::new();
                    let cell = context::write(shares, &mut memory).expect("a few shares");
                    self.our_cell(&column, &cell, None);
                }
                ColumnData::Complex(complex) => {
                    self.our_deletion(&column.name, complex.deletion);
                    let (path, _) = parts(&column.cql_type);
                    complex
                        .cells()
                        .for_each(|cell| self.our_cell(&column, &cell, Some(our_value(&path, cell.path))));
                }
            }
        }
    }

    fn our_cell(&mut self, column: &Column, cell: &CellRef<'_>, path: Option<String>) {
        let name = &column.name;
        let of = if path.is_some() { parts(&column.cql_type).1 } else { column.cql_type.clone() };
        let path = path.unwrap_or_default();
        let value = if cell.is_tombstone() {
            format!("gone {}", cell.local_deletion_time)
        } else {
            our_value(&of, cell.value)
        };
        let ends = if cell.is_expiring() { ends(cell.ttl, cell.local_deletion_time) } else { String::new() };
        let at = time_of(column, cell.timestamp);
        self.lines.push(format!("  {name}[{path}] = {value} at {at}{ends}"));
    }

    fn their_row(&mut self, row: &Value) {
        let is_static = row["type"] == "static_block";
        let what = if is_static { "static".into() } else { format!("row {}", self.their_clustering(row)) };
        self.lines.push(what);
        let liveness = &row["liveness_info"];
        let timestamp = liveness["tstamp"].as_str().map(micros);
        if let Some(timestamp) = timestamp {
            self.lines.push(format!("  live {timestamp}{}", their_ends(liveness)));
        }
        self.their_deletion("row", &row["deletion_info"]);
        for cell in row["cells"].as_array().expect("cells") {
            let column = self.column(cell["name"].as_str().expect("a name"));
            let name = &column.name;
            let info = &cell["deletion_info"];
            if info.get("marked_deleted").is_some() {
                self.their_deletion(name, info);
                continue;
            }
            let (path_type, part) = parts(&column.cql_type);
            let path = cell["path"].as_array().map(|path| their_value(&path_type, &path[0]));
            let of = if path.is_some() { part } else { column.cql_type.clone() };
            let value = match info["local_delete_time"].as_str() {
                Some(local) => format!("gone {}", seconds(local)),
                None => their_value(&of, &cell["value"]),
            };
            let at = cell["tstamp"].as_str().map(micros).or(timestamp).expect("its own or the row's");
            let at = time_of(&column, at);
            // A cell's TTL is printed only where it is not the row's.
            let own = their_ends(cell);
            let ends = if own.is_empty() && info.is_null() { their_ends(liveness) } else { own };
            self.lines.push(format!("  {name}[{}] = {value} at {at}{ends}", path.unwrap_or_default()));
        }
    }

    fn our_item(&mut self, item: &Unfiltered) {
        match item {
            Unfiltered::Row(row) => self.our_row(row, false),
            Unfiltered::Marker(marker) => self.our_marker(marker),
        }
    }

    fn our_marker(&mut self, marker: &Marker) {
        let place = self.our_clustering(&marker.prefix);
        // An end that is before its prefix leaves it out; a start that is before it takes it in.
        for (side, deletion, includes) in
            [("end", marker.left, !marker.is_before), ("start", marker.right, marker.is_before)]
        {
            if !deletion.is_live() {
                let inclusion = if includes { "inclusive" } else { "exclusive" };
                self.our_deletion(&format!("{side} {inclusion} {place}"), deletion);
            }
        }
    }

    fn their_item(&mut self, item: &Value) {
        if item["type"] == "row" || item["type"] == "static_block" {
            return self.their_row(item);
        }
        for side in ["end", "start"] {
            let bound = &item[side];
            if let Some(inclusion) = bound["type"].as_str() {
                let place = self.their_clustering(bound);
                self.their_deletion(&format!("{side} {inclusion} {place}"), &bound["deletion_info"]);
            }
        }
    }

    fn our_header(&mut self, header: &PartitionHeader) {
        self.lines.push("partition".into());
        self.our_deletion("partition", header.deletion);
        if let Some(row) = &header.static_row {
            self.our_row(row, true);
        }
    }
}

fn ends(ttl: u32, at: u32) -> String {
    if ttl == 0 || at == NO_DELETION_TIME { String::new() } else { format!(" for {ttl} until {at}") }
}

fn their_ends(info: &Value) -> String {
    let (Some(ttl), Some(at)) = (info["ttl"].as_u64(), info["expires_at"].as_str()) else {
        return String::new();
    };
    format!(" for {ttl} until {}", seconds(at))
}

/// Of a counter we have the time of the last share, and sstabledump shows when its client had asked.
fn time_of(column: &Column, micros: i64) -> i64 {
    if column.cql_type == CqlType::Counter { 0 } else { micros }
}

#[test]
fn files_of_cassandra_hold_what_sstabledump_says() {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::new());
    for (name, descriptor) in fixtures().into_iter().chain(big_fixtures()) {
        let table = Arc::new(table_of_header(&*disk, &descriptor, "da", &name).expect("known types"));
        let file = TableFile::open(Arc::clone(&disk), descriptor.clone(), &table).expect("opens");
        let mut ours = Lines { table: Arc::clone(&table), lines: Vec::new() };
        for (header, items) in collect(file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all())) {
            ours.our_header(&header);
            items.iter().for_each(|item| ours.our_item(item));
        }
        let mut theirs = Lines { table, lines: Vec::new() };
        for partition in dump(&descriptor).as_array().expect("partitions") {
            theirs.lines.push("partition".into());
            theirs.their_deletion("partition", &partition["partition"]["deletion_info"]);
            partition["rows"].as_array().expect("rows").iter().for_each(|item| theirs.their_item(item));
        }
        let differs = ours.lines.iter().zip(&theirs.lines).position(|(a, b)| a != b);
        if let Some(index) = differs {
            panic!(
                "{name}, line {index}: {:#?} instead of {:#?}",
                &ours.lines[index..(index + 3).min(ours.lines.len())],
                &theirs.lines[index..(index + 3).min(theirs.lines.len())]
            );
        }
        assert_eq!(ours.lines.len(), theirs.lines.len(), "{name}");
    }
}
