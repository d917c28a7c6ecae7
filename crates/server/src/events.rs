//! Events for clients that registered: one channel for the node, one receiver for each of them.
//!
//! A lone node tells of what its statements change. In a ring a task tells of all that happens there, also of changes
//! that another node was asked for; so a statement tells nothing besides.

use std::collections::HashSet;

use cluster::membership::Event as RingEvent;
use protocol::{Event, SchemaChange, StatusChangeKind, TopologyChangeKind};
use tokio::sync::{broadcast, mpsc};

use crate::convert;

/// Events a client may lag behind before it loses some.
const EVENTS_KEPT: usize = 1024;

/// Sends events to all registered connections of the node, on whichever shard they are.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    sender: broadcast::Sender<Event>,
    /// Does a task tell of what happens in a ring?
    follow_ring: bool,
}

impl Events {
    pub(crate) fn new(follow_ring: bool) -> Self {
        Events { sender: broadcast::channel(EVENTS_KEPT).0, follow_ring }
    }

    /// A statement on this node has changed the schema.
    pub(crate) fn changed_here(&self, change: &SchemaChange) {
        if !self.follow_ring {
            self.publish(Event::SchemaChange(change.clone()));
        }
    }

    fn publish(&self, event: Event) {
        // Nobody registered is no error.
        _ = self.sender.send(event);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.sender.subscribe()
    }
}

/// Tells of what happens in the ring, as long as the node takes part in it.
pub(crate) async fn follow_ring(events: Events, mut told: mpsc::UnboundedReceiver<RingEvent>) {
    // Drivers connect to a node as soon as they hear of it: it is new to them when it serves.
    let mut joined = HashSet::new();
    while let Some(event) = told.recv().await {
        let status = |change, node| Event::StatusChange { change, node };
        match event {
            RingEvent::Joined(node) => _ = joined.insert(node),
            // Who never served was never told of.
            RingEvent::Left(node) if joined.remove(&node) => {}
            RingEvent::Left(node) => {
                events.publish(Event::TopologyChange { change: TopologyChangeKind::RemovedNode, node });
            }
            RingEvent::Up(node) => {
                if joined.remove(&node) {
                    events.publish(Event::TopologyChange { change: TopologyChangeKind::NewNode, node });
                }
                events.publish(status(StatusChangeKind::Up, node));
            }
            RingEvent::Down(node) => events.publish(status(StatusChangeKind::Down, node)),
            RingEvent::SchemaChanged { change, creates } => {
                if let Some(change) = convert::transformation(*change, creates) {
                    events.publish(Event::SchemaChange(change));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use protocol::{SchemaChangeKind, SchemaTarget};
    use schema::{Replication, TableId, Transformation};
    use types::CqlType;
    use uuid::Uuid;

    use super::*;

    /// What clients of a node hear when that happens in its ring.
    fn heard(told: Vec<RingEvent>) -> Vec<Event> {
        let events = Events::new(true);
        let mut heard = events.subscribe();
        let (tell, listener) = mpsc::unbounded_channel();
        told.into_iter().for_each(|event| tell.send(event).expect("somebody listens"));
        drop(tell);
        runtime::block_on(follow_ring(events, listener));
        std::iter::from_fn(|| heard.try_recv().ok()).collect()
    }

    #[test]
    fn a_node_is_new_when_it_serves_and_not_before() {
        let [a, b] = [1, 2].map(|number| SocketAddr::from(([127, 0, 0, number], 9042)));
        let told = vec![RingEvent::Joined(a), RingEvent::Up(b), RingEvent::Up(a), RingEvent::Down(a)];
        let up = |node| Event::StatusChange { change: StatusChangeKind::Up, node };
        let new = Event::TopologyChange { change: TopologyChangeKind::NewNode, node: a };
        let down = Event::StatusChange { change: StatusChangeKind::Down, node: a };
        assert_eq!(heard(told), [up(b), new, up(a), down]);
        assert!(heard(vec![RingEvent::Joined(a)]).is_empty());
    }

    #[test]
    fn a_node_that_is_elsewhere_now_is_removed_and_new_when_it_serves_there() {
        let [a, b] = [1, 2].map(|number| SocketAddr::from(([127, 0, 0, number], 9042)));
        let told = vec![RingEvent::Left(a), RingEvent::Joined(b), RingEvent::Up(b)];
        let of = |change, node| Event::TopologyChange { change, node };
        let (removed, new) = (of(TopologyChangeKind::RemovedNode, a), of(TopologyChangeKind::NewNode, b));
        assert_eq!(
            heard(told),
            [removed, new, Event::StatusChange { change: StatusChangeKind::Up, node: b }]
        );
        assert!(heard(vec![RingEvent::Joined(a), RingEvent::Left(a)]).is_empty());
    }

    #[test]
    fn changes_of_the_schema_are_told_as_the_statements_are_answered() {
        let name = || "n".to_owned();
        let keyspace = || "k".to_owned();
        let replication = Replication { class: String::new(), options: Default::default() };
        let definition = types::UserType { keyspace: keyspace(), name: name(), fields: Vec::new() };
        let put = Transformation::PutType {
            cql_type: CqlType::UserDefined { definition: definition.into(), frozen: true },
        };
        let changes = [
            (
                Transformation::CreateKeyspace { name: keyspace(), replication, durable_writes: true },
                true,
                (SchemaChangeKind::Created, SchemaTarget::Keyspace),
            ),
            (
                Transformation::DropTable { keyspace: keyspace(), name: name(), id: TableId(Uuid::nil()) },
                false,
                (SchemaChangeKind::Dropped, SchemaTarget::Table(name())),
            ),
            (put.clone(), true, (SchemaChangeKind::Created, SchemaTarget::Type(name()))),
            (put, false, (SchemaChangeKind::Updated, SchemaTarget::Type(name()))),
        ];
        for (change, creates, (expected, target)) in changes {
            let told = vec![RingEvent::SchemaChanged { change: Box::new(change), creates }];
            let expected = SchemaChange { change: expected, keyspace: keyspace(), target };
            assert_eq!(heard(told), [Event::SchemaChange(expected)]);
        }
    }

    #[test]
    fn a_statement_is_told_of_once() {
        let change = SchemaChange {
            change: SchemaChangeKind::Dropped,
            keyspace: "k".into(),
            target: SchemaTarget::Keyspace,
        };
        for (follow_ring, count) in [(false, 1), (true, 0)] {
            let events = Events::new(follow_ring);
            let heard = events.subscribe();
            events.changed_here(&change);
            assert_eq!(heard.len(), count);
        }
    }
}
