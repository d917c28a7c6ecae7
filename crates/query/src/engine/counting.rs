//! Carrying out what adds to counters.
//!
//! A request with an id is counted once, however often it is sent and to whichever node: so the replicas agree on it,
//! as on a change with a condition that always holds. What is counted so has a share of its own in each counter.

use std::pin::pin;
use std::sync::Arc;

use coordinator::{ClaimedPartition, ConditionalLevels, Consistency, CoordinatorError, Settled, TimeoutKind};
use futures_util::future::join_all;
use read::{PartitionRows, ReadCommand};
use rows::{ClusteringComparator, CounterId, Increments, Mutation, counted};
use schema::Table;

use super::Inner;
use super::carried::{Origin, Undecided, decided_before, operation_of};
use crate::conditional::{Carried, CarriedCount, Decision, OperationId};
use crate::memory::AnswerRoom;
use crate::modify::{read_whole, row_of};
use crate::request::QueryOptions;
use crate::timeouts::{Deadline, TimedOut};
use crate::{QueryError, WriteType};

impl Inner {
    /// Counts what mutations add, each partition by itself.
    pub(super) async fn count(
        &self,
        mutations: Vec<Mutation>,
        options: &QueryOptions,
        origin: Origin<'_>,
    ) -> Result<(), QueryError> {
        let consistency = options.consistency;
        if let Some(operation) = operation_of(self, options, origin)? {
            let count = |mutation: Mutation| {
                let (increments, serial_consistency) =
                    (mutation.as_encoded().clone(), options.serial_consistency);
                count_once(
                    self,
                    mutation,
                    CarriedCount { increments, operation, consistency, serial_consistency },
                )
            };
            return together(join_all(mutations.into_iter().map(count)).await, consistency);
        }
        let counting = pin!(coordinator::count(&self.coordinator, mutations, consistency));
        match Deadline::of(&self.timeouts, TimeoutKind::Count).within(counting).await {
            Ok(counted) => {
                counted.map_err(|error| QueryError::of_write(error, consistency, WriteType::Counter))
            }
            Err(timed_out) => Err(timed_out.of_write(consistency, WriteType::Counter)),
        }
    }
}

/// Has it counted where its partition is decided about.
async fn count_once(engine: &Inner, mutation: Mutation, count: CarriedCount) -> Result<(), QueryError> {
    let levels = levels_of(&count);
    let carried = || Ok(Carried::Count(count.clone()));
    match engine.decide_elsewhere((mutation.table, &mutation.key), levels, carried).await {
        Ok(Some(())) => Ok(()),
        Ok(None) => decide_count(engine, mutation, count.operation, levels).await,
        Err(undecided) => Err(undecided.of_count(levels.write)),
    }
}

/// Counts what another node, or another shard, has carried here.
pub(super) async fn count_carried(engine: &Inner, count: CarriedCount) -> Result<(), QueryError> {
    let levels = levels_of(&count);
    let no_sense = |_| QueryError::Server("another node counts something that makes no sense".to_owned());
    let mutation = Mutation::from_encoded(count.increments).map_err(no_sense)?;
    decide_count(engine, mutation, count.operation, levels).await
}

async fn decide_count(
    engine: &Inner,
    mutation: Mutation,
    operation: OperationId,
    levels: ConditionalLevels,
) -> Result<(), QueryError> {
    let late = |timed_out: TimedOut| timed_out.of_write(levels.write, WriteType::Counter);
    let told = |error: CoordinatorError| Undecided::from(error).of_count(levels.write);
    let mut deadline = Deadline::of(&engine.timeouts, TimeoutKind::Count);
    let claiming = pin!(ClaimedPartition::claim(&engine.coordinator, mutation.table, &mutation.key, levels));
    let mut claimed = deadline.within(claiming).await.map_err(late)?.map_err(told)?;
    let mut room = engine.answers.room_of_its_own();
    loop {
        let change = {
            let counting = pin!(count_in(engine, &mut claimed, &mutation, (operation, levels), &mut room));
            deadline.within(counting).await.map_err(late)??
        };
        let kept = change.is_some().then(|| operation.keep(Decision::Applied));
        let settling = pin!(claimed.settle(change, kept));
        let settled = Deadline::of(&engine.timeouts, TimeoutKind::Count).within(settling).await;
        if settled.map_err(late)?.map_err(told)? == Settled::Done {
            return Ok(());
        }
    }
}

/// What a mutation becomes when it is counted; `None` when it was before.
async fn count_in(
    engine: &Inner,
    claimed: &mut ClaimedPartition,
    mutation: &Mutation,
    (operation, levels): (OperationId, ConditionalLevels),
    room: &mut AnswerRoom,
) -> Result<Option<Mutation>, QueryError> {
    let told = |error: Undecided| error.of_count(levels.write);
    claimed.ready().await.map_err(|error| told(error.into()))?;
    if decided_before(engine, claimed, operation).await.map_err(told)?.is_some() {
        return Ok(None);
    }
    let table = counter_table(engine, mutation)?;
    coordinator::check_increments(&engine.coordinator, mutation).map_err(|error| told(error.into()))?;
    let increments = Increments::of(mutation);
    let mut held = None;
    if !increments.is_empty() {
        let now = engine.coordinator.now_seconds();
        let command = ReadCommand::of_increments(Arc::clone(&table), mutation.key.clone(), &increments, now);
        let claimed = &*claimed;
        let read = async |command: &ReadCommand| claimed.read(command).await;
        held = read_whole(command, levels.agreement, room, read).await?;
    }
    // Above what was given by a clock that was ahead.
    let latest = held.as_ref().and_then(|held| CounterId::AGREED.latest_in(all_rows(held)));
    let timestamp = claimed.timestamp().max(latest.map_or(i64::MIN, |latest| latest.saturating_add(1)));
    let comparator = ClusteringComparator::new(table.clustering_types().clone());
    let place = (CounterId::AGREED, timestamp);
    Ok(Some(counted(mutation, &table, place, |clustering| match (clustering, &held) {
        (_, None) => None,
        (None, Some(held)) => held.static_row.as_ref(),
        (Some(clustering), Some(held)) => row_of(held, clustering, &comparator),
    })))
}

fn counter_table(engine: &Inner, mutation: &Mutation) -> Result<Arc<Table>, QueryError> {
    let table = engine.coordinator.schema().table_by_id(mutation.table).cloned();
    let table = table.filter(|table| table.is_counter());
    table.ok_or_else(|| QueryError::invalid("unconfigured table: that of the counters is gone"))
}

fn all_rows(partition: &PartitionRows) -> impl Iterator<Item = &rows::Row> {
    partition.static_row.iter().chain(&*partition.rows)
}

fn levels_of(count: &CarriedCount) -> ConditionalLevels {
    let serial = count.serial_consistency.filter(|level| level.is_serial());
    let agreement = serial.unwrap_or(Consistency::Serial);
    ConditionalLevels { agreement, write: count.consistency }
}

/// What the partitions of a request come to: of one that is counted in part nothing is said to be refused.
fn together(counted: Vec<Result<(), QueryError>>, consistency: Consistency) -> Result<(), QueryError> {
    let is_in_part = counted.iter().any(Result::is_ok);
    match counted.into_iter().find_map(Result::err) {
        None => Ok(()),
        Some(error @ (QueryError::WriteTimeout { .. } | QueryError::WriteFailure { .. })) => Err(error),
        Some(_) if is_in_part => Err(TimedOut.of_write(consistency, WriteType::Counter)),
        Some(error) => Err(error),
    }
}
