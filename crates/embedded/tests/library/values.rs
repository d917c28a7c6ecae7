//! Every CQL type, in and out.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use embedded::{
    BigDecimal, BigInt, Bytes, Database, Date, Duration, FromCql, Time, Timestamp, ToCql, Uuid, Value,
};

use crate::{in_memory, run};

/// A table with one column of that type.
fn table_of(cql_type: &str) -> Database {
    let database = in_memory();
    run(&database, "CREATE TYPE place (street text, number int, tags frozen<set<text>>)");
    run(&database, &format!("CREATE TABLE t (id int PRIMARY KEY, v {cql_type})"));
    database
}

/// Binds the value and reads it back, as itself and as a [`Value`] that is bound in turn.
#[track_caller]
fn check<T>(cql_type: &str, values: &[T])
where
    T: ToCql + for<'a> FromCql<'a> + PartialEq + Debug + Sync,
{
    let database = table_of(cql_type);
    let insert = database.prepare("INSERT INTO t (id, v) VALUES (?, ?)").wait().expect("prepared");
    for value in values {
        database.query(&insert, (1, value)).wait().expect(cql_type);
        let rows = database.query("SELECT v FROM t WHERE id = 1", ()).wait().expect("rows");
        let row = rows.first::<embedded::Row>().wait().expect("row").expect("one");
        assert_eq!(row.get::<T>("v").expect(cql_type), *value, "{cql_type}");
        let dynamic = row.get::<Value>(0).expect("a value");
        database.query(&insert, (2, &dynamic)).wait().expect(cql_type);
        let rows = database.query("SELECT v FROM t WHERE id = 2", ()).wait().expect("rows");
        let again = rows.first::<embedded::Row>().wait().expect("row").expect("one");
        assert_eq!(again.bytes(0), row.bytes(0), "{cql_type}: {dynamic:?}");
    }
}

#[test]
fn integers() {
    check("tinyint", &[0i8, -1, i8::MIN, i8::MAX]);
    check("smallint", &[0i16, -1, i16::MIN, i16::MAX]);
    check("int", &[0i32, -1, i32::MIN, i32::MAX]);
    check("bigint", &[0i64, -1, i64::MIN, i64::MAX]);
    check("bigint", &[i32::MIN, i32::MAX]);
    check("tinyint", &[-128i64, 127]);
    check("varint", &[0i64, i64::MIN, i64::MAX]);
    check("varint", &[BigInt::from(i64::MAX) * BigInt::from(i64::MAX), BigInt::from(-129)]);
}

#[test]
fn numbers_with_a_fraction() {
    check("float", &[0f32, -1.5, f32::MIN, f32::INFINITY]);
    check("double", &[0f64, -1.5, f64::MIN, f64::INFINITY]);
    check("decimal", &["0", "-12.340", "1e20"].map(|text| text.parse::<BigDecimal>().expect("a number")));
}

#[test]
fn texts_bytes_ids_and_addresses() {
    check("text", &[String::new(), "grüße".to_owned()]);
    check("ascii", &["plain".to_owned()]);
    check("blob", &[vec![], vec![0u8, 255]]);
    check("blob", &[Bytes::from_static(b"\x00\x01")]);
    check("boolean", &[true, false]);
    check("uuid", &[Uuid::from_u128(0x1292_eed1_7956_4942_b19a_81b9_af08_3eb5)]);
    check("timeuuid", &["b7a1e5c0-8a5e-11ee-b9d1-0242ac120002".parse::<Uuid>().expect("an id")]);
    check("inet", &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    check("inet", &[Ipv4Addr::new(10, 0, 0, 1)]);
    check("inet", &[Ipv6Addr::UNSPECIFIED]);
}

#[test]
fn times() {
    check("timestamp", &[Timestamp(0), Timestamp(-1), Timestamp(1_700_000_000_123)]);
    check("timestamp", &[1_700_000_000_123i64]);
    check("date", &[Date(0), Date(-1), Date(20_000), Date(i32::MIN), Date(i32::MAX)]);
    check("time", &[Time(0), Time(86_399_999_999_999)]);
    check("time", &[1i64]);
    check("duration", &[Duration { months: 1, days: 2, nanoseconds: 3 }]);
}

#[test]
fn collections() {
    check("list<int>", &[vec![3, 1, 2, 1]]);
    check("list<int>", &[Vec::<i32>::new()]);
    check("frozen<list<text>>", &[vec!["a".to_owned(), String::new()], vec![]]);
    check("set<text>", &[HashSet::from(["b".to_owned(), "a".to_owned()])]);
    check("frozen<set<int>>", &[HashSet::<i32>::from_iter(0..50)]);
    check("set<bigint>", &[BTreeSet::from([3i64, 1])]);
    check("map<text, int>", &[HashMap::from([("b".to_owned(), 2), ("a".to_owned(), 1)])]);
    check("frozen<map<int, text>>", &[BTreeMap::from([(2, "b".to_owned()), (1, "a".to_owned())])]);
    check("list<frozen<map<int, frozen<set<int>>>>>", &[vec![BTreeMap::from([(1, BTreeSet::from([2, 3]))])]]);
    check("list<blob>", &[vec![vec![1u8], vec![]]]);
    check("vector<float, 3>", &[vec![1f32, 2.0, 3.0]]);
    check("vector<text, 2>", &[vec!["one".to_owned(), String::new()]]);
}

#[test]
fn tuples_and_user_defined_types() {
    check("tuple<int, text>", &[(1, "a".to_owned())]);
    check("tuple<int, text, boolean>", &[(Some(1), None::<String>, Some(true))]);
    check("tuple<int, frozen<tuple<text, int>>>", &[(1, ("a".to_owned(), 2))]);
    let place = || ("Main".to_owned(), Some(5), BTreeSet::from(["x".to_owned()]));
    check("frozen<place>", &[place()]);
    check("place", &[place(), ("Side".to_owned(), None, BTreeSet::new())]);
    check("list<frozen<place>>", &[vec![place(), place()]]);
}

#[test]
fn nulls() {
    check("int", &[None::<i32>, Some(1)]);
    check("text", &[None::<String>, Some("x".to_owned())]);
    check("list<int>", &[None::<Vec<i32>>, Some(vec![1])]);
    check("place", &[Value::Null]);
}

#[test]
fn fields_of_a_user_defined_type_go_by_name() {
    let database = table_of("frozen<place>");
    let fields =
        vec![("number".to_owned(), Value::Int(7)), ("street".to_owned(), Value::Text("Main".into()))];
    let insert = "INSERT INTO t (id, v) VALUES (1, ?)";
    database.query(insert, (Value::UserDefined(fields),)).wait().expect("inserted");
    let rows = database.query("SELECT v.street, v.number, v.tags FROM t", ()).wait().expect("rows");
    let row = rows.first::<(String, i32, Option<Vec<String>>)>().wait().expect("row");
    assert_eq!(row, Some(("Main".to_owned(), 7, None)));
    let wrong = Value::UserDefined(vec![("nope".to_owned(), Value::Int(7))]);
    let error = database.query(insert, (wrong,)).wait().expect_err("no such field");
    assert!(error.to_string().ends_with("has no field nope"), "{error}");
}

#[test]
fn sets_are_the_same_in_whatever_order_they_are_bound() {
    let database = in_memory();
    run(&database, "CREATE TABLE s (k frozen<set<int>> PRIMARY KEY, v int)");
    for order in [vec![3, 1, 2, 1], vec![1, 2, 3]] {
        database.query("INSERT INTO s (k, v) VALUES (?, 1)", (order,)).wait().expect("inserted");
    }
    let rows = database.query("SELECT k FROM s", ()).wait().expect("rows");
    assert_eq!(rows.all::<(Vec<i32>,)>().wait().expect("rows"), [(vec![1, 2, 3],)]);
}

#[test]
fn borrowed_values_need_no_copy() {
    let database = table_of("text");
    let text = String::from("borrowed");
    database.query("INSERT INTO t (id, v) VALUES (?, ?)", (&1, &text)).wait().expect("inserted");
    database.query("INSERT INTO t (id, v) VALUES (?, ?)", (2, text.as_str())).wait().expect("inserted");
    for row in database.query("SELECT v FROM t", ()).wait().expect("rows") {
        assert_eq!(row.expect("row").get::<&str>("v").expect("text"), "borrowed");
    }
}
