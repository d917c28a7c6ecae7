//! An open database: the handle that opens, closes and lends sessions.

use std::path::Path;
use std::sync::Arc;

use query::BatchType;
use tokio::sync::oneshot;

use crate::batch::Batch;
use crate::bind::BindValues;
use crate::instance::Instance;
use crate::session::{Query, Session, Statement};
use crate::{Call, Error, Options, Prepared};

/// An open database. Cheap to clone; all clones are one database and one [`Session`].
///
/// It may be used from any number of threads and from any async runtime at once. Several databases in
/// several directories can be open in one process.
///
/// # Closing
/// [`Database::close`] writes everything out and ends the database for all its clones and sessions. When
/// the last handle (database, session, or rows with pages to come) is dropped without that, the database
/// ends all the same: the commit log is synced, the threads are joined and the directory is free, which
/// takes milliseconds; memtables are not flushed, so that the next open has the commit log to replay.
/// What was acknowledged is there either way.
#[derive(Clone)]
pub struct Database {
    instance: Arc<Instance>,
    session: Session,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

impl Database {
    pub(crate) fn new(instance: Arc<Instance>) -> Self {
        Database { session: Session::new(Arc::clone(&instance)), instance }
    }

    /// Opens the database in a directory, which is made if it is not there. Blocks; see
    /// [`Options::open`].
    ///
    /// # Errors
    /// [`Error::InUse`] when this or another process has it open, [`Error::Open`] when it is damaged or
    /// the disk fails.
    pub fn open(directory: impl AsRef<Path>) -> Result<Database, Error> {
        Options::default().open(directory)
    }

    /// Opens a new database whose files lie in memory and are gone with it.
    ///
    /// # Errors
    /// The system has no threads left.
    pub fn in_memory() -> Result<Database, Error> {
        Options::default().in_memory()
    }

    /// To open a database otherwise than by default.
    pub fn options() -> Options {
        Options::default()
    }

    /// A new session, in no keyspace. The database itself is a session too.
    pub fn session(&self) -> Session {
        Session::new(Arc::clone(&self.instance))
    }

    /// As [`Session::query`], in the session that all clones share.
    pub fn query<'a>(
        &'a self,
        statement: impl Into<Statement<'a>>,
        values: impl BindValues + Send + Sync + 'a,
    ) -> Query<'a> {
        self.session.query(statement, values)
    }

    /// As [`Session::prepare`], in the session that all clones share.
    pub fn prepare<'a>(&'a self, cql: &'a str) -> Call<'a, Prepared> {
        self.session.prepare(cql)
    }

    /// As [`Session::batch`], in the session that all clones share.
    pub fn batch(&self, batch_type: BatchType) -> Batch<'_> {
        self.session.batch(batch_type)
    }

    /// Writes all memtables to table files, as `nodetool flush` does.
    ///
    /// # Errors
    /// [`Error::Flush`] when the disk fails.
    pub fn flush(&self) -> Call<'_, ()> {
        Call::new(async move {
            self.instance.check_open()?;
            let shards = self.instance.shards();
            for shard in 0..shards.count() {
                let flushed = shards.on_when_free(shard, |shard| async move { shard.flush_all().await });
                flushed.await.and_then(|flushed| flushed).map_err(Error::Flush)?;
            }
            Ok(())
        })
    }

    /// Writes everything out, ends the threads and lets go of the directory. Later calls, of clones and
    /// sessions too, answer [`Error::Closed`]; calls that go on meanwhile may answer [`Error::NoAnswer`].
    /// A database that is closed already is no error.
    ///
    /// # Errors
    /// [`Error::Close`] when something could not be written out. The database has ended all the same, and
    /// what was acknowledged is in its commit log.
    ///
    /// # Cancel safety
    /// Once polled, the closing goes on to its end whether or not anybody waits for it.
    pub fn close(self) -> Call<'static, ()> {
        Call::new(async move {
            let Some(node) = self.instance.begin_close() else { return Ok(()) };
            let (report, closed) = oneshot::channel();
            // On a thread of its own: threads are joined, which must not hold up the caller's runtime.
            runtime::start_service("close", move || async move { _ = report.send(node.stop(true).await) })
                .map_err(Error::Threads)?;
            closed.await.map_err(|_| Error::NoAnswer)?.map_err(Error::Close)
        })
    }
}
