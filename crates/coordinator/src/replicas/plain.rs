//! Plain requests in a ring: rows by their keys, those that came together as one message to each other replica.
//!
//! ```text
//!   reads    this node's rows ─► their hashes ─► other replicas ──┬─ "equal": shown
//!                                                                 ├─ a later row, which this node has by now: shown
//!                                                                 └─ else: a full read
//!   writes   this node and the others write each ──► those that enough have done are done
//! ```
//!
//! A hash tells all of a plain row, its times, too: where they are equal there is nothing to repair. A row that is
//! being written may be there already and not here. It is shown as well when it takes in what was here when the read
//! began, and is here when the answer comes: all that was acknowledged before the read is in it, and whoever reads
//! later finds it on as many replicas. So rows that are always being written cost no second round.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use replica::{Answer, Request, Told, is_plain_row};
use ring::NodeIndex;
use rows::{DeletionTime, Mutation, PartitionKey, Row, merge_rows};
use runtime::Plant;
use schema::{Table, TableId};
use storage::{KEYS_TOGETHER, LookupsSent, ShardHandle, StorageError, Unit};
use tokio::time::Instant;
use types::Token;

use super::partners::{KeptPartners, Nodes, Partners};
use super::write::Term;
use super::{ReplicaError, Replicas, speculation};
use crate::plain::PlainOutcomes;
use crate::{Consistency, CoordinatorError};

impl Replicas {
    /// The other replicas that a plain read is compared with. `None` when this node is no replica, or too few live, or
    /// the level counts data centres: then it is a full one.
    pub(crate) fn partners_to_read(
        &self,
        table: TableId,
        token: Token,
        consistency: Consistency,
    ) -> Option<Rc<Partners>> {
        let home = self.home(table)?;
        let group = home.group_of(token);
        let can_be_asked = |node| self.view.is_alive(node) && !self.view.is_avoided(node);
        if let Some(partners) = home.partners.of_read(group, consistency, can_be_asked) {
            return Some(partners);
        }
        let partners = choose_to_read(self, &home.partners, table, token, consistency)?;
        Some(home.partners.keep_of_read(group, consistency, partners))
    }

    /// The rows of some keys of one shard, each where this node and the others have it in common; up to so many as are
    /// done in one go.
    ///
    /// # Errors
    /// The shard is too busy, or gone.
    pub(crate) async fn plain_rows(
        &self,
        owner: usize,
        lookups: Arc<LookupsSent>,
        others: &[NodeIndex],
        patience: Duration,
    ) -> Result<Vec<Common>, StorageError> {
        let own = self.shard.send_hashed_lookups(owner, Arc::clone(&lookups)).await?;
        let mut common = vec![Common::Unknown; own.len()];
        let hashes = own.iter().zip(&lookups.keys);
        let asked: Vec<(&PartitionKey, u128)> =
            hashes.filter_map(|(own, key)| own.as_ref().map(|own| (key, own.hash))).collect();
        if asked.is_empty() {
            return Ok(common);
        }
        let Some(told) = self.compare(others, &lookups.table, &asked, patience).await else {
            return Ok(common);
        };
        let known = own.into_iter().enumerate().filter_map(|(index, own)| Some((index, own?.row)));
        let mut others_have = Vec::new();
        for (place, (index, own)) in known.enumerate() {
            match agreed(own, told.iter().map(|of_node| &of_node[place]), &lookups.table) {
                Agreed::Own(row) => common[index] = Common::Row(row),
                Agreed::Other { own, row } => others_have.push(Other { index, own, row }),
                Agreed::Not => {}
            }
        }
        for Other { index, row, .. } in later_and_here(&self.shard, owner, &lookups, others_have).await? {
            common[index] = Common::Row(Some(row));
        }
        // The full reads of the others will be counted.
        let is_known = |common: &&Common| matches!(common, Common::Row(_));
        common.iter().filter(is_known).for_each(|_| self.read_repairs.note(false));
        Ok(common)
    }

    /// What several replicas say of some rows; `None` when one of them does not say it in time.
    async fn compare(
        &self,
        others: &[NodeIndex],
        table: &Table,
        rows: &[(&PartitionKey, u128)],
        patience: Duration,
    ) -> Option<Vec<Vec<Told>>> {
        // When one is late, each becomes a full read, which asks somebody else, too.
        let late = self.lateness(table, others).filter(|late| !late.is_zero());
        let deadline = Instant::now() + late.map_or(patience, |late| late.min(patience));
        let asked = others.iter().map(|node| {
            self.ask_to_read(*node, table.id(), deadline, |out| Request::put_compare(table.id(), rows, out))
        });
        let Ok(answers) = self.alarm.timeout_at(deadline, join_all(asked)).await else {
            if late.is_some() {
                speculation::count(&self.shard, table, rows.len());
            }
            return None;
        };
        let told = answers.into_iter().map(|answer| match answer {
            Ok(Answer::Compared(told)) if told.len() == rows.len() => Some(told),
            _ => None,
        });
        if self.has_planted(Plant::OtherRowTakenForEqual) {
            return told.map(|told| told.map(|told| vec![Told::Equal; told.len()])).collect();
        }
        told.collect()
    }

    /// All replicas of a plain write; none when this node alone is one. `None` when too few live.
    pub(crate) fn partners_to_write(
        &self,
        table: TableId,
        token: Token,
        consistency: Consistency,
    ) -> Option<Rc<Partners>> {
        let home = self.home(table)?;
        let group = home.group_of(token);
        let is_alive = |node| self.view.is_alive(node);
        if let Some(partners) = home.partners.of_write(group, consistency, is_alive) {
            return Some(partners);
        }
        let (plan, requirement) = self.admit(table, token, consistency).ok()?;
        let is_alone = plan.nodes == [self.view.here()];
        let mut nodes = if is_alone { Nodes::new() } else { Nodes::from_slice(plan.nodes) };
        // Those of the same nodes go together, whoever is the first.
        nodes.sort_unstable();
        let partners = Partners { nodes, requirement };
        let are_enough = plan.nodes.iter().all(|node| is_alive(*node) && self.view.has_rows(*node));
        Some(match are_enough {
            true => home.partners.keep_of_write(group, consistency, partners),
            false => Rc::new(partners),
        })
    }

    /// Writes each of some mutations, which all have the same replicas, by itself, and waits until enough have or
    /// can not have it any more.
    ///
    /// # Panics
    /// When they are none, or more than are done in one go.
    pub(crate) async fn write_each(
        &self,
        mutations: Vec<Mutation>,
        consistency: Consistency,
        patience: Duration,
    ) -> PlainOutcomes {
        let are_batch = (1..=KEYS_TOGETHER).contains(&mutations.len());
        assert!(are_batch, "each of a batch has its place in what a replica answers");
        let term = Term::of(patience);
        let first = &mutations[0];
        let Ok((plan, requirement)) = self.admit(first.table, first.key.token, consistency) else {
            // As a full write it is refused with the reason.
            return PlainOutcomes::default();
        };
        let begun = self.begin_group(&plan, requirement, Unit::Each, &mutations, term);
        let mut outcomes = PlainOutcomes::default();
        for (index, outcome) in begun.finish(consistency).await.into_iter().enumerate() {
            match outcome {
                Ok(()) => outcomes.done.insert(index),
                // As a full write it is done again, or refused.
                Err(ReplicaError::Unavailable { .. } | ReplicaError::Outdated { .. }) => {}
                Err(error) => {
                    outcomes.doubtful.insert(index);
                    outcomes.error.get_or_insert_with(|| CoordinatorError::from(error));
                }
            }
        }
        outcomes
    }
}

/// The other replicas for a turn of reads that begins now.
fn choose_to_read(
    replicas: &Replicas,
    kept: &KeptPartners,
    table: TableId,
    token: Token,
    consistency: Consistency,
) -> Option<Partners> {
    let view = &replicas.view;
    let (plan, requirement) = replicas.admit(table, token, consistency).ok()?;
    let wanted = requirement.plain_count()? as usize;
    let here = view.here();
    let can_be_asked = |node: &&NodeIndex| **node != here && view.has_rows(**node) && view.is_alive(**node);
    let others = plan.nodes.iter().filter(can_be_asked);
    let mut others: Nodes = others.copied().collect();
    // Those of the same replicas go together, whoever is the first; and each has its turns.
    others.sort_unstable();
    let first = kept.first_of(others.len());
    others.rotate_left(first);
    let is_far = |node: NodeIndex| view.center_of(node) != view.center_of(here);
    others.sort_by_key(|node| (view.is_avoided(*node), is_far(*node)));
    if requirement.is_local() {
        others.retain(|node| view.center_of(*node) == view.center_of(here));
    }
    let nodes: Nodes = others.into_iter().take(wanted.checked_sub(1)?).collect();
    let is_here = plan.nodes.contains(&here) && view.has_rows(here);
    (is_here && nodes.len() + 1 == wanted).then_some(Partners { nodes, requirement })
}

/// Those of some rows that take in what this node had of them, and that it has by now.
async fn later_and_here(
    shard: &ShardHandle,
    owner: usize,
    lookups: &LookupsSent,
    mut others: Vec<Other>,
) -> Result<Vec<Other>, StorageError> {
    if others.is_empty() {
        return Ok(others);
    }
    let keys = others.iter().map(|other| lookups.keys[other.index].clone()).collect();
    let table = &lookups.table;
    let again = Arc::new(LookupsSent { table: Arc::clone(table), keys, now: lookups.now });
    let mut now = shard.send_hashed_lookups(owner, again).await?.into_iter();
    others.retain(|other| {
        let now = now.next().flatten().and_then(|now| now.row);
        now.is_some_and(|now| other.is_later_and_here(&now, table))
    });
    Ok(others)
}

/// A row that several replicas have.
#[derive(Clone, Debug)]
pub(crate) enum Common {
    /// This one, or that there is none.
    Row(Option<Row>),
    /// It is for a full read.
    Unknown,
}

/// A row of which all others have the same, and this node had not when it asked.
#[derive(Clone, Debug)]
struct Other {
    /// Of its key.
    index: usize,
    /// What this node had.
    own: Option<Row>,
    row: Row,
}

impl Other {
    /// Does it take in what this node had, and is it in what this node has now? As a rule that is just the same: a node
    /// goes on having what it had.
    fn is_later_and_here(&self, now: &Row, table: &Table) -> bool {
        *now == self.row || (self.takes_in_own(table) && takes_in(now, &self.row, table))
    }

    fn takes_in_own(&self, table: &Table) -> bool {
        self.own.as_ref().is_none_or(|own| takes_in(&self.row, own, table))
    }
}

/// What replicas have of a row that this node had when it asked.
enum Agreed {
    /// The same.
    Own(Option<Row>),
    /// All others another one.
    Other {
        own: Option<Row>,
        row: Row,
    },
    Not,
}

fn agreed<'t>(own: Option<Row>, told: impl Iterator<Item = &'t Told> + Clone, table: &Table) -> Agreed {
    if told.clone().all(|told| *told == Told::Equal) {
        return Agreed::Own(own);
    }
    let mut rows = told.map(|told| match told {
        Told::Other(row) if is_plain_row(row, table) => Some(row),
        _ => None,
    });
    let Some(Some(first)) = rows.next() else { return Agreed::Not };
    if rows.all(|row| row == Some(first)) { Agreed::Other { own, row: first.clone() } } else { Agreed::Not }
}

/// Has a row all of an earlier one, or something later in its place?
fn takes_in(row: &Row, earlier: &Row, table: &Table) -> bool {
    let merged = merge_rows(&[row, earlier], DeletionTime::LIVE, table);
    merged.is_some_and(|merged| merged.missing_from(Some(row)).is_none())
}

#[cfg(test)]
mod tests {
    use rows::{CellRef, Clustering, Liveness, RowBuilder};
    use schema::{ColumnKind, TableBuilder};
    use types::CqlType;
    use uuid::Uuid;

    use super::*;

    fn table() -> Table {
        let table = TableBuilder::new(TableId(Uuid::from_u128(7)), "k", "t")
            .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
            .column("v", ColumnKind::Regular, CqlType::Text)
            .column("w", ColumnKind::Regular, CqlType::Text);
        table.build().expect("a sound table")
    }

    fn row(cells: &[(&str, i64)]) -> Row {
        let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(1), DeletionTime::LIVE);
        for (column, timestamp) in cells {
            row.cell(table().column(column).expect("a column").id, CellRef::live(*timestamp, b"x"));
        }
        row.finish()
    }

    /// What is shown when this node had one row, others have that, and this node has a third by now.
    fn shown(own: &Row, told: &[Told], now: &Row) -> Option<Row> {
        match agreed(Some(own.clone()), told.iter(), &table()) {
            Agreed::Own(row) => row,
            Agreed::Other { own, row } => {
                let other = Other { index: 0, own, row };
                other.is_later_and_here(now, &table()).then_some(other.row)
            }
            Agreed::Not => None,
        }
    }

    #[test]
    fn a_later_row_is_common_when_all_have_it_by_now_and_it_takes_in_the_own_one() {
        let (own, later) = (row(&[("v", 2), ("w", 2)]), row(&[("v", 3), ("w", 2)]));
        let other = |row: &Row| Told::Other(row.clone());
        assert_eq!(shown(&own, &[Told::Equal, Told::Equal], &later), Some(own.clone()));
        assert_eq!(shown(&own, &[other(&later)], &later), Some(later.clone()));
        assert_eq!(shown(&own, &[other(&later), other(&later)], &later), Some(later.clone()));
        assert_eq!(
            shown(&own, &[other(&later)], &row(&[("v", 4), ("w", 2)])),
            Some(later.clone()),
            "and more"
        );
        assert_eq!(shown(&own, &[other(&later)], &own), None, "it is not here yet");
        assert_eq!(shown(&own, &[other(&later), Told::Equal], &later), None, "one lacks it");
        let third = other(&row(&[("v", 4), ("w", 2)]));
        assert_eq!(shown(&own, &[other(&later), third], &later), None, "they differ");
        assert_eq!(shown(&later, &[other(&own)], &later), None, "it lacks what is here");
        let (part, now) = (row(&[("v", 3), ("w", 1)]), row(&[("v", 3), ("w", 2)]));
        assert_eq!(shown(&own, &[other(&part)], &now), None, "it lacks a part of what is here");
        assert_eq!(shown(&own, &[Told::Unknown], &own), None);
    }
}
