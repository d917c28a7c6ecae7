//! What a fault costs clients, in simulated time: three nodes under an open load of half of what they can bear.
//!
//! No node has a processor here, so what it can bear is made up: it takes in what others send it one after the other,
//! each packet and each byte of it for so long ([`TOLL`]). What three nodes then bear is measured by a closed load, and
//! half of that is offered: as many reads as writes of single rows at `QUORUM`, three replicas, clients that ask all
//! nodes in turns, each of which is a replica. A driver leaves a node out whose connections break. Requests to the node
//! that is hit are counted apart: whoever asked it waits for it.
//!
//! ```text
//!   closed load ─► what they bear ─► half of it ─┬─ kill ─────────► worst 100 ms, and again when it is back
//!                                                ├─ stands still ─► reads of 99%
//!                                                ├─ cut off ──────► the same
//!                                                ├─ away for 60 s ► what it has missed is sent, and all are equal
//!                                                └─ back at once ─► what others may have missed of its writes is sent
//!   conditional changes alone ───────────────────── kill ─────────► the longest time without one of a partition
//! ```
//!
//! The timer of paused time ticks once a millisecond, so no figure is finer.
//!
//! | a reader asks | file |
//! |---|---|
//! | who sends, and what is noted? | `load.rs` |
//! | what do the notes say? | `figures.rs` |
//! | what befalls a node? | `scenes.rs`, `agreed.rs` |

mod agreed;
mod figures;
mod load;
mod scenes;

use std::rc::Rc;
use std::time::Duration;

use runtime::Plant;
use runtime::network::memory::Toll;
use tokio::time::timeout;

use super::plan::Plan;
use super::{World, node, settle};
use crate::peers::identity::address;
use crate::scenario::{Outcome, Violation};
use crate::stage::in_paused_time;
use load::Load;

/// How long a node is busy with what comes to it.
const TOLL: Toll = Toll {
    packet: Duration::from_micros(100),
    byte: Duration::from_micros(1),
    bulk_byte: Duration::from_nanos(50),
};

/// Runs all scenes under one seed, with a fault planted in every node or without. The figures are the lines of its log;
/// one that misses its bound is a violation.
pub fn simulate_failover(seed: u64, plant: Option<Plant>) -> Outcome {
    in_paused_time(async {
        let world = Rc::new(World::new(seed, Plan::steady(), plant));
        let playing = async {
            begin(&world).await?;
            let load = Load::begin(&world).await?;
            scenes::play(&world, &load).await
        };
        let outcome = world.stage.hosts.run_beside(playing).await;
        world.forget_lives();
        world.stage.close(outcome)
    })
}

/// Starts all nodes, and waits until they serve.
async fn begin(world: &Rc<World>) -> Result<(), Violation> {
    for number in 0..world.node_count() {
        world.stage.network.charge(address(number), TOLL);
        start(world, number, 1);
    }
    let all_serve = timeout(settle::BOUND, settle::all_serve(world)).await;
    all_serve.map_err(|_| Violation::new("the nodes do not come together"))
}

fn start(world: &Rc<World>, number: usize, incarnation: u64) {
    world.stage.hosts.start(number, node::live(Rc::clone(world), number, incarnation));
}
