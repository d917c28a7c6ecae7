//! IF: changes that are made when what is there is as they ask for.
//!
//! ```text
//!   plan ──► Condition: IF [NOT] EXISTS, or tests of columns
//!   bind ──► Conditions: what is asked of each row of the one partition, with values; which rows to read
//!   read ──► hold? ─┬─ yes ─► the changes are written ─► [applied] true
//!                   └─ no ──► [applied] false, and the rows as they are
//! ```
//!
//! In a ring all of this may be done on another node, to which the statement is carried (`carried.rs`).
//!
//! How nobody else decides on the same partition meanwhile is the coordinator's business. The words of refusals, and
//! which columns an answer shows, are Cassandra's: `CQL3CasRequest`, `ColumnCondition` and `ModificationStatement` of
//! Cassandra 5.0.

mod answer;
mod bound_test;
mod carried;
mod conditions;
mod operation;
mod plan;

pub(crate) use answer::{ShownColumns, applied, found_rows, not_applied};
pub(crate) use carried::{Carried, CarriedChange, CarriedCount, CarriedStatement, Decision, pack, unpack};
pub(crate) use conditions::Conditions;
pub(crate) use operation::{KeptDecision, OperationId};
pub(crate) use plan::{Condition, plan_condition};
