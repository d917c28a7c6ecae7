//! One engine per shard: statements in, answers out.

use std::rc::Rc;
use std::sync::Arc;

use coordinator::Coordinator;

use crate::request::{BatchStatement, BatchType, QueryOptions, SessionState};
use crate::response::{PreparedInfo, Response};
use crate::{PreparedTexts, QueryError, VirtualTables};

/// Prepares, plans and executes statements. Belongs to one shard; cheap to clone there.
#[derive(Clone)]
pub struct Engine {
    inner: Rc<Inner>,
}

struct Inner {
    coordinator: Coordinator,
    virtual_tables: Rc<dyn VirtualTables>,
    texts: Arc<PreparedTexts>,
}

impl Engine {
    /// An engine over that coordinator. `texts` is shared by the engines of all shards of a node.
    pub fn new(
        coordinator: Coordinator,
        virtual_tables: Rc<dyn VirtualTables>,
        texts: Arc<PreparedTexts>,
    ) -> Self {
        Engine { inner: Rc::new(Inner { coordinator, virtual_tables, texts }) }
    }

    /// Executes the statement of that text.
    ///
    /// # Errors
    /// [`QueryError`], as Cassandra would answer.
    pub async fn query(
        &self,
        session: &mut SessionState,
        text: &str,
        options: &QueryOptions,
    ) -> Result<Response, QueryError> {
        let _ =
            (session, text, options, &self.inner.coordinator, &self.inner.virtual_tables, &self.inner.texts);
        Err(QueryError::unsupported("this statement"))
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
        let _ = (session, text, keyspace);
        Err(QueryError::unsupported("this statement"))
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
    ) -> Result<Response, QueryError> {
        let _ = (session, options);
        Err(QueryError::Unprepared { id: *id })
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
    ) -> Result<Response, QueryError> {
        let _ = (session, batch_type, statements, options);
        Err(QueryError::unsupported("this statement"))
    }
}
