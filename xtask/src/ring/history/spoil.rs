//! A history with a mistake in it: so it is seen that the judge would have found one.

use super::record::{History, Kind, Operation};

/// A mistake.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spoiling {
    /// A read shows what was there before the last acknowledged write.
    Stale,
    /// A read shows a number that nobody wrote.
    Invented,
    /// Of two reads, one after the other, the later one shows what came before what the other has shown, while the
    /// write of that is of unknown outcome.
    WentBack,
    /// A change that was refused is applied: what it expected was changed before.
    ChangedTwice,
    /// A read behind a change shows what that came from.
    ChangeLost,
}

impl Spoiling {
    pub(super) const ALL: [Spoiling; 5] = [
        Spoiling::Stale,
        Spoiling::Invented,
        Spoiling::WentBack,
        Spoiling::ChangedTwice,
        Spoiling::ChangeLost,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Spoiling::Stale => "stale",
            Spoiling::Invented => "invented",
            Spoiling::WentBack => "went-back",
            Spoiling::ChangedTwice => "changed-twice",
            Spoiling::ChangeLost => "change-lost",
        }
    }

    /// Is it a mistake with conditions?
    pub(super) fn is_of_changes(self) -> bool {
        matches!(self, Spoiling::ChangedTwice | Spoiling::ChangeLost)
    }

    /// Makes the mistake once; `None` when no request allows it.
    pub(super) fn spoil(self, history: &History) -> Option<History> {
        let mut spoiled = history.clone();
        match self {
            Spoiling::Stale => {
                let (read, before) = stale(&history.0)?;
                spoiled.0[read].number = Some(before);
            }
            Spoiling::Invented => {
                let is_read = |operation: &&mut Operation| operation.kind == Kind::Read;
                spoiled.0.iter_mut().find(is_read)?.number = Some(i64::MAX);
            }
            Spoiling::WentBack => {
                let (write, later_read, before) = went_back(&history.0)?;
                spoiled.0[write].answered_ns = None;
                spoiled.0[later_read].number = Some(before);
            }
            Spoiling::ChangedTwice => {
                // Both were something: a lock may have been free for a moment.
                let is_spoiled = |one: &&mut Operation| {
                    one.kind == Kind::Refusal && one.expected.is_some() && one.number.is_some()
                };
                let refused = spoiled.0.iter_mut().find(is_spoiled)?;
                (refused.kind, refused.number) = (Kind::Change, Some(i64::MAX));
            }
            Spoiling::ChangeLost => {
                let (read, before) = behind_a_change(&history.0)?;
                spoiled.0[read].number = Some(before);
            }
        }
        Some(spoiled)
    }
}

/// Was that all over before the other was asked?
fn is_before(one: &Operation, other: &Operation) -> bool {
    one.row == other.row && one.answered_ns.is_some_and(|answered| answered < other.asked_ns)
}

/// The last two acknowledged writes that were over before that, of its row: the newer and the older.
fn last_two<'o>(operations: &'o [Operation], before: &Operation) -> Option<(&'o Operation, &'o Operation)> {
    let is_write = |one: &&Operation| one.kind == Kind::Write && is_before(one, before);
    let mut writes: Vec<&Operation> = operations.iter().filter(is_write).collect();
    writes.sort_by_key(|write| std::cmp::Reverse(write.number));
    let [newer, older, ..] = *writes else { return None };
    Some((newer, older))
}

/// A read, and what was written before the last write behind which it came.
fn stale(operations: &[Operation]) -> Option<(usize, i64)> {
    let reads = operations.iter().enumerate().filter(|(_, one)| one.kind == Kind::Read);
    let mut stale = reads.filter_map(|(index, read)| {
        let (_, older) = last_two(operations, read)?;
        Some((index, older.number?))
    });
    stale.next()
}

/// A write that was seen by a read, a later read, and what was written before that.
fn went_back(operations: &[Operation]) -> Option<(usize, usize, i64)> {
    let seen =
        operations.iter().enumerate().filter(|(_, one)| one.kind == Kind::Read && one.number.is_some());
    let mut found = seen.filter_map(|(_, read)| {
        let write = operations
            .iter()
            .position(|one| one.kind == Kind::Write && one.row == read.row && one.number == read.number)?;
        let later = operations
            .iter()
            .position(|one| one.kind == Kind::Read && one.number == read.number && is_before(read, one))?;
        let (newer, older) = last_two(operations, &operations[later])?;
        (newer.number == read.number).then_some((write, later, older.number?))
    });
    found.next()
}

/// A read that was asked for behind a change from something to something, and what that came from.
fn behind_a_change(operations: &[Operation]) -> Option<(usize, i64)> {
    let is_change = |one: &&Operation| one.kind == Kind::Change && one.number.is_some();
    let mut found = operations.iter().filter(is_change).filter_map(|change| {
        let is_behind = |one: &Operation| one.kind == Kind::Read && is_before(change, one);
        Some((operations.iter().position(is_behind)?, change.expected?))
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(kind: Kind, asked_ns: u64, number: i64) -> Operation {
        let (row, client) = (1, u64::from(kind == Kind::Read));
        let (answered_ns, number) = (Some(asked_ns + 1), Some(number));
        Operation { row, client, kind, asked_ns, answered_ns, expected: None, number }
    }

    #[test]
    fn a_spoiled_history_shows_what_can_not_be() {
        let history = History(vec![
            operation(Kind::Write, 0, 5),
            operation(Kind::Write, 10, 7),
            operation(Kind::Read, 20, 7),
            operation(Kind::Read, 30, 7),
        ]);
        let spoiled = |spoiling: Spoiling| spoiling.spoil(&history).expect("it can be spoiled").0;
        assert_eq!(spoiled(Spoiling::Stale)[2].number, Some(5));
        assert_eq!(spoiled(Spoiling::Invented)[2].number, Some(i64::MAX));
        let went_back = spoiled(Spoiling::WentBack);
        assert_eq!(
            (went_back[1].answered_ns, went_back[2].number, went_back[3].number),
            (None, Some(7), Some(5))
        );
        let expecting = |expected, operation| Operation { expected: Some(expected), ..operation };
        let history = History(vec![
            expecting(5, operation(Kind::Change, 0, 7)),
            expecting(5, operation(Kind::Refusal, 10, 7)),
            operation(Kind::Read, 20, 7),
        ]);
        let twice = Spoiling::ChangedTwice.spoil(&history).expect("it can be spoiled").0;
        assert_eq!((twice[1].kind, twice[1].expected), (Kind::Change, Some(5)));
        let lost = Spoiling::ChangeLost.spoil(&history).expect("it can be spoiled").0;
        assert_eq!(lost[2].number, Some(5));
        let alone = History(vec![operation(Kind::Write, 0, 5)]);
        assert!(Spoiling::ALL.iter().all(|spoiling| spoiling.spoil(&alone).is_none()));
    }
}
