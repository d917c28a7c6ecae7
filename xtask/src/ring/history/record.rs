//! What clients asked and saw, as a file: a line for each request.
//!
//! ```text
//!   row client kind    asked answered expected number        times in ns since the beginning
//!   0   1      write   1000  2000     -        17
//!   0   1      delete  2100  -        -        18            nobody knows whether it is done
//!   0   2      read    1500  1600     -        17            it saw what write 17 wrote
//!   0   2      read    1700  1800     -        -             it saw no row
//!   1   3      change  1900  2000     -        18            it was applied to no row
//!   1   4      change  1900  2100     18       -             it was applied: the row is gone
//!   1   4      refusal 2200  2300     19       -             it expected 19, and no row was there
//! ```
//!
//! What all nodes refused is not in it: it was not done, and must not be seen. Nor is a read without an answer.

use std::collections::BTreeSet;
use std::fmt;

/// Of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Write,
    Delete,
    Read,
    /// By a condition that held.
    Change,
    /// By one that did not hold.
    Refusal,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [Kind::Write, Kind::Delete, Kind::Read, Kind::Change, Kind::Refusal];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Write => "write",
            Kind::Delete => "delete",
            Kind::Read => "read",
            Kind::Change => "change",
            Kind::Refusal => "refusal",
        }
    }
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) row: i64,
    pub(super) client: u64,
    pub(super) kind: Kind,
    pub(super) asked_ns: u64,
    /// `None` when the outcome is not known.
    pub(super) answered_ns: Option<u64>,
    /// What a change came from, or wanted to: `None` is no row.
    pub(super) expected: Option<i64>,
    /// What was written, or seen: `None` is no row.
    pub(super) number: Option<i64>,
}

/// All requests of all clients.
#[derive(Clone, Debug, Default)]
pub(super) struct History(pub(super) Vec<Operation>);

impl History {
    pub(super) fn count(&self, kind: Kind) -> usize {
        self.0.iter().filter(|operation| operation.kind == kind).count()
    }

    /// How many are of unknown outcome.
    pub(super) fn open_count(&self) -> usize {
        self.0.iter().filter(|operation| operation.answered_ns.is_none()).count()
    }

    pub(super) fn row_count(&self) -> usize {
        self.0.iter().map(|operation| operation.row).collect::<BTreeSet<_>>().len()
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|operation| writeln!(f, "{operation}"))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<i64>| number.map_or("-".to_owned(), |number| number.to_string());
        let answered = self.answered_ns.map_or("-".to_owned(), |answered| answered.to_string());
        let Operation { row, client, kind, asked_ns, .. } = self;
        let (expected, number) = (number(self.expected), number(self.number));
        write!(f, "{row} {client} {} {asked_ns} {answered} {expected} {number}", kind.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_written_as_the_judge_reads_it() {
        let operation = Operation {
            row: 3,
            client: 7,
            kind: Kind::Delete,
            asked_ns: 10,
            answered_ns: None,
            expected: None,
            number: Some(5),
        };
        let read = Operation { kind: Kind::Read, answered_ns: Some(12), number: None, ..operation };
        let history = History(vec![operation, read]);
        assert_eq!(history.to_string(), "3 7 delete 10 - - 5\n3 7 read 10 12 - -\n");
        assert_eq!((history.open_count(), history.count(Kind::Read), history.row_count()), (1, 1, 1));
    }
}
