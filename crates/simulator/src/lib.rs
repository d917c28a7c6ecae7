//! A whole node in one thread, under a seed, on a disk that forgets what was not synced.
//!
//! The parts that make it possible are in `runtime`: the node reaches time, randomness, disk and
//! background work through one door, and here that door leads to virtual ones. A [`Machine`] lives
//! several lives on one disk, each ended by its [`Fate`]: killed, or without power at any moment.
//!
//! What makes a run repeat: one thread, tokio's paused time, seeded delays and disk images. What
//! would break it: a `HashMap` whose order decides anything, an unbiased `tokio::select!`, several who wait on one
//! `tokio::sync::watch` (it wakes them in a random order; `runtime::Latest` does not), a thread.
//!
//! | a reader asks | file |
//! |---|---|
//! | how does a machine live and die? | `machine.rs` |
//! | which tables are there? | `world.rs` |
//! | what do clients do? | `workload.rs` |
//! | what must they see? | `model.rs` |
//! | what goes wrong with the disk? | `gremlin.rs` |
//! | how does a run go? | `scenario.rs`, [`simulate`] |
//! | how does a life of the node go? | `life/` |
//! | how do nodes serve clients? | `served/` |
//! | how do nodes talk to each other? | `peers/` |
//! | how do nodes keep rows together? | `replicated/` |
//! | what goes wrong between nodes? | `turmoil.rs`, `faults.rs` |
//! | how do nodes agree? | `raft/` |
//! | how does a ring of whole nodes serve clients? | `ring/` |
//! | what may those be told who count together? | `score.rs`, `ledger.rs`, `tallies.rs` |
//! | which ways did requests take? | `ways.rs` |

mod dice;
mod events;
mod faults;
mod gremlin;
mod ledger;
mod life;
mod machine;
mod model;
mod node;
mod panics;
mod peers;
mod raft;
mod replicated;
mod ring;
mod scenario;
mod score;
mod served;
mod shown;
mod stage;
mod tallies;
mod turmoil;
mod ways;
mod workload;
mod world;

pub use events::Events;
pub use faults::{Fault, Scale};
pub use machine::{Fate, Machine, MachineOptions};
pub use peers::simulate_peers;
pub use raft::simulate_raft;
pub use replicated::simulate_replicated;
pub use ring::{simulate_failover, simulate_ring, simulate_rivals};
pub use scenario::{Outcome, Violation, simulate};
pub use served::simulate_served;
pub use ways::{Way, Ways};
