//! A node of a ring that is stopped in order, also when it can not start.

use std::sync::Arc;

use server::LocalServer;
use tokio::sync::oneshot;

use super::*;

/// A world of three nodes.
fn of_three() -> Rc<World> {
    let plan = |seed: &u64| Plan::roll(&Dice::new(*seed, 0, 8_000), Cast::ALL);
    let seed = (1..).find(|seed| plan(seed).nodes.len() == 3).expect("there are many");
    Rc::new(World::new(seed, plan(&seed), None))
}

/// Shards of the try that had failed went on in the directory of the next one, and both wrote to one manifest.
#[test]
fn a_node_that_can_not_start_leaves_nothing_behind() {
    in_paused_time(async {
        let world = of_three();
        let last = {
            let world = Rc::clone(&world);
            async move {
                while world.lives.borrow()[..2].iter().any(Option::is_none) {
                    sleep(Duration::from_millis(50)).await;
                }
                let runtime = node::runtime_of(&world, 2, 1);
                let options = || world.plan.options(2, &world.places);
                let mut in_place_of_the_living = options();
                // Each shard has it, and each log.
                let holder_count = || Arc::strong_count(&runtime.random);
                let before = holder_count();
                let ring = in_place_of_the_living.ring.as_mut().expect("it has a ring");
                ring.replaces = Some(world.places.internode(1));
                let refused = LocalServer::start(&runtime, in_place_of_the_living).await.err();
                let why = refused.expect("the place is taken").to_string();
                assert!(why.contains("is alive, and keeps its place"), "{why}");
                sleep(Duration::from_secs(1)).await;
                assert_eq!(holder_count(), before, "something of it lives");
                let server = LocalServer::start(&runtime, options()).await.expect("it starts");
                server.stop(true).await.expect("it stops");
                sleep(Duration::from_secs(1)).await;
                assert_eq!(holder_count(), before, "something of it lives");
            }
        };
        (0..2).for_each(|node| world.stage.hosts.start(node, node::live(Rc::clone(&world), node, 1)));
        let (done, is_done) = oneshot::channel::<()>();
        world.stage.hosts.start(2, async move {
            last.await;
            _ = done.send(());
        });
        world.stage.hosts.run_beside(async { is_done.await.expect("it comes to its end") }).await;
        world.stage.hosts.clear();
        world.forget_lives();
    });
}

/// The others took it to live for a second more, and asked it in vain.
#[test]
fn a_node_that_is_stopped_is_down_at_once() {
    in_paused_time(async {
        let world = of_three();
        let (stop, stopped) = oneshot::channel::<()>();
        let last = {
            let world = Rc::clone(&world);
            async move {
                let options = world.plan.options(2, &world.places);
                let server = LocalServer::start(&node::runtime_of(&world, 2, 1), options).await;
                let server = server.expect("it starts");
                world.lives.borrow_mut()[2] = server.ring().cloned();
                _ = stopped.await;
                server.stop(false).await.expect("it stops");
            }
        };
        (0..2).for_each(|node| world.stage.hosts.start(node, node::live(Rc::clone(&world), node, 1)));
        world.stage.hosts.start(2, last);
        let playing = async {
            timeout(settle::BOUND, settle::all_serve(&world)).await.expect("they find each other");
            sleep(Duration::from_secs(2)).await;
            let others = [0, 1].map(|node| world.lives.borrow()[node].clone().expect("it serves"));
            let host_id = world.lives.borrow()[2].as_ref().expect("it serves").host_id();
            let hears = |known: &Known| known.other(host_id).is_alive();
            assert!(others.iter().all(hears));
            stop.send(()).expect("it serves");
            sleep(cluster::membership::SILENCE / 4).await;
            assert!(!others.iter().any(hears), "they were told");
        };
        world.stage.hosts.run_beside(playing).await;
        world.stage.hosts.clear();
        world.forget_lives();
    });
}
