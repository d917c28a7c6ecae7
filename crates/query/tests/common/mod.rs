//! A node of two shards in this thread's memory, and statements sent to its engine.

#![allow(
    clippy::unwrap_used,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster::MetadataLog;
use coordinator::{Coordinator, Node};
use query::{
    AnswerMemory, BindValue, Engine, LargeAnswer, NoVirtualTables, PreparedLimits, PreparedTexts, QueryError,
    QueryOptions, Response, ResponseKind, RowsResult, SessionState, Timeouts, Values,
};
use rows::PartitionKey;
use runtime::{Io, Runtime};
use schema::Schema;
use storage::{Directory, LocalShards, StorageOptions, SyncMode};

/// A node and one session on it.
pub struct Session {
    pub engine: Engine,
    pub state: SessionState,
    pub options: QueryOptions,
    pub timeouts: Arc<Timeouts>,
    _shards: Rc<LocalShards>,
}

/// What prepared statements may take.
pub const PREPARED: PreparedLimits =
    PreparedLimits { text_bytes: 16 << 20, plan_bytes: 16 << 20, metadata_bytes: 0 };
/// So much one answer may gather.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Runs a test with a session in keyspace `ks`.
pub fn with_session<Test: AsyncFnOnce(Session)>(test: Test) {
    with_node(2, 64 << 20, test);
}

/// The same on a node of that many shards and that much memory.
pub fn with_node<Test: AsyncFnOnce(Session)>(shard_count: u16, memory_bytes: usize, test: Test) {
    with_options(StorageOptions::new("/data", shard_count, memory_bytes), test);
}

/// The same on a node of two shards whose disk takes that long for each operation, in virtual time.
pub fn with_slow_disk<Test: AsyncFnOnce(Session)>(delay: Duration, test: Test) {
    let runtime = Runtime { io: Io::delayed(delay), ..Runtime::in_memory_for_tests() };
    let mut executor = tokio::runtime::Builder::new_current_thread();
    with_runtime(executor.start_paused(true), runtime, StorageOptions::new("/data", 2, 64 << 20), test);
}

/// The same on a node of one shard whose writes do not wait for the disk.
pub fn with_periodic_node<Test: AsyncFnOnce(Session)>(test: Test) {
    let sync = SyncMode::Periodic { period: Duration::from_secs(10) };
    with_options(StorageOptions { sync, ..StorageOptions::new("/data", 1, 64 << 20) }, test);
}

/// The same on a node of one shard whose log has segments of so many bytes.
pub fn with_log_segments<Test: AsyncFnOnce(Session)>(segment_bytes: u32, test: Test) {
    with_options(StorageOptions { segment_bytes, ..StorageOptions::new("/data", 1, 64 << 20) }, test);
}

fn with_options<Test: AsyncFnOnce(Session)>(options: StorageOptions, test: Test) {
    let mut executor = tokio::runtime::Builder::new_current_thread();
    with_runtime(&mut executor, Runtime::in_memory_for_tests(), options, test);
}

fn with_runtime<Test: AsyncFnOnce(Session)>(
    executor: &mut tokio::runtime::Builder,
    runtime: Runtime,
    options: StorageOptions,
    test: Test,
) {
    let tokio_runtime = executor.enable_time().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&tokio_runtime, async move {
        let directory = Directory::open(&runtime, options).unwrap();
        let log = directory.layout().schema_log();
        let metadata = MetadataLog::open(&runtime.disk, &log, Schema::default()).unwrap();
        let schema = Arc::clone(metadata.schema());
        let shards = Rc::new(directory.recover(&schema).unwrap().start_local(&schema).unwrap());
        let coordinator = Coordinator::new(Node::new(metadata), shards.handles()[0].clone());
        let texts = Arc::new(PreparedTexts::new(PREPARED));
        let answers = AnswerMemory::new(4 * ANSWER_BYTES_MAX, LargeAnswer::new(ANSWER_BYTES_MAX));
        let timeouts = Arc::<Timeouts>::default();
        let engine =
            Engine::new(coordinator, Rc::new(NoVirtualTables), texts, answers, Arc::clone(&timeouts));
        let (state, options) = (SessionState::default(), QueryOptions::default());
        let mut session = Session { engine, state, options, timeouts, _shards: shards };
        session
            .run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            .await;
        session.run("USE ks").await;
        test(session).await;
    });
}

impl Session {
    /// Writes what is in memory to table files.
    pub async fn flush(&self) {
        for handle in self._shards.handles() {
            handle.local().flush_all().await.unwrap();
        }
    }

    /// The shard that owns a key. Statements are sent to shard 0.
    pub fn owner(&self, key: &[u8]) -> usize {
        self._shards.shards().owner(PartitionKey::new(Bytes::copy_from_slice(key)).token)
    }

    pub async fn send(&mut self, text: &str) -> Result<Response, QueryError> {
        self.engine
            .query(&mut self.state, text, &self.options, &mut self.engine.answers().room_of_its_own())
            .await
    }

    /// Sends a statement that must succeed.
    pub async fn run(&mut self, text: &str) -> Response {
        match self.send(text).await {
            Ok(response) => response,
            Err(error) => panic!("{text}\n{error:?}"),
        }
    }

    /// The answer as text: a line for each row, ` | ` between cells.
    pub async fn rows(&mut self, text: &str) -> Vec<String> {
        match self.run(text).await.kind {
            ResponseKind::Rows(rows) => show(&rows),
            other => panic!("{text}\nis answered by {other:?}"),
        }
    }

    pub async fn check(&mut self, text: &str, expected: &[&str]) {
        assert_eq!(self.rows(text).await, expected, "{text}");
    }

    pub async fn refuses(&mut self, text: &str, message: &str) {
        match self.send(text).await {
            Ok(response) => panic!("{text}\nis answered by {response:?}"),
            Err(error) => assert_eq!(error.to_string(), message, "{text}"),
        }
    }

    /// Prepares and executes with these values.
    pub async fn execute(&mut self, text: &str, values: Vec<BindValue>) -> Result<Response, QueryError> {
        let prepared = self.engine.prepare(&self.state, text, None).await?;
        let options = QueryOptions { values: Values::Positional(values), ..self.options.clone() };
        self.engine
            .execute(&mut self.state, &prepared.id, &options, &mut self.engine.answers().room_of_its_own())
            .await
    }
}

pub fn show(rows: &RowsResult) -> Vec<String> {
    let cell = |(value, column): (&Option<Bytes>, &query::ColumnSpec)| match value {
        None => "null".to_owned(),
        Some(value) => column.cql_type.to_cql_literal(value),
    };
    rows.to_cells()
        .iter()
        .map(|row| row.iter().zip(rows.columns.iter()).map(cell).collect::<Vec<_>>().join(" | "))
        .collect()
}

pub fn int(value: i32) -> BindValue {
    BindValue::Set(Bytes::copy_from_slice(&value.to_be_bytes()))
}

pub fn text(value: &str) -> BindValue {
    BindValue::Set(Bytes::copy_from_slice(value.as_bytes()))
}
