//! Orders failures of the disk while a life goes on.
//!
//! Reads do not fail here: a node that cannot read its own files has nothing to answer, and says so.

use std::time::Duration;

use runtime::MemoryDisk;
use runtime::memory_disk::{Fault, Operation};

use crate::dice::Dice;

/// Now and then lets a change of the disk fail, for as long as it is polled.
pub(crate) async fn make_trouble(disk: MemoryDisk, dice: Dice) {
    let operations =
        [Operation::Write, Operation::Sync, Operation::Create, Operation::Remove, Operation::Rename];
    loop {
        tokio::time::sleep(Duration::from_millis(dice.between(1, 1_500))).await;
        let written_bytes = dice.below(3_000);
        let faults =
            [Fault::InputOutput, Fault::NoSpace, Fault::NoSpace, Fault::ShortWrite { written_bytes }];
        let fault = *dice.pick(&faults);
        if dice.one_in(6) {
            // The disk is full for a while.
            disk.faults().fail_all(Some(Operation::Create), Fault::NoSpace);
            tokio::time::sleep(Duration::from_millis(dice.between(1, 4_000))).await;
            disk.faults().clear();
        } else {
            disk.faults().fail_nth(Some(*dice.pick(&operations)), dice.below(6) as u64, fault);
        }
    }
}
