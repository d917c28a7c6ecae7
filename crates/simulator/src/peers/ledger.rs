//! What was asked, what came, and what those who asked were told.

use std::collections::BTreeMap;

use crate::scenario::Violation;

/// What became of a request, as far as who asked it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Answered,
    NotSent,
    /// Declined, or its connection broke.
    Lost,
    /// Nobody waited for it any longer.
    GivenUp,
    /// The answer was another one's.
    Wrong,
}

/// By the number of a request: it is used once.
#[derive(Default)]
pub(crate) struct Ledger {
    next: u64,
    came: BTreeMap<u64, u32>,
    told: BTreeMap<u64, Told>,
}

impl Ledger {
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn came(&mut self, number: u64) {
        *self.came.entry(number).or_default() += 1;
    }

    pub(crate) fn told(&mut self, number: u64, told: Told) {
        self.told.insert(number, told);
    }

    /// Does what was told agree with what came? Who was killed was told nothing.
    pub(crate) fn check(&self) -> Result<(), Violation> {
        for (number, count) in &self.came {
            if *count > 1 || *number > self.next {
                return Err(Violation::new(format!("request {number} came {count} times")));
            }
        }
        for (number, told) in &self.told {
            let came = self.came.contains_key(number);
            let is_right = match told {
                Told::Answered => came,
                Told::NotSent => !came,
                Told::Lost | Told::GivenUp => true,
                Told::Wrong => false,
            };
            if !is_right {
                return Err(Violation::new(format!("request {number} was told {told:?}, came: {came}")));
            }
        }
        Ok(())
    }
}
