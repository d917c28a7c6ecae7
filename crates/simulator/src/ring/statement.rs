//! Statements that clients make up, and what each does to which places.

use std::fmt;
use std::ops::RangeInclusive;

use protocol::{CellReader, Rows};

use super::model::Effect;
use super::table::{Place, ROWS, Table};
use crate::dice::Dice;
use crate::served::Bound;

/// A change of one partition. `{}` in its text is where a timestamp may be given.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) text: String,
    pub(crate) values: Vec<Bound>,
    pub(crate) effects: Vec<Effect>,
    /// How many seconds it lives, if not for ever.
    pub(crate) time_to_live: Option<u32>,
}

impl Change {
    /// Some change of this partition with this number.
    pub(crate) fn roll(dice: &Dice, (table, key): (Table, i32), number: i64) -> Change {
        let maker = Maker { table, key, number };
        let [one, other] = [(); 2].map(|()| dice.below(*ROWS.end() as usize + 1) as i32);
        match (table == Table::Wide, dice.below(12)) {
            (false, 0..8) => maker.insert(),
            (false, 8 | 9) => maker.update(),
            (false, 10) => maker.delete_cell(),
            (true, 0..7) => maker.insert_row(one),
            (true, 7) => maker.set_static(),
            (true, 8 | 9) => maker.delete_row(one),
            (true, 10) => maker.delete_rows(one.min(other)..=one.max(other)),
            _ => maker.delete(),
        }
    }

    /// The same, which lives so many seconds, if it is no deletion.
    pub(crate) fn living(self, seconds: u32) -> Change {
        let time_to_live = (!self.is_deletion()).then_some(seconds);
        Change { time_to_live, ..self }
    }

    /// A row of that table that is written once.
    pub(crate) fn once(table: Table, key: i32, number: i64) -> Change {
        Maker { table, key, number }.insert()
    }

    /// A row of a table that somebody may drop at any moment: nobody looks for it.
    pub(crate) fn passing(table: &str, key: i32) -> Change {
        let text = format!("INSERT INTO {table} (k, v) VALUES (?, ?){{}}");
        let values = vec![Bound::Int(key), Bound::Int(1)];
        Change { text, values, effects: Vec::new(), time_to_live: None }
    }

    /// The text, with a timestamp or without.
    pub(crate) fn text(&self, timestamp: Option<i64>) -> String {
        let timestamp = timestamp.map(|timestamp| format!("TIMESTAMP {timestamp}"));
        let lives = self.time_to_live.map(|seconds| format!("TTL {seconds}"));
        let using: Vec<String> = timestamp.into_iter().chain(lives).collect();
        match using.is_empty() {
            true => self.text.replace("{}", ""),
            false => self.text.replace("{}", &format!(" USING {}", using.join(" AND "))),
        }
    }

    /// Does it delete something?
    pub(crate) fn is_deletion(&self) -> bool {
        self.text.starts_with("DELETE")
    }
}

struct Maker {
    table: Table,
    key: i32,
    number: i64,
}

impl Maker {
    fn change(self, text: String, values: &[i32], effects: Vec<Effect>) -> Change {
        let values = values.iter().copied().map(Bound::Int).collect();
        Change { text, values, effects, time_to_live: None }
    }

    fn value(&self) -> i32 {
        i32::try_from(self.number).expect("a client writes less often")
    }

    fn put(self, text: String, values: &[i32], place: Place) -> Change {
        let number = self.number;
        self.change(text, values, vec![(place, Some(number))])
    }

    fn insert(self) -> Change {
        let (text, place) =
            (format!("INSERT INTO {} (k, v) VALUES (?, ?){{}}", self.table), self.table.place(self.key, 0));
        let values = [self.key, self.value()];
        self.put(text, &values, place)
    }

    fn update(self) -> Change {
        let (text, place) =
            (format!("UPDATE {}{{}} SET v = ? WHERE k = ?", self.table), self.table.place(self.key, 0));
        let values = [self.value(), self.key];
        self.put(text, &values, place)
    }

    fn insert_row(self, row: i32) -> Change {
        let (text, place) = (
            format!("INSERT INTO {} (k, c, v) VALUES (?, ?, ?){{}}", self.table),
            self.table.place(self.key, row),
        );
        let values = [self.key, row, self.value()];
        self.put(text, &values, place)
    }

    fn set_static(self) -> Change {
        let (text, place) =
            (format!("UPDATE {}{{}} SET s = ? WHERE k = ?", self.table), self.table.static_place(self.key));
        let values = [self.value(), self.key];
        self.put(text, &values, place)
    }

    fn remove(self, text: String, values: &[i32], rows: RangeInclusive<i32>) -> Change {
        let effects = rows.map(|row| (self.table.place(self.key, row), None)).collect();
        self.change(text, values, effects)
    }

    fn delete_cell(self) -> Change {
        let (text, values) = (format!("DELETE v FROM {}{{}} WHERE k = ?", self.table), [self.key]);
        self.remove(text, &values, 0..=0)
    }

    fn delete_row(self, row: i32) -> Change {
        let text = format!("DELETE FROM {}{{}} WHERE k = ? AND c = ?", self.table);
        let values = [self.key, row];
        self.remove(text, &values, row..=row)
    }

    fn delete_rows(self, rows: RangeInclusive<i32>) -> Change {
        let text = format!("DELETE FROM {}{{}} WHERE k = ? AND c >= ? AND c <= ?", self.table);
        let values = [self.key, *rows.start(), *rows.end()];
        self.remove(text, &values, rows)
    }

    fn delete(self) -> Change {
        let (text, values) = (format!("DELETE FROM {}{{}} WHERE k = ?", self.table), [self.key]);
        let effects = self.table.places(self.key).map(|place| (place, None)).collect();
        self.change(text, &values, effects)
    }
}

/// A read, and of which places it tells.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) table: Table,
    pub(crate) text: String,
    pub(crate) values: Vec<Bound>,
    /// Partitions that are looked at; others may come, too.
    keys: Vec<i32>,
    rows: RangeInclusive<i32>,
    /// Does it come with static cells even where no row is?
    has_statics: bool,
    /// Rows of each partition at most.
    limit: Option<usize>,
    is_reversed: bool,
}

impl Read {
    /// All of a table, of which these keys are looked at.
    pub(crate) fn whole(table: Table, keys: Vec<i32>) -> Read {
        let text = format!("SELECT {} FROM {table}", table.columns());
        let has_statics = table == Table::Wide;
        let (limit, is_reversed) = (None, false);
        Read { table, text, values: Vec::new(), keys, rows: table.rows(), has_statics, limit, is_reversed }
    }

    /// The same, of which so many rows of each partition are wanted.
    pub(crate) fn limited(self, limit: usize) -> Read {
        let text = format!("{} PER PARTITION LIMIT {limit}", self.text);
        Read { text, limit: Some(limit), ..self }
    }

    /// These partitions.
    pub(crate) fn partitions(table: Table, keys: &[i32]) -> Read {
        let condition = match keys {
            [_] => "k = ?".to_owned(),
            _ => format!("k IN ({})", vec!["?"; keys.len()].join(", ")),
        };
        let whole = Read::whole(table, keys.to_vec());
        Read {
            text: format!("{} WHERE {condition}", whole.text),
            values: keys.iter().copied().map(Bound::Int).collect(),
            ..whole
        }
    }

    /// Some read of this partition.
    pub(crate) fn roll(dice: &Dice, (table, key): (Table, i32)) -> Read {
        let read = Read::partitions(table, &[key]);
        if table != Table::Wide {
            return read;
        }
        let [one, other] = [(); 2].map(|()| dice.below(*ROWS.end() as usize + 1) as i32);
        match dice.below(8) {
            0 => read,
            1 => read.reversed(),
            2 => read.first(dice.between(1, 3) as usize),
            3 => read.reversed().first(dice.between(1, 3) as usize),
            4 => read.limited(dice.between(1, 3) as usize),
            5 => {
                let text = format!("{} AND c = ?", read.text);
                Read { text, has_statics: false, rows: one..=one, ..read }.bind([one])
            }
            _ => {
                let (first, last) = (one.min(other), one.max(other));
                let text = format!("{} AND c >= ? AND c <= ?", read.text);
                Read { text, has_statics: false, rows: first..=last, ..read }.bind([first, last])
            }
        }
    }

    fn reversed(self) -> Read {
        Read { text: format!("{} ORDER BY c DESC", self.text), is_reversed: true, ..self }
    }

    /// Of the only partition that it reads so many rows.
    fn first(self, limit: usize) -> Read {
        Read { text: format!("{} LIMIT {limit}", self.text), limit: Some(limit), ..self }
    }

    fn bind(mut self, values: impl IntoIterator<Item = i32>) -> Read {
        self.values.extend(values.into_iter().map(Bound::Int));
        self
    }

    /// What a page shows.
    ///
    /// # Errors
    /// It is not whole, or shows what was not asked for.
    pub(crate) fn take(&self, page: &Rows, seen: &mut Seen) -> Result<(), String> {
        let mut cells = CellReader::new(page.cells.clone());
        let mut number = || match cells.next_cell() {
            Some(Ok(None)) => Ok(None),
            Some(Ok(Some(bytes))) => match bytes.as_ref().try_into() {
                Ok(bytes) => Ok(Some(i32::from_be_bytes(bytes))),
                Err(_) => Err(format!("{bytes:?} is no int")),
            },
            other => Err(format!("a page ends too early: {other:?}")),
        };
        for _ in 0..page.row_count {
            let key = number()?.ok_or("a row without a key")?;
            let (row, stands) = match self.table == Table::Wide {
                true => (number()?, Some(number()?)),
                false => (Some(0), None),
            };
            let value = number()?;
            if !self.keys.contains(&key) {
                continue;
            }
            if let Some(stands) = stands {
                seen.see(self.table.static_place(key), stands);
            }
            let Some(row) = row else { continue };
            let place = self.table.place(key, row);
            if !self.rows.contains(&row) || seen.has(place) {
                return Err(format!("{place:?} was not asked for, or comes twice"));
            }
            seen.see(place, value);
            if self.limit.is_some_and(|limit| seen.rows_of(self.table, key).count() > limit) {
                return Err(format!("more rows of {key} than were asked for"));
            }
        }
        Ok(())
    }

    /// The rows of a partition of which a read tells that has shown these: none behind the last one that it was to
    /// show.
    fn told(&self, key: i32, seen: &Seen) -> RangeInclusive<i32> {
        let (count, first) = (seen.rows_of(self.table, key).count(), *self.rows.start());
        if self.limit.is_none_or(|limit| count < limit) {
            return self.rows.clone();
        }
        let shown = seen.rows_of(self.table, key);
        match self.is_reversed {
            true => shown.min().unwrap_or(first)..=*self.rows.end(),
            false => first..=shown.max().unwrap_or(first),
        }
    }

    /// Adds what is told by what did not come.
    pub(crate) fn finish(&self, seen: &mut Seen) {
        for key in &self.keys {
            let rows = self.told(*key, seen).map(|row| self.table.place(*key, row));
            let stands = self.has_statics.then(|| self.table.static_place(*key));
            let places: Vec<Place> = rows.chain(stands).collect();
            for place in places {
                if !seen.has(place) {
                    seen.see(place, None);
                }
            }
        }
    }
}

/// What a read has shown: a static cell with each row of its partition, all else once.
#[derive(Debug, Default)]
pub(crate) struct Seen(Vec<(Place, Option<i64>)>);

impl Seen {
    fn see(&mut self, place: Place, value: Option<i32>) {
        self.0.push((place, value.map(i64::from)));
    }

    /// Which rows of a partition were shown.
    fn rows_of(&self, table: Table, key: i32) -> impl Iterator<Item = i32> {
        let is_of = move |place: &Place| place.table == table && place.key == key && place.row >= 0;
        self.0.iter().map(|(place, _)| *place).filter(is_of).map(|place| place.row)
    }

    fn has(&self, place: Place) -> bool {
        self.0.iter().any(|(seen, _)| *seen == place)
    }

    /// In the order in which it came.
    pub(crate) fn list(&self) -> &[(Place, Option<i64>)] {
        &self.0
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for (place, value) in &self.0 {
            list.entry(&format_args!(
                "{place:?} {}",
                value.map_or("-".to_owned(), |value| value.to_string())
            ));
        }
        list.finish()
    }
}
