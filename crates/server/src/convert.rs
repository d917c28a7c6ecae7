//! Between the protocol's words and the query layer's: the same facts, each in its own types, so
//! that neither floor knows the other.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use protocol::{ErrorKind, ErrorResponse, FailureReason, SchemaChangeKind, SchemaTarget};
use query::{
    BatchQuery, BatchStatement, BatchType, BindValue, ChangeTarget, ChangeType, Consistency, QueryError,
    QueryOptions,
};
use schema::{Table, Transformation};
use types::CqlType;
use uuid::Uuid;

/// A consistency level asked for.
pub(crate) fn consistency(level: protocol::Consistency) -> Consistency {
    match level {
        protocol::Consistency::Any => Consistency::Any,
        protocol::Consistency::One => Consistency::One,
        protocol::Consistency::Two => Consistency::Two,
        protocol::Consistency::Three => Consistency::Three,
        protocol::Consistency::Quorum => Consistency::Quorum,
        protocol::Consistency::All => Consistency::All,
        protocol::Consistency::LocalQuorum => Consistency::LocalQuorum,
        protocol::Consistency::EachQuorum => Consistency::EachQuorum,
        protocol::Consistency::Serial => Consistency::Serial,
        protocol::Consistency::LocalSerial => Consistency::LocalSerial,
        // "This node alone", which is what ONE means to a node that asks itself.
        protocol::Consistency::LocalOne | protocol::Consistency::NodeLocal => Consistency::LocalOne,
    }
}

fn consistency_answered(level: Consistency) -> protocol::Consistency {
    match level {
        Consistency::Any => protocol::Consistency::Any,
        Consistency::One => protocol::Consistency::One,
        Consistency::Two => protocol::Consistency::Two,
        Consistency::Three => protocol::Consistency::Three,
        Consistency::Quorum => protocol::Consistency::Quorum,
        Consistency::All => protocol::Consistency::All,
        Consistency::LocalQuorum => protocol::Consistency::LocalQuorum,
        Consistency::EachQuorum => protocol::Consistency::EachQuorum,
        Consistency::Serial => protocol::Consistency::Serial,
        Consistency::LocalSerial => protocol::Consistency::LocalSerial,
        Consistency::LocalOne => protocol::Consistency::LocalOne,
    }
}

fn bind_values(values: &protocol::Values) -> Vec<BindValue> {
    let bind = |index: usize| match values.get(index) {
        Some(protocol::Value::Unset) => BindValue::Unset,
        Some(protocol::Value::Bytes(_)) => values.get_bytes(index).map_or(BindValue::Null, BindValue::Set),
        Some(protocol::Value::Null) | None => BindValue::Null,
    };
    (0..values.len()).map(bind).collect()
}

/// The options of a QUERY, EXECUTE or BATCH.
pub(crate) fn options(parameters: &protocol::QueryParameters) -> QueryOptions {
    let bound = bind_values(&parameters.values);
    let values = match &parameters.names {
        None => query::Values::Positional(bound),
        Some(names) => {
            query::Values::Named(names.iter().map(|name| name.as_str().to_owned()).zip(bound).collect())
        }
    };
    QueryOptions {
        consistency: consistency(parameters.consistency),
        serial_consistency: parameters.serial_consistency.map(consistency),
        values,
        page_size: page_size(parameters.page_size),
        paging_state: parameters.paging_state.clone(),
        timestamp: parameters.timestamp,
        keyspace: parameters.keyspace.as_ref().map(|keyspace| keyspace.as_str().to_owned()),
        now_in_seconds: parameters.now_in_seconds.and_then(|now| i32::try_from(now).ok()),
        operation: None,
    }
}

/// The key of a request's custom payload under which its client gives it an id.
pub(crate) const OPERATION_ID: &str = "operation-id";

/// The id of a request in its custom payload.
pub(crate) fn operation_id(payload: &protocol::CustomPayload) -> Result<Option<Uuid>, ErrorResponse> {
    let Some((_, value)) = payload.iter().find(|(key, _)| key == OPERATION_ID) else { return Ok(None) };
    let id = value.as_deref().and_then(|value| Uuid::from_slice(value).ok());
    let id = id.filter(|id| types::uuid::version(id.as_bytes()) == Some(1));
    let wrong = || {
        let what =
            format!("the custom payload \"{OPERATION_ID}\" must be the 16 bytes of a UUID of version 1");
        ErrorResponse::new(ErrorKind::Invalid, what)
    };
    id.map(Some).ok_or_else(wrong)
}

/// Rows of a page; no pages unless there are any.
pub(crate) fn page_size(size: Option<i32>) -> Option<u32> {
    size.and_then(|size| u32::try_from(size).ok()).filter(|size| *size > 0)
}

/// The kind of a BATCH.
pub(crate) fn batch_type(kind: protocol::BatchKind) -> BatchType {
    match kind {
        protocol::BatchKind::Logged => BatchType::Logged,
        protocol::BatchKind::Unlogged => BatchType::Unlogged,
        protocol::BatchKind::Counter => BatchType::Counter,
    }
}

/// The statements of a BATCH.
pub(crate) fn batch_statements(
    statements: &[protocol::BatchStatement],
) -> Result<Vec<BatchStatement>, ErrorResponse> {
    let statement = |statement: &protocol::BatchStatement| {
        let query = match &statement.query {
            protocol::BatchQuery::Text(text) => BatchQuery::Text(text.as_str().to_owned()),
            protocol::BatchQuery::Prepared(id) => BatchQuery::Prepared(prepared_id(id)?),
        };
        let values = query::Values::Positional(bind_values(&statement.values));
        Ok(BatchStatement { query, values })
    };
    statements.iter().map(statement).collect()
}

/// A prepared id; one of another length than ours is not known.
pub(crate) fn prepared_id(id: &Bytes) -> Result<[u8; 16], ErrorResponse> {
    <[u8; 16]>::try_from(&id[..]).map_err(|_| ErrorResponse::unprepared(id.clone()))
}

/// What a schema change is told as.
pub(crate) fn schema_change(change: query::SchemaChange) -> protocol::SchemaChange {
    let query::SchemaChange { change, target, keyspace, name, arguments: argument_types } = change;
    protocol::SchemaChange {
        change: match change {
            ChangeType::Created => SchemaChangeKind::Created,
            ChangeType::Updated => SchemaChangeKind::Updated,
            ChangeType::Dropped => SchemaChangeKind::Dropped,
        },
        keyspace,
        target: match target {
            ChangeTarget::Keyspace => SchemaTarget::Keyspace,
            ChangeTarget::Table => SchemaTarget::Table(name),
            ChangeTarget::Type => SchemaTarget::Type(name),
            ChangeTarget::Function => SchemaTarget::Function { name, argument_types },
            ChangeTarget::Aggregate => SchemaTarget::Aggregate { name, argument_types },
        },
    }
}

/// A change of the schema that is in force, as clients are told of it, if they are; one that `creates` made something
/// new.
pub(crate) fn transformation(change: Transformation, creates: bool) -> Option<protocol::SchemaChange> {
    let put = if creates { SchemaChangeKind::Created } else { SchemaChangeKind::Updated };
    let of_table = |change, table: &Table| {
        (change, table.keyspace().to_owned(), SchemaTarget::Table(table.name().to_owned()))
    };
    let (change, keyspace, target) = match change {
        Transformation::CreateKeyspace { name, .. } | Transformation::AlterKeyspace { name, .. } => {
            (put, name, SchemaTarget::Keyspace)
        }
        Transformation::DropKeyspace { name } => (SchemaChangeKind::Dropped, name, SchemaTarget::Keyspace),
        Transformation::CreateTable { table } | Transformation::AlterTable { table } => of_table(put, &table),
        Transformation::DropTable { keyspace, name, .. } => {
            (SchemaChangeKind::Dropped, keyspace, SchemaTarget::Table(name))
        }
        Transformation::TruncateTable { .. } => return None,
        Transformation::PutType { cql_type } => match cql_type {
            CqlType::UserDefined { definition, .. } => {
                (put, definition.keyspace.clone(), SchemaTarget::Type(definition.name.clone()))
            }
            other => unreachable!("{other} would not have come into force"),
        },
        Transformation::DropType { keyspace, name } => {
            (SchemaChangeKind::Dropped, keyspace, SchemaTarget::Type(name))
        }
    };
    Some(protocol::SchemaChange { change, keyspace, target })
}

/// The one place where errors become codes of the protocol.
pub(crate) fn error(error: QueryError) -> ErrorResponse {
    let message = error.to_string();
    let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    let kind = match error {
        QueryError::Syntax(_) => ErrorKind::Syntax,
        QueryError::Invalid(_) => ErrorKind::Invalid,
        QueryError::Config(_) => ErrorKind::Config,
        QueryError::AlreadyExists { keyspace, table, .. } => ErrorKind::AlreadyExists { keyspace, table },
        QueryError::Unauthorized(_) => ErrorKind::Unauthorized,
        QueryError::Unprepared { id } => ErrorKind::Unprepared { id: Bytes::copy_from_slice(&id) },
        QueryError::Overloaded(_) => ErrorKind::Overloaded,
        QueryError::Truncate(_) => ErrorKind::Truncate,
        QueryError::Protocol(_) => ErrorKind::Protocol,
        QueryError::Server(_) | QueryError::ShuttingDown => ErrorKind::Server,
        QueryError::Unavailable { consistency, required, alive } => ErrorKind::Unavailable {
            consistency: consistency_answered(consistency),
            required: count(required),
            alive: count(alive),
        },
        QueryError::WriteTimeout { consistency, received, block_for, write_type } => {
            ErrorKind::WriteTimeout {
                consistency: consistency_answered(consistency),
                received: count(received),
                block_for: count(block_for),
                write_type: write_type_answered(write_type),
                contentions: None,
            }
        }
        QueryError::CasWriteTimeout { consistency, received, block_for } => ErrorKind::WriteTimeout {
            consistency: consistency_answered(consistency),
            received: count(received),
            block_for: count(block_for),
            write_type: protocol::WriteType::Cas,
            contentions: Some(0),
        },
        QueryError::CasWriteUnknown { consistency, received, block_for } => ErrorKind::CasWriteUnknown {
            consistency: consistency_answered(consistency),
            received: count(received),
            block_for: count(block_for),
        },
        QueryError::ReadTimeout { consistency, received, block_for, data_present } => {
            ErrorKind::ReadTimeout {
                consistency: consistency_answered(consistency),
                received: count(received),
                block_for: count(block_for),
                data_present,
            }
        }
        QueryError::ReadFailure { consistency, replicas, .. } => ErrorKind::ReadFailure {
            consistency: consistency_answered(consistency),
            received: count(replicas.received),
            block_for: count(replicas.block_for),
            failures: failures(&replicas),
            data_present: replicas.received > 0,
        },
        QueryError::TooManyTombstones(failure) => ErrorKind::ReadFailure {
            consistency: consistency_answered(failure.consistency),
            received: count(failure.replicas.received),
            block_for: count(failure.replicas.block_for),
            failures: failures(&failure.replicas),
            data_present: failure.replicas.received > 0,
        },
        QueryError::WriteFailure { consistency, write_type, replicas, .. } => ErrorKind::WriteFailure {
            consistency: consistency_answered(consistency),
            received: count(replicas.received),
            block_for: count(replicas.block_for),
            failures: failures(&replicas),
            write_type: write_type_answered(write_type),
        },
        QueryError::FunctionFailure { keyspace, function, argument_types, .. } => {
            ErrorKind::FunctionFailure { keyspace, function, argument_types }
        }
    };
    ErrorResponse::new(kind, message)
}

fn write_type_answered(write_type: query::WriteType) -> protocol::WriteType {
    match write_type {
        query::WriteType::Simple => protocol::WriteType::Simple,
        query::WriteType::Batch => protocol::WriteType::Batch,
        query::WriteType::UnloggedBatch => protocol::WriteType::UnloggedBatch,
        query::WriteType::BatchLog => protocol::WriteType::BatchLog,
        query::WriteType::Cas => protocol::WriteType::Cas,
        query::WriteType::Counter => protocol::WriteType::Counter,
    }
}

fn failures(replicas: &query::FailedReplicas) -> Vec<(IpAddr, FailureReason)> {
    let told = |replica: &query::FailedReplica| {
        let address = replica.address.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip());
        let reason = match replica.reason {
            query::FailureReason::Unknown => FailureReason::Unknown,
            query::FailureReason::ReadTooManyTombstones => FailureReason::ReadTooManyTombstones,
        };
        (address, reason)
    };
    replicas.failed.iter().map(told).collect()
}

/// Columns as the protocol tells them.
pub(crate) fn columns(columns: &[query::ColumnSpec]) -> Vec<protocol::ColumnSpec> {
    let column = |column: &query::ColumnSpec| protocol::ColumnSpec {
        keyspace: column.keyspace.clone(),
        table: column.table.clone(),
        name: column.name.clone(),
        cql_type: column.cql_type.clone(),
    };
    columns.iter().map(column).collect()
}
