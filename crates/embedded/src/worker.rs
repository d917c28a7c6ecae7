//! What carries statements out on a shard's thread.
//!
//! ```text
//!   caller ── Request ──► mailbox of a shard ──► worker ── one task each ──► Engine
//!      ▲                     (bounded)                (so many at once)        │
//!      └───────────────────────── oneshot ◄── Answer, copied out ◄─────────────┘
//! ```
//!
//! A full mailbox makes callers wait; nothing is refused and nothing grows without a bound.

use std::sync::{Arc, Mutex, PoisonError};

use assembly::Seat;
use query::{
    BatchQuery, BatchStatement, BatchType, ColumnSpec, Engine, PreparedInfo, QueryError, QueryOptions,
    Response, ResponseKind, SchemaChange, SessionState, Values,
};
use runtime::{MailboxReceiver, MailboxSender, mailbox};
use tokio::sync::{Semaphore, oneshot};

use crate::Error;
use crate::page::Page;

/// Requests that wait for a shard; more make their callers wait.
const WAITING_MAX: usize = 4096;
/// Requests that a shard carries out at once.
const RUNNING_MAX: usize = 1024;

/// A statement that was prepared, with all that is needed to do so again.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) id: [u8; 16],
    pub(crate) text: String,
    pub(crate) keyspace: Option<String>,
    pub(crate) variables: Arc<[ColumnSpec]>,
    pub(crate) result_columns: Arc<[ColumnSpec]>,
    /// For each component of the partition key its marker; empty when the key is not all markers.
    pub(crate) partition_key_indexes: Arc<[u16]>,
    pub(crate) warnings: Vec<String>,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Query(Arc<str>),
    Prepare(Arc<str>),
    Execute(Arc<Kept>),
    Batch(BatchType, Vec<BatchPart>),
}

/// A statement of a batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchPart {
    pub(crate) statement: BatchPartStatement,
    pub(crate) values: Values,
}

#[derive(Clone, Debug)]
pub(crate) enum BatchPartStatement {
    Text(String),
    Prepared(Arc<Kept>),
}

/// Work on its way to a shard.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) keyspace: Option<String>,
    pub(crate) work: Work,
    pub(crate) options: QueryOptions,
    pub(crate) reply: oneshot::Sender<Result<Answer, Error>>,
}

/// What a shard answers; unlike the engine's answer it can leave the shard's thread.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) page: Page,
    pub(crate) prepared: Option<Kept>,
    /// The keyspace of a `USE` that was done.
    pub(crate) keyspace: Option<String>,
    pub(crate) schema_change: Option<SchemaChange>,
    pub(crate) warnings: Vec<String>,
}

/// Both ends of the mailboxes of all shards.
pub(crate) struct Mailboxes {
    pub(crate) senders: Vec<MailboxSender<Request>>,
    /// Each taken by its shard.
    receivers: Mutex<Vec<Option<MailboxReceiver<Request>>>>,
}

impl Mailboxes {
    pub(crate) fn new(shard_count: usize) -> Self {
        let (senders, receivers): (_, Vec<_>) = (0..shard_count).map(|_| mailbox(WAITING_MAX)).unzip();
        Mailboxes { senders, receivers: Mutex::new(receivers.into_iter().map(Some).collect()) }
    }

    pub(crate) fn take(&self, shard: usize) -> Option<MailboxReceiver<Request>> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner).get_mut(shard)?.take()
    }
}

/// Serves a shard's mailbox until the shard ends.
pub(crate) async fn serve(seat: Seat, mut mailbox: MailboxReceiver<Request>) {
    let running = Arc::new(Semaphore::new(RUNNING_MAX));
    while let Some(request) = mailbox.receive().await {
        // Never closed, so there is always a permit to come.
        let Ok(permit) = Arc::clone(&running).acquire_owned().await else { return };
        let engine = seat.engine.clone();
        runtime::spawn_local("call", async move {
            let _permit = permit;
            // Nobody waits any more, and nothing was begun.
            if !request.reply.is_closed() {
                answer(&engine, request).await;
            }
        });
    }
}

async fn answer(engine: &Engine, request: Request) {
    let Request { keyspace, work, options, reply } = request;
    let mut session = SessionState { keyspace };
    let answer = match &work {
        Work::Query(text) => engine
            .query(&mut session, text, &options, &mut engine.answers().room_of_its_own())
            .await
            .map(Answer::from)
            .map_err(Error::from),
        Work::Prepare(text) => prepare(engine, &session, text).await.map(Answer::from).map_err(Error::from),
        Work::Execute(kept) => execute(engine, kept, &options).await,
        Work::Batch(batch_type, parts) => batch(engine, &mut session, *batch_type, parts, &options).await,
    };
    // Whoever asked may have gone meanwhile.
    _ = reply.send(answer);
}

async fn prepare(engine: &Engine, session: &SessionState, text: &str) -> Result<Kept, QueryError> {
    let info = engine.prepare(session, text, None).await?;
    let PreparedInfo { id, variables, result_columns, partition_key_indexes, warnings, .. } = info;
    Ok(Kept {
        id,
        text: text.to_owned(),
        keyspace: session.keyspace.clone(),
        variables,
        result_columns,
        partition_key_indexes,
        warnings,
    })
}

/// Prepares again what is no longer known, or known otherwise.
async fn prepare_again(engine: &Engine, kept: &Kept) -> Result<(), Error> {
    let session = SessionState { keyspace: kept.keyspace.clone() };
    let again = prepare(engine, &session, &kept.text).await?;
    if again.variables == kept.variables { Ok(()) } else { Err(Error::MarkersChanged) }
}

async fn execute(engine: &Engine, kept: &Kept, options: &QueryOptions) -> Result<Answer, Error> {
    // It knows its keyspace.
    let mut session = SessionState::default();
    match engine.execute(&mut session, &kept.id, options, &mut engine.answers().room_of_its_own()).await {
        Err(QueryError::Unprepared { .. }) => {
            prepare_again(engine, kept).await?;
            Ok(engine
                .execute(&mut session, &kept.id, options, &mut engine.answers().room_of_its_own())
                .await?
                .into())
        }
        answered => Ok(answered?.into()),
    }
}

async fn batch(
    engine: &Engine,
    session: &mut SessionState,
    batch_type: BatchType,
    parts: &[BatchPart],
    options: &QueryOptions,
) -> Result<Answer, Error> {
    let statements: Vec<BatchStatement> = parts.iter().map(BatchPart::to_statement).collect();
    match engine
        .batch(session, batch_type, &statements, options, &mut engine.answers().room_of_its_own())
        .await
    {
        Err(QueryError::Unprepared { .. }) => {
            for part in parts {
                if let BatchPartStatement::Prepared(kept) = &part.statement {
                    prepare_again(engine, kept).await?;
                }
            }
            Ok(engine
                .batch(session, batch_type, &statements, options, &mut engine.answers().room_of_its_own())
                .await?
                .into())
        }
        answered => Ok(answered?.into()),
    }
}

impl BatchPart {
    fn to_statement(&self) -> BatchStatement {
        let query = match &self.statement {
            BatchPartStatement::Text(text) => BatchQuery::Text(text.clone()),
            BatchPartStatement::Prepared(kept) => BatchQuery::Prepared(kept.id),
        };
        BatchStatement { query, values: self.values.clone() }
    }
}

impl From<Kept> for Answer {
    fn from(kept: Kept) -> Self {
        Answer {
            page: Page::empty(),
            prepared: Some(kept),
            keyspace: None,
            schema_change: None,
            warnings: Vec::new(),
        }
    }
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        let Response { kind, warnings, tombstones: _ } = response;
        let mut answer =
            Answer { page: Page::empty(), prepared: None, keyspace: None, schema_change: None, warnings };
        match kind {
            ResponseKind::Void => {}
            ResponseKind::Rows(rows) => answer.page = Page::of(&rows),
            ResponseKind::SetKeyspace(keyspace) => answer.keyspace = Some(keyspace),
            ResponseKind::SchemaChange(change) => answer.schema_change = Some(change),
        }
        answer
    }
}
