//! The cast of a run of a ring.

use std::time::Duration;

use crate::dice::Dice;

/// Numbers of those who work: clients are the first, then operators, then rivals.
pub(crate) const CLIENT_COUNT: u8 = 5;
pub(crate) const OPERATOR_COUNT: u8 = 2;
pub(crate) const FIRST_RIVAL: u8 = CLIENT_COUNT + OPERATOR_COUNT;

/// Who works in a run, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    /// Are there clients that own keys, and operators that do more than make tables and empty them?
    pub(crate) has_all: bool,
    pub(crate) rival_count: u8,
    /// The longest pause of a rival between two bursts.
    pub(crate) rival_pause_max: Duration,
    /// Does one of them only look?
    pub(crate) has_watcher: bool,
    /// Do nodes that see the same ring choose different replicas to decide about a partition, as those do for a while
    /// that see different ones?
    pub(crate) do_deciders_differ: bool,
    /// Do rivals agree in one data centre, the first, through its nodes?
    pub(crate) is_local: bool,
    /// There are so many storms of faults at least.
    pub(crate) storm_count: u64,
    /// A run goes on until so much was done.
    pub(crate) operation_count_min: u64,
    /// And for so long, before its faults end.
    pub(crate) time_min: Duration,
}

impl Cast {
    /// Clients, operators and a few rivals.
    pub(crate) const ALL: Cast = Cast {
        has_all: true,
        rival_count: 3,
        rival_pause_max: Duration::from_secs(2),
        has_watcher: false,
        do_deciders_differ: false,
        is_local: false,
        storm_count: 5,
        operation_count_min: 5_000,
        time_min: Duration::from_secs(60),
    };

    /// Nobody but rivals, who are more and in a hurry.
    pub(crate) fn of_rivals(dice: &Dice) -> Cast {
        Cast {
            has_all: false,
            rival_count: dice.between(3, 6) as u8,
            rival_pause_max: Duration::from_millis(*dice.pick(&[5, 50, 500])),
            has_watcher: dice.one_in(2),
            do_deciders_differ: dice.one_in(2),
            is_local: dice.one_in(4),
            storm_count: 3,
            operation_count_min: 1_000,
            time_min: Duration::from_secs(20),
        }
    }
}
