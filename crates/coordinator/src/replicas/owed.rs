//! What one node has missed, as a shard remembers it and keeps it.

use schema::TableId;
use serde::{Deserialize, Serialize};
use storage::LogPosition;
use tokio::time::Instant;
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

/// What a node has missed that stands in the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Logged {
    pub(super) places: Places,
    /// None of it stands before.
    pub(super) from: Option<LogPosition>,
    /// When the first of it was missed.
    pub(super) since: Option<Instant>,
}

impl Logged {
    pub(super) fn add_all(&mut self, others: &Logged) {
        assert!(
            others.places.is_empty() || others.from.is_some(),
            "what is owed from the log stands somewhere"
        );
        self.places.add_all(&others.places);
        self.from = [self.from, others.from].into_iter().flatten().min();
        self.since = [self.since, others.since].into_iter().flatten().min();
    }
}

impl Owed {
    pub(super) fn is_nothing(&self) -> bool {
        self.places().into_iter().all(Places::is_empty)
    }

    pub(super) fn places(&self) -> [&Places; 3] {
        [&self.logged.places, &self.compared, &self.waiting]
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
    use super::*;

    #[test]
    #[should_panic(expected = "what is owed from the log stands somewhere")]
    fn nothing_is_owed_from_a_log_without_a_place_in_it() {
        let (mut owed, mut others) = (Logged::default(), Logged::default());
        owed.add_all(&others);
        others.places.insert(TableId(Uuid::nil()), 7);
        owed.add_all(&others);
    }
}
