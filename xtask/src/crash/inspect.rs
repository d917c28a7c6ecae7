//! Reads everything back and compares it with the ledger.

use std::collections::HashMap;

use super::ledger::{Key, Ledger, State};
use super::worker::{BATCH_PARTS, SCHEMA, texts};
use crate::report::Failure;
use crate::wire::{Answer, Connection, Request};

const PAGE_SIZE: i32 = 1000;

type Row = Vec<Option<Vec<u8>>>;

/// Makes the tables when they are missing, looks at all rows, and says what is wrong.
pub(super) fn compare(address: &str, ledger: &mut Ledger) -> Result<Vec<String>, Failure> {
    let mut connection = Connection::open(address, 5)?;
    for statement in SCHEMA {
        if let Answer::Error { message, .. } = connection.query(statement, &Request::default())?.answer {
            return Err(Failure::new(format!("{statement}: {message}")));
        }
    }
    let mut findings = Vec::new();
    let mut found = read_rows(&mut connection, &mut findings)?;
    found.extend(read_batches(&mut connection, &mut findings)?);
    for key in ledger.keys() {
        let state = found.remove(&key).flatten();
        if !ledger.acceptable(&key).contains(&state) {
            findings.push(format!(
                "{key:?} is {}, but may only be {}",
                in_words(&state),
                ledger.acceptable(&key).iter().map(in_words).collect::<Vec<_>>().join(" or ")
            ));
        }
        ledger.observe(key, state);
    }
    findings.extend(found.keys().map(|key| format!("{key:?} is there and was never written")));
    Ok(findings)
}

fn in_words(state: &State) -> String {
    state.map_or_else(|| "absent".to_owned(), |version| format!("of version {version}"))
}

/// Rows by key; a row whose columns are of different writes is a finding.
fn read_rows(
    connection: &mut Connection,
    findings: &mut Vec<String>,
) -> Result<HashMap<Key, State>, Failure> {
    let query = "SELECT worker, bucket, key, version, head, tail FROM crash.rows";
    let mut found = HashMap::new();
    for row in read_all(connection, query)? {
        let (worker, key, version) = (int(&row, 0)?, int(&row, 2)?, bigint(&row, 3)?);
        let (head, tail) = texts(worker, key, version);
        let has = |index: usize, text: &str| cell(&row, index).is_ok_and(|cell| cell == text.as_bytes());
        if !has(4, &head) || !has(5, &tail) {
            findings.push(format!(
                "row {worker}/{key} of version {version} is torn: its texts are of another write"
            ));
        }
        if found.insert(Key::Row { worker, key }, Some(version)).is_some() {
            findings.push(format!("row {worker}/{key} is there twice"));
        }
    }
    Ok(found)
}

/// Batches by id; one that is not the same in all its partitions is a finding.
fn read_batches(
    connection: &mut Connection,
    findings: &mut Vec<String>,
) -> Result<HashMap<Key, State>, Failure> {
    let mut parts: HashMap<Key, Vec<u64>> = HashMap::new();
    for row in read_all(connection, "SELECT part, worker, id, version FROM crash.batches")? {
        let key = Key::Batch { worker: int(&row, 1)?, id: int(&row, 2)? };
        parts.entry(key).or_default().push(bigint(&row, 3)?);
    }
    let mut found = HashMap::new();
    for (key, versions) in parts {
        let is_whole =
            versions.len() == BATCH_PARTS as usize && versions.iter().all(|version| *version == versions[0]);
        if !is_whole {
            findings.push(format!(
                "{key:?} is neither whole nor absent: versions {versions:?} in {BATCH_PARTS} partitions"
            ));
        }
        found.insert(key, versions.iter().max().copied());
    }
    Ok(found)
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
