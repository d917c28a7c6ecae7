//! Requests with the tracing flag: what they did, on all nodes that had a part in their answer, is written to
//! `system_traces` before the answer goes out, so that a client that asks at once finds it. What goes on behind the
//! answer, as writes of further replicas do, is written when it comes.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use coordinator::Coordinator;
use protocol::{QueryParameters, Request};
use query::{BatchQuery, BatchStatement, BatchType, BindValue, Engine, QueryOptions, SessionState, Values};
use runtime::trace::{Steps, Trace, TraceEvent};
use tokio::time::{Instant, timeout_at};
use types::{encoding, inet};
use uuid::Uuid;

use super::ShardServer;
use crate::convert;

/// How long traces are kept, as in Cassandra; seconds.
const TTL: u32 = 86_400;
/// What comes later after the answer is left out of a trace.
const LATE_MAX: Duration = Duration::from_secs(10);
/// A bound value is shown up to this many characters.
const VALUE_CHARS_MAX: usize = 1_000;

/// What traces need of the node.
pub(crate) struct Tracer {
    pub(crate) coordinator: Coordinator,
    pub(crate) address: SocketAddr,
}

/// A request being traced.
pub(super) struct TracedRequest {
    id: Uuid,
    trace: Trace,
    steps: Steps,
    started_at: i64,
    client: IpAddr,
    request: &'static str,
    parameters: Vec<(String, String)>,
}

impl TracedRequest {
    /// Begins a trace.
    pub(super) async fn begin(server: &ShardServer, request: &Request, client: IpAddr) -> Self {
        let coordinator = &server.tracer.coordinator;
        let (trace, steps) = Trace::start(coordinator.runtime());
        TracedRequest {
            id: coordinator.time_uuid(),
            trace,
            steps,
            started_at: coordinator.now_millis(),
            client,
            request: name(request),
            parameters: parameters(&server.engine, request).await,
        }
    }

    /// What is to be in force while the request is carried out.
    pub(super) fn trace(&self) -> Trace {
        self.trace.clone()
    }

    /// Writes down what happened, and gives the id to find it by. A trace that can not be written
    /// is no reason to fail the request.
    pub(super) async fn finish(mut self, server: &Rc<ShardServer>) -> Uuid {
        let duration = self.trace.elapsed();
        let (id, source) = (self.id, server.tracer.address);
        write_steps(server, id, self.steps.so_far()).await;
        // The session comes last: clients wait for its duration.
        write(server, id, &[self.session_statement(duration, source)]).await;
        // Whoever else holds the trace is still at work.
        let TracedRequest { trace, steps, .. } = self;
        drop(trace);
        runtime::spawn_local("late steps of a trace", Box::pin(write_late(Rc::clone(server), id, steps)));
        id
    }

    fn session_statement(&self, duration: Duration, coordinator: SocketAddr) -> BatchStatement {
        let entries = self.parameters.iter().flat_map(|(key, value)| [key, value]);
        let parameters =
            encoding::collection(self.parameters.len(), entries.map(|text| Some(text.as_bytes())));
        statement(
            "INSERT INTO system_traces.sessions (session_id, client, command, coordinator, coordinator_port, \
             duration, parameters, request, started_at) VALUES (?, ?, 'QUERY', ?, ?, ?, ?, ?, ?)",
            [
                self.id.as_bytes().to_vec(),
                inet::encode(self.client),
                inet::encode(coordinator.ip()),
                i32::from(coordinator.port()).to_be_bytes().to_vec(),
                micros(duration),
                parameters,
                self.request.as_bytes().to_vec(),
                self.started_at.to_be_bytes().to_vec(),
            ],
        )
    }
}

/// Writes down what comes after the answer.
async fn write_late(server: Rc<ShardServer>, id: Uuid, mut steps: Steps) {
    let deadline = Instant::now() + LATE_MAX;
    while let Ok(Some(step)) = timeout_at(deadline, steps.next()).await {
        let events = std::iter::once(step).chain(steps.so_far()).collect();
        write_steps(&server, id, events).await;
    }
}

async fn write_steps(server: &ShardServer, id: Uuid, steps: Vec<TraceEvent>) {
    let here = server.tracer.address;
    let statement = |step: &TraceEvent| event_statement(id, step, step.node.unwrap_or(here));
    write(server, id, &steps.iter().map(statement).collect::<Vec<_>>()).await;
}

async fn write(server: &ShardServer, id: Uuid, statements: &[BatchStatement]) {
    let (mut session, options) = (SessionState::default(), QueryOptions::default());
    let mut room = server.answers().room_of_its_own();
    let written = server.engine.batch(&mut session, BatchType::Unlogged, statements, &options, &mut room);
    if let Err(error) = written.await {
        tracing::warn!(%id, %error, "a trace was not written");
    }
}

fn event_statement(session: Uuid, event: &TraceEvent, source: SocketAddr) -> BatchStatement {
    statement(
        "INSERT INTO system_traces.events (session_id, event_id, activity, source, source_elapsed, \
         source_port, thread) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            session.as_bytes().to_vec(),
            event.id.as_bytes().to_vec(),
            event.activity.as_bytes().to_vec(),
            inet::encode(source.ip()),
            micros(event.elapsed),
            i32::from(source.port()).to_be_bytes().to_vec(),
            event.thread.as_bytes().to_vec(),
        ],
    )
}

fn statement<const N: usize>(insert: &str, values: [Vec<u8>; N]) -> BatchStatement {
    BatchStatement {
        query: BatchQuery::Text(format!("{insert} USING TTL {TTL}")),
        values: Values::Positional(values.map(|value| BindValue::Set(value.into())).into()),
    }
}

fn micros(duration: Duration) -> Vec<u8> {
    i32::try_from(duration.as_micros()).unwrap_or(i32::MAX).to_be_bytes().to_vec()
}

/// What the request is called, in Cassandra's words.
fn name(request: &Request) -> &'static str {
    match request {
        Request::Execute(_) => "Execute CQL3 prepared query",
        Request::Batch(_) => "Execute batch of CQL3 queries",
        Request::Prepare(_) => "Preparing CQL3 query",
        _ => "Execute CQL3 query",
    }
}

/// What came with the request.
async fn parameters(engine: &Engine, request: &Request) -> Vec<(String, String)> {
    let mut parameters = match request {
        Request::Query(query) => {
            let mut parameters = with_levels(&query.parameters);
            parameters.push(("query".into(), query.query.as_str().into()));
            parameters
        }
        Request::Execute(execute) => {
            let mut parameters = with_levels(&execute.parameters);
            add_prepared(&mut parameters, engine, &execute.id, &execute.parameters).await;
            parameters
        }
        Request::Batch(batch) => with_levels(&batch.parameters),
        Request::Prepare(prepare) => vec![("query".into(), prepare.query.as_str().into())],
        _ => Vec::new(),
    };
    parameters.sort();
    parameters
}

fn with_levels(given: &QueryParameters) -> Vec<(String, String)> {
    let options = convert::options(given);
    let serial = options.serial_consistency.unwrap_or(query::Consistency::Serial);
    let mut parameters = vec![
        ("consistency_level".into(), options.consistency.name().into()),
        ("serial_consistency_level".into(), serial.name().into()),
    ];
    if let Some(size) = options.page_size {
        parameters.push(("page_size".into(), size.to_string()));
    }
    parameters
}

async fn add_prepared(
    parameters: &mut Vec<(String, String)>,
    engine: &Engine,
    id: &Bytes,
    given: &QueryParameters,
) {
    let Ok(id) = convert::prepared_id(id) else { return };
    let (Some(text), Some(info)) = (engine.prepared_text(&id), engine.prepared_info(&id).await) else {
        return;
    };
    parameters.push(("query".into(), text));
    if let Values::Positional(values) = convert::options(given).values {
        for (index, (value, column)) in values.iter().zip(info.variables.iter()).enumerate() {
            let shown = match value {
                BindValue::Set(bytes) => shortened(column.cql_type.to_cql_literal(bytes)),
                BindValue::Null => "null".into(),
                BindValue::Unset => "unset".into(),
            };
            parameters.push((format!("bound_var_{index}_{}", column.name), shown));
        }
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}...'", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shown_in_part() {
        assert_eq!(shortened("'short'".into()), "'short'");
        let long = shortened("é".repeat(2_000));
        assert_eq!(long.chars().count(), VALUE_CHARS_MAX + 4);
        assert!(long.ends_with("é...'"));
    }
}
