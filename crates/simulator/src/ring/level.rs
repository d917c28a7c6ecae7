//! Which replicas a consistency level means, of one data centre or of two.

use protocol::Consistency;

use super::table::Table;

/// Those that clients use.
const LEVELS: [Consistency; 5] =
    [Consistency::One, Consistency::Two, Consistency::Quorum, Consistency::LocalQuorum, Consistency::All];
/// And where there are two data centres.
const LEVELS_OF_TWO: [Consistency; 7] = [
    Consistency::One,
    Consistency::Two,
    Consistency::Quorum,
    Consistency::LocalQuorum,
    Consistency::EachQuorum,
    Consistency::EachQuorum,
    Consistency::All,
];

/// How many replicas a keyspace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Factors {
    total: usize,
    /// In each data centre; `None` where a strategy knows none.
    of_centers: Option<[usize; 2]>,
}

/// A level, as it is asked for through a node of this data centre.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) level: Consistency,
    pub(crate) center: usize,
}

/// So many replicas at least, of all and of each data centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reach {
    total: usize,
    of_centers: [usize; 2],
}

impl Factors {
    pub(crate) fn simple(total: usize) -> Factors {
        Factors { total, of_centers: None }
    }

    pub(crate) fn of_centers(of_centers: [usize; 2]) -> Factors {
        Factors { total: of_centers.iter().sum(), of_centers: Some(of_centers) }
    }

    /// Those of a table, where these are those of the keyspace of several replicas.
    pub(crate) fn of(self, table: Table) -> Factors {
        if table == Table::Single { Factors::simple(1) } else { self }
    }

    /// Are all replicas in the first data centre, and all nodes?
    pub(crate) fn are_of_one_center(self) -> bool {
        self.of_centers.is_none_or(|[_, second]| second == 0)
    }

    /// How many are in the first data centre.
    pub(crate) fn of_first_center(self) -> usize {
        self.of_centers.map_or(self.total, |[first, _]| first)
    }

    /// Levels that clients use.
    pub(crate) fn levels(self) -> &'static [Consistency] {
        match self.of_centers {
            Some([_, second]) if second > 0 => &LEVELS_OF_TWO,
            _ => &LEVELS,
        }
    }
}

fn quorum(factor: usize) -> usize {
    factor / 2 + 1
}

impl At {
    /// What has answered when it is met.
    pub(crate) fn reach(self, factors: Factors) -> Reach {
        let anywhere = |total| Reach { total, of_centers: [0; 2] };
        let of_centers = |of_centers: [usize; 2]| Reach { total: of_centers.iter().sum(), of_centers };
        match (self.level, factors.of_centers) {
            (Consistency::One, _) => anywhere(1),
            (Consistency::Two, _) => anywhere(2),
            (Consistency::All, _) => anywhere(factors.total),
            (Consistency::LocalQuorum, Some(factors)) => {
                let mut counts = [0; 2];
                counts[self.center] = quorum(factors[self.center]);
                of_centers(counts)
            }
            (Consistency::EachQuorum, Some(factors)) => {
                of_centers(factors.map(|factor| if factor == 0 { 0 } else { quorum(factor) }))
            }
            (Consistency::Quorum | Consistency::LocalQuorum | Consistency::EachQuorum, _) => {
                anywhere(quorum(factors.total))
            }
            (other, _) => unreachable!("{other:?} is none of theirs"),
        }
    }
}

impl Reach {
    /// Are there so many?
    pub(crate) fn is_within(self, factors: Factors) -> bool {
        let of_centers = factors.of_centers.unwrap_or([factors.total; 2]);
        self.total <= factors.total && self.of_centers.iter().zip(of_centers).all(|(reach, of)| *reach <= of)
    }

    /// Are there several?
    pub(crate) fn is_of_several(self) -> bool {
        self.total > 1
    }

    /// Whatever replicas these are: is one of both?
    pub(crate) fn meets(self, other: Reach, factors: Factors) -> bool {
        let is_met = |center: usize| {
            let factor = factors.of_centers.map_or(factors.total, |of_centers| of_centers[center]);
            self.of_centers[center] + other.of_centers[center] > factor
        };
        self.total + other.total > factors.total || is_met(0) || is_met(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_levels_meet_where_any_replicas_of_both_have_one_in_common() {
        let factors = Factors::of_centers([3, 2]);
        let reach = |level, center| At { level, center }.reach(factors);
        let (each, quorum) = (reach(Consistency::EachQuorum, 0), reach(Consistency::Quorum, 0));
        let [here, there] = [0, 1].map(|center| reach(Consistency::LocalQuorum, center));
        for (one, other, meet) in [
            (each, here, true),
            (each, there, true),
            (each, quorum, true),
            (here, here, true),
            (here, there, false),
            (here, quorum, false),
            (quorum, quorum, true),
            (each, reach(Consistency::One, 0), false),
            (reach(Consistency::All, 0), reach(Consistency::One, 1), true),
        ] {
            assert_eq!(
                (one.meets(other, factors), other.meets(one, factors)),
                (meet, meet),
                "{one:?} {other:?}"
            );
        }
        let local = Factors::of_centers([3, 0]);
        let elsewhere = At { level: Consistency::LocalQuorum, center: 1 }.reach(local);
        assert!(here.is_within(factors) && !elsewhere.is_within(local), "there are no replicas");
    }
}
