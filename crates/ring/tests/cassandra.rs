//! What Cassandra's own strategies answered (see `vectors/Placements.java`), held against our placements.

use std::sync::Arc;

use ring::{Grid, Node, NodeIndex, Placement, Strategy, Topology};
use types::Token;
use uuid::Uuid;

const GRID: Grid = Grid::COARSEST;

fn slots(list: &str) -> impl Iterator<Item = usize> {
    list.split(',').filter(|number| !number.is_empty()).map(|number| number.parse().expect("a number"))
}

/// A node like `dc1/r2:17,980`.
fn node(number: u128, text: &str) -> Node {
    let (site, tokens) = text.split_once(':').expect("a node");
    let (data_center, rack) = site.split_once('/').expect("a site");
    let tokens: Vec<Token> = slots(tokens).map(|slot| GRID.last_token(slot)).collect();
    let host_id = Uuid::from_u128(number);
    Node { host_id, data_center: data_center.into(), rack: rack.into(), num_tokens: 1, tokens }
}

/// A strategy like `dc1=3,dc2=2`, or `*=3`.
fn strategy(text: &str) -> Strategy {
    let factor = |text: &str| text.parse().expect("a factor");
    if let Some(simple) = text.strip_prefix("*=") {
        return Strategy::Simple { factor: factor(simple) };
    }
    let factors = text.split(',').filter_map(|pair| pair.split_once('='));
    Strategy::NetworkTopology {
        factors: factors.map(|(center, text)| (center.into(), factor(text))).collect(),
    }
}

#[test]
fn replicas_are_cassandras_in_its_order() {
    let mut answers_seen = 0;
    for line in include_str!("vectors/placements.tsv").lines() {
        let [ring, strategy_text, answers] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line} has three fields");
        };
        let nodes = ring.split(' ').zip(0..).map(|(text, number)| node(number, text)).collect();
        let topology = Arc::new(Topology::new(GRID, nodes).expect("a ring"));
        let placement = Placement::new(topology, &strategy(strategy_text), NodeIndex(0));
        for answer in answers.split(' ') {
            let (slot, replicas) = answer.split_once(':').expect("an answer");
            let token = GRID.last_token(slot.parse().expect("a slot"));
            let ours: Vec<usize> = placement.replicas_of(token).iter().map(|node| node.as_usize()).collect();
            assert_eq!(ours, slots(replicas).collect::<Vec<_>>(), "{ring} {strategy_text} slot {slot}");
            answers_seen += 1;
        }
    }
    assert!(answers_seen > 2_000, "{answers_seen}");
}
