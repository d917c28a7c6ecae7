//! Events a client can register for, and schema changes, which are results too.

use std::net::SocketAddr;

/// What a client can REGISTER for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Nodes joining and leaving.
    TopologyChange,
    /// Nodes going up and down.
    StatusChange,
    /// Definitions created, altered and dropped.
    SchemaChange,
}

impl EventKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::TopologyChange => "TOPOLOGY_CHANGE",
            EventKind::StatusChange => "STATUS_CHANGE",
            EventKind::SchemaChange => "SCHEMA_CHANGE",
        }
    }

    /// The kind of a wire name (in any case, as Cassandra takes it).
    pub fn from_name(name: &str) -> Option<EventKind> {
        let kinds = [EventKind::TopologyChange, EventKind::StatusChange, EventKind::SchemaChange];
        kinds.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

/// An event sent to registered connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node joined, left or moved.
    TopologyChange {
        /// What happened.
        change: TopologyChangeKind,
        /// The node's address for clients.
        node: SocketAddr,
    },
    /// A node went up or down.
    StatusChange {
        /// What happened.
        change: StatusChangeKind,
        /// The node's address for clients.
        node: SocketAddr,
    },
    /// A definition changed.
    SchemaChange(SchemaChange),
}

impl Event {
    /// Which registration it belongs to.
    pub fn kind(&self) -> EventKind {
        match self {
            Event::TopologyChange { .. } => EventKind::TopologyChange,
            Event::StatusChange { .. } => EventKind::StatusChange,
            Event::SchemaChange(_) => EventKind::SchemaChange,
        }
    }
}

/// What happened to a node's membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TopologyChangeKind {
    /// It joined.
    NewNode,
    /// It left.
    RemovedNode,
    /// It owns other tokens.
    MovedNode,
}

/// What happened to a node's liveness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusChangeKind {
    /// It is up.
    Up,
    /// It is down.
    Down,
}

/// A change of a definition: the result of a DDL statement, and an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// What happened.
    pub change: SchemaChangeKind,
    /// The keyspace it happened in, or to.
    pub keyspace: String,
    /// To what.
    pub target: SchemaTarget,
}

/// What happened to a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaChangeKind {
    /// It is new.
    Created,
    /// It is different.
    Updated,
    /// It is gone.
    Dropped,
}

/// What a schema change is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaTarget {
    /// The keyspace itself.
    Keyspace,
    /// A table or view, by name. An index changes its base table.
    Table(String),
    /// A user-defined type, by name.
    Type(String),
    /// A function.
    Function {
        /// Its name.
        name: String,
        /// CQL names of its argument types.
        argument_types: Vec<String>,
    },
    /// An aggregate.
    Aggregate {
        /// Its name.
        name: String,
        /// CQL names of its argument types.
        argument_types: Vec<String>,
    },
}
