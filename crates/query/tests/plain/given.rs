//! Ways to read and write a row: plain, with others, and full.

use std::ops::ControlFlow;

use bytes::Bytes;
use query::{
    Batches, Consistency, PlainQuery, PlainRead, PlainRow, PlainStatement, PlainUpdate, PreparedInfo,
    ResponseKind, RowSink, RowsResult,
};

use crate::common::{Session, text};

pub(crate) const TABLE: &str =
    "CREATE TABLE rows (k text PRIMARY KEY, z int, a text, m map<text, int>, l list<int>)";
pub(crate) const SELECTIONS: [&str; 3] = [
    "SELECT * FROM rows WHERE k = ?",
    "SELECT z, m, k FROM rows WHERE k = ? LIMIT 1",
    "SELECT a FROM rows WHERE k = ?",
];

/// The cells of an answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Cells(pub(crate) Vec<Option<Bytes>>);

impl RowSink for Cells {
    fn cell(&mut self, value: Option<&[u8]>) {
        self.0.push(value.map(Bytes::copy_from_slice));
    }
}

pub(crate) fn cells_of(rows: &RowsResult) -> (usize, Cells) {
    let mut cells = Cells::default();
    (rows.write_rows(&mut cells), cells)
}

pub(crate) async fn plain_query(session: &Session, statement: &str) -> Option<PlainQuery> {
    let prepared = session.engine.prepare(&session.state, statement, None).await.unwrap();
    plain_query_of(session, &prepared)
}

/// The same of a statement whose columns may not be there.
pub(crate) async fn plain_query_if_any(session: &Session, statement: &str) -> Option<PlainQuery> {
    let prepared = session.engine.prepare(&session.state, statement, None).await.ok()?;
    plain_query_of(session, &prepared)
}

pub(crate) fn plain_query_of(session: &Session, prepared: &PreparedInfo) -> Option<PlainQuery> {
    match session.engine.plain_statement(&prepared.id) {
        Some(PlainStatement::Read(query)) => Some(query),
        _ => None,
    }
}

/// Reads keys together; `None` for those that are left to a full read.
pub(crate) fn together(session: &Session, query: &PlainQuery, keys: &[&[u8]]) -> Vec<Option<(usize, Cells)>> {
    let read = |key: &&[u8]| {
        let key = Bytes::copy_from_slice(key);
        session.engine.plain_read(query.clone(), key, Consistency::One, Some(5000)).unwrap()
    };
    let reads: Vec<PlainRead> = keys.iter().map(read).collect();
    let mut found: Vec<_> = reads.iter().map(|_| None).collect();
    session.engine.plain_reads(&reads, |index, row| {
        let mut cells = Cells::default();
        found[index] = Some((row.write(&mut cells), cells));
        ControlFlow::Continue(())
    });
    found
}

/// Reads keys together until all are told: a shard that is at work tells nothing when it is visited.
pub(crate) fn together_at_last(session: &Session, query: &PlainQuery, keys: &[&[u8]]) -> Vec<(usize, Cells)> {
    /// A shard is at work every second time.
    const ROUNDS_MAX: usize = 64;
    let mut all: Vec<_> = keys.iter().map(|_| None).collect();
    for _ in 0..ROUNDS_MAX {
        let left: Vec<usize> = (0..keys.len()).filter(|index| all[*index].is_none()).collect();
        let keys_left: Vec<&[u8]> = left.iter().map(|index| keys[*index]).collect();
        for (index, found) in left.into_iter().zip(together(session, query, &keys_left)) {
            all[index] = found;
        }
    }
    all.into_iter().map(|found| found.expect("some time it is told")).collect()
}

pub(crate) fn plain_read(session: &Session, query: &PlainQuery, key: &str) -> Option<(usize, Cells)> {
    together(session, query, &[key.as_bytes()]).pop().unwrap()
}

pub(crate) async fn full_read(session: &mut Session, statement: &str, key: &str) -> (usize, Cells) {
    match session.execute(statement, vec![text(key)]).await.unwrap().kind {
        ResponseKind::Rows(rows) => cells_of(&rows),
        other => panic!("{other:?}"),
    }
}

/// Reads every key both ways. Once the full way has brought chunks of files in, nothing is lacking.
pub(crate) async fn check(session: &mut Session, step: &str) {
    for statement in SELECTIONS {
        let query = plain_query(session, statement).await.expect("of one row by one key");
        let keys = ["p", "q", "absent", "p"];
        let found = together(session, &query, &keys.map(str::as_bytes));
        for (key, found) in keys.into_iter().zip(found) {
            let expected = full_read(session, statement, key).await;
            // The first time, the chunks of a file may be lacking.
            let found = found.or_else(|| plain_read(session, &query, key)).expect("in memory");
            assert_eq!(found, expected, "{statement} of {key} after {step}");
        }
    }
}

pub(crate) async fn plain_update(session: &Session, statement: &str) -> Option<PlainUpdate> {
    let prepared = session.engine.prepare(&session.state, statement, None).await.unwrap();
    match session.engine.plain_statement(&prepared.id) {
        Some(PlainStatement::Write(update)) => Some(update),
        _ => None,
    }
}

pub(crate) fn plain_write<'v>(
    session: &Session,
    update: &PlainUpdate,
    values: impl Iterator<Item = &'v [u8]>,
    consistency: Consistency,
    timestamp: Option<i64>,
) -> bool {
    let Some(write) = session.engine.plain_write(update, values, consistency, timestamp) else {
        return false;
    };
    let (done, _) = session.engine.plain_writes(&[write]);
    !done.is_empty()
}

/// Sends batches of reads to their shards, and takes no more of each than `most`; what was seen of each key.
pub(crate) async fn sent(
    session: &Session,
    reads: &[PlainRead],
    batches: Batches,
    most: usize,
) -> Vec<(usize, usize, Cells)> {
    let mut all = Vec::new();
    for batch in batches {
        let indexes: Vec<usize> = (0..reads.len()).filter(|index| batch.contains(*index)).collect();
        assert_eq!(indexes.len(), batch.len());
        let of_batch = indexes.iter().map(|index| reads[*index].clone()).collect();
        let show = move |seen: &mut Vec<_>, index: usize, row: PlainRow<'_>| {
            let mut cells = Cells::default();
            seen.push((index, row.write(&mut cells), cells));
            if seen.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let seen = session.engine.remote_reads(of_batch, Vec::new(), show).await.unwrap().unwrap();
        all.extend(seen.into_iter().map(|(index, count, cells)| (indexes[index], count, cells)));
    }
    all
}
