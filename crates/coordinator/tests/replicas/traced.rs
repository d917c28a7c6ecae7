//! A trace tells what other nodes have done, each in its own words and times.

use std::net::SocketAddr;

use runtime::trace::{Trace, TraceEvent, carry};

use super::*;

/// What was done, by which node.
fn told(events: &[TraceEvent]) -> Vec<(usize, &str)> {
    let node = |address: SocketAddr| (0..3).find(|node| super::address(*node) == address).expect("a node");
    events.iter().map(|event| (event.node.map_or(0, node), event.activity.as_str())).collect()
}

/// The steps of one node that begin in these ways stand there in this order, among others.
#[track_caller]
fn check(events: &[TraceEvent], node: usize, expected: &[&str]) {
    let mut told = told(events).into_iter().filter(|(of, _)| *of == node).map(|(_, activity)| activity);
    for start in expected {
        assert!(told.any(|activity| activity.starts_with(start)), "{start} of {node}: {events:#?}");
    }
}

fn trace(ring: &Ring) -> (Trace, runtime::trace::Steps) {
    Trace::start(ring.nodes[0].0.handles()[0].local().runtime())
}

#[test]
fn a_trace_has_the_steps_of_all_nodes_that_had_a_part_in_the_answer() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        let (writing, mut steps) = trace(&ring);
        carry(Some(writing), ring.write(0, 1, "v", Consistency::All)).await.expect("all are there");
        let events = steps.so_far();
        for node in [1, 2] {
            let at = address(node);
            let sent = format!("Sending MUTATION_REQ message to /{at} message size ");
            let came = format!("MUTATION_RSP message received from /{at}");
            check(&events, 0, &[&sent, &came]);
            let of_replica = [
                "MUTATION_REQ message received from ",
                "Appending to commitlog",
                "Adding to t memtable",
                "Enqueuing MUTATION_RSP response to ",
            ];
            check(&events, node, &of_replica);
        }
        assert_eq!(steps.next().await, None, "nobody is at work any more");

        let (reading, mut steps) = trace(&ring);
        let read = carry(Some(reading), ring.read(0, 1, Consistency::All)).await.expect("all are there");
        assert_eq!(read.as_deref(), Some("v"));
        let events = steps.so_far();
        check(&events, 0, &["Executing single-partition query on t"]);
        for node in [1, 2] {
            check(&events, 0, &["Sending READ_REQ message to ", "READ_RSP message received from "]);
            let of_replica = [
                "READ_REQ message received from ",
                "Executing single-partition query on t",
                "Read 1 live rows",
                "Enqueuing READ_RSP response to ",
            ];
            check(&events, node, &of_replica);
        }
    });
}

#[test]
fn what_a_replica_does_behind_the_answer_comes_later() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        let (writing, mut steps) = trace(&ring);
        carry(Some(writing), ring.write(0, 1, "v", Consistency::One)).await.expect("it is there itself");
        let mut events = steps.so_far();
        assert!(events.iter().all(|event| event.node.is_none()), "nothing has come yet: {events:#?}");
        while let Some(event) = steps.next().await {
            events.push(event);
        }
        [1, 2].iter().for_each(|node| check(&events, *node, &["Adding to t memtable"]));
    });
}

#[test]
fn who_does_not_answer_is_told_and_a_request_without_a_trace_asks_for_none() {
    run(async {
        let ring = Ring::start(3, &["dc1"], None).await;
        ring.cut_off(2);
        let (writing, mut steps) = trace(&ring);
        carry(Some(writing), ring.write(0, 1, "v", Consistency::Quorum)).await.expect("two of three");
        ring.lose(2).await;
        let events = steps.so_far();
        check(&events, 0, &[&format!("No MUTATION_RSP from /{}", address(2))]);
        assert!(told(&events).iter().all(|(node, _)| *node != 2), "it has told nothing: {events:#?}");

        let (idle, mut steps) = trace(&ring);
        ring.write(0, 1, "w", Consistency::Quorum).await.expect("two of three");
        drop(idle);
        assert_eq!(steps.next().await, None);
    });
}
