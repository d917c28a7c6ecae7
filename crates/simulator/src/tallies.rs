//! Counters that rivals add to, and what each may show.
//!
//! ```text
//!   UPDATE tallies SET n = n - 9 WHERE k = 4     the third addition to counter 4
//!   SELECT n FROM tallies WHERE k = 4            -8 = 1 - 9: the first and the third, each once
//! ```
//!
//! What is added to a counter is a power of three or its negative, each time the next power. So a value tells of each
//! addition how often it was counted, as a digit: never, once, or more than once, which must not be. One that its
//! client was told of is counted. One that its client was told was not done is not, ever. Of others nobody knows, also
//! when they were shown: what a read shows need not be on a disk yet.

use protocol::{CellReader, Rows};
use tokio::time::Instant;

use crate::dice::Dice;
use crate::served::Bound;

/// Powers of three that a counter has room for.
const ADDITIONS_MAX: usize = 36;
const _: () = assert!(3i128.pow(ADDITIONS_MAX as u32 + 1) < i64::MAX as i128, "all of them together");
/// Counters that are added to or shown: the last ones.
const COUNTERS_USED: usize = 3;

/// What is known of counters, over all lives of a node.
#[derive(Debug, Default)]
pub(crate) struct Tallies(Vec<Counter>);

/// By their powers.
#[derive(Debug, Default)]
struct Counter(Vec<Addition>);

#[derive(Clone, Copy, Debug)]
struct Addition {
    is_negative: bool,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Counted, or not.
    Open,
    /// Its client was told that it was not done.
    Undone,
    /// Acknowledged then by fewer replicas than a read asks: it may not show before all is settled.
    Told(Instant),
    /// Acknowledged then: it shows from now on.
    Sure(Instant),
}

/// What was asked, of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    counter: usize,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Add that power of three, or take it away.
    Add { power: usize, is_negative: bool },
    /// Show its value, in which these powers must be.
    Show { sure: Vec<usize> },
}

impl Asked {
    /// The statement, for the table of that name, and its values.
    pub(crate) fn statement(&self, table: &str) -> (String, Vec<Bound>) {
        let key = Bound::Int(i32::try_from(self.counter).expect("some counters"));
        match &self.what {
            What::Add { power, is_negative } => {
                let sign = if *is_negative { '-' } else { '+' };
                let text = format!("UPDATE {table} SET n = n {sign} ? WHERE k = ?");
                (text, vec![Bound::Long(3i64.pow(*power as u32)), key])
            }
            What::Show { .. } => (format!("SELECT n FROM {table} WHERE k = ?"), vec![key]),
        }
    }
}

impl Tallies {
    /// Something to ask.
    pub(crate) fn roll(&mut self, dice: &Dice) -> Asked {
        if self.0.last().is_none_or(|last| last.0.len() == ADDITIONS_MAX) {
            self.0.push(Counter::default());
        }
        if dice.one_in(4) {
            let counter = self.0.len() - 1 - dice.below(self.0.len().min(COUNTERS_USED));
            return self.show(counter);
        }
        let (counter, is_negative) = (self.0.len() - 1, dice.one_in(2));
        self.0[counter].0.push(Addition { is_negative, fate: Fate::Open });
        let power = self.0[counter].0.len() - 1;
        Asked { counter, what: What::Add { power, is_negative } }
    }

    /// The counters there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn show(&self, counter: usize) -> Asked {
        let sure = self.0[counter].powers(|fate| matches!(fate, Fate::Sure(_)));
        Asked { counter, what: What::Show { sure } }
    }

    /// All is settled: what was acknowledged by anybody is there.
    pub(crate) fn settle(&mut self) {
        self.change_fates(|fate| match fate {
            Fate::Told(when) => Fate::Sure(when),
            fate => fate,
        });
    }

    /// A disk was lost then: it may have been the only one to have what too few had acknowledged.
    pub(crate) fn doubt_told_until(&mut self, then: Instant) {
        self.change_fates(|fate| match fate {
            Fate::Told(when) if when <= then => Fate::Open,
            fate => fate,
        });
    }

    /// What was acknowledged since then may be lost.
    pub(crate) fn doubt_since(&mut self, since: Instant) {
        self.change_fates(|fate| match fate {
            Fate::Told(when) | Fate::Sure(when) if when >= since => Fate::Open,
            fate => fate,
        });
    }

    fn change_fates(&mut self, change: impl Fn(Fate) -> Fate) {
        let additions = self.0.iter_mut().flat_map(|counter| &mut counter.0);
        additions.for_each(|addition| addition.fate = change(addition.fate));
    }

    /// What was asked is done, as enough replicas for every read say, or fewer.
    pub(crate) fn take_done(&mut self, asked: &Asked, by_enough: bool) -> Result<(), String> {
        let What::Add { power, .. } = asked.what else {
            return Err("nothing was asked to be done".to_owned());
        };
        let fate = &mut self.0[asked.counter].0[power].fate;
        if *fate == Fate::Open {
            let now = Instant::now();
            *fate = if by_enough { Fate::Sure(now) } else { Fate::Told(now) };
        }
        Ok(())
    }

    /// What is asked was not done, and will not be.
    pub(crate) fn take_undone(&mut self, asked: &Asked) {
        if let What::Add { power, .. } = asked.what {
            self.0[asked.counter].0[power].fate = Fate::Undone;
        }
    }

    /// Takes in the rows of an answer.
    pub(crate) fn take_rows(&self, asked: &Asked, rows: &Rows) -> Result<(), String> {
        let What::Show { sure } = &asked.what else {
            return Err("rows, where none were asked for".to_owned());
        };
        let counted = self.0[asked.counter].counted(value_of(rows)?)?;
        if let Some(power) = sure.iter().find(|power| !counted.contains(power)) {
            return Err(format!("the addition of 3^{power} is lost"));
        }
        let is_undone = |power: &&usize| self.0[asked.counter].0[**power].fate == Fate::Undone;
        match counted.iter().find(is_undone) {
            Some(power) => Err(format!("3^{power} is counted, which was told not to be")),
            None => Ok(()),
        }
    }
}

impl Counter {
    fn powers(&self, is_wanted: impl Fn(Fate) -> bool) -> Vec<usize> {
        let additions = self.0.iter().enumerate();
        additions.filter(|(_, addition)| is_wanted(addition.fate)).map(|(power, _)| power).collect()
    }

    /// Which powers of three are in a value, each once.
    fn counted(&self, value: i64) -> Result<Vec<usize>, String> {
        let (mut rest, mut counted) = (value, Vec::new());
        for (power, addition) in self.0.iter().enumerate() {
            let sign = if addition.is_negative { -1 } else { 1 };
            let digit = (rest * sign).rem_euclid(3);
            if digit == 2 {
                return Err(format!("3^{power} is counted more than once in {value}"));
            }
            if digit == 1 {
                counted.push(power);
            }
            rest = (rest - sign * digit) / 3;
        }
        match rest {
            0 => Ok(counted),
            _ => Err(format!("{value} has what nobody has added")),
        }
    }
}

/// The value of the one counter that an answer shows; 0 of one that is not there.
fn value_of(rows: &Rows) -> Result<i64, String> {
    let cells: Vec<_> =
        CellReader::new(rows.cells.clone()).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    match cells.as_slice() {
        [] | [None] => Ok(0),
        [Some(bytes)] if bytes.len() == 8 => {
            Ok(i64::from_be_bytes(bytes[..].try_into().expect("eight bytes")))
        }
        other => Err(format!("{other:?} is no counter")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallies(signs: &[bool]) -> Tallies {
        let addition = |is_negative: &bool| Addition { is_negative: *is_negative, fate: Fate::Open };
        Tallies(vec![Counter(signs.iter().map(addition).collect())])
    }

    #[test]
    fn a_value_tells_what_was_counted() {
        let tallies = tallies(&[false, true, true, false]);
        let counted = |value: i64| tallies.0[0].counted(value);
        assert_eq!(counted(0), Ok(vec![]));
        assert_eq!(counted(1 - 9), Ok(vec![0, 2]));
        assert_eq!(counted(-3 + 27), Ok(vec![1, 3]));
        assert_eq!(counted(1 - 3 - 9 + 27), Ok(vec![0, 1, 2, 3]));
        counted(2).expect_err("twice");
        counted(-6).expect_err("twice");
        counted(-1).expect_err("the other way");
        counted(81).expect_err("added by nobody");
    }

    #[test]
    fn what_was_told_is_held_to() {
        let mut tallies = tallies(&[false, true]);
        let add = |power| Asked { counter: 0, what: What::Add { power, is_negative: power == 1 } };
        tallies.take_done(&add(0), true).expect("asked");
        tallies.take_undone(&add(1));
        assert_eq!(tallies.show(0).what, What::Show { sure: vec![0] });
        tallies.doubt_since(Instant::now());
        assert_eq!(tallies.show(0).what, What::Show { sure: vec![0] }, "it was told before");
    }

    #[test]
    fn what_only_a_lost_disk_may_have_is_in_doubt() {
        let mut tallies = tallies(&[false, false]);
        let add = |power| Asked { counter: 0, what: What::Add { power, is_negative: false } };
        tallies.take_done(&add(0), false).expect("asked");
        tallies.take_done(&add(1), true).expect("asked");
        tallies.doubt_told_until(Instant::now());
        tallies.settle();
        assert_eq!(tallies.show(0).what, What::Show { sure: vec![1] });
    }
}
