//! What is asked of the rows of one partition, and whether they are so.

use std::collections::BTreeSet;
use std::sync::Arc;

use read::{PartitionRows, ReadColumns, ReadCommand, ReadTarget};
use rows::{Clustering, ClusteringComparator, PartitionKey, Slice, Slices};
use schema::{ColumnId, Table};

use super::bound_test::BoundTest;
use super::plan::{ColumnTest, Condition};
use crate::QueryError;
use crate::error::refuse;
use crate::modify::{ModifyPlan, row_of};
use crate::select::{Projection, RowView, projection};
use crate::terms::Bindings;

/// The conditions of a statement, or of a batch of them.
#[derive(Debug)]
pub(crate) struct Conditions<'p> {
    table: Arc<Table>,
    comparator: ClusteringComparator,
    /// What is asked of the static row.
    of_static_row: Option<RowCondition<'p>>,
    /// What is asked of other rows, in clustering order.
    of_rows: Vec<(Clustering, RowCondition<'p>)>,
    /// Columns that are read to be tested, or changed by what they are.
    columns: BTreeSet<ColumnId>,
    /// Are all columns of a row needed?
    needs_rows_whole: bool,
    /// Are static columns shown, and regular ones? Of others an answer shows nulls.
    shows: Shows,
}

/// Which kinds of columns an answer shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shows {
    pub(crate) statics: bool,
    pub(crate) regulars: bool,
}

/// What is asked of a row.
#[derive(Debug)]
enum RowCondition<'p> {
    NotExists,
    Exists,
    Tests(Vec<BoundTest<'p>>),
}

impl<'p> Conditions<'p> {
    /// None yet, of that table.
    pub(crate) fn new(plan: &ModifyPlan) -> Self {
        Conditions {
            table: Arc::clone(&plan.table),
            comparator: plan.comparator.clone(),
            of_static_row: None,
            of_rows: Vec::new(),
            columns: BTreeSet::new(),
            needs_rows_whole: false,
            shows: Shows::default(),
        }
    }

    /// A statement is a part of it, with a condition or without: of what it changes, what it reads first is needed.
    pub(crate) fn note(&mut self, plan: &ModifyPlan) {
        self.columns.extend(plan.columns_read_first());
        self.shows.statics |= !plan.statics.is_empty();
        self.shows.regulars |= plan.is_of_a_row();
    }

    /// Adds a condition on the row of that clustering; of `None`, on the static row.
    ///
    /// # Errors
    /// A value is wrong, or it contradicts others.
    pub(crate) fn add(
        &mut self,
        condition: &'p Condition,
        clustering: Option<&Clustering>,
        bindings: &Bindings<'_>,
    ) -> Result<(), QueryError> {
        match condition {
            Condition::NotExists => self.add_existence(clustering, RowCondition::NotExists),
            Condition::Exists => self.add_existence(clustering, RowCondition::Exists),
            Condition::Columns(tests) => {
                self.add_tests(clustering, &tests.regulars, bindings)?;
                self.shows.statics |= !tests.statics.is_empty();
                self.add_tests(None, &tests.statics, bindings)
            }
        }
    }

    fn add_existence(
        &mut self,
        clustering: Option<&Clustering>,
        condition: RowCondition<'p>,
    ) -> Result<(), QueryError> {
        // An answer shows all of a row that is there against the will.
        self.needs_rows_whole = true;
        match (self.of_row(clustering), &condition) {
            (of_row @ RowCondition::Tests(_), _) if of_row.is_unasked() => *of_row = condition,
            (RowCondition::NotExists, RowCondition::NotExists)
            | (RowCondition::Exists, RowCondition::Exists) => {}
            (RowCondition::Tests(_), condition) => {
                let not = if matches!(condition, RowCondition::NotExists) { "NOT " } else { "" };
                refuse!("Cannot mix IF conditions and IF {not}EXISTS for the same row");
            }
            _ => refuse!("Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row"),
        }
        Ok(())
    }

    fn add_tests(
        &mut self,
        clustering: Option<&Clustering>,
        tests: &'p [ColumnTest],
        bindings: &Bindings<'_>,
    ) -> Result<(), QueryError> {
        if tests.is_empty() {
            return Ok(());
        }
        self.columns.extend(tests.iter().map(|test| test.column));
        let RowCondition::Tests(bound) = self.of_row(clustering) else {
            refuse!("Cannot mix IF conditions and IF NOT EXISTS for the same row")
        };
        for test in tests {
            bound.push(BoundTest::new(test, bindings)?);
        }
        Ok(())
    }

    /// What is asked of that row so far.
    fn of_row(&mut self, clustering: Option<&Clustering>) -> &mut RowCondition<'p> {
        let Some(clustering) = clustering else {
            return self.of_static_row.get_or_insert_with(RowCondition::unasked);
        };
        let order = |(other, _): &(Clustering, RowCondition<'_>)| self.comparator.compare(other, clustering);
        let place = match self.of_rows.binary_search_by(order) {
            Ok(place) => place,
            Err(place) => {
                self.of_rows.insert(place, (clustering.clone(), RowCondition::unasked()));
                place
            }
        };
        &mut self.of_rows[place].1
    }

    /// What has to be read to know whether they hold, and to show what is there if they do not.
    pub(crate) fn command(&self, key: PartitionKey, now: u32) -> ReadCommand {
        let mut command = ReadCommand::new(Arc::clone(&self.table), ReadTarget::Keys(vec![key]), now);
        if !self.needs_rows_whole {
            command.columns = ReadColumns::Some(self.columns.iter().copied().collect());
        }
        if self.of_rows.is_empty() {
            // Any row tells a partition that is there from one that is not.
            command.limits.row_count = 1;
        } else {
            let slices = self.of_rows.iter().map(|(clustering, _)| Slice::prefix(clustering.clone()));
            command.slices = Slices::new(slices.collect(), &self.comparator);
            command.limits.row_count = u32::try_from(self.of_rows.len()).unwrap_or(u32::MAX);
        }
        command
    }

    /// Do all of them hold for the partition as it was read? `None` when there is nothing of it.
    ///
    /// # Errors
    /// Values are wanted that nothing can be compared with.
    pub(crate) fn hold(&self, partition: Option<&PartitionRows>) -> Result<bool, QueryError> {
        let projection = projection(&self.table, &self.columns);
        let mut view = RowView::new(&projection);
        if let Some(partition) = partition {
            view.enter_partition(partition);
        }
        if let Some(condition) = &self.of_static_row {
            let static_row = partition.and_then(|partition| partition.static_row.as_ref());
            let seen = partition.is_some().then_some(&view);
            if !condition.holds(static_row.is_some(), seen, &projection)? {
                return Ok(false);
            }
        }
        for (clustering, condition) in &self.of_rows {
            let row = partition.and_then(|partition| row_of(partition, clustering, &self.comparator));
            view.enter_row(row);
            if !condition.holds(row.is_some(), row.map(|_| &view), &projection)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What an answer shows of what was read: a static row that nothing was asked of is none of it.
    pub(crate) fn keep_shown(&self, partition: Option<PartitionRows>) -> Option<(PartitionRows, Shows)> {
        let mut partition = partition?;
        if !self.shows.statics {
            partition.static_row = None;
        }
        let has_any = partition.static_row.is_some() || !partition.rows.is_empty();
        has_any.then_some((partition, self.shows))
    }
}

impl RowCondition<'_> {
    /// Nothing is asked yet.
    fn unasked() -> Self {
        RowCondition::Tests(Vec::new())
    }

    fn is_unasked(&self) -> bool {
        matches!(self, RowCondition::Tests(tests) if tests.is_empty())
    }

    /// Does it hold for a row that is there, or is not? The view shows it, if there is anything to see.
    fn holds(
        &self,
        is_there: bool,
        view: Option<&RowView<'_>>,
        projection: &Projection,
    ) -> Result<bool, QueryError> {
        let tests = match self {
            RowCondition::NotExists => return Ok(!is_there),
            RowCondition::Exists => return Ok(is_there),
            RowCondition::Tests(tests) => tests,
        };
        for test in tests {
            let seen = view.zip(projection.slot_of(test.test.column));
            if !test.holds(seen)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
