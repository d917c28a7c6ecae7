//! What one node has missed, as a shard remembers it and keeps it.

use std::collections::BTreeMap;

use schema::TableId;
use serde::{Deserialize, Serialize};
use storage::LogPosition;
use tokio::time::Instant;
use types::Token;
use uuid::Uuid;

use super::slots::{Places, Slots};

/// What a node has missed, in slots of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// To be sent from the log.
    pub logged_count: usize,
    /// To be compared.
    pub compared_count: usize,
    /// When the first of what is to be sent was missed.
    pub since: Option<Instant>,
}

/// What one node has missed.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// Of what is in the log.
    pub(super) logged: Logged,
    /// Of what is to be compared.
    pub(super) compared: Places,
    /// And of what was compared with some of its replicas: it is again when others are there.
    pub(super) waiting: Places,
}

/// What a node has missed that stands in the log. Each table has a place of its own from which on: what stands before
/// that may have come before the table was emptied, which the log of an earlier run does not tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Logged {
    places: Places,
    /// Of each table in `places`; none of what was missed stands before.
    begins: BTreeMap<TableId, LogPosition>,
    /// When the first of it was missed.
    since: Option<Instant>,
}

impl Logged {
    /// This, from there on.
    pub(super) fn of(places: Places, from: LogPosition, since: Instant) -> Logged {
        let begins = places.tables().map(|(table, _)| (*table, from)).collect();
        Logged { places, begins, since: Some(since) }
    }

    /// Adds a slot, from there on; was it new?
    pub(super) fn insert(
        &mut self,
        (table, slot): (TableId, usize),
        from: LogPosition,
        since: Instant,
    ) -> bool {
        self.begin(table, from);
        self.since.get_or_insert(since);
        self.places.insert(table, slot)
    }

    pub(super) fn add_all(&mut self, others: &Logged) {
        self.places.add_all(&others.places);
        others.begins.iter().for_each(|(table, from)| self.begin(*table, *from));
        self.since = [self.since, others.since].into_iter().flatten().min();
        let stand_somewhere = self.places.tables().all(|(table, _)| self.begins.contains_key(table));
        assert!(stand_somewhere, "what is owed from the log stands somewhere");
    }

    fn begin(&mut self, table: TableId, from: LogPosition) {
        self.begins.entry(table).and_modify(|begin| *begin = from.min(*begin)).or_insert(from);
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    /// None of it stands before; `None` when there is nothing.
    pub(super) fn from(&self) -> Option<LogPosition> {
        self.begins.values().min().copied()
    }

    /// May it be what stands there, of that table and token?
    pub(super) fn contains(&self, table: TableId, token: Token, position: LogPosition) -> bool {
        let has_begun = self.begins.get(&table).is_some_and(|begin| *begin <= position);
        has_begun && self.places.contains(table, token)
    }

    /// What is left of it from there on.
    pub(super) fn rest(mut self, from: LogPosition) -> Logged {
        self.begins.values_mut().for_each(|begin| *begin = from.max(*begin));
        self
    }

    /// Takes those tables out that are given up: by where they begin, and since when the first of all was missed.
    pub(super) fn give_up(&mut self, is_given_up: impl Fn(TableId, LogPosition, Instant) -> bool) -> Places {
        let Some(since) = self.since else { return Places::default() };
        let begins = &self.begins;
        let is_taken =
            |table: TableId| begins.get(&table).is_some_and(|from| is_given_up(table, *from, since));
        let taken = self.places.take_tables(is_taken);
        taken.tables().for_each(|(table, _)| _ = self.begins.remove(table));
        if self.places.is_empty() {
            *self = Logged::default();
        }
        taken
    }
}

impl Owed {
    pub(super) fn is_nothing(&self) -> bool {
        self.places().into_iter().all(Places::is_empty)
    }

    pub(super) fn places(&self) -> [&Places; 3] {
        [self.logged.places(), &self.compared, &self.waiting]
    }
}

/// Marks as they are kept: a state file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Kept(pub(super) Vec<(Uuid, Uuid, Slots)>);

impl Kept {
    /// What is marked, and where. What is not of this grid is left out: nobody wrote it.
    pub(super) fn into_marks(self) -> impl Iterator<Item = (Uuid, TableId, Slots)> {
        let whole = self.0.into_iter().filter(|(.., slots)| slots.are_whole());
        whole.map(|(node, table, slots)| (node, TableId(table), slots))
    }
}

#[cfg(test)]
mod tests {
    use super::super::slots::slot_of;
    use super::*;

    const ONE: TableId = TableId(Uuid::from_u128(1));
    const OTHER: TableId = TableId(Uuid::from_u128(2));

    fn at(offset: u32) -> LogPosition {
        LogPosition { segment: 1, offset }
    }

    /// One slot of a table, from there on.
    fn logged(table: TableId, from: u32) -> Logged {
        let mut logged = Logged::default();
        assert!(logged.insert((table, slot_of(Token(0))), at(from), Instant::now()));
        logged
    }

    /// A table that was emptied, of which later writes are owed, beside one that is owed from before that.
    #[test]
    fn nothing_is_owed_of_a_table_from_where_another_one_begins() {
        let mut owed = logged(ONE, 5);
        owed.add_all(&logged(OTHER, 9));
        owed.add_all(&logged(OTHER, 11));
        let begins =
            |owed: &Logged, table| (0..20).find(|offset| owed.contains(table, Token(0), at(*offset)));
        assert_eq!((owed.from(), begins(&owed, ONE), begins(&owed, OTHER)), (Some(at(5)), Some(5), Some(9)));
        let rest = owed.clone().rest(at(7));
        assert_eq!((rest.from(), begins(&rest, ONE), begins(&rest, OTHER)), (Some(at(7)), Some(7), Some(9)));
        assert!(!owed.contains(ONE, Token::MAX, at(19)), "another slot");
        assert_eq!(owed.give_up(|_, from, _| from < at(6)).count(), 1);
        assert_eq!((owed.from(), begins(&owed, ONE)), (Some(at(9)), None));
        assert_eq!(owed.give_up(|table, _, _| table == OTHER).count(), 1);
        assert_eq!((owed.from(), owed.since()), (None, None), "nothing is left");
    }

    #[test]
    fn nothing_is_owed_from_a_log_without_a_place_in_it() {
        let (mut owed, mut others) = (Logged::default(), logged(ONE, 5));
        owed.add_all(&others);
        others.begins.clear();
        let added = runtime::caught(|| Logged::default().add_all(&others));
        assert_eq!(added.expect_err("it is seen").what, "what is owed from the log stands somewhere");
    }
}
