//! Sessions, prepared statements over schema changes, batches, many callers.

use std::future::IntoFuture;
use std::sync::Arc;

use embedded::{BatchType, ChangeType, Consistency, Database, Error, Named, Unset};

use crate::{in_memory, run, with_keyspace};

#[test]
fn a_session_has_a_keyspace_of_its_own() {
    let database = in_memory();
    run(&database, "CREATE TABLE t (id int PRIMARY KEY)");
    assert_eq!(database.session().keyspace(), None);
    let other = database.session();
    let refused = other.query("SELECT * FROM t", ()).wait().expect_err("no keyspace");
    assert!(refused.to_string().starts_with("No keyspace has been specified."), "{refused}");
    let rows = other.query("SELECT * FROM t", ()).keyspace("k").wait().expect("rows");
    assert_eq!(rows.columns().len(), 1);
    other.query("USE system", ()).wait().expect("used");
    assert_eq!(other.keyspace().as_deref(), Some("system"));
    assert_eq!(
        other.query("SELECT key FROM local WHERE key = ?", ("local",)).wait().expect("rows").columns().len(),
        1
    );
    run(&database.clone(), "SELECT * FROM t");
}

#[test]
fn a_prepared_statement_lives_through_schema_changes() {
    let database = in_memory();
    run(&database, "CREATE TABLE t (id int PRIMARY KEY, name text)");
    run(&database, "INSERT INTO t (id, name) VALUES (1, 'one')");
    let select = database.prepare("SELECT * FROM t WHERE id = ?").wait().expect("prepared");
    assert_eq!((&*select.markers()[0].name, select.columns().len()), ("id", 2));
    run(&database, "ALTER TABLE t ADD more int");
    let rows = database.query(&select, (1,)).wait().expect("rows");
    assert_eq!(rows.columns().len(), 3);
    run(&database, "DROP TABLE t");
    let dropped = database.query(&select, (1,)).wait().expect_err("it is gone");
    assert_eq!(dropped.to_string(), "table t does not exist");
    run(&database, "CREATE TABLE t (id text PRIMARY KEY)");
    let changed = database.query(&select, (1,)).wait().expect_err("another type");
    assert!(matches!(changed, Error::MarkersChanged), "{changed}");
    // A text finds its way by itself.
    let text = "SELECT * FROM t WHERE id = ?";
    assert_eq!(database.query(text, ("x",)).wait().expect("rows").columns().len(), 1);
    run(&database, "DROP TABLE t");
    run(&database, "CREATE TABLE t (id bigint PRIMARY KEY)");
    assert_eq!(database.query(text, (1,)).wait().expect("rows").columns().len(), 1);
}

#[test]
fn batches_take_texts_and_prepared_statements() {
    let database = with_keyspace(Database::options().shards(3).in_memory().expect("open"));
    run(&database, "USE k");
    run(&database, "CREATE TABLE t (id int PRIMARY KEY, name text)");
    let insert = database.prepare("INSERT INTO t (id, name) VALUES (?, ?)").wait().expect("prepared");
    let mut batch = database.batch(BatchType::Logged).timestamp(1_000);
    for id in 0..50 {
        batch = batch.add(&insert, (id, "prepared"));
    }
    batch
        .add("INSERT INTO t (id, name) VALUES (?, ?)", (50, "text"))
        .add("INSERT INTO t (id, name) VALUES (51, 'plain')", ())
        .add("DELETE FROM t WHERE id = ?", [7])
        .wait()
        .expect("done");
    let rows = database.query("SELECT id, writetime(name) FROM t", ()).wait().expect("rows");
    let rows = rows.all::<(i32, i64)>().wait().expect("rows");
    assert_eq!(rows.len(), 51);
    assert!(rows.iter().all(|(id, written)| *id != 7 && *written == 1_000));
    let refused = database.batch(BatchType::Logged).add("SELECT * FROM t", ()).wait().expect_err("no write");
    assert_eq!(
        refused.to_string(),
        "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed."
    );
}

#[test]
fn values_go_by_name_and_what_is_not_set_stays() {
    let database = in_memory();
    run(&database, "CREATE TABLE t (id int PRIMARY KEY, a int, b int, c int)");
    run(&database, "INSERT INTO t (id, a, b, c) VALUES (1, 1, 1, 1)");
    let update = "UPDATE t SET a = :a, b = :b, c = :c WHERE id = :id";
    let values = Named(&[("id", &1), ("a", &2), ("b", &None::<i32>)]);
    database.query(update, values).wait().expect("updated");
    let all = || {
        let rows = database.query("SELECT a, b, c FROM t WHERE id = 1", ()).wait().expect("rows");
        rows.first::<(Option<i32>, Option<i32>, Option<i32>)>().wait().expect("row")
    };
    assert_eq!(all(), Some((Some(2), None, Some(1))));
    database.query("UPDATE t SET a = ?, c = ? WHERE id = ?", (Unset, 9, 1)).wait().expect("updated");
    assert_eq!(all(), Some((Some(2), None, Some(9))));
    let map = std::collections::HashMap::from([("id", 1), ("b", 5)]);
    database.query("UPDATE t SET b = ? WHERE id = ?", &map).wait().expect("updated");
    assert_eq!(all(), Some((Some(2), Some(5), Some(9))));
}

#[test]
fn answers_tell_of_schema_changes_and_warnings() {
    let database = in_memory();
    let rows = database.query("CREATE TABLE t (id int PRIMARY KEY)", ()).wait().expect("created");
    let change = rows.schema_change().expect("a change");
    assert_eq!((change.change, change.name.as_str()), (ChangeType::Created, "t"));
    let rows = database.query("SELECT count(*) FROM t", ()).wait().expect("rows");
    assert_eq!(rows.warnings(), ["Aggregation query used without partition key"]);
    let three = database.query("SELECT * FROM t", ()).consistency(Consistency::Three).wait();
    assert_eq!(three.expect_err("one replica").to_string(), "Cannot achieve consistency level THREE");
}

#[test]
fn system_tables_answer_as_on_a_node() {
    let database = in_memory();
    run(&database, "CREATE TABLE t (id int, at timestamp, PRIMARY KEY (id, at))");
    let select = "SELECT cluster_name, data_center, rpc_port, release_version FROM system.local";
    let local = database.query(select, ()).wait().expect("rows").first::<(String, String, i32, String)>();
    let expected = ("Test Cluster".to_owned(), "datacenter1".to_owned(), 0, "5.0.9".to_owned());
    assert_eq!(local.wait().expect("row"), Some(expected));
    let select = "SELECT column_name, kind, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?";
    let columns = database.query(select, ("k", "t")).wait().expect("rows").all::<(String, String, String)>();
    let expected = [("at", "clustering", "timestamp"), ("id", "partition_key", "int")];
    let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(columns.wait().expect("rows"), expected);
    let clients = database.query("SELECT * FROM system_views.clients", ()).wait().expect("rows");
    assert_eq!(clients.into_iter().count(), 0);
    let usage = database.query("SELECT keyspace_name FROM system_views.disk_usage", ()).wait().expect("rows");
    assert!(usage.into_iter().count() > 10);
    let described = database.query("DESCRIBE TABLE k.t", ()).wait().expect("rows");
    let text = described.first::<embedded::Row>().wait().expect("row").expect("one");
    assert!(text.get::<&str>("create_statement").expect("text").starts_with("CREATE TABLE k.t ("));
}

#[test]
fn many_threads_and_runtimes_call_at_once() {
    let database = with_keyspace(Database::options().shards(2).in_memory().expect("open"));
    run(&database, "CREATE TABLE k.t (id int PRIMARY KEY, name text)");
    let insert = database.prepare("INSERT INTO k.t (id, name) VALUES (?, ?)").wait().expect("prepared");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (database, insert) = (database.clone(), &insert);
            scope.spawn(move || {
                for id in 0..500 {
                    database.query(insert, (thread * 10_000 + id, "blocking")).wait().expect("inserted");
                }
            });
        }
        for thread in 4..6 {
            let (database, insert) = (database.clone(), Arc::new(insert.clone()));
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
                let local = tokio::task::LocalSet::new();
                local.block_on(&runtime, async {
                    let tasks: Vec<_> = (0..500)
                        .map(|id| {
                            let (database, insert) = (database.clone(), Arc::clone(&insert));
                            tokio::task::spawn_local(async move {
                                database.query(&*insert, (thread * 10_000 + id, "awaited")).await.map(drop)
                            })
                        })
                        .collect();
                    for task in tasks {
                        task.await.expect("no panic").expect("inserted");
                    }
                });
            });
        }
    });
    let rows = database.query("SELECT count(*) FROM k.t", ()).wait().expect("rows");
    assert_eq!(rows.first().wait().expect("row"), Some((3_000i64,)));
}

#[test]
fn a_task_of_a_runtime_may_block() {
    let database = in_memory();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    runtime.block_on(async {
        for _ in 0..500 {
            database.query("SELECT key FROM system.local", ()).wait().expect("rows");
        }
    });
}

#[test]
fn a_call_that_is_dropped_harms_nobody() {
    let database = in_memory();
    run(&database, "CREATE TABLE t (id int PRIMARY KEY)");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
    runtime.block_on(async {
        for id in 0..200 {
            let insert = database.query("INSERT INTO t (id) VALUES (?)", (id,));
            _ = tokio::time::timeout(std::time::Duration::from_micros(5), insert.into_future()).await;
        }
    });
    run(&database, "SELECT * FROM t");
    database.close().wait().expect("closed");
}
