//! What each node has by itself, row by row.
//!
//! A node is asked at `ONE` while it is cut off from all others, so that nobody else can answer for it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::{Host, Ring};
use super::work::{Ledger, select_all, wrong_rows};
use super::{Verdict, such};
use crate::report::Failure;
use crate::wire::value::blob;
use crate::wire::{Answer, Connection, Request};

const ONE: u16 = 1;
const PAGE_ROWS: i32 = 500;
const POLL: Duration = Duration::from_millis(200);

/// Of a value so much is told.
const BYTES_TOLD: usize = 24;

/// The values of a row but the first, as they came.
type Row = Vec<Option<Vec<u8>>>;

/// Rows by their first column.
pub(super) type Contents = BTreeMap<Vec<u8>, Row>;

/// All rows that a statement selects, of which the first column is the key.
pub(super) fn contents(host: &Host, select: &str) -> Result<Contents, Failure> {
    let mut connection = Connection::open(&host.cql, 4)?;
    let mut request = Request { consistency: ONE, page_size: Some(PAGE_ROWS), ..Request::default() };
    let mut contents = Contents::new();
    loop {
        let Answer::Rows(page) = connection.query(select, &request)?.answer else {
            return Err(Failure::new(format!("node {} does not answer {select}", host.number)));
        };
        for row in page.rows {
            let mut cells = row.into_iter();
            contents.insert(cells.next().flatten().unwrap_or_default(), cells.collect());
        }
        request.paging_state = page.metadata.paging_state;
        if request.paging_state.is_none() {
            return Ok(contents);
        }
    }
}

/// Of each node.
pub(super) fn of_all(ring: &Ring, select: &str) -> Result<Vec<Contents>, Failure> {
    ring.hosts().iter().map(|host| contents(host, select)).collect()
}

/// Does that while no node hears another one.
pub(super) fn while_alone<T>(ring: &Ring, look: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    for one in 1..=ring.node_count {
        for other in one + 1..=ring.node_count {
            ring.order(&["cut", &one.to_string(), &other.to_string()])?;
        }
    }
    let seen = look();
    ring.order(&["heal"])?;
    seen
}

/// Holds against a ledger what each node has of a table by itself, and nodes against each other.
pub(super) fn check_each_alone(
    ring: &Ring,
    table: &str,
    ledger: &Ledger,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let alone = while_alone(ring, || of_all(ring, &select_all(table)))?;
    for (host, contents) in ring.hosts().iter().zip(&alone) {
        let wrong = wrong_rows(ledger, contents);
        verdict.check(wrong.is_empty(), || such(&format!("rows on node {} alone", host.number), &wrong));
    }
    let differing = differing(&alone);
    verdict.check(differing.is_empty(), || such("rows in which nodes differ", &differing));
    Ok(())
}

/// The rows of which nodes have different ones.
pub(super) fn differing(contents: &[Contents]) -> Vec<Vec<u8>> {
    let Some((first, others)) = contents.split_first() else { return Vec::new() };
    let is_other = |key: &&Vec<u8>| others.iter().any(|other| other.get(*key) != first.get(*key));
    let mut keys: Vec<Vec<u8>> = contents.iter().flat_map(Contents::keys).filter(is_other).cloned().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Waits until no nodes differ in a row but those that `is_excused`; how long that took.
pub(super) fn until_equal(
    ring: &Ring,
    select: &str,
    within: Duration,
    is_excused: impl Fn(&[u8]) -> bool,
) -> Result<Duration, Failure> {
    let began = Instant::now();
    loop {
        let contents = of_all(ring, select)?;
        let mut keys = differing(&contents);
        keys.retain(|key| !is_excused(key));
        let Some(such) = keys.first() else { return Ok(began.elapsed()) };
        if began.elapsed() > within {
            let rows: Vec<_> =
                contents.iter().map(|of_node| of_node.get(such).map_or("nothing".to_owned(), told)).collect();
            return Err(Failure::new(format!(
                "nodes differ in {} rows {within:?} after the harm, such as {such:?}: {select} gives {}",
                keys.len(),
                rows.join(" | ")
            )));
        }
        std::thread::sleep(POLL);
    }
}

/// The beginning of each value of a row.
fn told(row: &Row) -> String {
    let value = |value: &Option<Vec<u8>>| match value {
        Some(bytes) => blob(&bytes[..bytes.len().min(BYTES_TOLD)]),
        None => "null".to_owned(),
    };
    row.iter().map(value).collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_one_node_lacks_or_has_otherwise_differs() {
        let node = |rows: &[(u8, u8)]| -> Contents {
            rows.iter().map(|(key, cell)| (vec![*key], vec![Some(vec![*cell])])).collect()
        };
        let nodes = [node(&[(1, 1), (2, 2)]), node(&[(1, 1), (2, 3)]), node(&[(1, 1), (2, 2), (4, 4)])];
        assert_eq!(differing(&nodes), [vec![2], vec![4]]);
        assert!(differing(&nodes[..1]).is_empty());
    }
}
