//! A node of a ring that is stopped in order.

use server::LocalServer;
use tokio::sync::oneshot;

use super::*;

/// The others took it to live for a second more, and asked it in vain.
#[test]
fn a_node_that_is_stopped_is_down_at_once() {
    let plan = |seed: &u64| Plan::roll(&Dice::new(*seed, 0, 8_000));
    let seed = (1..).find(|seed| plan(seed).nodes.len() == 3).expect("there are many");
    in_paused_time(async {
        let world = Rc::new(World::new(seed, plan(&seed), None));
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
