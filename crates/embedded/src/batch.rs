//! Several writes as one.

use std::future::IntoFuture;

use query::{BatchType, Consistency, QueryOptions, Values};

use crate::bind::BindValues;
use crate::session::{Prepared, Session, Statement};
use crate::worker::{BatchPart, BatchPartStatement, Work};
use crate::{Call, Error};

/// Several writes that are carried out together: `.await` it, or [`Batch::wait`] for it.
///
/// A logged batch is whole or absent, whatever happens on the way.
///
/// # Example
/// ```
/// use embedded::{BatchType, Database};
///
/// # let database = Database::in_memory()?;
/// # database.query("CREATE KEYSPACE k WITH replication = \
/// #     {'class': 'SimpleStrategy', 'replication_factor': 1}", ()).wait()?;
/// # database.query("CREATE TABLE k.t (id int PRIMARY KEY, name text)", ()).wait()?;
/// let insert = database.prepare("INSERT INTO k.t (id, name) VALUES (?, ?)").wait()?;
/// database
///     .batch(BatchType::Logged)
///     .add(&insert, (1, "one"))
///     .add(&insert, (2, "two"))
///     .add("DELETE FROM k.t WHERE id = 3", ())
///     .wait()?;
/// # Ok::<(), embedded::Error>(())
/// ```
#[must_use = "a batch does nothing until it is awaited or waited for"]
pub struct Batch<'a> {
    session: &'a Session,
    batch_type: BatchType,
    parts: Vec<(Statement<'a>, Box<dyn BindValues + Send + Sync + 'a>)>,
    options: QueryOptions,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(session: &'a Session, batch_type: BatchType) -> Self {
        Batch { session, batch_type, parts: Vec::new(), options: QueryOptions::default() }
    }

    /// Adds an `INSERT`, `UPDATE` or `DELETE` and the values of its markers.
    pub fn add(
        mut self,
        statement: impl Into<Statement<'a>>,
        values: impl BindValues + Send + Sync + 'a,
    ) -> Self {
        self.parts.push((statement.into(), Box::new(values)));
        self
    }

    /// The level; `ONE` if not told.
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.options.consistency = consistency;
        self
    }

    /// The timestamp, in microseconds, of all writes that do not say their own.
    pub fn timestamp(mut self, micros: i64) -> Self {
        self.options.timestamp = Some(micros);
        self
    }

    /// Carries it out and blocks until it is done; gives the warnings. See [`Call::wait`].
    ///
    /// # Errors
    /// [`Error::Query`] when it is refused or fails, [`Error::Bind`] when a value does not fit.
    pub fn wait(self) -> Result<Vec<String>, Error> {
        self.into_future().wait()
    }

    async fn run(self) -> Result<Vec<String>, Error> {
        let Batch { session, batch_type, parts, options } = self;
        let keyspace = session.keyspace();
        let mut bound = Vec::with_capacity(parts.len());
        for (statement, values) in parts {
            bound.push(match statement {
                Statement::Text(text) if values.is_empty() => BatchPart {
                    statement: BatchPartStatement::Text(text.into_owned()),
                    values: Values::default(),
                },
                Statement::Text(text) => {
                    let kept = session.instance.known(keyspace.clone(), &text).await?;
                    let values = Values::Positional(values.bind(&kept.variables)?);
                    BatchPart { statement: BatchPartStatement::Prepared(kept), values }
                }
                Statement::Prepared(Prepared(kept)) => {
                    let values = Values::Positional(values.bind(&kept.variables)?);
                    BatchPart { statement: BatchPartStatement::Prepared(kept), values }
                }
            });
        }
        let carried = session.carry_out(keyspace, Work::Batch(batch_type, bound), options).await;
        if matches!(carried, Err(Error::MarkersChanged)) {
            // So that the next try finds texts as they are to be understood now.
            session.instance.forget_known();
        }
        Ok(carried?.warnings)
    }
}

impl<'a> IntoFuture for Batch<'a> {
    type Output = Result<Vec<String>, Error>;
    type IntoFuture = Call<'a, Vec<String>>;

    fn into_future(self) -> Call<'a, Vec<String>> {
        Call::new(self.run())
    }
}

impl std::fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("part_count", &self.parts.len()).finish_non_exhaustive()
    }
}
