//! After the faults: all members come together, and nothing that was acknowledged is missing.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::{CLIENT_COUNT, NODE_COUNT, World, clients, life};
use crate::peers::identity::host_id;
use crate::scenario::Violation;

/// Within this time: the longest pause of a connection, the time to make one, and elections.
pub(super) const BOUND: Duration = Duration::from_secs(25);

/// Sees that all members take commands, and show all that was acknowledged.
pub(super) async fn settle(world: &Rc<World>) -> Result<(), Violation> {
    let begun = Instant::now();
    let together = timeout(BOUND, come_together(world)).await;
    world.note(format_args!("together after {:?}", begun.elapsed()));
    together.map_err(|_| Violation::new("members do not come together"))
}

/// Until every member takes a command and answers all clients' reads.
async fn come_together(world: &Rc<World>) {
    let dice = world.dice(4);
    let mut number = 0;
    loop {
        for node in 0..NODE_COUNT {
            // An old fault may have ended it just before the calm.
            if !world.hosts.is_alive(node) {
                life::start_again(world, node, &dice);
            }
        }
        sleep(Duration::from_millis(20)).await;
        let Some(members) = members(world).await else { continue };
        let mut is_together = !members.is_empty();
        for member in &members {
            number += 1;
            is_together = is_together && clients::send(world, *member, (CLIENT_COUNT + 1, number)).await;
            for client in 1..=CLIENT_COUNT {
                is_together = is_together && clients::read(world, *member, client).await;
            }
        }
        if is_together {
            return;
        }
    }
}

/// The members, as the leader knows them.
async fn members(world: &World) -> Option<Vec<usize>> {
    let mut latest: Option<(u64, BTreeSet<Uuid>)> = None;
    for node in 0..NODE_COUNT {
        let standing = world.on(node, async |agreement| agreement.standing()).await;
        let Some(standing) = standing.filter(|standing| standing.leader == Some(host_id(node))) else {
            continue;
        };
        if latest.as_ref().is_none_or(|(term, _)| *term < standing.term) {
            latest = Some((standing.term, &standing.voters | &standing.learners));
        }
    }
    let (_, ids) = latest?;
    Some((0..NODE_COUNT).filter(|node| ids.contains(&host_id(*node))).collect())
}
