//! What a load is made of: tables, rows that are there when it begins, operations.
//!
//! A [`Workload`] is shared by all threads of the client; each thread has an [`Operations`] of its own, which chooses
//! what is next and looks at the answers. Values derive from their keys ([`value`]), so an answer that can not be right
//! is found while it is measured. YCSB's are code ([`ycsb`]); all others are texts, one's own among them ([`script`]).

mod acknowledged;
pub(crate) mod script;
mod value;
pub(crate) mod ycsb;

use bytes::{BufMut, BytesMut};
use protocol::{Prepared, Rows};
use stdx::cursor::Cursor;
use types::Token;

pub use ycsb::SETTINGS as YCSB_SETTINGS;

use crate::error::LabError;
use crate::manifest::Plan;
use crate::results::Audit;

/// A load, shared by threads.
pub(crate) trait Workload: Send + Sync {
    /// Statements that make its tables in the keyspace that is there.
    fn tables(&self, keyspace: &str) -> Vec<String>;

    /// Statements to prepare; a request names one by its place here.
    fn statements(&self, keyspace: &str) -> Vec<String>;

    /// Is told once how a server understands the statements, in their order, before anything is executed.
    ///
    /// # Errors
    /// Its values do not fit.
    fn learn(&mut self, _prepared: &[Prepared]) -> Result<(), LabError> {
        Ok(())
    }

    /// Names of its kinds of operation; an operation has its kind by its place here.
    fn kinds(&self) -> Vec<&str>;

    /// Writes one part of the rows that are there at the beginning; the parts are numbered from 0.
    fn loader(&self, part: Part) -> Box<dyn Operations>;

    /// What a thread does while it is measured.
    fn operations(&self, part: Part) -> Box<dyn Operations>;

    /// Reads one part of all that was counted, if something is. The first part is asked for first, and begins anew.
    fn auditor(&self, _: Part) -> Option<Box<dyn Operations>> {
        None
    }

    /// All was read: counting begins here.
    fn begin_audit(&self) {}

    /// All was read again: what it is, held against what was acknowledged since.
    fn audited(&self) -> Option<Audit> {
        None
    }
}

/// One of several threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// From 0.
    pub(crate) index: usize,
    /// Of how many.
    pub(crate) count: usize,
    /// What is chosen by chance follows from this and the index.
    pub(crate) seed: u64,
}

/// One thread's operations.
pub(crate) trait Operations: Send {
    /// Begins the next operation with its first request; none when all is done, as at the end of a load.
    fn begin(&mut self, request: &mut Request<'_>) -> Option<Operation>;

    /// An operation was answered by an error, or its connection broke: it may have been done or not.
    fn fail(&mut self, operation: &Operation);

    /// Looks at an answer that was no error.
    fn take(&mut self, operation: &mut Operation, answer: Answer<'_>, request: &mut Request<'_>) -> Step;
}

/// An operation under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Operation {
    /// Its kind, by place.
    pub(crate) kind: usize,
    /// The row that it is about.
    pub(crate) row: u64,
    /// How many of its requests have been answered.
    pub(crate) answered_count: u32,
    /// Which of its statements was asked, where it has several.
    pub(crate) statement: usize,
    /// A number that the workload wants to know when it is answered.
    pub(crate) note: u64,
}

/// What an answer brought.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer<'a> {
    /// Done, without rows.
    Done,
    /// A page of rows; their columns are those that the statement names.
    Rows(&'a Rows),
}

/// What comes after an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The operation is over.
    Done,
    /// The next request of the same operation was put.
    GoOn,
    /// The answer can not be right: why.
    Wrong(String),
}

/// A request in the making: which statement, with which values.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The statement's place.
    pub(crate) statement: usize,
    token: Option<Token>,
    value_count: u16,
    values: &'a mut BytesMut,
}

impl<'a> Request<'a> {
    /// Without values yet, in a buffer that is empty.
    pub(crate) fn new(values: &'a mut BytesMut) -> Request<'a> {
        values.clear();
        Request { statement: 0, token: None, value_count: 0, values }
    }

    /// Is to execute this statement, from its first value on.
    pub(crate) fn execute(&mut self, statement: usize) -> &mut Self {
        self.values.clear();
        (self.statement, self.token, self.value_count) = (statement, None, 0);
        self
    }

    /// Is about the partition with this key, as a token is made of it.
    pub(crate) fn on(&mut self, partition_key: &[u8]) -> &mut Self {
        self.token = Some(Token::of(partition_key));
        self
    }

    /// Where its partition is on the ring, if it is about one.
    pub(crate) fn token(&self) -> Option<Token> {
        self.token
    }

    /// The next value.
    pub(crate) fn value(&mut self, value: &[u8]) -> &mut Self {
        self.values.put_u32(value.len() as u32);
        self.values.put_slice(value);
        self.value_count += 1;
        self
    }

    /// The next value, of so many bytes that `fill` writes.
    pub(crate) fn value_with(&mut self, byte_count: usize, fill: impl FnOnce(&mut [u8])) -> &mut Self {
        self.values.put_u32(byte_count as u32);
        let start = self.values.len();
        self.values.resize(start + byte_count, 0);
        fill(&mut self.values[start..]);
        self.value_count += 1;
        self
    }

    /// The values, each by itself.
    #[cfg(test)]
    pub(crate) fn apart(&self) -> Vec<Vec<u8>> {
        let (count, values) = self.values();
        let (mut values, mut apart) = (Cursor::new(values), Vec::new());
        while let Ok(value) = values.cql_bytes() {
            apart.extend(value.map(<[u8]>::to_vec));
        }
        assert_eq!(apart.len(), usize::from(count));
        apart
    }

    /// The values as EXECUTE has them, with their count.
    pub(crate) fn values(&self) -> (u16, &[u8]) {
        (self.value_count, self.values)
    }
}

/// Walks over rows of so many columns until one is found wrong: why.
fn rows_of<'a>(
    rows: &'a Rows,
    column_count: usize,
    mut fault: impl FnMut(&mut dyn Iterator<Item = Option<&'a [u8]>>) -> Option<String>,
) -> Option<String> {
    // Borrowed, where `protocol`'s reader makes a shared slice of each.
    let mut cells = Cursor::new(&rows.cells);
    for _ in 0..rows.row_count {
        let mut row = (0..column_count).map_while(|_| cells.cql_bytes().ok());
        let found = fault(&mut row);
        if found.is_some() {
            return found;
        }
    }
    (!cells.is_empty()).then(|| "cells do not make up rows".to_owned())
}

/// The workload of a plan that is completed.
///
/// # Errors
/// There is none of that name, or it does not know a setting.
pub(crate) fn workload_of(plan: &Plan) -> Result<Box<dyn Workload>, LabError> {
    match &plan.script {
        Some(text) => Ok(Box::new(script::Script::of(plan, text)?)),
        None => Ok(Box::new(ycsb::Ycsb::of(plan)?)),
    }
}

/// Names of all workloads, each with what it is for: YCSB's first.
pub fn workloads() -> impl Iterator<Item = (String, String)> {
    let of_ycsb = ycsb::MIXES.iter().map(|mix| (mix.name.to_owned(), mix.about.to_owned()));
    of_ycsb.chain(script::BUNDLED.iter().map(|(name, text)| ((*name).to_owned(), script::about(text))))
}
