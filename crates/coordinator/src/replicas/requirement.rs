//! How many replicas must answer, of which data centres, and whether they have.
//!
//! Cassandra's rules (`ConsistencyLevel.blockFor` and `ReplicaPlans.assureSufficientLiveReplicas` of 5.0): a quorum is
//! of the replication factor and not of the replicas that live; local levels count those of the coordinator's data
//! centre alone; `EACH_QUORUM` wants a quorum of every data centre and tells of the first that lacks it.

use smallvec::{SmallVec, smallvec};

use super::error::ReplicaError;
use crate::Consistency;

/// A number for each data centre of the ring.
pub(crate) type ByCenter = SmallVec<[u32; 4]>;

/// The replication factors of a keyspace, which may be more than there are nodes, as its coordinator sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Factors {
    /// In all.
    pub(crate) total: u32,
    /// In each data centre; `None` for a strategy that knows none, whose local levels are of all.
    pub(crate) of_centers: Option<ByCenter>,
    pub(crate) center_count: usize,
    /// This node's data centre.
    pub(crate) local: usize,
}

/// What an answer to the client takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// So many replicas, wherever they are.
    Anywhere(u32),
    /// So many of this node's data centre.
    Local(u32),
    /// So many of each data centre.
    Each(ByCenter),
}

/// There are too few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) required: u32,
    pub(crate) alive: u32,
}

impl Shortage {
    /// What a client hears of it, when nothing was sent.
    pub(crate) fn unavailable(self, consistency: Consistency) -> ReplicaError {
        let Shortage { required, alive } = self;
        ReplicaError::Unavailable { consistency, required, alive }
    }
}

/// Replicas that have answered, or live, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    of_centers: ByCenter,
    local: usize,
}

impl Factors {
    fn of_local(&self) -> u32 {
        self.of_centers.as_ref().map_or(self.total, |of_centers| of_centers[self.local])
    }
}

fn quorum(factor: u32) -> u32 {
    factor / 2 + 1
}

impl Requirement {
    pub(crate) fn of(level: Consistency, factors: &Factors) -> Requirement {
        match level {
            Consistency::Any | Consistency::One => Requirement::Anywhere(1),
            Consistency::Two => Requirement::Anywhere(2),
            Consistency::Three => Requirement::Anywhere(3),
            Consistency::All => Requirement::Anywhere(factors.total),
            Consistency::Quorum | Consistency::Serial => Requirement::Anywhere(quorum(factors.total)),
            Consistency::LocalOne => Requirement::Local(1),
            Consistency::LocalQuorum | Consistency::LocalSerial => {
                Requirement::Local(quorum(factors.of_local()))
            }
            Consistency::EachQuorum => match &factors.of_centers {
                None => Requirement::Anywhere(quorum(factors.total)),
                // Of a data centre without replicas none is wanted.
                Some(of_centers) => Requirement::Each(
                    of_centers.iter().map(|factor| if *factor == 0 { 0 } else { quorum(*factor) }).collect(),
                ),
            },
        }
    }

    /// Are those that are enough for this one always enough for another one, in a ring of so many data centres?
    pub(crate) fn implies(&self, other: &Requirement, center_count: usize) -> bool {
        match (self, other) {
            (Requirement::Local(count), Requirement::Local(least) | Requirement::Anywhere(least))
            | (Requirement::Anywhere(count), Requirement::Anywhere(least)) => count >= least,
            (Requirement::Anywhere(count), Requirement::Local(least)) => center_count == 1 && count >= least,
            (Requirement::Each(_), Requirement::Anywhere(least)) => self.count() >= *least,
            (Requirement::Each(of_centers), Requirement::Each(least)) => of_centers == least,
            _ => false,
        }
    }

    /// How many replicas that is in all, as clients are told.
    pub(crate) fn count(&self) -> u32 {
        match self {
            Requirement::Anywhere(count) | Requirement::Local(count) => *count,
            Requirement::Each(counts) => counts.iter().sum(),
        }
    }

    /// How many have answered, as clients are told it when these are too few: fewer than [`Requirement::count`] in any
    /// case. Of `EACH_QUORUM`, where one data centre may answer beyond its own quorum, all are counted but so many, as
    /// in Cassandra 5.0 (`DatacenterSyncWriteResponseHandler.ackCount`, `AbstractWriteResponseHandler.throwTimeout`).
    pub(crate) fn received(&self, counted: &Counted) -> u32 {
        let received = match self {
            Requirement::Anywhere(_) | Requirement::Each(_) => counted.total(),
            Requirement::Local(_) => counted.of_local(),
        };
        received.min(self.count().saturating_sub(1))
    }

    /// How many, when it does not matter of which data centre, or all are of this one.
    pub(crate) fn plain_count(&self) -> Option<u32> {
        match self {
            Requirement::Anywhere(count) | Requirement::Local(count) => Some(*count),
            Requirement::Each(_) => None,
        }
    }

    /// Do only replicas of this data centre count?
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Requirement::Local(_))
    }

    /// Would one more of a data centre bring it nearer?
    pub(crate) fn would_gain(&self, counted: &Counted, center: usize) -> bool {
        let mut with = counted.clone();
        with.add(center);
        self.gains(counted, &with)
    }

    /// Does one more of a data centre bring it nearer? A local level gains nothing by others.
    pub(crate) fn gains(&self, before: &Counted, after: &Counted) -> bool {
        match self {
            Requirement::Anywhere(_) => true,
            Requirement::Local(_) => after.of_local() > before.of_local(),
            Requirement::Each(counts) => {
                let reached = |counted: &Counted| -> u32 {
                    counts.iter().zip(&counted.of_centers).map(|(count, has)| *count.min(has)).sum()
                };
                reached(after) > reached(before)
            }
        }
    }

    /// Are there too few of these? Of several data centres the first that lacks some is told.
    pub(crate) fn shortage(&self, counted: &Counted) -> Option<Shortage> {
        let short = |required: u32, alive: u32| (alive < required).then_some(Shortage { required, alive });
        match self {
            Requirement::Anywhere(required) => short(*required, counted.total()),
            Requirement::Local(required) => short(*required, counted.of_local()),
            Requirement::Each(counts) => {
                counts.iter().zip(&counted.of_centers).find_map(|(required, alive)| short(*required, *alive))
            }
        }
    }
}

impl Counted {
    /// None of them yet.
    pub(crate) fn none(factors: &Factors) -> Counted {
        Counted { of_centers: smallvec![0; factors.center_count], local: factors.local }
    }

    /// One more, of the data centre with this index.
    pub(crate) fn add(&mut self, center: usize) {
        self.of_centers[center] += 1;
    }

    /// One less: it does not count after all.
    pub(crate) fn remove(&mut self, center: usize) {
        assert!(self.of_centers[center] > 0, "who does not count any more was counted");
        self.of_centers[center] -= 1;
    }

    /// All of them, as clients are told.
    pub(crate) fn total(&self) -> u32 {
        self.of_centers.iter().sum()
    }

    fn of_local(&self) -> u32 {
        self.of_centers[self.local]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three replicas here, two there, one in a third data centre.
    fn factors() -> Factors {
        Factors { total: 6, of_centers: Some(smallvec![3, 2, 1]), center_count: 3, local: 0 }
    }

    fn counted(of_centers: [u32; 3]) -> Counted {
        let mut counted = Counted::none(&factors());
        for (center, count) in of_centers.into_iter().enumerate() {
            (0..count).for_each(|_| counted.add(center));
        }
        counted
    }

    #[test]
    fn each_level_asks_for_as_many_as_cassandra_does() {
        let of = |level| Requirement::of(level, &factors());
        for (level, count) in [
            (Consistency::Any, 1),
            (Consistency::One, 1),
            (Consistency::Two, 2),
            (Consistency::Three, 3),
            (Consistency::Quorum, 4),
            (Consistency::Serial, 4),
            (Consistency::All, 6),
            (Consistency::LocalOne, 1),
            (Consistency::LocalQuorum, 2),
            (Consistency::LocalSerial, 2),
            (Consistency::EachQuorum, 5),
        ] {
            assert_eq!(of(level).count(), count, "{level:?}");
        }
    }

    #[test]
    fn local_levels_count_no_others() {
        let local = Requirement::of(Consistency::LocalQuorum, &factors());
        assert_eq!(local.shortage(&counted([1, 2, 1])), Some(Shortage { required: 2, alive: 1 }));
        assert_eq!(local.shortage(&counted([2, 0, 0])), None);
        let anywhere = Requirement::of(Consistency::Quorum, &factors());
        assert_eq!(anywhere.shortage(&counted([1, 2, 1])), None);
        assert_eq!(anywhere.shortage(&counted([3, 0, 0])), Some(Shortage { required: 4, alive: 3 }));
    }

    #[test]
    fn a_quorum_of_each_data_centre_is_wanted_and_the_first_that_lacks_it_told() {
        let each = Requirement::of(Consistency::EachQuorum, &factors());
        assert_eq!(each.shortage(&counted([3, 1, 0])), Some(Shortage { required: 2, alive: 1 }));
        assert_eq!(each.shortage(&counted([3, 2, 0])), Some(Shortage { required: 1, alive: 0 }));
        assert_eq!(each.shortage(&counted([2, 2, 1])), None);
    }

    /// A client would else hear of a timeout when as many have answered as must.
    #[test]
    fn what_a_data_centre_answers_beyond_its_quorum_never_makes_too_few_seem_enough() {
        let each = Requirement::of(Consistency::EachQuorum, &factors());
        for (answered, received) in
            [([0, 0, 0], 0), ([3, 0, 0], 3), ([3, 1, 0], 4), ([3, 1, 1], 4), ([3, 2, 0], 4)]
        {
            assert!(each.shortage(&counted(answered)).is_some());
            assert_eq!((each.received(&counted(answered)), each.count()), (received, 5), "{answered:?}");
        }
        let local = Requirement::of(Consistency::LocalQuorum, &factors());
        assert_eq!((local.received(&counted([1, 2, 1])), local.count()), (1, 2), "others do not count");
        let anywhere = Requirement::of(Consistency::Quorum, &factors());
        assert_eq!((anywhere.received(&counted([2, 1, 0])), anywhere.count()), (3, 4));
    }

    #[test]
    fn without_replicas_here_no_local_level_can_be_had() {
        let elsewhere = Factors { total: 3, of_centers: Some(smallvec![3, 0]), center_count: 2, local: 1 };
        let mut counted = Counted::none(&elsewhere);
        (0..3).for_each(|_| counted.add(0));
        for level in [Consistency::LocalOne, Consistency::LocalQuorum] {
            let shortage = Requirement::of(level, &elsewhere).shortage(&counted);
            assert_eq!(shortage, Some(Shortage { required: 1, alive: 0 }), "{level:?}");
        }
        // A quorum of each is wanted of those that have replicas.
        assert_eq!(Requirement::of(Consistency::EachQuorum, &elsewhere).shortage(&counted), None);
    }

    #[test]
    fn a_strategy_without_data_centres_counts_all_for_local_levels() {
        let simple = Factors { total: 3, of_centers: None, center_count: 2, local: 0 };
        assert_eq!(Requirement::of(Consistency::LocalQuorum, &simple), Requirement::Local(2));
        assert_eq!(Requirement::of(Consistency::EachQuorum, &simple), Requirement::Anywhere(2));
    }

    #[test]
    #[should_panic(expected = "who does not count any more was counted")]
    fn nobody_is_taken_out_who_was_not_counted() {
        counted([2, 0, 1]).remove(1);
    }
}
