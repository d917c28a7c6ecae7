//! How what is added to counters is counted: once, by one replica of each partition, which then tells the others what
//! it has counted in all.

use std::time::Duration;

use futures_util::future::join_all;
use rows::{Mutation, added_up, only_adds};
use runtime::trace;
use schema::Schema;
use storage::Wait;
use tokio::time::timeout;

use crate::count_groups::{CountedPlace, place_of};
use crate::replicas::{ReplicaError, count_by_one};
use crate::write::{ATTEMPTS_MAX, Parts, come_to};
use crate::{Consistency, Coordinator, CoordinatorError, TimeoutKind};

/// The next group is counted after so long, though the one before is not.
const NEXT_AFTER: Duration = Duration::from_millis(100);

/// Counts what independent mutations add to counters, each partition by itself. Returns when all of it is durable.
///
/// # Errors
/// Nothing is counted after `Unavailable` and `Overloaded`. After others some may be, after `Unfinished` some is.
///
/// # Cancel safety
/// Dropped, any of it may be counted.
pub async fn count(
    coordinator: &Coordinator,
    mutations: Vec<Mutation>,
    consistency: Consistency,
) -> Result<(), CoordinatorError> {
    check(coordinator, &mutations, consistency)?;
    let count = |mutation| count_one(coordinator, mutation, consistency);
    together(join_all(mutations.into_iter().map(count)).await)
}

/// Is that what can be added to counters of its table as it is here? Another node may have sent it.
///
/// # Errors
/// `Overloaded` with what is wrong: nothing was done.
pub fn check_increments(coordinator: &Coordinator, mutation: &Mutation) -> Result<(), CoordinatorError> {
    let checked = replica::check_increments(coordinator.shard(), mutation);
    checked.map_err(|failure| CoordinatorError::Overloaded { what: failure.to_string() })
}

/// What the parts come to. One that may have been counted must not be told as if nothing had been.
fn together(counted: Vec<Result<(), CoordinatorError>>) -> Result<(), CoordinatorError> {
    let mut parts = Parts::refused_by(CoordinatorError::says_nothing_was_done);
    counted.into_iter().for_each(|part| parts.take_in(part));
    parts.outcome()
}

/// Are there replicas enough of all? None is counted before.
fn check(
    coordinator: &Coordinator,
    mutations: &[Mutation],
    consistency: Consistency,
) -> Result<(), CoordinatorError> {
    mutations.iter().try_for_each(|mutation| match coordinator.replicas_of(mutation.table) {
        Some(replicas) => Ok(replicas.check([mutation], consistency)?),
        None => coordinator.admit(mutation.table, consistency).map(drop),
    })
}

/// Counts it, with others that wait for the same partition.
async fn count_one(
    coordinator: &Coordinator,
    mutation: Mutation,
    consistency: Consistency,
) -> Result<(), CoordinatorError> {
    if !only_adds(&mutation) {
        return count_by_itself(coordinator, mutation, consistency).await;
    }
    let place = place_of(&mutation, consistency);
    let (is_first, outcome) = coordinator.count_groups.join(&place, mutation);
    if is_first {
        // A task, so that it goes on when the first one's client goes away.
        let counting = Box::pin(count_groups(coordinator.clone(), place, consistency));
        runtime::spawn_local("increments", trace::carry(trace::current(), counting));
    }
    outcome.await.unwrap_or(Err(CoordinatorError::ShuttingDown))
}

/// Counts those that wait at a place, group by group.
async fn count_groups(coordinator: Coordinator, place: CountedPlace, consistency: Consistency) {
    while let Some(mut group) = coordinator.count_groups.take(&place) {
        let table = coordinator.schema().table_by_id(place.0).cloned();
        let sum = match (&*group.mutations, table) {
            ([_, _, ..], Some(table)) => added_up(&group.mutations, &table),
            // Of a table that is gone one says why nothing is counted.
            _ => group.mutations.swap_remove(0),
        };
        let coordinator = coordinator.clone();
        let count = async move { group.tell(count_by_itself(&coordinator, sum, consistency).await) };
        let counting = trace::carry(trace::current(), Box::pin(count));
        // Whoever counts may hang: those that come meanwhile do not wait for that.
        _ = timeout(NEXT_AFTER, runtime::spawn_local("a group of increments", counting)).await;
    }
}

async fn count_by_itself(
    coordinator: &Coordinator,
    mutation: Mutation,
    consistency: Consistency,
) -> Result<(), CoordinatorError> {
    for attempt in 1..=ATTEMPTS_MAX {
        let Some(replicas) = coordinator.replicas_of(mutation.table) else { break };
        let patience = coordinator.patience(TimeoutKind::Count);
        match count_by_one(&replicas, &mutation, consistency, patience).await {
            // Nothing of it is left where it was counted.
            Err(ReplicaError::Outdated { epoch }) if attempt < ATTEMPTS_MAX => {
                come_to(coordinator, epoch, TimeoutKind::Count).await?;
            }
            counted => return Ok(counted?),
        }
    }
    count_alone(coordinator, mutation, consistency).await
}

/// Counts on the shard that owns the partition.
async fn count_alone(
    coordinator: &Coordinator,
    mutation: Mutation,
    consistency: Consistency,
) -> Result<(), CoordinatorError> {
    let shards = coordinator.shards_for(coordinator.admit(mutation.table, consistency)?);
    let (owner, wait) = (coordinator.owners().of(mutation.key.token), Wait::SyncMode);
    let planned_on = Some(coordinator.shard().local().with_schema(Schema::epoch));
    let counted = shards.count(owner, planned_on, mutation.clone(), wait).await;
    if !coordinator.is_behind(&counted) {
        return Ok(counted.map(drop)?);
    }
    coordinator.give_schema(owner, coordinator.schema()).await?;
    Ok(shards.count(owner, planned_on, mutation, wait).await.map(drop)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_to_be_refused_of_which_a_part_may_be_counted() {
        let unavailable = || Err(CoordinatorError::Unavailable { consistency: "ONE", required: 1, alive: 0 });
        let told = |parts| together(parts);
        assert!(matches!(
            told(vec![unavailable(), unavailable()]),
            Err(CoordinatorError::Unavailable { .. })
        ));
        assert!(matches!(told(vec![unavailable(), Ok(())]), Err(CoordinatorError::Unfinished { .. })));
        let in_doubt = vec![unavailable(), Err(CoordinatorError::InDoubt)];
        assert!(matches!(told(in_doubt), Err(CoordinatorError::InDoubt)), "the doubt is told");
        assert!(told(vec![Ok(()), Ok(())]).is_ok());
    }
}
