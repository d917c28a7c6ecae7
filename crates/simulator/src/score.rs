//! What rivals ask, and what they know of it together: rows that they count up by conditions ([`crate::ledger`]), and
//! counters that they add to ([`crate::tallies`]).

use protocol::{Response, Rows};
use tokio::time::Instant;

use crate::dice::Dice;
use crate::ledger::{self, Ledger};
use crate::served::Bound;
use crate::tallies::{self, Tallies};
use crate::ways::Way;

/// The tables, in whichever keyspace, and how they are made.
pub(crate) const TABLES: [(&str, &str); 2] =
    [("counts", ledger::DEFINITION), ("tallies", "(k int PRIMARY KEY, n counter)")];

/// What is known, over all lives of a node.
#[derive(Debug, Default)]
pub(crate) struct Score {
    ledger: Ledger,
    pub(crate) tallies: Tallies,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    OfRow(ledger::Asked),
    OfCounter(tallies::Asked),
}

/// What it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A change with a condition.
    Conditional,
    /// A read that shows all changes that were told.
    Shown,
    Addition,
    /// A read of a counter.
    Value,
}

impl Asked {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Asked::OfRow(asked) if asked.what == ledger::What::Show => Kind::Shown,
            Asked::OfRow(_) => Kind::Conditional,
            Asked::OfCounter(tallies::Asked { what: tallies::What::Add { .. }, .. }) => Kind::Addition,
            Asked::OfCounter(_) => Kind::Value,
        }
    }

    /// The statement, for tables of that keyspace, and its values.
    pub(crate) fn statement(&self, keyspace: &str) -> (String, Vec<Bound>) {
        match self {
            Asked::OfRow(asked) => asked.statement(&format!("{keyspace}.counts")),
            Asked::OfCounter(asked) => asked.statement(&format!("{keyspace}.tallies")),
        }
    }
}

impl Score {
    /// Something to ask.
    pub(crate) fn roll(&mut self, dice: &Dice) -> Asked {
        match dice.one_in(3) {
            true => Asked::OfCounter(self.tallies.roll(dice)),
            false => Asked::OfRow(self.ledger.roll(dice)),
        }
    }

    /// A row to look at.
    pub(crate) fn look(&mut self, dice: &Dice) -> Asked {
        Asked::OfRow(self.ledger.look(dice))
    }

    /// Takes in an answer that is no error, and tells the way that was taken to it. What is done is so by as many
    /// replicas as meet those of every read, or by fewer.
    pub(crate) fn take(&mut self, asked: &Asked, answer: &Response, by_enough: bool) -> Result<Way, String> {
        match answer {
            Response::Rows(rows) => self.take_rows(asked, rows),
            Response::Void => self.take_done(asked, by_enough),
            other => Err(format!("it is answered {other:?}")),
        }
    }

    fn take_rows(&mut self, asked: &Asked, rows: &Rows) -> Result<Way, String> {
        match asked {
            Asked::OfRow(asked) => self.ledger.take_rows(asked, rows).map(ledger::Told::way),
            Asked::OfCounter(asked) => self.tallies.take_rows(asked, rows).map(|()| Way::CounterShown),
        }
    }

    /// It was done, without a word more.
    fn take_done(&mut self, asked: &Asked, by_enough: bool) -> Result<Way, String> {
        match asked {
            Asked::OfRow(_) => Err("nothing is told of a condition".to_owned()),
            Asked::OfCounter(asked) => self.tallies.take_done(asked, by_enough).map(|()| Way::Counted),
        }
    }

    /// What is asked was not done, and will not be.
    pub(crate) fn take_undone(&mut self, asked: &Asked) {
        match asked {
            Asked::OfRow(asked) => self.ledger.take_undone(asked),
            Asked::OfCounter(asked) => self.tallies.take_undone(asked),
        }
    }

    /// What was counted since then may be lost. What a condition has changed is not: it is on the disk before anybody
    /// hears of it.
    pub(crate) fn doubt_since(&mut self, since: Instant) {
        self.tallies.doubt_since(since);
    }

    /// How far they have come, in words.
    pub(crate) fn words(&self) -> String {
        format!("{}, and {} counters", self.ledger.highest(), self.tallies.count())
    }
}
