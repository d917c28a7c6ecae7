//! Peristyle in your process: a database that speaks CQL and keeps Cassandra's own table files, as a
//! library.
//!
//! ```
//! use embedded::Database;
//!
//! let database = Database::in_memory()?; // or Database::open("directory")?
//! database
//!     .query(
//!         "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
//!         (),
//!     )
//!     .wait()?;
//! database.query("USE shop", ()).wait()?;
//! database
//!     .query("CREATE TABLE carts (user text, item text, quantity int, PRIMARY KEY (user, item))", ())
//!     .wait()?;
//!
//! let insert = database.prepare("INSERT INTO carts (user, item, quantity) VALUES (?, ?, ?)").wait()?;
//! database.query(&insert, ("ada", "pencil", 3)).wait()?;
//! database.query(&insert, ("ada", "ruler", 1)).wait()?;
//!
//! let rows = database.query("SELECT item, quantity FROM carts WHERE user = ?", ("ada",)).wait()?;
//! for row in rows {
//!     let row = row?;
//!     println!("{} of {}", row.get::<i32>("quantity")?, row.get::<&str>("item")?);
//! }
//! # let rows = database.query("SELECT item, quantity FROM carts WHERE user = ?", ("ada",)).wait()?;
//! # let items = rows.all::<(String, i32)>().wait()?;
//! # assert_eq!(items, [("pencil".to_owned(), 3), ("ruler".to_owned(), 1)]);
//! database.close().wait()?;
//! # Ok::<(), embedded::Error>(())
//! ```
//!
//! # Blocking and awaiting
//!
//! Every call can be waited for, with `wait()`, or awaited. The work is done on the database's own threads
//! (one for each [shard](Options::shards)), so an awaited call runs on any runtime, or on none:
//!
//! ```
//! # use embedded::{Database, Error};
//! async fn names(database: &Database) -> Result<Vec<(String,)>, Error> {
//!     database.query("SELECT keyspace_name FROM system_schema.keyspaces", ()).await?.all().await
//! }
//! # let database = Database::in_memory()?;
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
//! # assert_eq!(runtime.block_on(names(&database))?.len(), 5);
//! # Ok::<(), Error>(())
//! ```
//!
//! [`Database::open`] and [`Options::open`] block while they read what is in the directory.
//!
//! # Values and rows
//!
//! The traits [`ToCql`] and [`FromCql`] say which Rust types go with which CQL types. Values are given as
//! tuples, lists or [`Named`]; rows are read column by column ([`Row::get`]), into tuples or types of yours
//! ([`FromRow`]), or as [`Value`]s when the types are not known beforehand. [`Rows`] holds one page at a
//! time, however many rows there are.
//!
//! # What is promised
//!
//! - A write that was acknowledged is in the commit log, synced as [`Options::commitlog_sync`] says; it
//!   survives a drop without [`Database::close`], a panic and a killed process.
//! - A directory belongs to one open database: a second one is refused with [`Error::InUse`], in this
//!   process as in another. A `peristyle` server can open it later, and the other way round.
//! - A failing disk never ends your process: as [`Options::disk_failure_policy`] and
//!   [`Options::commit_failure_policy`] say, calls fail, or all answer [`Error::Stopped`]. A full disk is no
//!   failure: writes are refused until there is room.
//! - Nor does a fault of ours: if this library finds that it broke a promise of its own, all calls answer
//!   [`Error::Poisoned`] from then on, and nothing is written any more. What was acknowledged is there once the
//!   database is closed and opened again.
//! - Errors of statements are [`QueryError`]s with Cassandra's own messages.
//!
//! # What is not there
//!
//! A node without a server has no clients: `system_views.clients` is empty, `system.local` tells port 0, and
//! the settings of `native_transport_*` are missing from `system_views.settings`. Nothing writes
//! `system_traces`. There is no management port: of what `nodetool` does, [`Database::flush`] is here.
//! Schema changes are in the answer of their statement ([`Rows::schema_change`]), not pushed as events.

mod batch;
mod bind;
mod call;
mod database;
mod error;
mod instance;
mod options;
mod page;
mod row;
mod rows;
mod session;
mod values;
mod worker;

pub use batch::Batch;
pub use bind::{BindValues, Named};
pub use call::Call;
pub use database::Database;
pub use error::Error;
pub use options::Options;
pub use row::{ColumnIndex, FromRow, Row};
pub use rows::{RowIterator, Rows};
pub use session::{Prepared, Query, Session, Statement};
pub use values::{Date, Duration, FromCql, Time, Timestamp, ToCql, Unset, Value, ValueError, Written};

pub use bigdecimal::BigDecimal;
pub use bytes::Bytes;
pub use num_bigint::BigInt;
pub use query::{
    BatchType, BindValue, ChangeTarget, ChangeType, ColumnSpec, Consistency, QueryError, SchemaChange,
    WriteType,
};
pub use runtime::{Clock, Disk, ManualClock, MemoryDisk, SystemClock, memory_disk};
pub use storage::{CommitFailurePolicy, DiskFailurePolicy, SyncMode};
pub use types::{CqlType, UserType};
pub use uuid::Uuid;
