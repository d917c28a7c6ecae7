//! Reads everything back and compares it with the ledger.

use std::collections::HashMap;

use super::ledger::{Halves, Key, Ledger, State};
use super::operator::{COLUMN_COUNT, SLOT_COUNT, TABLES, TableOptions};
use super::worker::{BATCH_PARTS, SCHEMA, texts};
use crate::report::Failure;
use crate::wire::{Answer, Connection, Request};

const PAGE_SIZE: i32 = 1000;

type Row = Vec<Option<Vec<u8>>>;
type Found = HashMap<Key, State>;

/// One look at all that is there.
struct Look<'a> {
    connection: Connection,
    ledger: &'a Ledger,
    findings: Vec<String>,
}

/// Makes the tables when they are missing, looks at all rows, and says what is wrong.
pub(super) fn compare(address: &str, ledger: &mut Ledger) -> Result<Vec<String>, Failure> {
    let mut connection = Connection::open(address, 5)?;
    for statement in SCHEMA {
        if let Answer::Error { message, .. } = connection.query(statement, &Request::default())?.answer {
            return Err(Failure::new(format!("{statement}: {message}")));
        }
    }
    let mut look = Look { connection, ledger, findings: Vec::new() };
    let mut found = look.schema()?;
    let (columns, slots) = (look.columns(&found)?, look.slots(&found)?);
    found.extend(look.rows()?.into_iter().chain(look.batches()?).chain(columns).chain(slots));
    let mut findings = look.findings;
    let mut halves = Halves::default();
    for key in ledger.keys() {
        let state = found.remove(&key).flatten();
        let acceptable = ledger.acceptable(&key);
        if !acceptable.contains(&state) {
            let acceptable: Vec<_> = acceptable.iter().map(in_words).collect();
            findings.push(format!(
                "{key:?} is {}, but may only be {}",
                in_words(&state),
                acceptable.join(" or ")
            ));
        }
        ledger.weigh(key, state, &mut halves);
        ledger.observe(key, state);
    }
    if let Halves { before: Some(before), after: Some(after) } = halves {
        findings.push(format!(
            "what was being emptied is so in part: {before:?} is as before, {after:?} is gone"
        ));
    }
    findings.extend(found.keys().map(|key| format!("{key:?} is there and was never written")));
    Ok(findings)
}

fn in_words(state: &State) -> String {
    state.map_or_else(|| "absent".to_owned(), |version| format!("of version {version}"))
}

impl Look<'_> {
    /// Rows by key; a row whose columns are of different writes is a finding.
    fn rows(&mut self) -> Result<Found, Failure> {
        let query = "SELECT worker, bucket, key, version, head, tail FROM crash.rows";
        let mut found = Found::new();
        for row in read_all(&mut self.connection, query)? {
            let (worker, key, version) = (int(&row, 0)?, int(&row, 2)?, bigint(&row, 3)?);
            let (head, tail) = texts(worker, key, version);
            let has = |index: usize, text: &str| cell(&row, index).is_ok_and(|cell| cell == text.as_bytes());
            if !has(4, &head) || !has(5, &tail) {
                self.findings.push(format!(
                    "row {worker}/{key} of version {version} is torn: its texts are of another write"
                ));
            }
            if found.insert(Key::Row { worker, key }, Some(version)).is_some() {
                self.findings.push(format!("row {worker}/{key} is there twice"));
            }
        }
        Ok(found)
    }

    /// Batches by id; one that is not the same in all its partitions is a finding.
    fn batches(&mut self) -> Result<Found, Failure> {
        let mut parts: HashMap<Key, Vec<u64>> = HashMap::new();
        for row in read_all(&mut self.connection, "SELECT part, worker, id, version FROM crash.batches")? {
            let key = Key::Batch { worker: int(&row, 1)?, id: int(&row, 2)? };
            parts.entry(key).or_default().push(bigint(&row, 3)?);
        }
        let mut found = Found::new();
        for (key, versions) in parts {
            let has_all = versions.len() == BATCH_PARTS as usize || self.ledger.may_be_partial(&key);
            if !has_all || versions.iter().any(|version| *version != versions[0]) {
                self.findings.push(format!(
                    "{key:?} is neither whole nor absent: versions {versions:?} in {BATCH_PARTS} partitions"
                ));
            }
            found.insert(key, versions.iter().max().copied());
        }
        Ok(found)
    }

    /// What the schema says of what comes and goes.
    fn schema(&mut self) -> Result<Found, Failure> {
        let mut found = Found::new();
        for row in read_all(&mut self.connection, "SELECT keyspace_name FROM system_schema.keyspaces")? {
            if let Some(slot) = number_after("crash_", &text(&row, 0)?) {
                found.insert(Key::Slot(slot), Some(0));
            }
        }
        let query =
            "SELECT keyspace_name, table_name, comment, compaction, compression FROM system_schema.tables";
        for row in read_all(&mut self.connection, query)? {
            let (keyspace, table, comment) = (text(&row, 0)?, text(&row, 1)?, text(&row, 2)?);
            let key = match number_after("crash_", &keyspace) {
                Some(slot) => Key::Slot(slot),
                None if keyspace == "crash" => {
                    let index = TABLES.iter().position(|name| *name == table);
                    Key::Options(
                        index.ok_or_else(|| Failure::new(format!("table {table} was never made")))? as u32
                    )
                }
                None => continue,
            };
            let Ok(version) = comment.parse() else { continue };
            if !TableOptions::of(version).are(cell(&row, 3)?, cell(&row, 4)?) {
                self.findings
                    .push(format!("{key:?} of version {version} is torn: its options are of another change"));
            }
            found.insert(key, Some(version));
        }
        let lists = [
            (
                "column_name FROM system_schema.columns WHERE keyspace_name = 'crash' AND table_name = 'columns'",
                "extra",
            ),
            ("type_name FROM system_schema.types WHERE keyspace_name = 'crash'", "type"),
        ];
        for ((query, prefix), key) in lists.into_iter().zip([Key::Column as fn(u32) -> Key, Key::Type]) {
            for row in read_all(&mut self.connection, &format!("SELECT {query}"))? {
                found.extend(number_after(prefix, &text(&row, 0)?).map(|number| (key(number), Some(0))));
            }
        }
        Ok(found)
    }

    /// What is in the columns that are there.
    fn columns(&mut self, schema: &Found) -> Result<Found, Failure> {
        let mut found = Found::new();
        for column in (0..COLUMN_COUNT).filter(|column| schema.contains_key(&Key::Column(*column))) {
            let query = format!("SELECT key, extra{column} FROM crash.columns");
            for row in read_all(&mut self.connection, &query)? {
                if row.get(1).is_some_and(Option::is_some) {
                    found.insert(Key::Value { column, key: int(&row, 0)? }, Some(bigint(&row, 1)?));
                }
            }
        }
        Ok(found)
    }

    /// What is in the tables that are there of those that come and go.
    fn slots(&mut self, schema: &Found) -> Result<Found, Failure> {
        let mut found = Found::new();
        let has_table = |slot: &u32| schema.get(&Key::Slot(*slot)).is_some_and(|state| *state != Some(0));
        for slot in (0..SLOT_COUNT).filter(has_table) {
            for row in read_all(&mut self.connection, &format!("SELECT key, version FROM crash_{slot}.t"))? {
                found.insert(Key::SlotRow { slot, key: int(&row, 0)? }, Some(bigint(&row, 1)?));
            }
        }
        Ok(found)
    }
}

fn number_after(prefix: &str, name: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.parse().ok()
}

/// All pages of a query.
fn read_all(connection: &mut Connection, query: &str) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut paging_state = None;
    loop {
        let request =
            Request { page_size: Some(PAGE_SIZE), paging_state: paging_state.take(), ..Request::default() };
        match connection.query(query, &request)?.answer {
            Answer::Rows(page) => {
                rows.extend(page.rows);
                paging_state = page.metadata.paging_state;
            }
            other => return Err(Failure::new(format!("{query}: {other:?}"))),
        }
        if paging_state.is_none() {
            return Ok(rows);
        }
    }
}

fn cell(row: &Row, index: usize) -> Result<&[u8], Failure> {
    let cell = row.get(index).and_then(Option::as_deref);
    cell.ok_or_else(|| Failure::new(format!("column {index} of a row is null: the row is torn")))
}

fn int(row: &Row, index: usize) -> Result<u32, Failure> {
    Ok(u32::from_be_bytes(cell(row, index)?.try_into()?))
}

fn bigint(row: &Row, index: usize) -> Result<u64, Failure> {
    Ok(u64::from_be_bytes(cell(row, index)?.try_into()?))
}

fn text(row: &Row, index: usize) -> Result<String, Failure> {
    // An empty text is no null on the wire, but may well be one in a table that was made without.
    Ok(row
        .get(index)
        .and_then(Option::as_deref)
        .map(|cell| String::from_utf8_lossy(cell).into_owned())
        .unwrap_or_default())
}
