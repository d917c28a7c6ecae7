//! Rivals: clients that count up rows which are nobody's own, by changes with a condition.
//!
//! ```text
//!   UPDATE s.counts SET n = 8 WHERE k = 0 IF n = 7   ─┬─► applied: 8 was reached, by this request alone
//!                                                     └─► not applied, n = 9: 9 is there, and stays
//! ```
//!
//! Each number is reached once at most. What a client was told is on the disk, whatever the sync mode, and so nobody is
//! shown less later on, also after a crash. A number that nobody has asked for is never shown.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use protocol::{
    CellReader, Consistency, ErrorKind, Execute, Query, QueryParameters, Request, Response, Rows, Version,
};

use super::client::{Client, Ended};
use super::connection::{Connection, parameters};
use super::statement::{Bound, packed, spelled};
use super::{World, clients_address};
use crate::scenario::Violation;
use crate::ways::Way;

/// Rows that are counted up.
const ROW_COUNT: i32 = 2;
/// Requests that a rival has under way together.
const TOGETHER_MAX: u64 = 4;

const BEGIN: &str = "INSERT INTO s.counts (k, n) VALUES (?, ?) IF NOT EXISTS";
const COUNT: &str = "UPDATE s.counts SET n = ? WHERE k = ? IF n = ?";
const SHOW: &str = "SELECT n FROM s.counts WHERE k = ?";

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
    /// Numbers that somebody has asked for.
    asked: BTreeSet<i32>,
    /// Numbers that somebody was told to have reached.
    reached: BTreeSet<i32>,
}

/// What was asked, and what was known then.
#[derive(Clone, Copy, Debug)]
struct Asked {
    row: i32,
    what: What,
    /// The greatest number that was told before.
    told: i32,
    was_begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Make the row, with 0.
    Begin,
    /// Count it up to this number.
    Count(i32),
    Show,
}

impl Ledger {
    fn ask(&mut self, row: i32, what: What) -> Asked {
        let known = &mut self.rows[row as usize];
        if let What::Count(number) = what {
            known.asked.insert(number);
        }
        Asked { row, what, told: known.told, was_begun: known.is_begun }
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
        let Some(shown) = shown else {
            return if asked.was_begun { Err("a row is gone".to_owned()) } else { Ok(()) };
        };
        if shown < asked.told {
            return Err(format!("{shown} is shown, and {} was told before", asked.told));
        }
        if shown != 0 && !known.asked.contains(&shown) {
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

/// A rival for a while.
pub(crate) struct Rival {
    pub(crate) client: Client,
    pub(crate) ledger: Rc<RefCell<Ledger>>,
}

impl Rival {
    /// Some bursts of work on connections that may break.
    pub(crate) async fn work(&self, burst_count: u64) -> Result<(), Violation> {
        let network = self.world().network.host(clients_address(self.client.node));
        for _ in 0..burst_count {
            let version = *self.client.dice.pick(&[Version::V4, Version::V5]);
            let bursts = async {
                let address: SocketAddr = self.client.address;
                let prepared = Rc::clone(&self.client.prepared);
                let mut connection = Connection::open(&network, address, version, prepared).await?;
                for _ in 0..self.client.dice.between(1, 4) {
                    self.burst(&mut connection).await?;
                }
                Ok(())
            };
            match self.client.in_time(bursts).await {
                Ok(()) => {}
                Err(Ended::Violation(violation)) => return Err(violation),
                Err(Ended::Broken(error)) => {
                    self.client.note(format_args!("broken: {error}"));
                    if !self.world().hosts.is_alive(self.client.node) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    async fn burst(&self, connection: &mut Connection) -> Result<(), Ended> {
        let dice = &self.client.dice;
        let count = dice.between(1, TOGETHER_MAX + 1);
        let mut waiting = Vec::new();
        for stream in 0..count as i16 {
            let asked = self.roll();
            let request = self.request(connection, &asked).await?;
            connection.put(stream, request);
            waiting.push(asked);
        }
        connection.send(usize::MAX).await?;
        self.client.fuse.burn_for_client();
        for _ in 0..count {
            let (stream, response) = connection.receive().await?;
            let Some(asked) = waiting.get(stream as usize) else {
                return Err(self.wrong(format!("an answer on stream {stream}, where nothing was asked")));
            };
            self.take(connection, asked, response)?;
        }
        Ok(())
    }

    fn roll(&self) -> Asked {
        let dice = &self.client.dice;
        let row = dice.below(ROW_COUNT as usize) as i32;
        let mut ledger = self.ledger.borrow_mut();
        let told = ledger.rows[row as usize].told;
        let what = match dice.below(12) {
            0 => What::Begin,
            1 | 2 => What::Show,
            // Now and then from a number that may not be reached yet.
            3 => What::Count(told + 2),
            _ => What::Count(told + 1),
        };
        ledger.ask(row, what)
    }

    async fn request(&self, connection: &mut Connection, asked: &Asked) -> Result<Request, Ended> {
        let (text, values) = match asked.what {
            What::Begin => (BEGIN, vec![Bound::Int(asked.row), Bound::Int(0)]),
            What::Count(number) => {
                (COUNT, vec![Bound::Int(number), Bound::Int(asked.row), Bound::Int(number - 1)])
            }
            What::Show => (SHOW, vec![Bound::Int(asked.row)]),
        };
        let consistency = if asked.what == What::Show { Consistency::Serial } else { Consistency::One };
        let plain = QueryParameters { consistency, ..parameters() };
        if self.client.dice.one_in(4) {
            return Ok(Request::Query(Query { query: spelled(text, &values), parameters: plain }));
        }
        let id = connection.prepare(text).await?;
        let parameters = QueryParameters { values: packed(&values), ..plain };
        Ok(Request::Execute(Execute { id, result_metadata_id: None, parameters }))
    }

    fn take(&self, connection: &Connection, asked: &Asked, response: Response) -> Result<(), Ended> {
        let alive = || self.world().hosts.is_alive(self.client.node);
        match response {
            Response::Rows(rows) => {
                let shown = shown_of(&rows, asked.what).map_err(|what| self.wrong(what))?;
                let mut ledger = self.ledger.borrow_mut();
                let taken = match shown {
                    Told::Applied => ledger.take_applied(asked),
                    Told::Shown(number) => ledger.take_shown(asked, number),
                };
                self.world().ways.add(if shown == Told::Applied { Way::Applied } else { Way::NotApplied }, 1);
                taken.map_err(|what| self.wrong(format!("{asked:?}: {what}")))
            }
            Response::Error(error) => match error.kind {
                ErrorKind::Unprepared { .. } => {
                    connection.forget_prepared();
                    Ok(())
                }
                ErrorKind::Overloaded | ErrorKind::IsBootstrapping => Ok(()),
                ErrorKind::ReadFailure { .. }
                | ErrorKind::WriteTimeout { .. }
                | ErrorKind::CasWriteUnknown { .. }
                    if self.client.reads_may_fail =>
                {
                    Ok(())
                }
                _ if !alive() => Err(Ended::Broken(io::ErrorKind::ConnectionAborted.into())),
                kind => Err(self.wrong(format!("{asked:?} fails: {kind:?} {}", error.message))),
            },
            other => Err(self.wrong(format!("{asked:?} is answered {other:?}"))),
        }
    }

    fn world(&self) -> &World {
        &self.client.world
    }

    fn wrong(&self, what: String) -> Ended {
        let (number, node) = (self.client.number, self.client.node);
        Ended::Violation(Violation::new(format!("rival {number} of node {node}: {what}")))
    }
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Applied,
    /// Not applied, or read: the row has that number, or there is none.
    Shown(Option<i32>),
}

/// What the rows of an answer say.
fn shown_of(rows: &Rows, what: What) -> Result<Told, String> {
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
        return number(cells.first()).map(Told::Shown);
    }
    match cells.split_first() {
        Some((Some(applied), [])) if applied[..] == [1] => Ok(Told::Applied),
        Some((Some(applied), shown)) if applied[..] == [0] => number(shown.last()).map(Told::Shown),
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
        let next = ledger.ask(0, What::Count(2));
        ledger.take_shown(&next, Some(1)).expect_err("its condition holds");
        ledger.take_shown(&next, Some(2)).expect("by somebody else");
        ledger.take_applied(&one).expect_err("twice");
        assert_eq!(ledger.rows[0].told, 2);
    }
}
