//! The state that a manifest keeps, and what changes it. Pure: nothing here knows a disk.
//!
//! A state is the same whether its changes are made in memory or read back from the log, since both go through
//! [`ManifestState::apply`]. What does not fit is refused by [`ManifestState::check`]: in memory that is our own
//! mistake, from the disk it is damage.

use std::collections::{BTreeMap, BTreeSet};

use commitlog::LogPosition;
use schema::TableId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::scope::Scope;

/// The state a manifest keeps. A field that this program does not know is refused, since whoever wrote it meant it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestState {
    /// Tables that have anything to tell.
    pub tables: BTreeMap<TableId, TableState>,
    /// No timestamp this shard gave out was above this one when the state was written.
    pub last_timestamp: i64,
    /// This shard's stream of the commit log has a roster since it was first opened: if that is gone, so may be
    /// segments that it named. Not so for a stream of an earlier version, or one that has yet to begin.
    #[serde(default)]
    pub keeps_roster: bool,
}

/// The state of one table on one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableState {
    /// Its files.
    pub files: BTreeSet<Uuid>,
    /// Of some files not all partitions count. Invariant: each of them is one of `files`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scopes: BTreeMap<Uuid, Vec<Scope>>,
    /// Writes in this shard's own log before this place are in files, or truncated. It never falls.
    pub flushed: Position,
}

/// A [`LogPosition`] in the manifest's JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    segment: u64,
    offset: u32,
}

impl From<LogPosition> for Position {
    fn from(position: LogPosition) -> Self {
        Position { segment: position.segment, offset: position.offset }
    }
}

impl From<Position> for LogPosition {
    fn from(position: Position) -> Self {
        LogPosition { segment: position.segment, offset: position.offset }
    }
}

/// One change of the files of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Files that become part of the table; none of them is one yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<Uuid>,
    /// Files that are part of the table and go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Uuid>,
    /// What counts of these files from now on, in place of what counted before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scopes: BTreeMap<Uuid, Vec<Scope>>,
    /// Replay begins here from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushed: Option<Position>,
}

/// A step from one state to the next, as the log has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Change {
    /// The files of a table change. The timestamp is that of [`ManifestState::last_timestamp`].
    Files { table: TableId, edit: Edit, last_timestamp: i64 },
    /// A table was dropped.
    Dropped { table: TableId },
    /// The shard's stream of the commit log has a roster.
    KeepsRoster,
}

/// Why a change can not follow a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misfit {
    #[error("it adds file {0}, which is named already")]
    Added(Uuid),
    #[error("it removes file {0}, which is not named")]
    Removed(Uuid),
    #[error("it narrows file {0}, which is not named")]
    Narrowed(Uuid),
    #[error("the flushed position falls from {0:?} to {1:?}")]
    Flushed(Position, Position),
}

impl ManifestState {
    /// The files of a table.
    pub fn files(&self, table: TableId) -> Vec<Uuid> {
        self.tables.get(&table).map_or_else(Vec::new, |state| state.files.iter().copied().collect())
    }

    /// The greatest log segment it remembers.
    pub(super) fn segment_max(&self) -> u64 {
        self.tables.values().map(|table| table.flushed.segment).max().unwrap_or(0)
    }

    /// What is read as a whole: is it one that changes can lead to?
    pub(super) fn check_whole(&self) -> Result<(), Misfit> {
        let not_narrowed =
            |table: &TableState| table.scopes.keys().find(|id| !table.files.contains(id)).copied();
        self.tables.values().find_map(not_narrowed).map_or(Ok(()), |id| Err(Misfit::Narrowed(id)))
    }

    /// Can the change follow this state?
    pub(super) fn check(&self, change: &Change) -> Result<(), Misfit> {
        let Change::Files { table, edit, .. } = change else { return Ok(()) };
        let none = TableState::default();
        let state = self.tables.get(table).unwrap_or(&none);
        let is_named = |id: &&Uuid| state.files.contains(*id);
        if let Some(id) = edit.added.iter().find(is_named) {
            return Err(Misfit::Added(*id));
        }
        if let Some(id) = edit.removed.iter().find(|id| !is_named(id)) {
            return Err(Misfit::Removed(*id));
        }
        let stays = |id: &Uuid| (is_named(&id) || edit.added.contains(id)) && !edit.removed.contains(id);
        if let Some(id) = edit.scopes.keys().find(|id| !stays(id)) {
            return Err(Misfit::Narrowed(*id));
        }
        match edit.flushed {
            Some(flushed) if flushed < state.flushed => Err(Misfit::Flushed(state.flushed, flushed)),
            _ => Ok(()),
        }
    }

    /// Makes a change that was checked.
    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Files { table, edit, last_timestamp } => {
                self.last_timestamp = self.last_timestamp.max(*last_timestamp);
                self.tables.entry(*table).or_default().apply(edit);
            }
            Change::Dropped { table } => _ = self.tables.remove(table),
            Change::KeepsRoster => self.keeps_roster = true,
        }
    }
}

impl TableState {
    fn apply(&mut self, edit: &Edit) {
        self.files.extend(&edit.added);
        for id in &edit.removed {
            self.files.remove(id);
            self.scopes.remove(id);
        }
        self.scopes.extend(edit.scopes.iter().map(|(id, scopes)| (*id, scopes.clone())));
        assert!(
            self.scopes.keys().all(|id| self.files.contains(id)),
            "what is narrowed is a file of the table"
        );
        let flushed = edit.flushed.unwrap_or(self.flushed);
        assert!(self.flushed <= flushed, "what is in files stays there");
        self.flushed = flushed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(Uuid::from_u128(1));

    fn change(edit: Edit) -> Change {
        Change::Files { table: TABLE, edit, last_timestamp: 7 }
    }

    fn position(segment: u64) -> Option<Position> {
        Some(Position { segment, offset: 32 })
    }

    /// File 1, flushed to segment 5.
    fn state() -> ManifestState {
        let mut state = ManifestState::default();
        let edit = Edit { added: vec![Uuid::from_u128(1)], flushed: position(5), ..Edit::default() };
        state.apply(&change(edit));
        state
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let (here, gone) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let narrowed = |id| BTreeMap::from([(id, Vec::new())]);
        let cases = [
            (Edit { added: vec![here], ..Edit::default() }, Misfit::Added(here)),
            (Edit { removed: vec![gone], ..Edit::default() }, Misfit::Removed(gone)),
            (Edit { scopes: narrowed(gone), ..Edit::default() }, Misfit::Narrowed(gone)),
            (Edit { removed: vec![here], scopes: narrowed(here), ..Edit::default() }, Misfit::Narrowed(here)),
        ];
        for (edit, misfit) in cases {
            assert_eq!(state().check(&change(edit)), Err(misfit));
        }
        let fallen = state().check(&change(Edit { flushed: position(4), ..Edit::default() }));
        assert!(matches!(fallen, Err(Misfit::Flushed(..))), "{fallen:?}");
        let fits =
            Edit { added: vec![gone], scopes: narrowed(gone), flushed: position(5), ..Edit::default() };
        assert_eq!(state().check(&change(fits)), Ok(()));
    }

    #[test]
    fn a_file_that_goes_takes_its_scopes_along() {
        let id = Uuid::from_u128(1);
        let mut state = state();
        state.apply(&change(Edit { scopes: BTreeMap::from([(id, Vec::new())]), ..Edit::default() }));
        assert!(state.tables[&TABLE].scopes.contains_key(&id));
        state.apply(&change(Edit { removed: vec![id], ..Edit::default() }));
        assert!(state.tables[&TABLE].scopes.is_empty() && state.files(TABLE).is_empty());
        assert_eq!(state.last_timestamp, 7);
        state.apply(&Change::Dropped { table: TABLE });
        assert!(state.tables.is_empty());
    }

    #[test]
    #[should_panic(expected = "what is in files stays there")]
    fn the_flushed_position_never_falls() {
        state().apply(&change(Edit { flushed: position(4), ..Edit::default() }));
    }

    #[test]
    #[should_panic(expected = "what is narrowed is a file of the table")]
    fn no_file_is_narrowed_that_the_table_does_not_have() {
        let scopes = BTreeMap::from([(Uuid::from_u128(2), Vec::new())]);
        state().apply(&change(Edit { scopes, ..Edit::default() }));
    }
}
