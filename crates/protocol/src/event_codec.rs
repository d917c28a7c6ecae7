//! Events and schema changes to bytes and back.

use bytes::BytesMut;

use crate::wire::{Put, Reader};
use crate::{
    Event, EventKind, ProtocolError, SchemaChange, SchemaChangeKind, SchemaTarget, StatusChangeKind,
    TopologyChangeKind, Version,
};

/// Wire names of an enum's variants.
trait Named: Copy + 'static {
    const NAMES: &'static [(Self, &'static str)];
    /// What Cassandra calls the enum in errors.
    const WHAT: &'static str;

    fn read(reader: &mut Reader) -> Result<Self, ProtocolError> {
        let name = reader.text()?;
        let found = Self::NAMES.iter().find(|(_, known)| name == *known).map(|(variant, _)| *variant);
        found.ok_or_else(|| ProtocolError::UnknownName { value: name.to_string(), what: Self::WHAT })
    }
}

impl Named for TopologyChangeKind {
    const NAMES: &'static [(TopologyChangeKind, &'static str)] = &[
        (TopologyChangeKind::NewNode, "NEW_NODE"),
        (TopologyChangeKind::RemovedNode, "REMOVED_NODE"),
        (TopologyChangeKind::MovedNode, "MOVED_NODE"),
    ];
    const WHAT: &'static str = "Change";
}

impl Named for StatusChangeKind {
    const NAMES: &'static [(StatusChangeKind, &'static str)] =
        &[(StatusChangeKind::Up, "UP"), (StatusChangeKind::Down, "DOWN")];
    const WHAT: &'static str = "Status";
}

impl Named for SchemaChangeKind {
    const NAMES: &'static [(SchemaChangeKind, &'static str)] = &[
        (SchemaChangeKind::Created, "CREATED"),
        (SchemaChangeKind::Updated, "UPDATED"),
        (SchemaChangeKind::Dropped, "DROPPED"),
    ];
    const WHAT: &'static str = "Change";
}

fn name_of<T: Named + PartialEq>(variant: T) -> &'static str {
    T::NAMES.iter().find(|(known, _)| *known == variant).map_or("", |(_, name)| name)
}

impl Event {
    pub(crate) fn encode(&self, out: &mut BytesMut, version: Version) {
        out.put_text(self.kind().name());
        match self {
            Event::TopologyChange { change, node } => {
                out.put_text(name_of(*change));
                out.put_socket_address(*node);
            }
            Event::StatusChange { change, node } => {
                out.put_text(name_of(*change));
                out.put_socket_address(*node);
            }
            Event::SchemaChange(change) => change.encode(out, version),
        }
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Event, ProtocolError> {
        let name = reader.text()?;
        match EventKind::from_name(name.as_str()) {
            Some(EventKind::TopologyChange) => Ok(Event::TopologyChange {
                change: TopologyChangeKind::read(reader)?,
                node: reader.socket_address()?,
            }),
            Some(EventKind::StatusChange) => Ok(Event::StatusChange {
                change: StatusChangeKind::read(reader)?,
                node: reader.socket_address()?,
            }),
            Some(EventKind::SchemaChange) => Ok(Event::SchemaChange(SchemaChange::decode(reader)?)),
            None => Err(ProtocolError::UnknownName { value: name.to_string(), what: "Type" }),
        }
    }
}

impl SchemaChange {
    pub(crate) fn encode(&self, out: &mut BytesMut, version: Version) {
        let put_head = |out: &mut BytesMut, change: SchemaChangeKind, target: &str| {
            out.put_text(name_of(change));
            out.put_text(target);
            out.put_text(&self.keyspace);
        };
        match &self.target {
            SchemaTarget::Keyspace => put_head(out, self.change, "KEYSPACE"),
            SchemaTarget::Table(name) => {
                put_head(out, self.change, "TABLE");
                out.put_text(name);
            }
            SchemaTarget::Type(name) => {
                put_head(out, self.change, "TYPE");
                out.put_text(name);
            }
            // Version 3 has no functions: the keyspace changed (with an empty name after it, as
            // Cassandra writes it).
            SchemaTarget::Function { .. } | SchemaTarget::Aggregate { .. } if version < Version::V4 => {
                put_head(out, SchemaChangeKind::Updated, "KEYSPACE");
                out.put_text("");
            }
            SchemaTarget::Function { name, argument_types } => {
                put_head(out, self.change, "FUNCTION");
                out.put_text(name);
                out.put_string_list(argument_types);
            }
            SchemaTarget::Aggregate { name, argument_types } => {
                put_head(out, self.change, "AGGREGATE");
                out.put_text(name);
                out.put_string_list(argument_types);
            }
        }
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<SchemaChange, ProtocolError> {
        let change = SchemaChangeKind::read(reader)?;
        let target_name = reader.text()?;
        let keyspace = reader.string()?;
        let target = match target_name.as_str() {
            "KEYSPACE" => SchemaTarget::Keyspace,
            "TABLE" => SchemaTarget::Table(reader.string()?),
            "TYPE" => SchemaTarget::Type(reader.string()?),
            "FUNCTION" => {
                SchemaTarget::Function { name: reader.string()?, argument_types: reader.string_list()? }
            }
            "AGGREGATE" => {
                SchemaTarget::Aggregate { name: reader.string()?, argument_types: reader.string_list()? }
            }
            name => return Err(ProtocolError::UnknownName { value: name.to_owned(), what: "Target" }),
        };
        Ok(SchemaChange { change, keyspace, target })
    }
}
