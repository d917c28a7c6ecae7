//! Our own judge of rows that are changed by conditions, beside porcupine: by what is special about them, and without
//! a search. Each change writes what no other writes, and tells what it came from.
//!
//! So the changes of a row are a *chain*, of which each value is one *version*, and every request that shows a version
//! lies in its time:
//!
//! ```text
//!   none ─► 7 ─► 9 ─► 4        never two from one version
//!           └────┴── who has seen 9 is not answered before 9 was asked for, and nobody who asks after an answer that
//!                    shows 9 is shown 7
//! ```
//!
//! A lock comes back to *none* behind each holder. Of it is judged that nobody else is seen from the first answer that
//! shows a holder to the last question that is answered by it.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{History, Kind, Operation};

/// What a row shows.
type Value = Option<i64>;

/// What is wrong with rows that are changed by conditions, if anything is.
///
/// # Errors
/// It names the row.
pub(super) fn judge(history: &History) -> Result<(), String> {
    let mut rows: BTreeMap<i64, Vec<&Operation>> = BTreeMap::new();
    history.0.iter().for_each(|operation| rows.entry(operation.row).or_default().push(operation));
    for (row, operations) in rows {
        let is_changed = |one: &&Operation| matches!(one.kind, Kind::Change | Kind::Refusal);
        if !operations.iter().any(is_changed) {
            continue;
        }
        let is_lock = operations.iter().any(|one| one.kind == Kind::Change && one.number.is_none());
        let judged = if is_lock { judge_lock(&operations) } else { judge_chain(&operations) };
        judged.map_err(|what| format!("row {row}: {what}"))?;
    }
    Ok(())
}

/// What a request shows that was answered.
fn shown(operation: &Operation) -> Option<Value> {
    operation.answered_ns.map(|_| operation.number)
}

/// When nobody was answered, that is at the end.
fn answered(operation: &Operation) -> u64 {
    operation.answered_ns.unwrap_or(u64::MAX)
}

fn is_refused_without_cause(operation: &Operation) -> bool {
    operation.kind == Kind::Refusal && operation.number == operation.expected
}

fn judge_chain(operations: &[&Operation]) -> Result<(), String> {
    if let Some(refused) = operations.iter().find(|one| is_refused_without_cause(one)) {
        return Err(format!("refused though it was as expected: {refused}"));
    }
    let versions = versions(operations)?;
    let mut of_versions: Vec<Vec<&Operation>> = vec![Vec::new(); versions.len()];
    for operation in operations {
        // A change of unknown outcome that nobody has seen is none of them.
        if let Some(version) = versions.get(&operation.number) {
            of_versions[*version].push(operation);
        }
    }
    let mut asked_before: Option<&Operation> = None;
    for of_version in of_versions {
        let made = of_version.iter().find(|one| one.kind == Kind::Change);
        for operation in &of_version {
            let is_too_early = |before: &&Operation| answered(operation) < before.asked_ns;
            if let Some(before) = asked_before.iter().chain(made).find(|before| is_too_early(before)) {
                return Err(format!("{operation} shows what came behind {before}"));
            }
        }
        asked_before = of_version.into_iter().chain(asked_before).max_by_key(|one| one.asked_ns);
    }
    Ok(())
}

/// The values of a row by their place in its chain.
fn versions(operations: &[&Operation]) -> Result<BTreeMap<Value, usize>, String> {
    let changes = || operations.iter().filter(|one| one.kind == Kind::Change);
    let made_by: BTreeMap<Value, &Operation> = changes().map(|one| (one.number, *one)).collect();
    // What was seen, and what that came from, was made, whether anybody was answered or not.
    let mut is_made = BTreeSet::from([None]);
    let mut seen: Vec<Value> = operations.iter().filter_map(|one| shown(one)).collect();
    while let Some(value) = seen.pop() {
        if is_made.insert(value) {
            seen.push(made_by.get(&value).ok_or_else(|| format!("nobody wrote {value:?}"))?.expected);
        }
    }
    let mut behind: BTreeMap<Value, &Operation> = BTreeMap::new();
    for change in changes().filter(|one| is_made.contains(&one.number)) {
        if let Some(other) = behind.insert(change.expected, change) {
            return Err(format!("two changes of one version: {other} and {change}"));
        }
    }
    let mut versions = BTreeMap::from([(None, 0)]);
    let mut last = None;
    while let Some(change) = behind.remove(&last) {
        last = change.number;
        versions.insert(last, versions.len());
    }
    match behind.values().next() {
        Some(change) => Err(format!("from what never was: {change}")),
        None => Ok(versions),
    }
}

fn judge_lock(operations: &[&Operation]) -> Result<(), String> {
    let holders: BTreeSet<i64> = operations.iter().filter_map(|one| shown(one)?).collect();
    holders.into_iter().try_for_each(|holder| judge_holder(operations, holder))
}

/// Nobody else may be seen while this one certainly holds the lock.
fn judge_holder(operations: &[&Operation], holder: i64) -> Result<(), String> {
    let holder = Some(holder);
    let is_release = |one: &Operation| one.kind == Kind::Change && one.expected == holder;
    let shows = |one: &Operation| shown(one) == Some(holder) || is_release(one) && one.answered_ns.is_some();
    let showing = || operations.iter().filter(|one| shows(one));
    let first = showing().map(|one| answered(one)).min().unwrap_or(u64::MAX);
    let last = showing().map(|one| one.asked_ns).max().unwrap_or(0);
    let take = operations.iter().find(|one| one.kind == Kind::Change && one.number == holder);
    match take {
        None => return Err(format!("nobody took it for {holder:?}")),
        Some(take) if take.asked_ns > first => return Err(format!("seen before {take}")),
        Some(_) => {}
    }
    let is_amid = |one: &&&Operation| one.asked_ns > first && answered(one) < last;
    let is_other = |one: &&&Operation| !shows(one) || is_release(one);
    match operations.iter().filter(is_other).find(is_amid) {
        Some(other) => Err(format!("{other} while {holder:?} holds it")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(kind: Kind, times: (u64, u64), expected: Value, number: Value) -> Operation {
        let (asked_ns, answered_ns) = (times.0, (times.1 > 0).then_some(times.1));
        Operation { row: 1, client: 0, kind, asked_ns, answered_ns, expected, number }
    }

    fn change(times: (u64, u64), expected: Value, number: Value) -> Operation {
        operation(Kind::Change, times, expected, number)
    }

    fn read(times: (u64, u64), number: Value) -> Operation {
        operation(Kind::Read, times, None, number)
    }

    fn refusal(times: (u64, u64), expected: Value, number: Value) -> Operation {
        operation(Kind::Refusal, times, expected, number)
    }

    fn judged(operations: &[Operation]) -> Result<(), String> {
        judge(&History(operations.to_vec()))
    }

    #[test]
    fn a_chain_of_changes_is_right_whatever_is_under_way() {
        let right = [
            change((1, 5), None, Some(7)),
            read((2, 3), None),
            read((2, 3), Some(7)),
            change((4, 0), Some(7), Some(9)),
            read((6, 7), Some(7)),
            read((8, 9), Some(9)),
            refusal((8, 9), Some(7), Some(9)),
            change((10, 0), Some(9), Some(11)),
            read((20, 21), Some(9)),
        ];
        assert_eq!(judged(&right), Ok(()));
    }

    #[test]
    fn what_can_not_be_in_a_chain_is_found() {
        let (made, set) = (change((1, 2), None, Some(7)), change((3, 4), Some(7), Some(9)));
        let wrong = |more: Operation| judged(&[made, set, more]).expect_err("it is wrong");
        assert!(wrong(read((5, 6), Some(7))).contains("shows what came behind"), "stale");
        assert!(wrong(read((5, 6), None)).contains("shows what came behind"), "lost");
        assert!(wrong(change((5, 6), Some(7), Some(8))).contains("two changes of one version"));
        assert!(wrong(read((5, 6), Some(10))).contains("nobody wrote"));
        assert!(wrong(read((2, 2), Some(9))).contains("shows what came behind"), "before it was asked for");
        assert!(wrong(refusal((5, 6), Some(9), Some(9))).contains("as expected"));
        assert!(wrong(change((5, 6), Some(12), Some(13))).contains("nobody wrote"));
        let circle = [change((1, 2), Some(9), Some(7)), change((3, 4), Some(7), Some(9))];
        assert!(judged(&circle).expect_err("it has no beginning").contains("from what never was"));
    }

    #[test]
    fn a_lock_has_one_holder_at_a_time() {
        let (taken, released) = (change((1, 2), None, Some(7)), change((8, 9), Some(7), None));
        let right = [taken, released, refusal((3, 4), None, Some(7)), change((8, 12), None, Some(8))];
        assert_eq!(judged(&right), Ok(()));
        let wrong = |more: Operation| judged(&[taken, released, more]).expect_err("it is wrong");
        assert!(wrong(change((3, 4), None, Some(8))).contains("while Some(7) holds it"), "taken twice");
        assert!(wrong(read((3, 4), None)).contains("while Some(7) holds it"), "lost");
        assert!(wrong(read((10, 11), Some(7))).contains("while Some(7) holds it"), "seen behind its release");
        assert!(wrong(read((3, 4), Some(6))).contains("nobody took it"));
        let early = [change((5, 6), None, Some(7)), read((1, 2), Some(7)), released];
        assert!(judged(&early).expect_err("it is wrong").contains("seen before"));
    }
}
