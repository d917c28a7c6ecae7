//! Refusals, in Cassandra's words where they are about statements.

use embedded::{Error, QueryError, ValueError};

use crate::{in_memory, run};

#[track_caller]
fn query_error(cql: &str) -> QueryError {
    match in_memory().query(cql, ()).wait() {
        Err(Error::Query(error)) => error,
        other => panic!("{cql} gave {other:?}"),
    }
}

#[test]
fn statements_are_refused_with_cassandras_message() {
    assert_eq!(
        query_error("SELEC * FROM t").to_string(),
        "line 1:0 no viable alternative at input 'SELEC' ([SELEC]...)"
    );
    let missing = query_error("SELECT * FROM nope");
    assert_eq!(missing, QueryError::Invalid("table nope does not exist".into()));
    assert_eq!(missing.code(), 0x2200);
    let exists = query_error(
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    assert!(matches!(exists, QueryError::AlreadyExists { ref keyspace, .. } if keyspace == "k"), "{exists}");
    let user = query_error("CREATE ROLE r");
    assert!(matches!(user, QueryError::Unauthorized(_)), "{user}");
}

#[test]
fn values_that_do_not_fit_their_markers_are_refused() {
    let database = in_memory();
    run(&database, "CREATE TABLE t (id int PRIMARY KEY, small tinyint, name text)");
    let insert = "INSERT INTO t (id, small) VALUES (?, ?)";
    let count = database.query(insert, (1,)).wait().expect_err("one is missing");
    assert_eq!(count.to_string(), "Invalid amount of bind variables");
    let kind = database.query(insert, (1, "x")).wait().expect_err("no text");
    assert_eq!(kind.to_string(), "bind value for small: CQL type tinyint does not go with Rust type str");
    let range = database.query(insert, (1, 128)).wait().expect_err("too large");
    assert_eq!(range.to_string(), "bind value for small: 128 is out of the range of tinyint");
    let key = database.query(insert, (None::<i32>, 1)).wait().expect_err("null in the key");
    assert_eq!(key.to_string(), "Invalid null value in condition for column id");
    let named = embedded::Named(&[("id", &1), ("nope", &2)]);
    let named = database.query(insert, named).wait().expect_err("no such marker");
    assert!(matches!(named, Error::NoMarker { .. }), "{named}");
}

#[test]
fn columns_that_are_not_there_and_types_that_do_not_fit_are_told() {
    let database = in_memory();
    run(&database, "CREATE TABLE t (id int PRIMARY KEY, big bigint)");
    run(&database, "INSERT INTO t (id) VALUES (1)");
    run(&database, "INSERT INTO t (id, big) VALUES (2, 3000000000)");
    let row = |id: i32| {
        let rows = database.query("SELECT id, big FROM t WHERE id = ?", (id,)).wait().expect("rows");
        rows.first::<embedded::Row>().wait().expect("row").expect("one")
    };
    let none = row(1).get::<i32>("nope").expect_err("no column");
    assert_eq!(none.to_string(), "there is no column nope among id, big");
    assert!(row(1).get::<i32>(2).is_err());
    let null = row(1).get::<i64>("big").expect_err("null");
    assert!(matches!(null, Error::Read { source: ValueError::Null { .. }, .. }), "{null}");
    assert_eq!(row(1).get::<Option<i64>>("big").expect("null is taken"), None);
    let range = row(2).get::<i32>("big").expect_err("too large");
    assert_eq!(range.to_string(), "read column big: 3000000000 is out of the range of i32");
    let width = row(2).to::<(i32,)>().expect_err("two columns");
    assert_eq!(width.to_string(), "a row of 2 columns does not go into 1 values");
    assert_eq!(format!("{:?}", row(2)), r#"{"id": 2, "big": 3000000000}"#);
}
