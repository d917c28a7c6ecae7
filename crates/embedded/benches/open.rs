//! From nothing to an answer: a database is opened, in memory or in an empty directory, a keyspace and a table are
//! made, a row is written and read; and the same where the table is there already.

#![allow(clippy::expect_used, missing_docs, unused_crate_dependencies, reason = "a benchmark")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use embedded::Database;
use tempfile::TempDir;

fn make_table(database: &Database) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    for statement in [
        &format!("CREATE KEYSPACE k WITH replication = {replication}"),
        "CREATE TABLE k.t (id int PRIMARY KEY, name text)",
    ] {
        database.query(statement, ()).wait().expect("made");
    }
}

fn write_and_read(database: &Database) {
    database.query("INSERT INTO k.t (id, name) VALUES (?, ?)", (1, "one")).wait().expect("written");
    let rows = database.query("SELECT name FROM k.t WHERE id = ?", (1,)).wait().expect("read");
    assert_eq!(rows.first::<(String,)>().wait().expect("a row"), Some(("one".to_owned(),)));
}

fn open(criterion: &mut Criterion) {
    let directory = || TempDir::new().expect("a directory");
    let mut group = criterion.benchmark_group("from nothing to an answer");
    group.sample_size(20);
    group.bench_function("in memory", |bencher| {
        bencher.iter(|| {
            let database = Database::in_memory().expect("open");
            make_table(&database);
            write_and_read(&database);
        });
    });
    group.bench_function("in an empty directory", |bencher| {
        let from_nothing = |directory: TempDir| {
            let database = Database::open(directory.path()).expect("open");
            make_table(&database);
            write_and_read(&database);
            (directory, database)
        };
        bencher.iter_batched(directory, from_nothing, BatchSize::PerIteration);
    });
    group.bench_function("in a directory with the table", |bencher| {
        let with_table = || {
            let directory = directory();
            make_table(&Database::open(directory.path()).expect("open"));
            directory
        };
        let again = |directory: TempDir| {
            let database = Database::open(directory.path()).expect("open");
            write_and_read(&database);
            (directory, database)
        };
        bencher.iter_batched(with_table, again, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, open);
criterion_main!(benches);
