//! Strategies for every message, and what is left of a message in a version that cannot say it all.
#![allow(dead_code, reason = "each test crate uses its part")]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use protocol::*;
use types::{CqlType, UserType};
use uuid::Uuid;

fn text() -> impl Strategy<Value = String> + Clone {
    prop_oneof![4 => "[a-zA-Z0-9_é☂ ]{0,20}", 1 => "[a-z]{200,400}"]
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 0..40),
        2 => (any::<u8>(), 0_usize..3000).prop_map(|(byte, count)| vec![byte; count]),
        1 => (any::<u8>(), 100_000_usize..300_000).prop_map(|(byte, count)| vec![byte; count]),
    ]
    .prop_map(Bytes::from)
}

fn short_bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn maybe_bytes() -> impl Strategy<Value = Option<Bytes>> {
    prop::option::of(bytes())
}

fn consistency() -> impl Strategy<Value = Consistency> + Clone {
    prop::sample::select(Consistency::ALL_LEVELS.to_vec())
}

fn payload() -> impl Strategy<Value = Option<CustomPayload>> {
    prop::option::weighted(0.2, prop::collection::vec((text(), prop::option::of(short_bytes())), 0..4))
}

fn values() -> impl Strategy<Value = Values> {
    let value = prop_oneof![Just(None), Just(Some(None)), bytes().prop_map(|bytes| Some(Some(bytes)))];
    prop::collection::vec(value, 0..8).prop_map(|values| {
        Values::pack(values.iter().map(|value| match value {
            None => Value::Unset,
            Some(None) => Value::Null,
            Some(Some(bytes)) => Value::Bytes(bytes),
        }))
    })
}

fn parameters() -> impl Strategy<Value = QueryParameters> {
    let names = (values(), any::<bool>(), text()).prop_map(|(values, named, name)| {
        let names = named && !values.is_empty();
        let names = names.then(|| (0..values.len()).map(|i| Text::from(format!("{name}{i}"))).collect());
        (values, names)
    });
    (
        (consistency(), names, any::<bool>()),
        prop::option::of(any::<i32>()),
        maybe_bytes(),
        prop::option::of(consistency()),
        prop::option::of((i64::MIN + 1)..=i64::MAX),
        prop::option::of(text().prop_map(Text::from)),
        prop::option::of(any::<u32>()),
    )
        .prop_map(
            |((consistency, (values, names), skip), page, state, serial, timestamp, keyspace, now)| {
                QueryParameters {
                    consistency,
                    values,
                    names,
                    skip_metadata: skip,
                    page_size: page,
                    paging_state: state,
                    serial_consistency: serial,
                    timestamp,
                    keyspace,
                    now_in_seconds: now,
                }
            },
        )
}

fn batch_statement() -> impl Strategy<Value = BatchStatement> {
    let query = prop_oneof![
        text().prop_map(|text| BatchQuery::Text(text.into())),
        short_bytes().prop_map(BatchQuery::Prepared),
    ];
    (query, values()).prop_map(|(query, values)| BatchStatement { query, values })
}

fn request() -> impl Strategy<Value = Request> {
    let kinds = vec![EventKind::TopologyChange, EventKind::StatusChange, EventKind::SchemaChange];
    let batch_kind = prop::sample::select(vec![BatchKind::Logged, BatchKind::Unlogged, BatchKind::Counter]);
    prop_oneof![
        prop::collection::vec((text(), text()), 0..5).prop_map(Request::Startup),
        Just(Request::Options),
        maybe_bytes().prop_map(Request::AuthResponse),
        (text(), parameters())
            .prop_map(|(query, parameters)| Request::Query(Query { query: query.into(), parameters })),
        (text(), prop::option::of(text())).prop_map(|(query, keyspace)| {
            Request::Prepare(Prepare { query: query.into(), keyspace: keyspace.map(Text::from) })
        }),
        (short_bytes(), short_bytes(), parameters()).prop_map(|(id, metadata_id, parameters)| {
            Request::Execute(Execute { id, result_metadata_id: Some(metadata_id), parameters })
        }),
        (batch_kind, prop::collection::vec(batch_statement(), 0..5), parameters()).prop_map(
            |(kind, statements, parameters)| Request::Batch(Batch { kind, statements, parameters })
        ),
        prop::collection::vec(prop::sample::select(kinds), 0..4).prop_map(Request::Register),
    ]
}

/// Any request.
pub(crate) fn request_envelope() -> impl Strategy<Value = RequestEnvelope> {
    (any::<bool>(), payload(), request()).prop_map(|(tracing, custom_payload, request)| RequestEnvelope {
        tracing,
        custom_payload,
        request,
    })
}

/// A request without what a version cannot say.
pub(crate) fn as_said_in(mut envelope: RequestEnvelope, version: Version) -> RequestEnvelope {
    if version < Version::V4 {
        envelope.custom_payload = None;
    }
    let parameters = match &mut envelope.request {
        Request::Query(query) => Some(&mut query.parameters),
        Request::Execute(execute) => {
            execute.result_metadata_id.take_if(|_| version < Version::V5);
            Some(&mut execute.parameters)
        }
        Request::Batch(batch) => {
            for statement in &mut batch.statements {
                statement.values = said_values(&statement.values, version);
            }
            Some(&mut batch.parameters)
        }
        Request::Prepare(prepare) => {
            prepare.keyspace.take_if(|_| version < Version::V5);
            None
        }
        _ => None,
    };
    if let Some(parameters) = parameters {
        parameters.values = said_values(&parameters.values, version);
        if version < Version::V5 {
            parameters.now_in_seconds = None;
        }
    }
    envelope
}

fn said_values(values: &Values, version: Version) -> Values {
    Values::pack(values.iter().map(|value| match value {
        Value::Unset if version < Version::V4 => Value::Null,
        value => value,
    }))
}

/// Any type, nothing frozen: the wire cannot say it.
pub(crate) fn cql_type() -> impl Strategy<Value = CqlType> {
    let simple = prop::sample::select(vec![
        CqlType::Ascii,
        CqlType::Bigint,
        CqlType::Blob,
        CqlType::Boolean,
        CqlType::Counter,
        CqlType::Date,
        CqlType::Decimal,
        CqlType::Double,
        CqlType::Duration,
        CqlType::Empty,
        CqlType::Float,
        CqlType::Inet,
        CqlType::Int,
        CqlType::Smallint,
        CqlType::Text,
        CqlType::Time,
        CqlType::Timestamp,
        CqlType::Timeuuid,
        CqlType::Tinyint,
        CqlType::Uuid,
        CqlType::Varint,
        CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 3 },
        CqlType::Vector { element: Arc::new(CqlType::Text), dimension: 1536 },
    ]);
    simple.prop_recursive(3, 12, 4, |inner| {
        let field = ("[a-z]{1,8}", inner.clone());
        prop_oneof![
            inner.clone().prop_map(|element| CqlType::List { element: Arc::new(element), frozen: false }),
            inner.clone().prop_map(|element| CqlType::Set { element: Arc::new(element), frozen: false }),
            (inner.clone(), inner.clone()).prop_map(|(key, value)| CqlType::Map {
                key: Arc::new(key),
                value: Arc::new(value),
                frozen: false
            }),
            prop::collection::vec(inner, 0..4).prop_map(|elements| CqlType::Tuple(elements.into())),
            ("[a-z]{1,8}", "[a-z]{1,8}", prop::collection::vec(field, 0..4)).prop_map(
                |(keyspace, name, fields)| CqlType::UserDefined {
                    definition: Arc::new(UserType { keyspace, name, fields }),
                    frozen: false
                }
            ),
        ]
    })
}

fn columns(max: usize) -> impl Strategy<Value = Vec<ColumnSpec>> {
    let column = (any::<bool>(), text(), cql_type());
    (text(), text(), prop::collection::vec(column, 0..max), prop::bool::weighted(0.2)).prop_map(
        |(keyspace, table, columns, several)| {
            let spec = |(other, name, cql_type): (bool, String, CqlType)| ColumnSpec {
                keyspace: keyspace.as_str().into(),
                table: if other && several { "other".into() } else { table.as_str().into() },
                name: name.as_str().into(),
                cql_type,
            };
            columns.into_iter().map(spec).collect()
        },
    )
}

fn rows() -> impl Strategy<Value = Rows> {
    let cells = prop::collection::vec(maybe_bytes(), 0..12);
    (columns(4), cells, prop::option::of(short_bytes()), maybe_bytes()).prop_map(
        |(columns, cells, new_metadata_id, paging_state)| {
            let mut out = BytesMut::new();
            let row_count = cells.len().checked_div(columns.len()).unwrap_or(0);
            for cell in cells.iter().take(row_count * columns.len()) {
                put_cell(&mut out, cell.as_deref());
            }
            Rows {
                // A result without columns is one without metadata.
                no_metadata: columns.is_empty(),
                metadata: Arc::new(ResultMetadata::new(columns)),
                new_metadata_id,
                paging_state,
                row_count: row_count as u32,
                cells: out.freeze(),
            }
        },
    )
}

fn prepared() -> impl Strategy<Value = Prepared> {
    (short_bytes(), short_bytes(), columns(4), prop::collection::vec(any::<u16>(), 0..3), columns(4))
        .prop_map(|(id, result_metadata_id, bind, partition_key_indexes, result)| Prepared {
            id,
            result_metadata_id,
            bind: PreparedMetadata { columns: bind, partition_key_indexes },
            result: Arc::new(ResultMetadata::new(result)),
        })
}

fn error_kind() -> impl Strategy<Value = ErrorKind> {
    let write_types = vec![
        WriteType::Simple,
        WriteType::Batch,
        WriteType::UnloggedBatch,
        WriteType::Counter,
        WriteType::BatchLog,
        WriteType::Cas,
        WriteType::View,
        WriteType::Cdc,
    ];
    let write_type = prop::sample::select(write_types);
    let counts = (consistency(), any::<i32>(), any::<i32>());
    let failure = (any::<IpAddr>(), (0_u16..8).prop_map(FailureReason::from_code));
    let failures = prop::collection::vec(failure, 0..4);
    let names = prop::collection::vec(text(), 0..3);
    prop_oneof![
        prop::sample::select(vec![
            ErrorKind::Server,
            ErrorKind::Protocol,
            ErrorKind::BadCredentials,
            ErrorKind::Overloaded,
            ErrorKind::IsBootstrapping,
            ErrorKind::Truncate,
            ErrorKind::CdcWriteFailure,
            ErrorKind::Syntax,
            ErrorKind::Unauthorized,
            ErrorKind::Invalid,
            ErrorKind::Config,
        ]),
        counts.clone().prop_map(|(consistency, required, alive)| ErrorKind::Unavailable {
            consistency,
            required,
            alive
        }),
        (counts.clone(), write_type.clone(), prop::option::of(any::<u16>())).prop_map(
            |((consistency, received, block_for), write_type, contentions)| ErrorKind::WriteTimeout {
                consistency,
                received,
                block_for,
                write_type,
                contentions: contentions.filter(|_| write_type == WriteType::Cas),
            }
        ),
        (counts.clone(), any::<bool>()).prop_map(|((consistency, received, block_for), data_present)| {
            ErrorKind::ReadTimeout { consistency, received, block_for, data_present }
        }),
        (counts.clone(), failures.clone(), any::<bool>()).prop_map(
            |((consistency, received, block_for), failures, data_present)| ErrorKind::ReadFailure {
                consistency,
                received,
                block_for,
                failures,
                data_present
            }
        ),
        (counts.clone(), failures, write_type).prop_map(
            |((consistency, received, block_for), failures, write_type)| ErrorKind::WriteFailure {
                consistency,
                received,
                block_for,
                failures,
                write_type
            }
        ),
        counts.prop_map(|(consistency, received, block_for)| ErrorKind::CasWriteUnknown {
            consistency,
            received,
            block_for
        }),
        (text(), text(), names).prop_map(|(keyspace, function, argument_types)| {
            ErrorKind::FunctionFailure { keyspace, function, argument_types }
        }),
        (text(), text()).prop_map(|(keyspace, table)| ErrorKind::AlreadyExists { keyspace, table }),
        short_bytes().prop_map(|id| ErrorKind::Unprepared { id }),
    ]
}

fn schema_change() -> impl Strategy<Value = SchemaChange> {
    let kinds = vec![SchemaChangeKind::Created, SchemaChangeKind::Updated, SchemaChangeKind::Dropped];
    let function = (text(), prop::collection::vec(text(), 0..3));
    let target = prop_oneof![
        Just(SchemaTarget::Keyspace),
        text().prop_map(SchemaTarget::Table),
        text().prop_map(SchemaTarget::Type),
        function.clone().prop_map(|(name, argument_types)| SchemaTarget::Function { name, argument_types }),
        function.prop_map(|(name, argument_types)| SchemaTarget::Aggregate { name, argument_types }),
    ];
    (prop::sample::select(kinds), text(), target).prop_map(|(change, keyspace, target)| SchemaChange {
        change,
        keyspace,
        target,
    })
}

fn event() -> impl Strategy<Value = Event> {
    let node = (any::<IpAddr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port));
    let topology =
        vec![TopologyChangeKind::NewNode, TopologyChangeKind::RemovedNode, TopologyChangeKind::MovedNode];
    let status = vec![StatusChangeKind::Up, StatusChangeKind::Down];
    prop_oneof![
        (prop::sample::select(topology), node.clone())
            .prop_map(|(change, node)| Event::TopologyChange { change, node }),
        (prop::sample::select(status), node).prop_map(|(change, node)| Event::StatusChange { change, node }),
        schema_change().prop_map(Event::SchemaChange),
    ]
}

fn response() -> impl Strategy<Value = Response> {
    let multimap = prop::collection::vec((text(), prop::collection::vec(text(), 0..4)), 0..4);
    prop_oneof![
        1 => (text(), error_kind()).prop_map(|(message, kind)| Response::Error(ErrorResponse { message, kind })),
        1 => Just(Response::Ready),
        1 => text().prop_map(Response::Authenticate),
        1 => multimap.prop_map(Response::Supported),
        1 => Just(Response::Void),
        3 => rows().prop_map(Response::Rows),
        1 => text().prop_map(Response::SetKeyspace),
        2 => prepared().prop_map(Response::Prepared),
        1 => schema_change().prop_map(Response::SchemaChange),
        1 => event().prop_map(Response::Event),
        1 => maybe_bytes().prop_map(Response::AuthChallenge),
        1 => maybe_bytes().prop_map(Response::AuthSuccess),
    ]
}

/// Any response.
pub(crate) fn response_envelope() -> impl Strategy<Value = ResponseEnvelope> {
    let tracing_id = prop::option::of(any::<u128>().prop_map(Uuid::from_u128));
    (tracing_id, prop::collection::vec(text(), 0..3), payload(), response()).prop_map(
        |(tracing_id, warnings, custom_payload, response)| ResponseEnvelope {
            tracing_id,
            warnings,
            custom_payload,
            response,
        },
    )
}

/// A response without what a version cannot say, and in its words for what it does not know.
pub(crate) fn as_heard_in(mut envelope: ResponseEnvelope, version: Version) -> ResponseEnvelope {
    if version < Version::V4 {
        envelope.warnings.clear();
        envelope.custom_payload = None;
    }
    match &mut envelope.response {
        Response::Error(error) => error.kind = heard_error(error.kind.clone(), version),
        Response::Rows(rows) => {
            rows.new_metadata_id.take_if(|_| version < Version::V5);
            // No version knows "frozen", and a column name in a custom type is spelled out.
        }
        Response::Prepared(prepared) => {
            if version < Version::V5 {
                prepared.result_metadata_id = Bytes::new();
            }
            if version < Version::V4 || !one_table(&prepared.bind.columns) {
                prepared.bind.partition_key_indexes.clear();
            }
        }
        Response::SchemaChange(change) | Response::Event(Event::SchemaChange(change))
            if version < Version::V4 =>
        {
            if matches!(change.target, SchemaTarget::Function { .. } | SchemaTarget::Aggregate { .. }) {
                change.change = SchemaChangeKind::Updated;
                change.target = SchemaTarget::Keyspace;
            }
        }
        _ => {}
    }
    envelope
}

fn one_table(columns: &[ColumnSpec]) -> bool {
    columns.windows(2).all(|pair| pair[0].keyspace == pair[1].keyspace && pair[0].table == pair[1].table)
        && !columns.is_empty()
}

fn heard_error(kind: ErrorKind, version: Version) -> ErrorKind {
    match kind {
        ErrorKind::ReadFailure { consistency, received, block_for, data_present, failures } => {
            match version {
                Version::V3 => ErrorKind::ReadTimeout { consistency, received, block_for, data_present },
                _ => {
                    let failures = if version < Version::V5 { Vec::new() } else { failures };
                    ErrorKind::ReadFailure { consistency, received, block_for, data_present, failures }
                }
            }
        }
        ErrorKind::WriteFailure { consistency, received, block_for, write_type, failures } => match version {
            Version::V3 => {
                ErrorKind::WriteTimeout { consistency, received, block_for, write_type, contentions: None }
            }
            _ => {
                let failures = if version < Version::V5 { Vec::new() } else { failures };
                ErrorKind::WriteFailure { consistency, received, block_for, write_type, failures }
            }
        },
        ErrorKind::FunctionFailure { .. } | ErrorKind::CdcWriteFailure if version < Version::V4 => {
            ErrorKind::Invalid
        }
        ErrorKind::CasWriteUnknown { consistency, received, block_for } if version < Version::V5 => {
            let write_type = WriteType::Cas;
            ErrorKind::WriteTimeout { consistency, received, block_for, write_type, contentions: None }
        }
        ErrorKind::WriteTimeout { consistency, received, block_for, write_type, .. }
            if version < Version::V5 =>
        {
            ErrorKind::WriteTimeout { consistency, received, block_for, write_type, contentions: None }
        }
        kind => kind,
    }
}
