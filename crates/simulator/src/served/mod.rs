//! Nodes that serve clients, all in one thread: sockets, frames, statements, shards, logs and files as in production.
//!
//! ```text
//!  127.0.1.n  clients ── frames ──► MemoryNetwork ── frames ──► 127.0.0.n nodes
//!                │                  latency, cuts, resets            │  each with its own tasks, disk,
//!                ▼                                                   ▼  clock and random numbers
//!              model: what each read may show              killed by being dropped, started again
//! ```
//!
//! Every node has clients of its own. They send what drivers send: prepared and plain statements, batches, many at a
//! time on a connection, pages. The model knows of each register which values a read may show: a write is *sure* once
//! it was acknowledged, and *doubtful* before, and for ever if its connection broke. Timestamps are the clients' own,
//! as drivers give them, so that the order of a client's writes is known whatever becomes of them.
//!
//! | a reader asks | file |
//! |---|---|
//! | how do several nodes live in one thread? | `hosts.rs` |
//! | how does a node live and die? | `tenant.rs`, `plan.rs`, `fuse.rs` |
//! | what is done to its schema, and when it is idle? | `operator.rs` |
//! | what is done to it while it serves? | `manager.rs`, `spoiler.rs`, `flaky_disk.rs` |
//! | what do clients do? | `client.rs`, `statement.rs`, `connection.rs` |
//! | who counts together, by conditions and in counters? | `rivals.rs` |
//! | what may they see? | `model.rs`, `expiry.rs`, `shown.rs` |
//! | which ways did requests take? | `../ways.rs` |

mod client;
mod connection;
mod expiry;
mod flaky_disk;
mod fuse;
mod hosts;
mod manager;
mod model;
mod operator;
mod plan;
mod rivals;
mod shown;
mod spoiler;
mod statement;
mod tables;
mod tenant;

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use runtime::network::memory::MemoryNetworkOptions;
use runtime::{MemoryNetwork, Plant};

use crate::Events;
use crate::dice::Dice;
use crate::faults::Scale;
use crate::scenario::{Outcome, Violation};
use crate::stage::in_paused_time;
use crate::ways::Ways;
pub(crate) use client::Ended;
pub(crate) use connection::{Connection, PreparedIds};
pub(crate) use hosts::Hosts;
pub(crate) use statement::{Bound, packed, spelled};
use tenant::Tenant;

/// Nodes of a run at the most.
const NODE_COUNT_MAX: u64 = 3;

/// What all parts of a run share.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) hosts: Hosts,
    pub(crate) network: MemoryNetwork,
    pub(crate) events: RefCell<Events>,
    pub(crate) ways: Ways,
    /// What is wrong with the nodes.
    pub(crate) plant: Option<Plant>,
}

impl World {
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        self.events.borrow_mut().add(line);
    }
}

/// Where a node is: as far as its management port knows, on the machine of whoever asks.
pub(crate) fn node_address(node: usize) -> IpAddr {
    address(0, node)
}

/// Where the clients of a node are.
pub(crate) fn clients_address(node: usize) -> IpAddr {
    address(1, node)
}

fn address(net: u8, number: usize) -> IpAddr {
    let last = u8::try_from(number + 1).expect("a handful of hosts");
    IpAddr::V4(Ipv4Addr::new(127, 0, net, last))
}

/// Runs one seed, and tells which ways its requests took. With a fault planted in its nodes it ought to find it.
pub fn simulate_served(seed: u64, plant: Option<Plant>) -> (Outcome, Ways) {
    let dice = Dice::new(seed, 0, 3_000);
    let options = MemoryNetworkOptions {
        latency_max: Duration::from_micros(dice.between(50, 5_000)),
        window_bytes: *dice.pick(&[2_000, 20_000, 256 << 10]),
        ..MemoryNetworkOptions::default()
    };
    let node_count = dice.between(1, NODE_COUNT_MAX) as usize;
    let world = Rc::new(World {
        seed,
        hosts: Hosts::new(node_count),
        network: MemoryNetwork::new(seed, options),
        events: RefCell::default(),
        ways: Ways::default(),
        plant,
    });
    let violation = run(&world, node_count).err();
    let events = world.events.borrow().clone();
    (Outcome { seed, violation, events, scale: Scale::default() }, world.ways.clone())
}

fn run(world: &Rc<World>, node_count: usize) -> Result<(), Violation> {
    let tenants = (0..node_count).map(|node| Tenant::new(Rc::clone(world), node));
    let tenants: Vec<_> = tenants.map(|tenant| async move { tenant.live().await }).collect();
    let all = async { futures_util::future::join_all(tenants).await.into_iter().collect() };
    let outcome = in_paused_time(world.hosts.run_beside(all));
    world.hosts.clear();
    outcome
}
