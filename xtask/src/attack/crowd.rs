//! Thousands of connections, each with up to a thousand requests outstanding.

use super::arena::Arena;
use crate::crash::Dice;
use crate::crowd::{Asks, Crowd};
use crate::kernel::files_max;
use crate::lab::{Load, Pace};
use crate::report::Failure;

/// Words for `peristyle serve`: all of the crowd comes from one address.
pub(super) const WORDS: &[&str] = &["--connections-max", "11000", "--connections-max-per-address", "11000"];

const KEYSPACE: &str = "crowd";
const ROWS: u64 = 10_000;
const WINDOW: u64 = 1_000;
/// Files that are open beside the sockets of the crowd.
const FILES_SPARE: u64 = 200;

/// The most, and what a node with little memory is asked to hold, as far as this process may open files.
fn connections(arena: &Arena) -> u64 {
    let files = files_max().unwrap_or(1024).saturating_sub(FILES_SPARE);
    (arena.memory_bytes >> 20).saturating_mul(20).min(10_000).min(files)
}

/// Writes the rows that the crowd reads.
pub(super) fn fill(arena: &Arena) -> Result<(), Failure> {
    let load = Load::new("rows", &arena.address, Pace::InFlight(1)).with("keyspace", KEYSPACE);
    load.with("rows", ROWS).with("replication-factor", arena.replicas).fill().map(|_| ())
}

/// Has the crowd ask until the attack is over.
pub(super) fn act(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let crowd = Crowd {
        address: &arena.address,
        keyspace: KEYSPACE,
        row_count: ROWS,
        connections: connections(arena),
        window: WINDOW,
        asks: Asks::Reads,
        takes_answers: dice.between(0, 4) != 0,
    };
    // A node that ends, or takes no more connections, ends the crowd, too: others judge that.
    let _ = crowd.act(|| arena.is_over());
    Ok(crowd.connections)
}
