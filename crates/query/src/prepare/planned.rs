//! A statement planned against one schema: what executing it needs, and what its client is told.

use std::sync::Arc;

use cql::ast::{self, Statement, StatementKind};
use schema::Table;

use crate::catalog::Catalog;
use crate::modify::{BatchPlan, ModifyPlan, Written, plan_batch};
use crate::response::metadata_id;
use crate::scope::Scope;
use crate::select::SelectPlan;
use crate::{ColumnSpec, PreparedInfo, QueryError, modify, select};

/// A planned statement.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) body: Body,
    /// What the markers are bound to.
    pub(crate) variables: Arc<[ColumnSpec]>,
    pub(crate) partition_key_indexes: Arc<[u16]>,
    /// The epoch it was planned against.
    pub(crate) epoch: u64,
}

/// What is planned of it.
#[derive(Debug)]
pub(crate) enum Body {
    Select(Box<SelectPlan>),
    Modify(Box<ModifyPlan>),
    Batch(Box<BatchPlan>),
    /// Nothing: it is looked at when it is executed.
    Other(Box<StatementKind>),
}

impl Body {
    /// Does it gather rows, to answer with them or to change them?
    pub(crate) fn gathers_rows(&self) -> bool {
        match self {
            Body::Select(_) => true,
            Body::Modify(plan) => plan.reads_first(),
            Body::Batch(plan) => plan.reads_first(),
            Body::Other(_) => false,
        }
    }
}

/// What a plan takes, by what it is made of; `tests/allocations.rs` holds it against what is allocated.
const BYTES_OF_STATEMENT: usize = 1 << 10;
const BYTES_OF_TOKEN: usize = 48;
const BYTES_OF_MARKER: usize = 128;
const BYTES_OF_COLUMN: usize = 192;

/// Most markers of a statement: the protocol counts their values in two bytes.
const MARKERS_MAX: usize = u16::MAX as usize;

/// Plans a statement; `session` is the keyspace of unqualified names.
///
/// # Errors
/// It makes no sense against the catalog.
pub(crate) fn plan(
    statement: Statement,
    session: Option<&str>,
    catalog: &Catalog<'_>,
    now_millis: i64,
) -> Result<Planned, QueryError> {
    if statement.markers.len() > MARKERS_MAX {
        return Err(QueryError::invalid(stdx::brief!(
            "Too many markers(?). {} markers exceed the allowed maximum of {MARKERS_MAX}",
            statement.markers.len()
        )));
    }
    let mut scope = Scope::new(catalog, session.unwrap_or_default(), statement.markers.len(), now_millis);
    let epoch = catalog.schema.epoch();
    let mut modification = |written: Written<'_>| {
        let plan = modify::plan(written, session, &mut scope)?;
        plan.check_counting()?;
        Ok::<_, QueryError>(Body::Modify(Box::new(plan)))
    };
    let body = match statement.kind {
        StatementKind::Select(select) => Body::Select(Box::new(select::plan(&select, session, &mut scope)?)),
        StatementKind::Insert(insert) => modification(Written::Insert(&insert))?,
        StatementKind::Update(update) => modification(Written::Update(&update))?,
        StatementKind::Delete(delete) => modification(Written::Delete(&delete))?,
        StatementKind::Batch(batch) => Body::Batch(Box::new(plan_batch(&batch, session, &mut scope)?)),
        other => Body::Other(Box::new(other)),
    };
    let key_of = |table: &Table| scope.markers.partition_key_indexes(table);
    let partition_key_indexes = match &body {
        Body::Select(plan) => key_of(&plan.table),
        Body::Modify(plan) => key_of(&plan.table),
        Body::Batch(plan) => match plan.only_table() {
            Some(table) => key_of(table),
            None => Arc::default(),
        },
        Body::Other(_) => Arc::default(),
    };
    Ok(Planned { body, variables: scope.markers.specs(), partition_key_indexes, epoch })
}

impl Planned {
    /// The tables it was planned against.
    pub(crate) fn tables(&self) -> Vec<&Arc<Table>> {
        match &self.body {
            Body::Select(plan) => vec![&plan.table],
            Body::Modify(plan) => vec![&plan.table],
            Body::Batch(plan) => plan.tables().collect(),
            Body::Other(_) => Vec::new(),
        }
    }

    /// Would the same statement mean the same against these tables? Cassandra forgets a prepared
    /// statement when the columns of its table changed, and so do we: a client that was told the
    /// columns of the result could not read another.
    pub(crate) fn is_like(&self, other: &Planned) -> bool {
        let (mine, theirs) = (self.tables(), other.tables());
        mine.len() == theirs.len()
            && mine.iter().zip(theirs).all(|(a, b)| a.id() == b.id() && a.columns() == b.columns())
    }

    /// What it takes in memory, as the plan of a text of so many bytes and tokens; told rather too high than too low.
    pub(crate) fn bytes(&self, text_bytes: usize, token_count: usize) -> usize {
        let tables = self.tables();
        let column_count: usize = tables.iter().map(|table| table.columns().len()).sum();
        (1 + tables.len()) * BYTES_OF_STATEMENT
            + text_bytes
            + token_count * BYTES_OF_TOKEN
            + self.variables.len() * BYTES_OF_MARKER
            + column_count * BYTES_OF_COLUMN
    }

    pub(crate) fn info(&self, id: [u8; 16]) -> PreparedInfo {
        let (result_columns, result_metadata_id) = match &self.body {
            Body::Select(plan) => (Arc::clone(&plan.columns), plan.metadata_id),
            _ => (Arc::from([]), metadata_id(&[])),
        };
        PreparedInfo {
            id,
            result_metadata_id,
            variables: Arc::clone(&self.variables),
            partition_key_indexes: Arc::clone(&self.partition_key_indexes),
            result_columns,
            warnings: Vec::new(),
        }
    }
}

/// Does every name in the statement say its keyspace?
pub(crate) fn is_qualified(kind: &StatementKind) -> bool {
    let has = |name: &ast::QualifiedName| name.keyspace.is_some();
    match kind {
        StatementKind::Select(select) => has(&select.table),
        StatementKind::Insert(insert) => has(&insert.table),
        StatementKind::Update(update) => has(&update.table),
        StatementKind::Delete(delete) => has(&delete.table),
        _ => false,
    }
}

/// MD5 of keyspace and text.
pub(crate) fn statement_id(keyspace: Option<&str>, text: &str) -> [u8; 16] {
    use md5::{Digest, Md5};
    let mut hasher = Md5::new();
    hasher.update(keyspace.unwrap_or_default().as_bytes());
    hasher.update(text.as_bytes());
    hasher.finalize().into()
}
