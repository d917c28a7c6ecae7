//! Clients: each sends numbers of its own, through any node, and reads them again.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use cluster::raft::AgreementError;
use tokio::time::sleep;
use uuid::Uuid;

use super::checker::Name;
use super::{NODE_COUNT, World, register};

/// Works until the faults end.
pub(super) async fn work(world: Rc<World>, client: u64) {
    let dice = world.dice(10 + client);
    let mut number = 0;
    while !world.is_calm.get() {
        sleep(Duration::from_micros(dice.between(1, 80_000))).await;
        let node = dice.below(NODE_COUNT);
        if dice.below(10) < 7 {
            number += 1;
            send(&world, node, (client, number)).await;
        } else {
            read(&world, node, client).await;
        }
    }
}

/// Sends a number through a node. Was it acknowledged?
pub(super) async fn send(world: &World, node: usize, name: Name) -> bool {
    let (client, number) = name;
    let id = Uuid::from_u64_pair(client, number);
    let command = register::command(client, number);
    let told = world.on(node, async move |agreement| agreement.propose(id, command).await).await;
    world.note(format_args!("{client} sent {number} through {node}: {told:?}"));
    let mut checker = world.checker.borrow_mut();
    match told {
        Some(Ok(answer)) => {
            let index = index_of(&answer);
            checker.acknowledged(name, index);
            return true;
        }
        // The node died, or nobody knows.
        None | Some(Err(AgreementError::InDoubt | AgreementError::Ended)) => {}
        Some(Err(_)) => checker.refused(name),
    }
    false
}

fn index_of(answer: &Bytes) -> u64 {
    u64::from_be_bytes(answer[..].try_into().expect("what the register answers"))
}

/// Reads a client's number through a node: nothing may be missing that the client was told before.
pub(super) async fn read(world: &World, node: usize, client: u64) -> bool {
    let before = world.checker.borrow().last_acknowledged(client);
    let found = world
        .on(node, async move |agreement| {
            agreement.catch_up().await?;
            Ok::<u64, AgreementError>(agreement.look(|register| register.number(client)))
        })
        .await;
    world.note(format_args!("{client} read through {node}: {found:?}"));
    let Some(Ok(found)) = found else { return false };
    if found < before {
        let what = format!("client {client} read {found} through {node}, and was told of {before} before");
        world.checker.borrow_mut().wrong(what);
    }
    true
}
