//! What when the library itself is at fault? With a fault that is planted.

use std::sync::Arc;

use embedded::{BatchType, Database, Error, MemoryDisk, Options};
use runtime::{Plant, Plants};

use crate::{run, with_keyspace};

#[track_caller]
fn check_poisoned<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    match outcome {
        Err(Error::Poisoned(broken)) => {
            assert!(broken.what.contains("every mutation of a record is merged"), "{broken}");
        }
        other => panic!("{other:?}"),
    }
}

fn open(disk: &MemoryDisk, options: Options) -> Database {
    options.open_on(Arc::new(disk.clone()), "/d").expect("open")
}

fn ids(database: &Database) -> Vec<i32> {
    let rows = database.query("SELECT id FROM k.t", ()).wait().expect("rows");
    let mut ids: Vec<i32> = rows.typed::<(i32,)>().map(|row| row.expect("row").0).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_database_that_broke_a_promise_answers_no_more_and_loses_nothing() {
    let (disk, plants) = (MemoryDisk::new(), Plants::default());
    let database = with_keyspace(open(&disk, Database::options().plants(plants.clone())));
    run(&database, "CREATE TABLE k.t (id int PRIMARY KEY)");
    let (session, insert) = (database.session(), "INSERT INTO k.t (id) VALUES (?)");
    let prepared = database.prepare(insert).wait().expect("prepared");
    for id in 0..20 {
        session.query(&prepared, (id,)).wait().expect("acknowledged");
    }
    plants.plant(Plant::UnappliedMutation);
    let both = database.batch(BatchType::Unlogged).add(insert, (20,)).add(insert, (21,));
    check_poisoned(both.wait());
    check_poisoned(session.query(&prepared, (22,)).wait());
    check_poisoned(database.query("SELECT * FROM system.local", ()).wait());
    check_poisoned(database.prepare(insert).wait());
    check_poisoned(database.flush().wait());
    let closed = database.close().wait().expect_err("not everything is written out");
    assert!(matches!(closed, Error::Close(_)), "{closed}");
    assert!(matches!(session.query(&prepared, (23,)).wait(), Err(Error::Closed)));

    let found = ids(&open(&disk, Database::options()));
    assert_eq!(found[..20], (0..20).collect::<Vec<_>>());
    // Of the batch, which was not acknowledged, all is there or nothing.
    assert!([20, 22].contains(&found.len()), "{found:?}");
}
