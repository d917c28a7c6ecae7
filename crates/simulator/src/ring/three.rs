//! A ring of three small nodes in one data centre, with a table on all of them, which a test steps by hand.

use protocol::{Consistency, Response};
use tokio::time::timeout;

use super::visitor::Visitor;
use super::*;

/// Such a ring, and a client that asks any node.
pub(super) struct Three {
    pub(super) world: Rc<World>,
    pub(super) visitor: Visitor,
}

impl Three {
    /// Runs a story in one.
    pub(super) fn run(plant: Option<Plant>, story: impl AsyncFnOnce(Three)) {
        let plan = |seed: &u64| Plan::roll(&Dice::new(*seed, 0, 8_000), Cast::ALL);
        let is_small = |plan: &Plan| plan.nodes.len() == 3 && plan.factors.are_of_one_center();
        let seed = (1..).find(|seed| is_small(&plan(seed))).expect("there are many");
        in_paused_time(async {
            let world = Rc::new(World::new(seed, plan(&seed), plant));
            let playing = async {
                (0..3).for_each(|node| world.stage.hosts.start(node, node::live(Rc::clone(&world), node, 1)));
                timeout(settle::BOUND, settle::all_serve(&world)).await.expect("they find each other");
                let three = Three { world: Rc::clone(&world), visitor: Visitor::new(&world, 50) };
                let keyspace = "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}";
                three.make(&[keyspace, "CREATE TABLE shop.carts (k int PRIMARY KEY, v int)"]).await;
                story(three).await;
            };
            world.stage.hosts.run_beside(playing).await;
            world.stage.hosts.clear();
            world.forget_lives();
        });
    }

    /// Changes the schema.
    pub(super) async fn make(&self, texts: &[&str]) {
        for text in texts {
            let made = self.ask(0, text, Consistency::One).await;
            assert!(matches!(made, Response::SchemaChange(_)), "{made:?}");
        }
    }

    pub(super) async fn ask(&self, node: usize, text: &str, level: Consistency) -> Response {
        self.visitor.ask(node, text, level).await.expect("an answer")
    }
}
