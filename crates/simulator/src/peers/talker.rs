//! A node that does nothing but ask others and answer them.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use messaging::{AskError, Established, Node, Peer, PeerOptions, Purpose, Request, Service, accept, answer};
use runtime::SeededRandom;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use super::identity::{Me, address, host_id, listening};
use super::ledger::Told;
use super::{NODE_COUNT, World};
use crate::dice::Dice;

/// Requests of one node that wait at the same time.
const TALKER_COUNT: u64 = 8;

/// A life of a node.
pub(crate) struct Life {
    node: usize,
    incarnation: u64,
    dice: Dice,
    /// To each node; the one to itself is never used.
    peers: Vec<Peer>,
}

/// Lives until it is killed.
pub(crate) async fn live(world: Rc<World>, node: usize, incarnation: u64) {
    let me: Rc<dyn Node> = Rc::new(Me { node, incarnation, shard_count: 1 });
    let seed = world.seed.wrapping_mul(31).wrapping_add(incarnation << 8 | node as u64);
    let random = Arc::new(SeededRandom::new(seed));
    let network = world.network.host(address(node));
    let peers: Vec<Peer> = (0..NODE_COUNT).map(|other| Peer::new(options(other), me.clone())).collect();
    let dice = Dice::new(world.seed, incarnation, 5_000 + node as u64);
    let life = Rc::new(Life { node, incarnation, dice, peers });
    world.lives.borrow_mut()[node] = Some(life.clone());
    for (other, peer) in life.peers.iter().enumerate().filter(|(other, _)| *other != node) {
        let world = world.clone();
        let ended = move |error| world.note(format_args!("{node} to {other}: {error}"));
        spawn_local(peer.clone().run(network.clone(), random.clone(), me.clone(), ended));
    }
    for _ in 0..TALKER_COUNT {
        spawn_local(talk(world.clone(), life.clone()));
    }
    let listener = network.bind(listening(node), 1).expect("nobody else lives there").remove(0);
    let listener = listener.open().expect("it is in memory");
    let service = Rc::new(Answers { world, life });
    while let Ok((stream, _)) = listener.accept().await {
        let (me, service, random) = (me.clone(), service.clone(), random.clone());
        spawn_local(async move {
            if let Ok(met) = accept(stream, &*me, &*random).await {
                answer(met, me, service).await;
            }
        });
    }
}

fn options(other: usize) -> PeerOptions {
    PeerOptions {
        address: listening(other),
        host_id: Some(host_id(other)),
        purpose: Purpose::Shard { from: 0, to: 0 },
        unsent_bytes_max: 1 << 20,
        asked_count_max: 100,
    }
}

/// Asks somebody, again and again.
async fn talk(world: Rc<World>, life: Rc<Life>) {
    loop {
        sleep(Duration::from_micros(life.dice.between(1, 300_000))).await;
        let other = life.dice.below(NODE_COUNT);
        if other != life.node {
            life.ask(&world, other).await;
        }
    }
}

impl Life {
    /// Asks another node something of its own, and tells the ledger what came of it.
    pub(crate) async fn ask(&self, world: &World, other: usize) -> Told {
        let number = world.ledger.borrow_mut().number();
        let patience = Duration::from_millis(self.dice.between(1, 4_000));
        let body_bytes = 8 + self.dice.below(if self.dice.one_in(20) { 300_000 } else { 200 });
        let asked = self.peers[other].ask(patience, |out| {
            out.extend_from_slice(&number.to_be_bytes());
            out.resize(out.len() + body_bytes - 8, number as u8);
        });
        let told = match timeout(patience, asked.expect("no longer than it may be")).await {
            Err(_) => Told::GivenUp,
            Ok(Err(AskError::NotSent)) => Told::NotSent,
            Ok(Err(AskError::Broken | AskError::Declined)) => Told::Lost,
            Ok(Ok(answer)) if answer[..] == number.to_be_bytes() => Told::Answered,
            Ok(Ok(_)) => Told::Wrong,
        };
        world.ledger.borrow_mut().told(number, told);
        let Life { node, incarnation, .. } = self;
        world.note(format_args!("{node}.{incarnation} asked {other} {number}, {body_bytes} bytes: {told:?}"));
        told
    }
}

struct Answers {
    world: Rc<World>,
    life: Rc<Life>,
}

impl Service for Answers {
    fn request(&self, from: &Established, request: Request) {
        let number = *request.body.first_chunk().expect("a number");
        self.world.ledger.borrow_mut().came(u64::from_be_bytes(number));
        let Life { node, incarnation, .. } = *self.life;
        let number_came = u64::from_be_bytes(number);
        self.world
            .note(format_args!("{node}.{incarnation} got {number_came} from {}", from.host_id.as_u128() - 1));
        match self.life.dice.below(10) {
            0 => {}
            1..=4 => {
                let delay = Duration::from_micros(self.life.dice.between(1, 1_000_000));
                spawn_local(async move {
                    sleep(delay).await;
                    request.answer(|out| out.extend_from_slice(&number)).expect("short");
                });
            }
            _ => request.answer(|out| out.extend_from_slice(&number)).expect("short"),
        }
    }

    fn notice(&self, _from: &Established, _body: Bytes) {}
}
