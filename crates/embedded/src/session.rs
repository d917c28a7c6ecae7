//! Sessions, and the statements that are carried out in them.

use std::borrow::Cow;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use query::{BatchType, ColumnSpec, Consistency, QueryOptions, Values};

use crate::batch::Batch;
use crate::bind::BindValues;
use crate::instance::{Instance, lock};
use crate::worker::{Answer, Kept, Work};
use crate::{Call, Error, Rows};

/// Rows of a page when a query does not say, as drivers have it.
const PAGE_ROWS: u32 = 5_000;

/// Statements one after another, in the keyspace of the last `USE`. Cheap to clone; clones are the same
/// session, with one keyspace.
#[derive(Clone)]
pub struct Session {
    pub(crate) instance: Arc<Instance>,
    keyspace: Arc<Mutex<Option<String>>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("keyspace", &self.keyspace()).finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(instance: Arc<Instance>) -> Self {
        Session { instance, keyspace: Arc::default() }
    }

    /// The keyspace of the last `USE`.
    pub fn keyspace(&self) -> Option<String> {
        lock(&self.keyspace).clone()
    }

    /// A statement to carry out: a CQL text or a [`Prepared`] statement, and the values of its markers:
    /// `()`, a tuple, a list, or [`Named`](crate::Named) ones. Nothing happens until it is awaited or
    /// [waited for](Query::wait).
    ///
    /// A text with values is prepared on its way, and found again the next time; what runs often is
    /// best prepared by hand all the same.
    ///
    /// # Example
    /// ```
    /// # let database = embedded::Database::in_memory()?;
    /// let rows = database
    ///     .query("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?", ("system",))
    ///     .wait()?;
    /// assert_eq!(rows.all::<(String,)>().wait()?, [("system".to_owned(),)]);
    /// # Ok::<(), embedded::Error>(())
    /// ```
    pub fn query<'a>(
        &'a self,
        statement: impl Into<Statement<'a>>,
        values: impl BindValues + Send + Sync + 'a,
    ) -> Query<'a> {
        let options = QueryOptions { page_size: Some(PAGE_ROWS), ..QueryOptions::default() };
        Query { session: self, statement: statement.into(), values: Box::new(values), options }
    }

    /// Prepares a statement, which then can be carried out any number of times, in any session.
    ///
    /// # Errors
    /// [`Error::Query`]: the statement makes no sense.
    pub fn prepare<'a>(&'a self, cql: &'a str) -> Call<'a, Prepared> {
        Call::new(async move {
            let kept = self.instance.prepare(self.keyspace(), cql.into()).await?;
            Ok(Prepared(Arc::new(kept)))
        })
    }

    /// An empty batch.
    pub fn batch(&self, batch_type: BatchType) -> Batch<'_> {
        Batch::new(self, batch_type)
    }

    /// Carries work out and notes the keyspace of a `USE`.
    pub(crate) async fn carry_out(
        &self,
        keyspace: Option<String>,
        work: Work,
        options: QueryOptions,
    ) -> Result<Answer, Error> {
        let answer = self.instance.carry_out(keyspace, work, options).await?;
        if let Some(keyspace) = &answer.keyspace {
            *lock(&self.keyspace) = Some(keyspace.clone());
        }
        Ok(answer)
    }
}

/// A statement that was prepared: parsed, planned, with the types of its markers known. Cheap to clone,
/// and no handle on the database: keeping it keeps nothing open.
///
/// When the schema changes it is prepared anew by itself; only when its markers have other types
/// afterwards, [`Error::MarkersChanged`] asks for another [`Session::prepare`].
#[derive(Clone, Debug)]
pub struct Prepared(pub(crate) Arc<Kept>);

impl Prepared {
    /// Its text.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// What its markers are bound to.
    pub fn markers(&self) -> &[ColumnSpec] {
        &self.0.variables
    }

    /// The columns of its rows; none when it gives no rows.
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.0.result_columns
    }

    /// What should be known although nothing failed.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }
}

/// A text, or a prepared statement.
#[derive(Clone, Debug)]
pub enum Statement<'a> {
    /// A CQL text.
    Text(Cow<'a, str>),
    /// A prepared statement.
    Prepared(Prepared),
}

impl<'a> From<&'a str> for Statement<'a> {
    fn from(text: &'a str) -> Self {
        Statement::Text(text.into())
    }
}

impl<'a> From<&'a String> for Statement<'a> {
    fn from(text: &'a String) -> Self {
        Statement::Text(text.into())
    }
}

impl From<String> for Statement<'_> {
    fn from(text: String) -> Self {
        Statement::Text(text.into())
    }
}

impl From<&Prepared> for Statement<'_> {
    fn from(prepared: &Prepared) -> Self {
        Statement::Prepared(prepared.clone())
    }
}

impl From<Prepared> for Statement<'_> {
    fn from(prepared: Prepared) -> Self {
        Statement::Prepared(prepared)
    }
}

/// A statement about to be carried out: `.await` it, or [`Query::wait`] for it.
#[must_use = "a query does nothing until it is awaited or waited for"]
pub struct Query<'a> {
    session: &'a Session,
    statement: Statement<'a>,
    values: Box<dyn BindValues + Send + Sync + 'a>,
    options: QueryOptions,
}

impl<'a> Query<'a> {
    /// Rows that are fetched at a time; 5,000 if not told. [`Rows`] goes on to the next page by itself.
    pub fn page_size(mut self, row_count: u32) -> Self {
        self.options.page_size = Some(row_count.max(1));
        self
    }

    /// All rows at once, however many.
    pub fn unpaged(mut self) -> Self {
        self.options.page_size = None;
        self
    }

    /// The level; `ONE` if not told. One node is all replicas there are, so a level that asks for more
    /// than the keyspace's one replica is refused as a node refuses it.
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.options.consistency = consistency;
        self
    }

    /// The timestamp, in microseconds, of a write that does not say its own.
    pub fn timestamp(mut self, micros: i64) -> Self {
        self.options.timestamp = Some(micros);
        self
    }

    /// The keyspace of unqualified names in this text, in place of the session's.
    pub fn keyspace(mut self, keyspace: impl Into<String>) -> Self {
        self.options.keyspace = Some(keyspace.into());
        self
    }

    /// Carries it out and blocks until the first page is there. See [`Call::wait`].
    ///
    /// # Errors
    /// [`Error::Query`] when it is refused or fails, [`Error::Bind`] when a value does not fit.
    pub fn wait(self) -> Result<Rows, Error> {
        self.into_future().wait()
    }

    async fn run(self) -> Result<Rows, Error> {
        let Query { session, statement, values, mut options } = self;
        let keyspace = options.keyspace.clone().or_else(|| session.keyspace());
        let work = match statement {
            Statement::Text(text) if values.is_empty() => Work::Query(text.into()),
            Statement::Text(text) => {
                let answered = run_text(session, &text, &*values, &keyspace, &options).await;
                return match answered {
                    // The schema was changed meanwhile.
                    Err(Error::MarkersChanged | Error::Bind { .. }) => {
                        session.instance.forget_known();
                        run_text(session, &text, &*values, &keyspace, &options).await
                    }
                    answered => answered,
                };
            }
            Statement::Prepared(Prepared(kept)) => {
                options.values = Values::Positional(values.bind(&kept.variables)?);
                Work::Execute(kept)
            }
        };
        let answer = session.carry_out(keyspace.clone(), work.clone(), options.clone()).await?;
        Ok(Rows::new(answer, session.clone(), keyspace, work, options))
    }
}

/// Carries out a text with values: prepared, if it was not before.
async fn run_text(
    session: &Session,
    text: &str,
    values: &(dyn BindValues + Send + Sync + '_),
    keyspace: &Option<String>,
    options: &QueryOptions,
) -> Result<Rows, Error> {
    let kept = session.instance.known(keyspace.clone(), text).await?;
    let values = Values::Positional(values.bind(&kept.variables)?);
    let options = QueryOptions { values, ..options.clone() };
    let work = Work::Execute(kept);
    let answer = session.carry_out(keyspace.clone(), work.clone(), options.clone()).await?;
    Ok(Rows::new(answer, session.clone(), keyspace.clone(), work, options))
}

impl<'a> IntoFuture for Query<'a> {
    type Output = Result<Rows, Error>;
    type IntoFuture = Call<'a, Rows>;

    fn into_future(self) -> Call<'a, Rows> {
        Call::new(self.run())
    }
}

impl std::fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("statement", &self.statement).finish_non_exhaustive()
    }
}
