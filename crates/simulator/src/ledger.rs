//! Rows that rivals count up by changes with a condition, and what each may be told of them.
//!
//! ```text
//!   UPDATE counts SET n = 8, m2 = 8 WHERE k = 0 IF n = 7   ─┬─► applied: 8 was reached, by this request alone
//!                                                           └─► not applied, n = 9: 9 is there, and stays
//! ```
//!
//! Each number is reached once at most. What a client was told is there for good, and so nobody is shown less later on,
//! whatever befalls the nodes. A number is only shown when somebody has asked for it who was not told that it was not
//! done. Each leaves its number in one of three columns in turns, which the next two do not write: whoever sees a
//! number sees those two before it, too.

use std::collections::{BTreeMap, BTreeSet};

use protocol::{CellReader, Rows};

use crate::dice::Dice;
use crate::served::Bound;
use crate::ways::Way;

/// Rows that are counted up.
const ROW_COUNT: i32 = 2;
/// Columns in which numbers are left.
const MARK_COUNT: i32 = 3;

/// How a table of them is made.
pub(crate) const DEFINITION: &str = "(k int PRIMARY KEY, n int, m0 int, m1 int, m2 int)";

/// What is known of the rows, over all lives of a node.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    rows: [Known; ROW_COUNT as usize],
}

#[derive(Debug, Default)]
struct Known {
    /// The greatest number that somebody was told.
    told: i32,
    /// Was it told that the row is there?
    is_begun: bool,
    /// Numbers that somebody has asked for, and how many were not told that it was not done.
    asked: BTreeMap<i32, u32>,
    /// Numbers that somebody was told to have reached.
    reached: BTreeSet<i32>,
}

/// What was asked, and what was known then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    row: i32,
    pub(crate) what: What,
    /// The greatest number that was told before.
    told: i32,
    was_begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Make the row, with 0.
    Begin,
    /// Count it up to this number.
    Count(i32),
    Show,
}

impl Asked {
    /// The statement, for the table of that name, and its values.
    pub(crate) fn statement(&self, table: &str) -> (String, Vec<Bound>) {
        let (row, int) = (Bound::Int(self.row), |number: i32| Bound::Int(shown_as(self.row, number)));
        match self.what {
            What::Begin => {
                (format!("INSERT INTO {table} (k, n) VALUES (?, ?) IF NOT EXISTS"), vec![row, int(0)])
            }
            What::Count(number) => {
                let mark = number % MARK_COUNT;
                let text = format!("UPDATE {table} SET n = ?, m{mark} = ? WHERE k = ? IF n = ?");
                (text, vec![int(number), int(number), row, int(number - 1)])
            }
            What::Show => (format!("SELECT n, m0, m1, m2 FROM {table} WHERE k = ?"), vec![row]),
        }
    }
}

/// How a number stands in a row. In one row later numbers are less: of two changes of one timestamp the greater value
/// wins, and must not be the later one every time.
fn shown_as(row: i32, number: i32) -> i32 {
    if row == 0 { number } else { -number }
}

impl Ledger {
    /// Something to ask.
    pub(crate) fn roll(&mut self, dice: &Dice) -> Asked {
        let row = dice.below(ROW_COUNT as usize) as i32;
        let told = self.rows[row as usize].told;
        let what = match dice.below(12) {
            0 => What::Begin,
            1 | 2 => What::Show,
            // Now and then from a number that may not be reached yet.
            3 => What::Count(told + 2),
            _ => What::Count(told + 1),
        };
        self.ask(row, what)
    }

    /// A row to look at.
    pub(crate) fn look(&mut self, dice: &Dice) -> Asked {
        self.ask(dice.below(ROW_COUNT as usize) as i32, What::Show)
    }

    /// What is asked was not done, and will not be.
    pub(crate) fn take_undone(&mut self, asked: &Asked) {
        if let What::Count(number) = asked.what {
            *self.rows[asked.row as usize].asked.entry(number).or_default() -= 1;
        }
    }

    /// The greatest number of all rows.
    pub(crate) fn highest(&self) -> i32 {
        self.rows.iter().map(|known| known.told).max().unwrap_or(0)
    }

    fn ask(&mut self, row: i32, what: What) -> Asked {
        let known = &mut self.rows[row as usize];
        if let What::Count(number) = what {
            *known.asked.entry(number).or_default() += 1;
        }
        Asked { row, what, told: known.told, was_begun: known.is_begun }
    }

    /// Takes in the rows of an answer, and tells what they say.
    pub(crate) fn take_rows(&mut self, asked: &Asked, rows: &Rows) -> Result<Told, String> {
        let (told, marks) = told_of(rows, asked.what)?;
        match told {
            Told::Applied => self.take_applied(asked)?,
            Told::Shown(number) => {
                // Whose condition did not hold has not reached it, nor will.
                self.take_undone(asked);
                self.take_shown(asked, number)?;
                if let (Some(marks), Some(number)) = (marks, number) {
                    check_marks(asked.row, number, &marks)?;
                }
            }
        }
        Ok(told)
    }

    /// It was done as asked.
    fn take_applied(&mut self, asked: &Asked) -> Result<(), String> {
        let known = &mut self.rows[asked.row as usize];
        match asked.what {
            What::Show => return Err("a read was applied".to_owned()),
            What::Begin if asked.was_begun => return Err("a row was made twice".to_owned()),
            What::Begin => {}
            What::Count(number) if number <= asked.told => {
                return Err(format!("{number} was reached, and {} was told before", asked.told));
            }
            What::Count(number) if !known.reached.insert(number) => {
                return Err(format!("{number} was reached twice"));
            }
            What::Count(number) => known.told = known.told.max(number),
        }
        known.is_begun = true;
        Ok(())
    }

    /// The row shows that number; of `None` there is no row.
    fn take_shown(&mut self, asked: &Asked, shown: Option<i32>) -> Result<(), String> {
        let known = &mut self.rows[asked.row as usize];
        let Some(shown) = shown.map(|shown| shown_as(asked.row, shown)) else {
            return if asked.was_begun { Err("a row is gone".to_owned()) } else { Ok(()) };
        };
        if shown < asked.told {
            return Err(format!("{shown} is shown, and {} was told before", asked.told));
        }
        if shown != 0 && known.asked.get(&shown).is_none_or(|count| *count == 0) {
            return Err(format!("{shown} is shown, which nobody has asked for"));
        }
        if let What::Count(number) = asked.what
            && shown == number - 1
        {
            return Err(format!("{number} was not reached from {shown}"));
        }
        known.told = known.told.max(shown);
        known.is_begun = true;
        Ok(())
    }
}

/// A row in which that number stands has the marks of it and of those before it.
fn check_marks(row: i32, shown: i32, marks: &Marks) -> Result<(), String> {
    let number = shown_as(row, shown);
    for (mark, has) in (0..MARK_COUNT).zip(marks) {
        let last = (1..=number).rev().take(MARK_COUNT as usize).find(|number| number % MARK_COUNT == mark);
        let has = has.map(|has| shown_as(row, has));
        if has != last {
            return Err(format!("{number} is shown, and {has:?} in m{mark} instead of {last:?}"));
        }
    }
    Ok(())
}

/// What stands in the columns of marks.
type Marks = [Option<i32>; MARK_COUNT as usize];

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Applied,
    /// Not applied, or read: the row has that number, or there is none.
    Shown(Option<i32>),
}

impl Told {
    /// The way that was taken to it.
    pub(crate) fn way(self) -> Way {
        match self {
            Told::Applied => Way::Applied,
            Told::Shown(_) => Way::NotApplied,
        }
    }
}

/// What the rows of an answer say, with the marks where they are read.
fn told_of(rows: &Rows, what: What) -> Result<(Told, Option<Marks>), String> {
    let cells: Vec<_> =
        CellReader::new(rows.cells.clone()).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let number = |cell: Option<&Option<bytes::Bytes>>| match cell.and_then(Option::as_deref) {
        None => Ok(None),
        Some(bytes) => match bytes.try_into() {
            Ok(bytes) => Ok(Some(i32::from_be_bytes(bytes))),
            Err(_) => Err(format!("a number of {} bytes", bytes.len())),
        },
    };
    if what == What::Show {
        let mut numbers = cells.iter().map(|cell| number(Some(cell)));
        let shown = numbers.next().transpose()?.flatten();
        let marks: Vec<_> = numbers.collect::<Result<_, _>>()?;
        // There may be no row.
        return Ok((Told::Shown(shown), marks.try_into().ok()));
    }
    match cells.split_first() {
        Some((Some(applied), [])) if applied[..] == [1] => Ok((Told::Applied, None)),
        // Of the columns that it shows, that of the number is the last.
        Some((Some(applied), shown)) if applied[..] == [0] => {
            number(shown.last()).map(|number| (Told::Shown(number), None))
        }
        _ => Err(format!("{cells:?} says neither that it was applied nor that it was not")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_may_be_told_is_noticed() {
        let mut ledger = Ledger::default();
        let early = ledger.ask(0, What::Begin);
        let begin = ledger.ask(0, What::Begin);
        ledger.take_applied(&begin).expect("the first");
        ledger.take_shown(&early, Some(0)).expect("the second");
        let again = ledger.ask(0, What::Begin);
        ledger.take_applied(&again).expect_err("it was told that it is there");
        let (one, other) = (ledger.ask(0, What::Count(1)), ledger.ask(0, What::Count(1)));
        ledger.take_applied(&one).expect("reached");
        ledger.take_applied(&other).expect_err("reached twice");
        let show = ledger.ask(0, What::Show);
        ledger.take_shown(&show, Some(0)).expect_err("less than was told");
        ledger.take_shown(&show, None).expect_err("gone");
        ledger.take_shown(&show, Some(5)).expect_err("asked by nobody");
        let own = ledger.ask(1, What::Count(1));
        ledger.take_undone(&own);
        ledger.take_shown(&own, Some(shown_as(1, 1))).expect_err("by itself");
        let next = ledger.ask(0, What::Count(2));
        ledger.take_shown(&next, Some(1)).expect_err("its condition holds");
        ledger.take_shown(&next, Some(2)).expect("by somebody else");
        ledger.take_applied(&one).expect_err("twice");
        assert_eq!(ledger.rows[0].told, 2);
    }

    #[test]
    fn a_change_that_is_not_there_with_those_behind_it_is_noticed() {
        for (number, marks) in
            [(0, [None; 3]), (2, [None, Some(1), Some(2)]), (7, [Some(6), Some(7), Some(5)])]
        {
            let shown = |row: i32| marks.map(|mark: Option<i32>| mark.map(|mark| shown_as(row, mark)));
            for row in 0..ROW_COUNT {
                assert_eq!(check_marks(row, shown_as(row, number), &shown(row)), Ok(()));
            }
        }
        for marks in [[Some(3), Some(7), Some(5)], [Some(6), Some(7), None], [Some(6), Some(7), Some(8)]] {
            check_marks(0, 7, &marks).expect_err("the changes to 5, 6 and 7 are there, and no other");
        }
    }
}
