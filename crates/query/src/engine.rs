//! One engine per shard: statements in, answers out.

mod carried;
mod conditional;
mod counting;
mod execute;
mod schema_change;

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use carried::Source;
use coordinator::{Coordinator, Decider};
use runtime::{Io, Piece, Plant, trace};
use schema::Schema;

use crate::catalog::Catalog;
use crate::latencies::{Latencies, RequestKind};
use crate::memory::{AnswerMemory, AnswerRoom};
use crate::modify::PrependClock;
use crate::prepare::{self, Parsed, PlanCache, Planned, Prepared, PreparedText, is_qualified, statement_id};
use crate::request::{BatchStatement, BatchType, QueryOptions, SessionState};
use crate::response::{PreparedInfo, Response, ResponseKind};
use crate::{PreparedFigures, PreparedLimits, PreparedTexts, QueryError, Timeouts, VirtualTables};

/// Longest text that is prepared.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Prepares, plans and executes statements. Belongs to one shard; cheap to clone there.
#[derive(Clone)]
pub struct Engine {
    inner: Rc<Inner>,
}

struct Inner {
    coordinator: Coordinator,
    virtual_tables: Rc<dyn VirtualTables>,
    texts: Arc<PreparedTexts>,
    plans: RefCell<PlanCache>,
    prepends: Arc<PrependClock>,
    answers: Rc<AnswerMemory>,
    timeouts: Arc<Timeouts>,
    latencies: Arc<Latencies>,
    /// Where changes of the schema wait for each other: see `schema_change.rs`.
    schema_changes: tokio::sync::RwLock<()>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Inner {
    fn time(&self) -> Duration {
        self.coordinator.runtime().clock.elapsed()
    }

    fn note_time(&self, kind: RequestKind, begun: Duration, count: usize) {
        let now = self.time();
        self.latencies.note(kind, now, now.saturating_sub(begun), count);
    }
}

impl Engine {
    /// An engine over that coordinator. `texts` is shared by the engines of all shards of a node; `answers` is what
    /// requests on this shard may gather, `timeouts` how long they may take.
    pub fn new(
        coordinator: Coordinator,
        virtual_tables: Rc<dyn VirtualTables>,
        texts: Arc<PreparedTexts>,
        answers: Rc<AnswerMemory>,
        timeouts: Arc<Timeouts>,
    ) -> Self {
        let plans = RefCell::new(PlanCache::new(Arc::clone(&texts)));
        let inner = Inner {
            coordinator,
            virtual_tables,
            texts,
            plans,
            prepends: Arc::default(),
            answers,
            timeouts,
            latencies: Arc::default(),
            schema_changes: tokio::sync::RwLock::default(),
        };
        let inner = Rc::new(inner);
        let decider: Weak<dyn Decider> = Rc::<Inner>::downgrade(&inner);
        coordinator::decide_by(&inner.coordinator, decider);
        Engine { inner }
    }

    /// What requests may gather for their answers.
    pub fn answers(&self) -> &Rc<AnswerMemory> {
        &self.inner.answers
    }

    /// How long requests on this shard have taken.
    pub fn latencies(&self) -> &Arc<Latencies> {
        &self.inner.latencies
    }

    /// What prepared statements may take.
    pub fn prepared_limits(&self) -> PreparedLimits {
        self.inner.texts.limits()
    }

    /// What there is of prepared statements on the node.
    pub fn prepared_figures(&self) -> PreparedFigures {
        self.inner.texts.figures()
    }

    /// Executes the statement of that text; what it gathers counts in `room`.
    ///
    /// # Errors
    /// [`QueryError`], as Cassandra would answer.
    pub async fn query(
        &self,
        session: &mut SessionState,
        text: &str,
        options: &QueryOptions,
        room: &mut AnswerRoom,
    ) -> Result<Response, QueryError> {
        trace::note(|| format!("Parsing {text}"));
        self.inner.check_keyspace(&self.inner.coordinator.schema(), options.keyspace.as_deref())?;
        let mut piece = Piece::of_turn();
        let parsed = self.inner.parse(text, room).await?;
        trace::note(|| "Preparing statement".into());
        piece.give_way().await;
        let keyspace = options.keyspace.as_deref().or(session.keyspace.as_deref());
        let planned = self.inner.plan(&self.inner.coordinator.schema(), parsed, keyspace).await?;
        piece.give_way().await;
        let response = self.inner.execute(&planned, keyspace, options, room, Source::Text(text)).await?;
        Ok(remember_keyspace(session, response))
    }

    /// Prepares the statement of that text; `keyspace` is the one the request names, if any.
    ///
    /// # Errors
    /// [`QueryError`], as Cassandra would answer.
    pub async fn prepare(
        &self,
        session: &SessionState,
        text: &str,
        keyspace: Option<&str>,
    ) -> Result<PreparedInfo, QueryError> {
        let text_bytes_max = self.inner.texts.limits().text_bytes.min(TEXT_BYTES_MAX);
        if text.len() > text_bytes_max {
            return Err(QueryError::invalid(stdx::brief!(
                "Prepared statement of size {} bytes is larger than allowed maximum of {text_bytes_max} bytes",
                text.len(),
            )));
        }
        self.inner.check_keyspace(&self.inner.coordinator.schema(), keyspace)?;
        let keyspace = keyspace.or(session.keyspace.as_deref());
        let mut room = self.answers().room_of_its_own();
        let parsed = self.inner.parse(text, &mut room).await?;
        let hashed = if is_qualified(&parsed.statement.kind) { None } else { keyspace };
        let id = statement_id(hashed, text);
        let prepared = self.inner.prepare(text, parsed, keyspace).await?;
        let info = prepared.planned.info(id);
        let kept = PreparedText { keyspace: keyspace.map(str::to_owned), text: text.to_owned() };
        self.inner.texts.put(id, kept);
        self.inner.plans.borrow_mut().put(id, prepared);
        self.inner.tell_evictions();
        Ok(info)
    }

    /// Executes a prepared statement.
    ///
    /// # Errors
    /// [`QueryError::Unprepared`] when the id is not known (any more), else as [`Engine::query`].
    pub async fn execute(
        &self,
        session: &mut SessionState,
        id: &[u8; 16],
        options: &QueryOptions,
        room: &mut AnswerRoom,
    ) -> Result<Response, QueryError> {
        let prepared = self.inner.prepared(id, room).await?;
        let Prepared { keyspace, planned, .. } = &prepared;
        let response =
            self.inner.execute(planned, keyspace.as_deref(), options, room, Source::Prepared(id)).await?;
        Ok(remember_keyspace(session, response))
    }

    /// The plan of a prepared statement, if it is at hand and up to date.
    pub(crate) fn planned_now(&self, id: &[u8; 16]) -> Option<Rc<Planned>> {
        self.inner.prepared_now(id).map(|prepared| prepared.planned)
    }

    pub(crate) fn coordinator(&self) -> &Coordinator {
        &self.inner.coordinator
    }

    /// So many plain requests are answered that were begun together then, by the clock of the node. Others are noted
    /// when they are executed.
    pub fn note_plain(&self, kind: RequestKind, begun: Duration, count: usize) {
        self.inner.note_time(kind, begun, count);
    }

    /// How long requests may take.
    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.inner.timeouts
    }

    /// The text of a prepared statement, if it is known here.
    pub fn prepared_text(&self, id: &[u8; 16]) -> Option<String> {
        Some(self.inner.texts.get(id)?.text.clone())
    }

    /// What is known of a prepared statement.
    pub async fn prepared_info(&self, id: &[u8; 16]) -> Option<PreparedInfo> {
        let prepared = self.inner.prepared(id, &mut self.answers().room_of_its_own()).await.ok()?;
        Some(prepared.planned.info(*id))
    }

    /// Executes a BATCH message; the values are in `statements`, not in `options`.
    ///
    /// # Errors
    /// As [`Engine::execute`].
    pub async fn batch(
        &self,
        session: &mut SessionState,
        batch_type: BatchType,
        statements: &[BatchStatement],
        options: &QueryOptions,
        room: &mut AnswerRoom,
    ) -> Result<Response, QueryError> {
        let (begun, mut kind) = (self.inner.time(), RequestKind::Write);
        let response = self.inner.batch(session, batch_type, statements, options, room, &mut kind).await;
        self.inner.note_time(kind, begun, 1);
        response
    }
}

/// After a USE the session is in that keyspace.
fn remember_keyspace(session: &mut SessionState, response: Response) -> Response {
    if let ResponseKind::SetKeyspace(name) = &response.kind {
        session.keyspace = Some(name.clone());
    }
    response
}

impl Inner {
    fn catalog<'a>(&'a self, schema: &'a Schema) -> Catalog<'a> {
        Catalog { schema, made_up: &**self.virtual_tables.keyspaces() }
    }

    /// Is the keyspace that a request names there?
    fn check_keyspace(&self, schema: &Schema, keyspace: Option<&str>) -> Result<(), QueryError> {
        match keyspace {
            Some(name) if self.catalog(schema).keyspace(name).is_none() => {
                Err(QueryError::invalid(stdx::brief!("Keyspace '{name}' does not exist")))
            }
            _ => Ok(()),
        }
    }

    /// Plans a statement against a schema: a long one on another thread.
    async fn plan(
        &self,
        schema: &Arc<Schema>,
        parsed: Parsed,
        keyspace: Option<&str>,
    ) -> Result<Planned, QueryError> {
        if parsed.is_long {
            // Boxed, so that the many short ones need no room for it.
            return Box::pin(self.plan_elsewhere(Arc::clone(schema), parsed, keyspace)).await;
        }
        prepare::plan(parsed.statement, keyspace, &self.catalog(schema), self.coordinator.now_millis())
    }

    async fn plan_elsewhere(
        &self,
        schema: Arc<Schema>,
        parsed: Parsed,
        keyspace: Option<&str>,
    ) -> Result<Planned, QueryError> {
        let made_up = Arc::clone(self.virtual_tables.keyspaces());
        let now_millis = self.coordinator.now_millis();
        let keyspace = keyspace.map(str::to_owned);
        let planning = self.io().run(move || {
            let catalog = Catalog { schema: &schema, made_up: &*made_up };
            prepare::plan(parsed.statement, keyspace.as_deref(), &catalog, now_millis)
        });
        planning.await
    }

    async fn prepare(
        &self,
        text: &str,
        parsed: Parsed,
        keyspace: Option<&str>,
    ) -> Result<Prepared, QueryError> {
        let token_count = parsed.token_count.unwrap_or_else(|| cql::token_count(text));
        let planned = self.plan(&self.coordinator.schema(), parsed, keyspace).await?;
        let bytes = planned.bytes(text.len(), token_count);
        Ok(Prepared { keyspace: keyspace.map(Into::into), planned: Rc::new(planned), bytes })
    }

    /// The tree of a text, whose memory counts in the room.
    async fn parse(&self, text: &str, room: &mut AnswerRoom) -> Result<Parsed, QueryError> {
        prepare::parse(text, self.io(), room).await
    }

    /// Threads for what would keep the shard.
    fn io(&self) -> &Io {
        self.coordinator.io()
    }

    /// The prepared statement of that id, if it is at hand and planned against the schema as it is.
    fn prepared_now(&self, id: &[u8; 16]) -> Option<Prepared> {
        let prepared = self.plans.borrow_mut().get(id)?;
        let is_current = self.coordinator.is_current(prepared.planned.epoch);
        (is_current || self.coordinator.has_planted(Plant::StalePlan)).then_some(prepared)
    }

    /// The prepared statement of that id, planned against the schema as it is.
    async fn prepared(&self, id: &[u8; 16], room: &mut AnswerRoom) -> Result<Prepared, QueryError> {
        match self.prepared_now(id) {
            Some(prepared) => Ok(prepared),
            // Boxed, so that the many that are at hand need no room for it.
            None => Box::pin(self.prepare_again(id, room)).await,
        }
    }

    /// Plans the statement of that id anew, if its text is still known and means what it meant: it was prepared on
    /// another shard, made room for others here, or the schema has changed.
    async fn prepare_again(&self, id: &[u8; 16], room: &mut AnswerRoom) -> Result<Prepared, QueryError> {
        let before = self.plans.borrow_mut().get(id);
        let again = match self.texts.get(id) {
            Some(kept) => {
                let PreparedText { keyspace, text } = &*kept;
                match self.parse(text, room).await {
                    Ok(parsed) => self.prepare(text, parsed, keyspace.as_deref()).await.ok(),
                    Err(_) => None,
                }
            }
            None => None,
        };
        match again.filter(|again| before.is_none_or(|before| again.planned.is_like(&before.planned))) {
            Some(again) => {
                self.plans.borrow_mut().put(*id, again.clone());
                Ok(again)
            }
            None => {
                self.plans.borrow_mut().remove(id);
                self.texts.remove(id);
                Err(QueryError::Unprepared { id: *id })
            }
        }
    }

    /// Tells the log now and then that prepared statements make room for others: each of them comes again.
    fn tell_evictions(&self) {
        if let Some(count) = self.texts.evictions_to_report(self.coordinator.now_millis()) {
            let mebibytes = self.texts.limits().text_bytes as f64 / f64::from(1 << 20);
            tracing::warn!(
                count,
                "prepared statements were discarded because their texts have reached the limit of {mebibytes:.1} MiB; \
                 clients that put values into the text of statements prepare each of them anew"
            );
        }
    }
}
