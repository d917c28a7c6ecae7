//! What a load is made of: tables, rows that are there when it begins, operations.
//!
//! A [`Workload`] is shared by all threads of the client; each thread has an [`Operations`] of its own, which chooses
//! what is next and looks at the answers. Values derive from their keys ([`value`]), so an answer that can not be right
//! is found while it is measured. YCSB's are code ([`ycsb`]); all others are texts, one's own among them ([`script`]).

mod acknowledged;
mod request;
pub(crate) mod script;
mod value;
pub(crate) mod ycsb;

use protocol::{Prepared, Rows};
use stdx::cursor::Cursor;

pub(crate) use request::{Kept, Request};
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
