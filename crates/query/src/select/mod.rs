//! SELECT: planned once, executed page by page.
//!
//! ```text
//!   plan ──► SelectPlan: restrictions, projection (which cells), selectors (what is computed)
//!   execute ──► Scan: page after page of stored rows ─ filter ─┬─ plain: handed on as stored
//!                                                              ├─ computed row by row
//!                                                              └─ aggregated group by group
//! ```
//!
//! A SELECT of one row by its key has the plain way beside this one, [`crate::plain`].

mod aggregate;
mod cells;
mod compute;
mod execute;
mod page;
mod paging;
mod passed;
mod plain;
mod plan;
mod plan_selector;
mod rows;
mod selector;
mod sort;
mod spelled;
mod virtual_read;

pub(crate) use cells::RowView;
pub(crate) use execute::{Reader, execute};
pub use plain::PlainRow;
pub(crate) use plan::{SelectPlan, plan, projection};
pub(crate) use plan_selector::source_of;
pub use rows::Projection;
pub(crate) use rows::{ComputedRows, Source, StoredRows};
