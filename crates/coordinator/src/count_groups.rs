//! Increments of one partition that come while others of it are being counted wait for these, and are counted together.
//!
//! ```text
//!   the first          ─► is counted, alone ───────────────┐
//!   more, meanwhile      wait, by partition and level ─────┴─► are counted as one sum ─► all are told the same
//! ```
//!
//! So a hot counter costs one share, one sync and one write to its replicas for each group, and not for each increment.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rows::{Mutation, PartitionKey};
use schema::TableId;
use tokio::sync::oneshot;

use crate::{Consistency, CoordinatorError};

/// So many are counted together, at most.
const GROUP_MAX: usize = 256;
/// Or so many bytes and one more: their sum is a record of the log, and the least segment has room for that.
const GROUP_BYTES: usize = 16 << 10;

/// A partition of a table, and the level by its name.
pub(crate) type CountedPlace = (TableId, PartitionKey, &'static str);

type Told = oneshot::Sender<Result<(), CoordinatorError>>;

/// Increments that wait, by their place: of each that is here somebody counts.
#[derive(Default)]
pub(crate) struct CountGroups(RefCell<BTreeMap<CountedPlace, Vec<(Mutation, Told)>>>);

/// Some that are counted together.
pub(crate) struct CountGroup {
    /// What each adds; one at least.
    pub(crate) mutations: Vec<Mutation>,
    told: Vec<Told>,
}

impl CountGroups {
    /// One more waits; what becomes of it is told. Is nobody counting there? Then whoever asks is to take groups, until
    /// there are none.
    pub(crate) fn join(
        &self,
        place: &CountedPlace,
        mutation: Mutation,
    ) -> (bool, oneshot::Receiver<Result<(), CoordinatorError>>) {
        let (told, outcome) = oneshot::channel();
        let mut groups = self.0.borrow_mut();
        let is_first = !groups.contains_key(place);
        groups.entry(place.clone()).or_default().push((mutation, told));
        (is_first, outcome)
    }

    /// Takes those that wait at a place; `None` when there are none: from then on nobody is counting there.
    pub(crate) fn take(&self, place: &CountedPlace) -> Option<CountGroup> {
        let mut groups = self.0.borrow_mut();
        let waiting = groups.get_mut(place)?;
        // Who waits no more was told that nobody knows.
        waiting.retain(|(_, told)| !told.is_closed());
        let mut bytes = 0;
        let fits = |(mutation, _): &&(Mutation, Told)| {
            let before = bytes;
            bytes += mutation.as_encoded().len();
            before < GROUP_BYTES
        };
        let count = waiting.iter().take(GROUP_MAX).take_while(fits).count();
        let (mutations, told): (Vec<_>, Vec<_>) = waiting.drain(..count).unzip();
        if mutations.is_empty() {
            groups.remove(place);
            return None;
        }
        assert_eq!(mutations.len(), told.len(), "who adds something is told what has come of it");
        Some(CountGroup { mutations, told })
    }
}

impl CountGroup {
    /// Tells each how it came out.
    pub(crate) fn tell(self, outcome: Result<(), CoordinatorError>) {
        let mut told = self.told.into_iter();
        let first = told.next().expect("a group has one");
        for other in told {
            // Who does not wait any more was told that nobody knows.
            _ = other.send(outcome.as_ref().copied().map_err(CoordinatorError::told_again));
        }
        _ = first.send(outcome);
    }
}

/// The place at which increments of a partition wait.
pub(crate) fn place_of(mutation: &Mutation, consistency: Consistency) -> CountedPlace {
    (mutation.table, mutation.key.clone(), consistency.name())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use rows::{DeletionTime, MutationBuilder};
    use uuid::Uuid;

    use super::*;

    fn mutation(timestamp: i64) -> Mutation {
        let key = PartitionKey::new(vec![1].into());
        let mut mutation = MutationBuilder::new(TableId(Uuid::from_u128(1)), key);
        mutation.partition_deletion(DeletionTime { timestamp, local_deletion_time: 1 });
        mutation.finish()
    }

    #[test]
    fn those_that_come_meanwhile_are_a_group_and_are_told_the_same() {
        let (groups, place) = (CountGroups::default(), place_of(&mutation(0), Consistency::Quorum));
        let count = |group: &Option<CountGroup>| group.as_ref().map(|group| group.mutations.len());
        let (is_first, _alone) = groups.join(&place, mutation(1));
        let alone = groups.take(&place);
        assert_eq!((is_first, count(&alone)), (true, Some(1)));
        let others = [2, 3].map(|timestamp| groups.join(&place, mutation(timestamp)));
        assert!(others.iter().all(|(is_first, _)| !is_first), "the first is counting");
        let together = groups.take(&place);
        assert_eq!(count(&together), Some(2));
        let late = || CoordinatorError::Unavailable { consistency: "QUORUM", required: 2, alive: 1 };
        together.expect("two").tell(Err(late()));
        for (_, outcome) in others {
            let told = outcome.now_or_never().expect("told").expect("by somebody");
            assert_eq!(told.expect_err("too few live").to_string(), late().to_string());
        }
        assert_eq!(count(&groups.take(&place)), None);
        assert!(groups.join(&place, mutation(4)).0, "nobody is counting any more");
    }

    #[test]
    fn other_levels_and_no_more_than_so_many_wait_together() {
        let (groups, [one, other]) = (
            CountGroups::default(),
            [Consistency::One, Consistency::All].map(|level| place_of(&mutation(0), level)),
        );
        let _waiting: Vec<_> =
            (0..=GROUP_MAX).map(|number| groups.join(&one, mutation(number as i64))).collect();
        assert!(groups.join(&other, mutation(0)).0);
        let counts = [(); 3].map(|()| groups.take(&one).map(|group| group.mutations.len()));
        assert_eq!(counts, [Some(GROUP_MAX), Some(1), None]);
    }
}
