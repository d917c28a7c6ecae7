//! A truncation is whole or never happened, wherever the power goes.

use coordinator::Consistency;
use read::{ReadCommand, ReadTarget};
use rows::{Clustering, DeletionTime, Liveness, MutationBuilder, RingRange, RowBuilder};
use runtime::MemoryDisk;

use super::*;
use crate::world::{CLIENT_COUNT, KEYS_PER_CLIENT, KEYSPACE, NARROW};
use crate::{Fate, Machine, MachineOptions};

const KEY_COUNT: usize = CLIENT_COUNT * KEYS_PER_CLIENT;

async fn start(runtime: &Runtime) -> SimulatedNode {
    let setup = Setup { shard_count: 3, ..Setup::roll(&Dice::new(1, 1, 1)) };
    SimulatedNode::start(runtime, &setup).await.expect("starts").0
}

async fn fill(runtime: Runtime) {
    let coordinator = start(&runtime).await.coordinator(0);
    let table = coordinator.schema().table(KEYSPACE, NARROW).expect("is there").id();
    for number in 0..KEY_COUNT {
        let row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(1), DeletionTime::LIVE).finish();
        let mut mutation = MutationBuilder::new(table, world::key(0, number));
        mutation.row(row);
        coordinator.write(vec![mutation.finish()], Consistency::One).await.expect("writes");
    }
}

/// Did it end before the power went, after so many changes of the disk?
async fn truncate(runtime: Runtime, disk: MemoryDisk, change_count: u64) -> bool {
    let coordinator = start(&runtime).await.coordinator(1);
    let table = coordinator.schema().table(KEYSPACE, NARROW).expect("is there").id();
    disk.faults().power_off_after(change_count);
    coordinator.truncate(table).await.is_ok()
}

async fn count(runtime: Runtime) -> usize {
    let coordinator = start(&runtime).await.coordinator(2);
    let schema = coordinator.schema();
    let table = schema.table(KEYSPACE, NARROW).expect("is there").clone();
    let command = ReadCommand::new(table, ReadTarget::Range(RingRange::ALL), coordinator.now_seconds());
    coordinator.read(&command, Consistency::One).await.expect("reads").partitions.len()
}

#[test]
fn a_truncation_is_whole_or_absent_wherever_the_power_goes() {
    let (mut whole, mut absent) = (0, 0);
    for change_count in (0..).step_by(3) {
        let mut machine = Machine::new(7, MachineOptions::default());
        machine.live(Fate::LiveOn, fill).expect("lived on");
        let disk = machine.disk().clone();
        let fate = Fate::PowerCutAfterChanges(u64::MAX);
        let truncated = machine.live(fate, |runtime| truncate(runtime, disk, change_count));
        match machine.live(Fate::LiveOn, count).expect("lived on") {
            0 => whole += 1,
            KEY_COUNT if truncated != Some(true) => absent += 1,
            count => panic!("{count} of {KEY_COUNT} rows, cut at change {change_count}: {truncated:?}"),
        }
        if truncated == Some(true) {
            break;
        }
    }
    assert!(whole > 1 && absent > 0, "{whole} whole, {absent} absent: the cuts are elsewhere");
}
