//! Clients that change rows by conditions, against each other: each from what it has seen last, to what nobody else
//! writes.

use super::super::faults::QUORUM;
use super::super::faults::client::{Asked, rows};
use super::clients::Watcher;
use super::record::Kind;
use crate::report::Failure;
use crate::wire::Answer;

const SERIAL: u16 = 8;
/// A client's numbers begin with its own.
const NUMBERS_OF_CLIENT: u32 = 40;

/// Indexes of [`Game::statements`].
const MAKE: usize = 0;
const CHANGE: usize = 1;
const READ: usize = 2;

/// What rows are to those who change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Game {
    /// Compared and set: `cas-register` of Jepsen.
    Register,
    /// A row that is there while somebody holds it: inserted if it does not exist, deleted if it is one's own.
    Lock,
    /// Two rows of a partition that one batch compares and sets: they are never seen to differ.
    Pair,
}

impl Game {
    pub(super) const ALL: [Game; 3] = [Game::Register, Game::Lock, Game::Pair];

    /// A statement that makes its table.
    pub(super) fn table(self) -> &'static str {
        match self {
            Game::Register => "CREATE TABLE seen.registers (id bigint PRIMARY KEY, v bigint)",
            Game::Lock => "CREATE TABLE seen.locks (id bigint PRIMARY KEY, v bigint)",
            Game::Pair => "CREATE TABLE seen.pairs (id bigint, part int, v bigint, PRIMARY KEY (id, part))",
        }
    }

    /// What makes a row, changes it, and reads it.
    pub(super) fn statements(self) -> Vec<String> {
        let of_pair = |make: &str, place: &str| {
            let part = |part| format!("{make} {} ", place.replace('#', part));
            format!("BEGIN BATCH {}{}APPLY BATCH", part("0"), part("1"))
        };
        match self {
            Game::Register => vec![
                "INSERT INTO seen.registers (v, id) VALUES (?, ?) IF NOT EXISTS".into(),
                "UPDATE seen.registers SET v = ? WHERE id = ? IF v = ?".into(),
                "SELECT v FROM seen.registers WHERE id = ?".into(),
            ],
            Game::Lock => vec![
                "INSERT INTO seen.locks (v, id) VALUES (?, ?) IF NOT EXISTS".into(),
                "DELETE FROM seen.locks WHERE id = ? IF v = ?".into(),
                "SELECT v FROM seen.locks WHERE id = ?".into(),
            ],
            Game::Pair => vec![
                of_pair("INSERT INTO seen.pairs (v, id, part)", "VALUES (?, ?, #) IF NOT EXISTS"),
                of_pair("UPDATE seen.pairs SET v = ?", "WHERE id = ? AND part = # IF v = ?"),
                "SELECT v FROM seen.pairs WHERE id = ?".into(),
            ],
        }
    }

    /// The statement that changes a row from one value to another, and what it binds; `None` when nobody does that.
    fn change(self, row: i64, from: Option<i64>, to: Option<i64>) -> Option<(usize, Vec<Vec<u8>>)> {
        let (statement, bound) = match (self, from, to) {
            (_, None, Some(to)) => (MAKE, vec![to, row]),
            (Game::Lock, Some(from), None) => (CHANGE, vec![row, from]),
            (Game::Register | Game::Pair, Some(from), Some(to)) => (CHANGE, vec![to, row, from]),
            _ => return None,
        };
        let bound = bound.repeat(self.row_count()).into_iter().map(|value| value.to_be_bytes().to_vec());
        Some((statement, bound.collect()))
    }

    /// The rows of a partition, when they are there.
    fn row_count(self) -> usize {
        if self == Game::Pair { 2 } else { 1 }
    }

    /// What an answer shows: all rows of it the same.
    fn value(self, answer: Answer) -> Result<Option<i64>, String> {
        let rows = rows(answer).ok_or("no rows")?;
        let place = rows.metadata.columns.iter().position(|column| column.name == "v");
        let Some(place) = place else { return Ok(None) };
        let values = rows.rows.iter().map(|cells| match &cells[place] {
            None => Ok(None),
            Some(bytes) => match bytes.as_slice().try_into() {
                Ok(bytes) => Ok(Some(i64::from_be_bytes(bytes))),
                Err(_) => Err("a value of another length".to_owned()),
            },
        });
        let values = values.collect::<Result<Vec<Option<i64>>, String>>()?;
        match values[..] {
            [] => Ok(None),
            [first, ..] if values.iter().all(|value| *value == first) => match first {
                Some(_) if values.len() != self.row_count() => Err(format!("not all rows: {values:?}")),
                first => Ok(first),
            },
            _ => Err(format!("rows of one batch differ: {values:?}")),
        }
    }
}

/// How a change came out.
enum Outcome {
    Applied,
    /// This was there instead.
    Refused(Option<i64>),
}

fn outcome(game: Game, answer: Answer) -> Result<Outcome, String> {
    let Answer::Rows(answered) = &answer else { return Err(format!("no rows: {answer:?}")) };
    match answered.rows.first().and_then(|cells| cells[0].as_deref()) {
        Some([1]) => Ok(Outcome::Applied),
        Some([0]) => game.value(answer).map(Outcome::Refused),
        other => Err(format!("neither applied nor refused: {other:?}")),
    }
}

/// A client of such a row.
pub(super) struct Contender {
    pub(super) watcher: Watcher,
    game: Game,
    /// The row, and what it showed last.
    seen: (i64, Option<i64>),
    change_count: i64,
}

impl Contender {
    pub(super) fn new(watcher: Watcher, game: Game) -> Contender {
        Contender { watcher, game, seen: (-1, None), change_count: 0 }
    }

    /// Asks once. Was it answered?
    ///
    /// # Errors
    /// The answer shows what nobody has written whole.
    pub(super) fn ask(&mut self) -> Result<bool, Failure> {
        let row = self.watcher.row();
        if self.seen.0 != row {
            self.seen = (row, None);
        }
        let answered = match self.watcher.dice.between(0, 4) {
            0 => self.read(SERIAL),
            1 => self.read(QUORUM),
            _ => match self.next() {
                Some(next) => self.change(next),
                None => self.read(SERIAL),
            },
        };
        answered.map_err(|what| Failure::new(format!("row {row} ({:?}): {what}", self.game)))
    }

    /// What it would make of what it has seen; `None` when that is not for it to change.
    fn next(&mut self) -> Option<Option<i64>> {
        let own = self.watcher.number as i64;
        match (self.game, self.seen.1) {
            (Game::Lock, Some(holder)) => (holder >> NUMBERS_OF_CLIENT == own).then_some(None),
            _ => {
                self.change_count += 1;
                Some(Some((own << NUMBERS_OF_CLIENT) + self.change_count))
            }
        }
    }

    fn change(&mut self, to: Option<i64>) -> Result<bool, String> {
        let (row, from) = self.seen;
        let (statement, bound) = self.game.change(row, from, to).ok_or("a change that nobody makes")?;
        let asked_ns = self.watcher.elapsed_ns();
        let answer = match self.watcher.client.execute(statement, bound, None) {
            Ok(answer) => answer,
            Err(lost) => {
                if lost.node.is_some() {
                    self.watcher.note(row, Kind::Change, (asked_ns, None), (from, to));
                }
                return Ok(false);
            }
        };
        let times = (asked_ns, Some(self.watcher.elapsed_ns()));
        self.seen.1 = match outcome(self.game, answer)? {
            Outcome::Applied => {
                self.watcher.note(row, Kind::Change, times, (from, to));
                to
            }
            Outcome::Refused(shown) => {
                self.watcher.note(row, Kind::Refusal, times, (from, shown));
                shown
            }
        };
        Ok(true)
    }

    fn read(&mut self, consistency: u16) -> Result<bool, String> {
        let row = self.seen.0;
        let asked_ns = self.watcher.elapsed_ns();
        let values = vec![row.to_be_bytes().to_vec()];
        let asked = Asked { statement: READ, values, consistency: Some(consistency), ..Asked::default() };
        let Ok(answer) = self.watcher.client.ask(asked) else { return Ok(false) };
        let times = (asked_ns, Some(self.watcher.elapsed_ns()));
        self.seen.1 = self.game.value(answer)?;
        self.watcher.note(row, Kind::Read, times, (None, self.seen.1));
        Ok(true)
    }
}
