//! What a read of a key may show.
//!
//! One client writes a key, growing numbers with themselves as timestamps, so the greatest wins. A number that was
//! acknowledged by *w* replicas is on one at least of any *r* of the three when *w + r > 3*: so a read from *r* shows
//! it, or a greater one. What a read from several replicas has shown was on all of these when it was answered, as if it
//! had been written there: no later read shows less. One alone may have had it in memory, and lost it with its power.
//! And no number is shown that was not written.

use coordinator::Consistency;

use crate::scenario::Violation;

const FACTOR: usize = 3;

/// The levels that clients use, and how many of three replicas these are.
pub(crate) const LEVELS: [(Consistency, usize); 3] =
    [(Consistency::One, 1), (Consistency::Quorum, 2), (Consistency::All, 3)];

/// A key, as its client knows it.
#[derive(Debug, Default)]
pub(crate) struct Register {
    /// The greatest number that was sent.
    pub(crate) sent: i64,
    /// The greatest that so many replicas have, at least, by their count.
    held: [i64; FACTOR + 1],
}

impl Register {
    /// So many replicas said that they have it.
    pub(crate) fn acknowledged(&mut self, number: i64, replica_count: usize) {
        self.held[replica_count] = self.held[replica_count].max(number);
    }

    /// So many replicas have shown it together; 0 is nothing.
    ///
    /// # Errors
    /// They must not.
    pub(crate) fn shown(&mut self, number: i64, replica_count: usize) -> Result<(), Violation> {
        let least = (FACTOR + 1 - replica_count..=FACTOR).map(|count| self.held[count]).max().unwrap_or(0);
        if !(least..=self.sent).contains(&number) {
            let Register { sent, held } = self;
            return Err(Violation::new(format!(
                "{replica_count} replicas show {number}, of {sent} sent, {held:?} held by so many"
            )));
        }
        if replica_count > 1 {
            self.acknowledged(number, replica_count);
        }
        Ok(())
    }
}
