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

    /// A row that is written once.
    pub(crate) fn once(key: i32, number: i64) -> Change {
        Maker { table: Table::Once, key, number }.insert()
    }

    /// The text, with a timestamp or without.
    pub(crate) fn text(&self, timestamp: Option<i64>) -> String {
        let using = timestamp.map(|timestamp| format!(" USING TIMESTAMP {timestamp}"));
        self.text.replace("{}", &using.unwrap_or_default())
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
        Change { text, values: values.iter().copied().map(Bound::Int).collect(), effects }
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
}

impl Read {
    /// All of a table, of which these keys are looked at.
    pub(crate) fn whole(table: Table, keys: Vec<i32>) -> Read {
        let text = format!("SELECT {} FROM {table}", table.columns());
        Read { table, text, values: Vec::new(), keys, rows: table.rows(), has_statics: table == Table::Wide }
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
        match dice.below(4) {
            0 => read,
            1 => Read { text: format!("{} ORDER BY c DESC", read.text), ..read },
            2 => {
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
        }
        Ok(())
    }

    /// Adds what is told by what did not come.
    pub(crate) fn finish(&self, seen: &mut Seen) {
        for key in &self.keys {
            let rows = self.rows.clone().map(|row| self.table.place(*key, row));
            let stands = self.has_statics.then(|| self.table.static_place(*key));
            for place in rows.chain(stands) {
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
