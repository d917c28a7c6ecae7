//! INSERT, UPDATE, DELETE and BATCH: from a plan and bound values to mutations.
//!
//! ```text
//!   plan ──► ModifyPlan: restrictions (which rows), operations by column id, USING
//!   bind ──► Change: key, static row, rows, deletions ── collected per partition ──► Mutation
//! ```
//!
//! Two operations read before they write: a list element by its index, and the removal of values
//! from a list. Everything else is blind.

mod batch;
mod bind;
mod cells;
mod collect;
mod insert;
mod json;
mod operation;
mod plain;
mod plan;
mod shape;

pub(crate) use batch::{BatchPlan, check as check_batch, plan_batch, unlogged_warning};
pub(crate) use bind::{Basis, Elements, Writer, read_whole, row_of, write_time};
pub(crate) use cells::PrependClock;
pub(crate) use collect::Changes;
pub(crate) use plan::{ModifyPlan, Written, plan};
