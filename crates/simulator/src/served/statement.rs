//! Statements that clients make up, and what each does.

use std::ops::RangeInclusive;

use protocol::{Text, Value, Values};

use super::model::Effect;
use super::tables::{CLUSTERINGS, Cell, MAP_KEYS, Register, Table};
use crate::dice::Dice;

/// A value that is bound to a marker, or stands in its place.
#[derive(Clone, Debug)]
pub(crate) enum Bound {
    Int(i32),
    Long(i64),
    Text(String),
}

impl Bound {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Bound::Int(number) => number.to_be_bytes().to_vec(),
            Bound::Long(number) => number.to_be_bytes().to_vec(),
            Bound::Text(text) => text.clone().into_bytes(),
        }
    }

    fn literal(&self) -> String {
        match self {
            Bound::Int(number) => number.to_string(),
            Bound::Long(number) => number.to_string(),
            Bound::Text(text) => format!("'{text}'"),
        }
    }
}

/// Values as they are bound.
pub(crate) fn packed(values: &[Bound]) -> Values {
    let bytes: Vec<_> = values.iter().map(Bound::bytes).collect();
    Values::pack(bytes.iter().map(|bytes| Value::Bytes(bytes)))
}

/// A text with its values in the place of the markers.
pub(crate) fn spelled(text: &str, values: &[Bound]) -> Text {
    let mut values = values.iter().map(Bound::literal);
    let mut spelled = String::new();
    for part in text.split_inclusive('?') {
        spelled += part.trim_end_matches('?');
        if part.ends_with('?') {
            spelled += &values.next().unwrap_or_default();
        }
    }
    Text::from(spelled.as_str())
}

/// Seconds that a value may live: beyond the burst that writes it, the round, the life, and for longer than runs are.
const TIMES_TO_LIVE: [u32; 5] = [1, 3, 20, 4_000, 20_000_000];

/// A change of one partition. `{}` in its text is where a timestamp and a time to live may be given.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) text: String,
    pub(crate) values: Vec<Bound>,
    /// What each register has afterwards.
    effects: Vec<(Register, Option<Vec<u8>>)>,
    /// For how many seconds, if not for ever; bound as a value.
    pub(crate) ttl: Option<u32>,
}

impl Write {
    /// The text, with a timestamp or without.
    pub(crate) fn text(&self, timestamp: Option<i64>) -> String {
        let timestamp = timestamp.map(|timestamp| format!("TIMESTAMP {timestamp}"));
        let ttl = self.ttl.map(|_| "TTL ?".to_owned());
        let parts: Vec<String> = timestamp.into_iter().chain(ttl).collect();
        let using = if parts.is_empty() { String::new() } else { format!(" USING {}", parts.join(" AND ")) };
        self.text.replace("{}", &using)
    }

    /// What each register has afterwards.
    pub(crate) fn effects(&self) -> Vec<Effect> {
        let effect = |(register, value): &(Register, Option<Vec<u8>>)| Effect {
            register: *register,
            value: value.clone(),
            ttl: self.ttl.filter(|_| value.is_some()),
        };
        self.effects.iter().map(effect).collect()
    }

    /// The same for a while.
    fn for_seconds(mut self, ttl: u32) -> Write {
        let marker = Bound::Int(ttl as i32);
        match self.text.ends_with("{}") {
            true => self.values.push(marker),
            false => self.values.insert(0, marker),
        }
        Write { ttl: Some(ttl), ..self }
    }

    /// Some change of a partition, which may end if it `may_end`.
    pub(crate) fn roll(dice: &Dice, key: i32, timestamp: i64, may_end: bool) -> Write {
        let write = Write::roll_lasting(dice, key, timestamp);
        match may_end && !write.text.starts_with("DELETE") && dice.one_in(4) {
            true => write.for_seconds(*dice.pick(&TIMES_TO_LIVE)),
            false => write,
        }
    }

    /// Some change of a partition. Of the timestamp its values are made, so that each is written once.
    fn roll_lasting(dice: &Dice, key: i32, timestamp: i64) -> Write {
        let maker = Maker { dice, key, timestamp };
        match dice.below(16) {
            0..6 => maker.narrow_insert(),
            6 => maker.narrow_update(),
            7 => maker.narrow_delete(),
            8..11 => maker.wide_insert(),
            11 => maker.wide_static(),
            12 => maker.map_put(),
            13 => maker.map_overwrite(),
            14 => maker.wide_delete_rows(),
            _ => maker.wide_delete(),
        }
    }
}

struct Maker<'a> {
    dice: &'a Dice,
    key: i32,
    timestamp: i64,
}

impl Maker<'_> {
    fn value(&self, what: &str) -> Bound {
        let padding = match self.dice.below(12) {
            0 => self.dice.between(1_000, 5_000),
            _ => self.dice.between(0, 60),
        };
        Bound::Text(format!("{what}{}{}", self.timestamp, "x".repeat(padding as usize)))
    }

    fn number(&self) -> Bound {
        Bound::Int(self.timestamp as i32)
    }

    fn clustering(&self) -> i32 {
        self.dice.below(*CLUSTERINGS.end() as usize + 1) as i32
    }

    fn narrow_insert(&self) -> Write {
        let (a, b) = (self.value("a"), self.number());
        let cell = |cell| Table::Narrow.cell(self.key, 0, cell);
        Write {
            ttl: None,
            effects: vec![
                (cell(Cell::Marker), Some(Vec::new())),
                (cell(Cell::A), Some(a.bytes())),
                (cell(Cell::B), Some(b.bytes())),
            ],
            text: "INSERT INTO s.narrow (k, a, b) VALUES (?, ?, ?){}".to_owned(),
            values: vec![Bound::Int(self.key), a, b],
        }
    }

    fn narrow_update(&self) -> Write {
        let a = self.value("u");
        Write {
            ttl: None,
            effects: vec![(Table::Narrow.cell(self.key, 0, Cell::A), Some(a.bytes()))],
            text: "UPDATE s.narrow{} SET a = ? WHERE k = ?".to_owned(),
            values: vec![a, Bound::Int(self.key)],
        }
    }

    fn narrow_delete(&self) -> Write {
        let (what, registers) = match self.dice.one_in(2) {
            true => ("b ", vec![Table::Narrow.cell(self.key, 0, Cell::B)]),
            false => ("", Table::Narrow.row(self.key, 0)),
        };
        Write {
            ttl: None,
            effects: registers.into_iter().map(|register| (register, None)).collect(),
            text: format!("DELETE {what}FROM s.narrow{{}} WHERE k = ?"),
            values: vec![Bound::Int(self.key)],
        }
    }

    fn wide_insert(&self) -> Write {
        let (clustering, v) = (self.clustering(), self.value("v"));
        let cell = |cell| Table::Wide.cell(self.key, clustering, cell);
        Write {
            ttl: None,
            effects: vec![(cell(Cell::Marker), Some(Vec::new())), (cell(Cell::V), Some(v.bytes()))],
            text: "INSERT INTO s.wide (k, c, v) VALUES (?, ?, ?){}".to_owned(),
            values: vec![Bound::Int(self.key), Bound::Int(clustering), v],
        }
    }

    fn wide_static(&self) -> Write {
        let s = self.value("s");
        Write {
            ttl: None,
            effects: vec![(Table::Wide.static_cell(self.key), Some(s.bytes()))],
            text: "UPDATE s.wide{} SET s = ? WHERE k = ?".to_owned(),
            values: vec![s, Bound::Int(self.key)],
        }
    }

    fn map_put(&self) -> Write {
        let (clustering, value) = (self.clustering(), self.value("m"));
        let entry = self.dice.below(*MAP_KEYS.end() as usize + 1) as i32;
        Write {
            ttl: None,
            effects: vec![(Table::Wide.cell(self.key, clustering, Cell::M(entry)), Some(value.bytes()))],
            text: "UPDATE s.wide{} SET m[?] = ? WHERE k = ? AND c = ?".to_owned(),
            values: vec![Bound::Int(entry), value, Bound::Int(self.key), Bound::Int(clustering)],
        }
    }

    fn map_overwrite(&self) -> Write {
        let (clustering, value) = (self.clustering(), self.value("o"));
        let kept = self.dice.below(*MAP_KEYS.end() as usize + 1) as i32;
        let entry = |entry: i32| {
            let written = (entry == kept).then(|| value.bytes());
            (Table::Wide.cell(self.key, clustering, Cell::M(entry)), written)
        };
        Write {
            ttl: None,
            effects: MAP_KEYS.map(entry).collect(),
            text: "UPDATE s.wide{} SET m = {?: ?} WHERE k = ? AND c = ?".to_owned(),
            values: vec![Bound::Int(kept), value.clone(), Bound::Int(self.key), Bound::Int(clustering)],
        }
    }

    /// A row, or those between two.
    fn wide_delete_rows(&self) -> Write {
        let (one, other) = (self.clustering(), self.clustering());
        let (first, last) = match self.dice.one_in(2) {
            true => (one, one),
            false => (one.min(other), one.max(other)),
        };
        let (condition, bounds) = match first == last {
            true => ("c = ?", vec![Bound::Int(first)]),
            false => ("c >= ? AND c <= ?", vec![Bound::Int(first), Bound::Int(last)]),
        };
        Write {
            ttl: None,
            effects: self.without(first..=last).collect(),
            text: format!("DELETE FROM s.wide{{}} WHERE k = ? AND {condition}"),
            values: [Bound::Int(self.key)].into_iter().chain(bounds).collect(),
        }
    }

    fn wide_delete(&self) -> Write {
        let static_cell = (Table::Wide.static_cell(self.key), None);
        Write {
            ttl: None,
            effects: self.without(CLUSTERINGS).chain([static_cell]).collect(),
            text: "DELETE FROM s.wide{} WHERE k = ?".to_owned(),
            values: vec![Bound::Int(self.key)],
        }
    }

    fn without(&self, rows: RangeInclusive<i32>) -> impl Iterator<Item = (Register, Option<Vec<u8>>)> {
        let key = self.key;
        rows.flat_map(move |row| Table::Wide.row(key, row)).map(|register| (register, None))
    }
}

/// A read, and what it asks for.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) text: String,
    pub(crate) values: Vec<Bound>,
    pub(crate) table: Table,
    /// Of whose partitions all rows must come, as far as they are in the slice.
    pub(crate) keys: Vec<i32>,
    pub(crate) slice: RangeInclusive<i32>,
    /// Is the slice asked for, however much it holds? A partition that has its static cell alone does not come then.
    pub(crate) is_sliced: bool,
    /// Do rows come in the table's order, or backwards?
    pub(crate) is_reversed: bool,
    /// Does it ask when a cell was written, and for how long?
    pub(crate) has_metadata: bool,
}

impl Read {
    /// All of a table.
    pub(crate) fn all(table: Table, keys: Vec<i32>) -> Read {
        Read {
            text: format!("SELECT {} FROM {table}", table.columns()),
            values: Vec::new(),
            table,
            keys,
            slice: table.clusterings(),
            is_sliced: false,
            is_reversed: false,
            has_metadata: false,
        }
    }

    /// A row of the narrow table, as it is asked for most often.
    pub(crate) fn narrow(key: i32) -> Read {
        Read {
            text: "SELECT k, a, b FROM s.narrow WHERE k = ?".to_owned(),
            values: vec![Bound::Int(key)],
            ..Read::all(Table::Narrow, vec![key])
        }
    }

    /// Some read of some of these keys.
    pub(crate) fn roll(dice: &Dice, keys: &[i32]) -> Read {
        let key = *dice.pick(keys);
        let read = match dice.below(12) {
            0..6 => Read::narrow(key),
            6 => Read::several(dice, keys),
            7 => Read::all(*dice.pick(&Table::ALL), keys.to_vec()),
            8 => Read::wide(key, " ORDER BY c ASC", true),
            9 => Read::wide(key, "", false),
            _ => Read::slice(dice, key),
        };
        if dice.one_in(5) { read.with_metadata() } else { read }
    }

    /// The same, and what is known of a cell beside its value.
    fn with_metadata(self) -> Read {
        let column = self.table.dated_column();
        let text = self.text.replacen(" FROM", &format!(", WRITETIME({column}), TTL({column}) FROM"), 1);
        Read { text, has_metadata: true, ..self }
    }

    /// How many columns come.
    pub(crate) fn column_count(&self) -> usize {
        self.table.columns().split(',').count() + if self.has_metadata { 2 } else { 0 }
    }

    fn several(dice: &Dice, keys: &[i32]) -> Read {
        let some: Vec<i32> = keys.iter().copied().filter(|_| dice.one_in(2)).collect();
        if some.is_empty() {
            return Read::narrow(keys[0]);
        }
        let table = *dice.pick(&Table::ALL);
        let markers = vec!["?"; some.len()].join(", ");
        Read {
            text: format!("SELECT {} FROM {table} WHERE k IN ({markers})", table.columns()),
            values: some.iter().copied().map(Bound::Int).collect(),
            ..Read::all(table, some)
        }
    }

    fn wide(key: i32, order: &str, is_reversed: bool) -> Read {
        Read {
            text: format!("SELECT k, c, s, v, m FROM s.wide WHERE k = ?{order}"),
            values: vec![Bound::Int(key)],
            is_reversed,
            ..Read::all(Table::Wide, vec![key])
        }
    }

    fn slice(dice: &Dice, key: i32) -> Read {
        let [one, other] = [(); 2].map(|()| dice.below(*CLUSTERINGS.end() as usize + 1) as i32);
        let slice = one.min(other)..=one.max(other);
        Read {
            text: "SELECT k, c, s, v, m FROM s.wide WHERE k = ? AND c >= ? AND c <= ?".to_owned(),
            values: vec![Bound::Int(key), Bound::Int(*slice.start()), Bound::Int(*slice.end())],
            slice,
            is_sliced: true,
            ..Read::all(Table::Wide, vec![key])
        }
    }
}
