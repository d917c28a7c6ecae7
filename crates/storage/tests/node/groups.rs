//! What is there of a group of writes when the power goes off on its way?

use std::collections::BTreeSet;

use runtime::{MemoryDisk, Plant};

use storage::Unit;

use crate::given::*;

/// Writes of a group, as large as several segments of the log: the disk changes at many moments of it.
const WRITES: usize = 12;
const VALUE_BYTES: usize = 10 << 10;

/// What came of a group that was cut off.
struct CutOff {
    /// Writes that were acknowledged, and are not there.
    lost: Vec<i32>,
    /// Writes that are there, though nothing was said to be written of them.
    unexpected: Vec<i32>,
    acknowledged_count: usize,
}

/// Shard 0 sends a group to shard 1, and the power goes off after so many changes of the disk.
fn cut_off_after(change_count: u64, plant: Option<Plant>) -> CutOff {
    let disk = MemoryDisk::new();
    let (pks, written) = run(async {
        let node = Node::start_with(&disk, options(2), |runtime| {
            plant.into_iter().for_each(|plant| runtime.plants.plant(plant));
        });
        let node = node.expect("starts");
        let (sender, owner) = (&node.shards.handles()[0], 1);
        let of_owner = |pk: &i32| sender.shards().owner(key(*pk).token) == owner;
        let pks: Vec<i32> = (0..).filter(of_owner).take(WRITES).collect();
        let value = "v".repeat(VALUE_BYTES);
        let group = pks.iter().map(|pk| insert(&table(), *pk, 0, &value, 1)).collect();
        disk.faults().power_off_after(change_count);
        (pks, sender.write_units(owner, None, Unit::Each, group).await)
    });
    let found: BTreeSet<i32> = run(async {
        let node = Node::start(&disk.crash(change_count), options(2)).expect("starts after a power cut");
        node.all(&table(), 100).await.into_iter().map(|(pk, ..)| pk).collect()
    });
    let of_indexes = |wanted: &dyn Fn(usize) -> bool| {
        let pks = pks.iter().enumerate().filter(|(index, _)| wanted(*index));
        pks.map(|(_, pk)| *pk).collect::<BTreeSet<i32>>()
    };
    let acknowledged = of_indexes(&|index| written.done.contains(index));
    let not_written = of_indexes(&|index| !written.done.union(written.doubtful).contains(index));
    CutOff {
        lost: acknowledged.difference(&found).copied().collect(),
        unexpected: not_written.intersection(&found).copied().collect(),
        acknowledged_count: acknowledged.len(),
    }
}

#[test]
fn of_a_group_that_is_cut_off_what_was_acknowledged_is_there_and_what_was_not_written_is_not() {
    for change_count in 0.. {
        let cut = cut_off_after(change_count, None);
        assert_eq!((cut.lost, cut.unexpected), (vec![], vec![]), "after {change_count} changes");
        if cut.acknowledged_count == WRITES {
            assert!(change_count > 1, "some were cut off: {change_count}");
            return;
        }
    }
}

#[test]
fn a_group_that_is_acknowledged_too_early_is_found() {
    for plant in [Plant::GroupLost, Plant::UnsyncedAcknowledgement] {
        assert!(!cut_off_after(0, Some(plant)).lost.is_empty(), "{plant:?}");
    }
}
