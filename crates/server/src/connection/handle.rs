//! One request to its answer.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use protocol::{
    ErrorKind, ErrorResponse, Framing, Prepared, PreparedMetadata, QueryParameters, Request, RequestEnvelope,
    Response, ResponseEnvelope, ResultMetadata, Version,
};
use query::{AnswerRoom, QueryError, QueryOptions, ResponseKind, SessionState};
use runtime::trace;

use super::ShardServer;
use super::answer::{Answer, RowsAnswer, Wanted};
use super::failed::{self, Failure};
use super::session::Session;
use super::tombstones;
use super::traced::TracedRequest;
use crate::clients::PanicCount;
use crate::convert;

/// A request that is ready to be carried out; not STARTUP and the like, which change the connection.
pub(super) struct Job {
    pub(super) server: Rc<ShardServer>,
    pub(super) session: Rc<Session>,
    pub(super) envelope: RequestEnvelope,
    /// Is it traced though its client has not asked for it?
    pub(super) is_sampled: bool,
    pub(super) version: Version,
    pub(super) stream: i16,
    /// For answers that are encoded elsewhere.
    pub(super) framing: Framing,
}

/// Answers of more bytes are encoded on another thread: to copy so much would keep the shard.
const ENCODED_HERE_BYTES_MAX: usize = 2 << 20;

impl Job {
    /// Carries the request out when there is room for its answer, which has that room with it.
    pub(super) async fn run(&self) -> (Answer, AnswerRoom) {
        let words = || failed::statement(&self.server.engine, &self.envelope.request);
        let begun = self.server.time();
        let answered = runtime::labelled_future(words, self.carry_out()).await;
        if let Some(took) = self.server.slow_since(begun) {
            let keyspace = self.session.state.borrow().keyspace.clone();
            self.server.note_slow(keyspace.as_deref(), &self.envelope.request, took);
        }
        answered
    }

    async fn carry_out(&self) -> (Answer, AnswerRoom) {
        let mut room = self.server.answers().wait_for_room(&self.session.lane).await;
        if self.envelope.tracing || self.is_sampled {
            // Boxed, so that the many requests without a trace need no room for it.
            let answer = Box::pin(self.run_traced(&mut room)).await;
            return (self.encoded(answer, &room).await, room);
        }
        let answer = self.run_untraced(&mut room).await;
        if room.used_bytes() > ENCODED_HERE_BYTES_MAX {
            return (Box::pin(self.encoded(answer, &room)).await, room);
        }
        (answer, room)
    }

    /// The answer, as it is sent if it is large.
    async fn encoded(&self, answer: Answer, room: &AnswerRoom) -> Answer {
        if room.used_bytes() <= ENCODED_HERE_BYTES_MAX {
            return answer;
        }
        let (framing, version, stream) = (self.framing, self.version, self.stream);
        let encoding = self.server.tracer.coordinator.io().run(move || {
            let mut encoder = framing.encoder();
            answer.encode(&mut encoder, version, stream);
            encoder.take()
        });
        Answer::Encoded(encoding.await)
    }

    async fn run_traced(&self, room: &mut AnswerRoom) -> Answer {
        let client = self.session.client.peer().ip();
        let traced = TracedRequest::begin(&self.server, &self.envelope.request, client).await;
        let answer = trace::carry(Some(traced.trace()), self.run_untraced(room)).await;
        let id = traced.finish(&self.server).await;
        if self.envelope.tracing { answer.with_trace(id) } else { answer }
    }

    async fn run_untraced(&self, room: &mut AnswerRoom) -> Answer {
        let _counted = PanicCount(&self.server.clients);
        let request = &self.envelope.request;
        match self.answer(room).await {
            Ok(answer) => answer,
            Err(failure) => {
                let keyspace = self.session.state.borrow().keyspace.clone();
                Response::Error(failed::report(&self.server, keyspace.as_deref(), request, failure)).into()
            }
        }
    }

    /// All but the most frequent kind are boxed, so that one EXECUTE needs no room for the others.
    async fn answer(&self, room: &mut AnswerRoom) -> Result<Answer, Failure> {
        let session = || self.session.state.borrow().clone();
        let engine = &self.server.engine;
        let unwanted = || ErrorResponse::new(ErrorKind::Server, "this message is answered by the connection");
        match &self.envelope.request {
            Request::Query(query) => {
                let options = self.options(&query.parameters)?;
                let mut session = session();
                let response = engine.query(&mut session, query.query.as_str(), &options, room);
                let response = Box::pin(response).await;
                self.respond(response, self.wanted(&query.parameters, None))
            }
            Request::Execute(execute) => {
                let id = convert::prepared_id(&execute.id)?;
                let options = self.options(&execute.parameters)?;
                // A prepared statement knows its keyspace; one that is a USE changes the session in `respond`.
                let mut session = SessionState::default();
                let response = engine.execute(&mut session, &id, &options, room).await;
                self.respond(response, self.wanted(&execute.parameters, execute.result_metadata_id.as_ref()))
            }
            Request::Batch(batch) => {
                let statements = convert::batch_statements(&batch.statements)?;
                let options = self.options(&batch.parameters)?;
                let kind = convert::batch_type(batch.kind);
                let mut session = session();
                let response = engine.batch(&mut session, kind, &statements, &options, room);
                let response = Box::pin(response).await;
                self.respond(response, self.wanted(&batch.parameters, None))
            }
            Request::Prepare(prepare) => {
                let keyspace = prepare.keyspace.as_ref().map(|keyspace| keyspace.as_str());
                let info = Box::pin(engine.prepare(&session(), prepare.query.as_str(), keyspace)).await;
                Ok(prepared(info?))
            }
            Request::Startup(_) | Request::Options | Request::AuthResponse(_) | Request::Register(_) => {
                Err(unwanted().into())
            }
        }
    }

    /// What comes with a request.
    fn options(&self, parameters: &protocol::QueryParameters) -> Result<QueryOptions, ErrorResponse> {
        let operation =
            self.envelope.custom_payload.as_ref().map(convert::operation_id).transpose()?.flatten();
        Ok(QueryOptions { operation, ..convert::options(parameters) })
    }

    fn respond(
        &self,
        response: Result<query::Response, query::QueryError>,
        wanted: Wanted<'_>,
    ) -> Result<Answer, Failure> {
        let request = &self.envelope.request;
        let query::Response { kind, warnings, tombstones: met } = match response {
            Ok(response) => response,
            Err(QueryError::TooManyTombstones(failure)) => {
                failed::note_too_many_tombstones(&self.server, request, &failure);
                let warnings = failure.warnings.clone();
                let error = convert::error(QueryError::TooManyTombstones(failure));
                let response = Response::Error(error);
                return Ok(Answer::Envelope(Box::new(ResponseEnvelope { warnings, ..response.into() })));
            }
            Err(error) => return Err(error.into()),
        };
        tombstones::note(&self.server, request, &met);
        let response = match kind {
            ResponseKind::Void => Response::Void,
            ResponseKind::SetKeyspace(keyspace) => {
                self.session.state.borrow_mut().keyspace = Some(keyspace.clone());
                self.session.client.uses(&keyspace);
                Response::SetKeyspace(keyspace)
            }
            ResponseKind::SchemaChange(change) => {
                let change = convert::schema_change(change);
                self.server.events.changed_here(&change);
                Response::SchemaChange(change)
            }
            ResponseKind::Rows(result) => {
                let wanted = if result.varies { Wanted::AFRESH } else { wanted };
                let described = self.server.metadata.describe(&result.metadata_id, &result.columns, wanted);
                let rows = RowsAnswer { result, described };
                if warnings.is_empty() {
                    return Ok(Answer::Rows(Box::new(rows)));
                }
                rows.into_response()
            }
        };
        Ok(Answer::Envelope(Box::new(ResponseEnvelope { warnings, ..response.into() })))
    }

    /// `known_metadata_id` counts where the connection's version has such.
    fn wanted<'a>(&self, parameters: &QueryParameters, known_metadata_id: Option<&'a Bytes>) -> Wanted<'a> {
        Wanted {
            skip_metadata: parameters.skip_metadata,
            known_metadata_id: known_metadata_id.map(|id| &id[..]).filter(|_| self.version.uses_segments()),
        }
    }
}

fn prepared(info: query::PreparedInfo) -> Answer {
    let response = Response::Prepared(Prepared {
        id: Bytes::copy_from_slice(&info.id),
        result_metadata_id: Bytes::copy_from_slice(&info.result_metadata_id),
        bind: PreparedMetadata {
            columns: convert::columns(&info.variables),
            partition_key_indexes: info.partition_key_indexes.to_vec(),
        },
        result: Arc::new(ResultMetadata::new(convert::columns(&info.result_columns))),
    });
    Answer::Envelope(Box::new(ResponseEnvelope { warnings: info.warnings, ..response.into() }))
}
