//! Aggregates and GROUP BY: rows are taken in page by page, and only the states are kept.

use read::{PartitionRows, ReadPosition};
use rows::Row;
use runtime::Piece;

use super::cells::RowView;
use super::compute::write_row;
use super::execute::{Next, Scan};
use super::page::Amounts;
use super::paging::PagingState;
use super::plan::SelectPlan;
use super::rows::ComputedRows;
use super::selector::Evaluation;
use crate::QueryError;
use crate::functions::AggregateState;
use crate::response::{RowsBody, RowsResult};
use crate::terms::Bindings;

/// Rows taken in at once.
const ROWS_AT_ONCE: u32 = 5_000;

/// The groups of one SELECT, one after the other.
pub(super) struct Groups<'a> {
    plan: &'a SelectPlan,
    bindings: &'a Bindings<'a>,
    now: u32,
    states: Vec<AggregateState>,
    /// What tells the group that is being taken in from the next.
    current: Option<GroupKey>,
    /// The first row of the group, which gives the columns that are not aggregated.
    first: Option<PartitionRows>,
    /// Where the group's last row is.
    last: Option<ReadPosition>,
    out: ComputedRows,
    /// The partition of the groups counted below.
    counted: Option<bytes::Bytes>,
    groups_of_partition: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupKey {
    partition: bytes::Bytes,
    clustering: Vec<Option<Vec<u8>>>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(plan: &'a SelectPlan, bindings: &'a Bindings<'a>, now: u32) -> Self {
        Groups {
            plan,
            bindings,
            now,
            states: plan.aggregates.iter().map(|aggregate| aggregate.function.start()).collect(),
            current: None,
            first: None,
            last: None,
            out: ComputedRows::default(),
            counted: None,
            groups_of_partition: 0,
        }
    }

    /// Takes in all rows, or as many as make a page of groups.
    pub(super) async fn run(
        mut self,
        scan: &mut Scan<'_>,
        amounts: Amounts,
    ) -> Result<RowsResult, QueryError> {
        let wanted = amounts.page.min(amounts.left);
        if let Some(position) = scan.resumed_at() {
            // Of a grouped read a position counts the groups of its partition, not its rows.
            self.counted = Some(position.key.bytes.clone());
            self.groups_of_partition = position.row_count;
        }
        let mut piece = Piece::of_turn();
        loop {
            // What is read is not kept: only a page of groups can be full.
            let partitions = match scan.next(ROWS_AT_ONCE, u32::MAX, false).await? {
                Next::Rows(partitions) => partitions,
                Next::PageIsFull | Next::End => break,
            };
            let plan = self.plan;
            let mut view = RowView::new(&plan.projection);
            for partition in &partitions {
                view.enter_partition(partition);
                for row in partition.shown_rows() {
                    view.enter_row(row);
                    if plan.group_by.is_some() {
                        let key = self.group_key(&view, partition, row)?;
                        if self.current.as_ref().is_some_and(|current| *current != key) {
                            let end = self.last.take();
                            self.finish_group(amounts.per_partition, scan).await?;
                            if self.out.row_count() >= wanted as usize
                                || scan.is_page_full(self.out.byte_count())
                            {
                                let row_count = self.groups_of_partition;
                                let end = end.map(|end| ReadPosition { row_count, ..end });
                                return Ok(self.page(end, amounts));
                            }
                            self.start_group();
                        }
                        self.current.get_or_insert(key);
                        self.last = Some(ReadPosition {
                            key: partition.key.clone(),
                            clustering: row.map(Row::clustering),
                            row_count: 0,
                        });
                    }
                    self.first.get_or_insert_with(|| one_row(partition, row));
                    self.take_in(&view)?;
                    piece.give_way().await;
                }
            }
            scan.room.take(self.out.byte_count().saturating_sub(scan.room.used_bytes()));
        }
        // Without GROUP BY even no row at all makes one of nothing; with it, no row makes none.
        if self.current.is_some() || self.plan.group_by.is_none() {
            self.finish_group(amounts.per_partition, scan).await?;
        }
        Ok(self.page(None, amounts))
    }

    fn group_key(
        &self,
        view: &RowView<'_>,
        partition: &PartitionRows,
        row: Option<&Row>,
    ) -> Result<GroupKey, QueryError> {
        let Some(group_by) = &self.plan.group_by else {
            return Ok(GroupKey { partition: bytes::Bytes::new(), clustering: Vec::new() });
        };
        let mut clustering: Vec<Option<Vec<u8>>> = Vec::with_capacity(group_by.clustering_prefix);
        if let Some(row) = row {
            let components = row.clustering_components().take(group_by.clustering_prefix);
            clustering.extend(components.map(|component| component.map(<[u8]>::to_vec)));
        }
        if let Some(function) = &group_by.function {
            let evaluation = Evaluation { view, bindings: self.bindings, aggregates: &[], now: self.now };
            let value = function.evaluate(&evaluation)?.map(|value| value.into_owned());
            clustering.pop();
            clustering.push(value);
        }
        Ok(GroupKey { partition: partition.key.bytes.clone(), clustering })
    }

    fn start_group(&mut self) {
        self.current = None;
        self.first = None;
        self.states = self.plan.aggregates.iter().map(|aggregate| aggregate.function.start()).collect();
    }

    fn take_in(&mut self, view: &RowView<'_>) -> Result<(), QueryError> {
        self.bindings.environment.begin_row();
        let evaluation = Evaluation { view, bindings: self.bindings, aggregates: &[], now: self.now };
        for (aggregate, state) in self.plan.aggregates.iter().zip(&mut self.states) {
            aggregate.add(state, &evaluation)?;
        }
        Ok(())
    }

    async fn finish_group(&mut self, per_partition: u32, scan: &Scan<'_>) -> Result<(), QueryError> {
        let partition = self.current.as_ref().map(|current| &current.partition);
        if self.counted.as_ref() != partition {
            self.counted = partition.cloned();
            self.groups_of_partition = 0;
        }
        self.groups_of_partition += 1;
        if self.groups_of_partition > per_partition {
            return Ok(());
        }
        let values: Vec<Option<Vec<u8>>> =
            self.states.iter().map(AggregateState::finish).collect::<Result<_, _>>()?;
        let mut view = RowView::new(&self.plan.projection);
        if let Some(first) = &self.first {
            view.enter_partition(first);
            view.enter_row(first.rows.first());
        }
        let evaluation =
            Evaluation { view: &view, bindings: self.bindings, aggregates: &values, now: self.now };
        let (bytes_max, io) = (scan.room.answer_bytes_max(), scan.reader.coordinator.io());
        let selectors = self.plan.selectors.as_deref().unwrap_or_default();
        write_row(self.plan.computing(selectors), &evaluation, bytes_max, io, &mut self.out).await
    }

    fn page(self, end: Option<ReadPosition>, amounts: Amounts) -> RowsResult {
        let given = u32::try_from(self.out.row_count()).unwrap_or(u32::MAX);
        let left = if amounts.left == u32::MAX { u32::MAX } else { amounts.left.saturating_sub(given) };
        let paging_state = end.filter(|_| left > 0).map(|position| PagingState { left, position }.encode());
        RowsResult {
            columns: self.plan.columns.clone(),
            metadata_id: self.plan.metadata_id,
            varies: false,
            paging_state,
            body: RowsBody::Computed(self.out),
        }
    }
}

pub(super) fn one_row(partition: &PartitionRows, row: Option<&Row>) -> PartitionRows {
    PartitionRows {
        key: partition.key.clone(),
        static_row: partition.static_row.clone(),
        rows: row.cloned().into_iter().collect(),
    }
}
