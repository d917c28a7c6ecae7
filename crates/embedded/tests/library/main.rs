//! The library as its users see it: opened, closed, dropped, cut off, and asked by many at once.

mod errors;
mod lifetime;
mod paging;
mod poisoned;
mod sessions;
mod values;

use embedded::Database;

/// Makes a keyspace `k`.
pub(crate) fn with_keyspace(database: Database) -> Database {
    let text = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    run(&database, text);
    database
}

/// A database in memory with a keyspace `k`, which it is in.
pub(crate) fn in_memory() -> Database {
    let database = with_keyspace(Database::in_memory().expect("a database"));
    run(&database, "USE k");
    database
}

/// Carries out a statement without values and rows.
#[track_caller]
pub(crate) fn run(database: &Database, cql: &str) {
    database.query(cql, ()).wait().expect(cql);
}
