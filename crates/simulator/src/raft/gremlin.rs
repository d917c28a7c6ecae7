//! What goes wrong: links, disks, processes, power.

use std::rc::Rc;
use std::time::Duration;

use runtime::memory_disk::{Fault, Operation};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use super::{NODE_COUNT, World, life};
use crate::dice::Dice;
use crate::peers::identity::address;

/// Faults go on for so long.
const FAULTS_FOR: Duration = Duration::from_secs(20);

/// Works until its time is over.
pub(super) async fn work(world: &Rc<World>) {
    let dice = world.dice(2);
    let begun = Instant::now();
    while begun.elapsed() < FAULTS_FOR {
        sleep(Duration::from_millis(dice.between(1, 1_200))).await;
        for node in 0..NODE_COUNT {
            if !world.hosts.is_alive(node) && dice.below(10) < 6 {
                life::start_again(world, node, &dice);
            }
        }
        let length = Duration::from_millis(dice.between(50, 2_500));
        let (node, other) = (dice.below(NODE_COUNT), dice.below(NODE_COUNT));
        let others = || (0..NODE_COUNT).filter(move |other| *other != node);
        match dice.below(11) {
            0 => cut(world, vec![(node, other)], length),
            1 => cut(world, others().flat_map(|other| [(node, other), (other, node)]).collect(), length),
            2 => cut(world, others().map(|other| (node, other)).collect(), length),
            3 => cut(world, others().map(|other| (other, node)).collect(), length),
            4 => {
                world.note(format_args!("reset between {node} and {other}"));
                world.network.reset(address(node), address(other));
            }
            5 | 6 => kill(world, node).await,
            7 | 8 if world.hosts.is_alive(node) => {
                let change_count = dice.between(0, 40);
                world.note(format_args!("power of {node} goes after {change_count} changes"));
                world.hosts.disk(node).faults().power_off_after(change_count);
            }
            9 if world.hosts.is_alive(node) => fail_disk(world, node, &dice),
            10 if dice.one_in(4) => {
                for node in 0..NODE_COUNT {
                    if world.hosts.is_alive(node) {
                        world.hosts.disk(node).faults().power_off_after(0);
                        kill(world, node).await;
                    }
                }
            }
            _ => {}
        }
    }
}

async fn kill(world: &World, node: usize) {
    if world.hosts.is_alive(node) {
        world.note(format_args!("{node} is killed"));
        world.hosts.kill(node).await;
        world.lives.borrow_mut()[node] = None;
    }
}

fn fail_disk(world: &World, node: usize, dice: &Dice) {
    let operation = *dice.pick(&[Operation::Sync, Operation::Write, Operation::Create]);
    let fault = *dice.pick(&[Fault::InputOutput, Fault::NoSpace, Fault::ShortWrite { written_bytes: 7 }]);
    world.note(format_args!("{operation:?} of {node} fails: {fault:?}"));
    world.hosts.disk(node).faults().fail_all(Some(operation), fault);
}

/// Cuts these links for a while.
fn cut(world: &Rc<World>, links: Vec<(usize, usize)>, length: Duration) {
    world.note(format_args!("cut {links:?} for {length:?}"));
    for (from, to) in &links {
        world.network.cut(address(*from), address(*to));
    }
    let world = Rc::clone(world);
    spawn_local(async move {
        sleep(length).await;
        for (from, to) in &links {
            world.network.heal(address(*from), address(*to));
        }
    });
}

/// Ends all faults. Who is dead starts again, from a disk that lost its power.
pub(super) fn end_all(world: &Rc<World>) {
    world.note("calm");
    world.is_calm.set(true);
    let dice = world.dice(3);
    for node in 0..NODE_COUNT {
        (0..NODE_COUNT).for_each(|other| world.network.heal(address(node), address(other)));
        world.hosts.disk(node).faults().clear();
        if !world.hosts.is_alive(node) {
            life::start_again(world, node, &dice);
        }
    }
}
