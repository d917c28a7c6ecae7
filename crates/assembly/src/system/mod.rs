//! What drivers and people find in the system keyspaces.
//!
//! ```text
//!   definitions/*.cql ──► base_schema()        system, system_schema, system_auth, … at epoch 0
//!                    └──► virtual_keyspaces()  system_views, system_virtual_schema: beside the schema
//!
//!   SELECT … FROM system.local ──► query ──► SystemTables::rows ──► made-up rows
//!   SELECT … FROM system.batches ──► query ──► storage (a table like any other)
//! ```
//!
//! | a reader asks | file |
//! |---|---|
//! | which tables are there? | `definitions/`, `definitions.rs` |
//! | who answers for which table? | `tables.rs` |
//! | how is a row made up? | `made_up.rs` |
//! | what do drivers learn of this node? | `local.rs`, `view.rs` |
//! | what do they learn of the other nodes? | `peers.rs` |
//! | which ranges have which nodes? | `ranges.rs` |
//! | what do people learn of the ring's nodes? | `ring_views.rs` |
//! | what do they learn of the schema? | `schema_rows.rs`, `schema_version.rs` |
//! | what do people learn of the node's state? | `views.rs` |
//! | how much lies in which range? | `estimates.rs` |

mod definitions;
mod estimates;
mod local;
mod made_up;
mod peers;
mod ranges;
mod ring_views;
mod schema_rows;
mod schema_version;
mod tables;
mod view;
mod views;

pub use definitions::base_schema;
pub use peers::schema_versions;
pub use ranges::Placed;
pub(crate) use tables::SystemTables;
pub use view::{NodeView, PARTITIONER, RELEASE_VERSION};
