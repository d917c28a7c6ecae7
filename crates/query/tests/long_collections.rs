//! Collections so long that other threads plan and build them: they are what short ones are.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use common::{Session, int, with_session};
use query::{BindValue, QueryError};
use types::encoding;

/// So many elements are read, planned, checked and built on another thread, in a text and in a bound value alike.
const COUNT: i32 = 9_000;

fn bound(elements: impl ExactSizeIterator<Item = i32>) -> BindValue {
    let parts: Vec<[u8; 4]> = elements.map(i32::to_be_bytes).collect();
    let whole = encoding::collection(parts.len(), parts.iter().map(|part| Some(&part[..])));
    BindValue::Set(Bytes::from(whole))
}

fn list(elements: impl Iterator<Item = i32>) -> String {
    let elements: Vec<String> = elements.map(|element| element.to_string()).collect();
    format!("[{}]", elements.join(", "))
}

fn set(elements: impl Iterator<Item = i32>) -> String {
    let elements: BTreeSet<i32> = elements.collect();
    list(elements.into_iter()).replace('[', "{").replace(']', "}")
}

fn map(entries: impl Iterator<Item = (i32, i32)>) -> String {
    let entries: BTreeMap<i32, i32> = entries.collect();
    let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    format!("{{{}}}", entries.join(", "))
}

/// Numbers in no order, each of which comes twice.
fn mixed() -> impl ExactSizeIterator<Item = i32> + Clone {
    (0..COUNT).map(|index| index * 7_919 % (COUNT / 2))
}

fn all(count: i32) -> impl ExactSizeIterator<Item = i32> + Clone {
    0..count
}

async fn create(session: &mut Session) {
    session
        .run(
            "CREATE TABLE t (k int, c int, l list<int>, s set<int>, m map<int, int>, f frozen<set<int>>, \
             st list<int> static, PRIMARY KEY (k, c))",
        )
        .await;
}

#[test]
fn long_literals_are_what_short_ones_are() {
    with_session(async |mut session| {
        create(&mut session).await;
        let pairs = || mixed().zip(all(COUNT)).skip(COUNT as usize / 3).step_by(2);
        let entries: Vec<String> = pairs().map(|(key, value)| format!("{key}: {value}")).collect();
        let braces = list(mixed()).replace('[', "{").replace(']', "}");
        session.run(&format!("INSERT INTO t (k, c, l) VALUES (1, 1, {})", list(mixed()))).await;
        session.run(&format!("UPDATE t SET s = {braces} WHERE k = 1 AND c = 1")).await;
        session.run(&format!("UPDATE t SET f = {braces} WHERE k = 1 AND c = 1")).await;
        session.run(&format!("UPDATE t SET m = {{{}}} WHERE k = 1 AND c = 1", entries.join(","))).await;
        let expected = [list(mixed()), set(mixed()), map(pairs()), set(mixed())].join(" | ");
        session.check("SELECT l, s, m, f FROM t WHERE k = 1", &[&expected]).await;
        let wrong = list(mixed()).replace("[0,", "['x',");
        let error = session.send(&format!("INSERT INTO t (k, c, l) VALUES (1, 1, {wrong})")).await;
        let error = error.expect_err("a text among numbers").to_string();
        assert_eq!(error, "Invalid list literal for l: value 'x' is not of type int");
        session.check("SELECT l, s, m, f FROM t WHERE k = 1", &[&expected]).await;
    });
}

#[test]
fn long_bound_values_are_what_short_ones_are() {
    with_session(async |mut session| {
        create(&mut session).await;
        let update = "UPDATE t SET l = ?, s = ?, f = ? WHERE k = ? AND c = ?";
        let values = || vec![bound(mixed()), bound(mixed()), bound(mixed()), int(1), int(1)];
        session.execute(update, values()).await.expect("written");
        let expected = [list(mixed()), set(mixed()), set(mixed())].join(" | ");
        session.check("SELECT l, s, f FROM t WHERE k = 1", &[&expected]).await;
        let mut cut = values();
        let BindValue::Set(whole) = bound(mixed()) else { panic!("a value") };
        cut[0] = BindValue::Set(whole.slice(..whole.len() - 1));
        let error = session.execute(update, cut).await.expect_err("a value that ends early");
        assert!(matches!(error, QueryError::Invalid(_)), "{error}");
        session.check("SELECT l, s, f FROM t WHERE k = 1", &[&expected]).await;
    });
}

#[test]
fn long_lists_are_added_to_and_taken_from() {
    with_session(async |mut session| {
        create(&mut session).await;
        session
            .execute("UPDATE t SET st = ? WHERE k = ?", vec![bound(all(COUNT)), int(1)])
            .await
            .expect("set");
        let append = "UPDATE t SET st = st + ? WHERE k = ?";
        session.execute(append, vec![bound(all(COUNT)), int(1)]).await.expect("appended");
        let prepend = "UPDATE t SET st = ? + st WHERE k = ?";
        session.execute(prepend, vec![bound(all(COUNT)), int(1)]).await.expect("prepended");
        let whole: Vec<i32> = all(COUNT).chain(all(COUNT)).chain(all(COUNT)).collect();
        session.check("SELECT st FROM t WHERE k = 1", &[&list(whole.iter().copied())]).await;
        session.run("UPDATE t SET st[1] = -1 WHERE k = 1").await;
        session.run("DELETE st[0] FROM t WHERE k = 1").await;
        let subtract = "UPDATE t SET st = st - ? WHERE k = ?";
        session.execute(subtract, vec![bound(all(COUNT - 2)), int(1)]).await.expect("subtracted");
        let left = [-1, COUNT - 2, COUNT - 1, COUNT - 2, COUNT - 1, COUNT - 2, COUNT - 1];
        session.check("SELECT st FROM t WHERE k = 1", &[&list(left.into_iter())]).await;
    });
}

#[test]
fn long_lists_of_keys_find_their_rows() {
    with_session(async |mut session| {
        create(&mut session).await;
        for k in [3, COUNT / 2 - 1, COUNT] {
            session.run(&format!("INSERT INTO t (k, c) VALUES ({k}, {})", k + 1)).await;
        }
        let keys = list(mixed()).replace('[', "(").replace(']', ")");
        let found = ["3 | 4".to_owned(), format!("{} | {}", COUNT / 2 - 1, COUNT / 2)];
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        session.check(&format!("SELECT k, c FROM t WHERE k IN {keys}"), &found).await;
        session.check(&format!("SELECT k, c FROM t WHERE k = 3 AND c IN {keys}"), &found[..1]).await;
        let many = vec!["1"; 70_000].join(",");
        let error = session.send(&format!("SELECT k FROM t WHERE k IN ({many})")).await;
        assert!(error.is_err(), "too many keys, or no room for them");
        let prepared = "SELECT k, c FROM t WHERE k IN ?";
        let refused = session.execute(prepared, vec![bound(all(70_000))]).await.expect_err("too many keys");
        assert!(refused.to_string().contains("partition key produces 70000 values"), "{refused}");
        session.execute(prepared, vec![bound(mixed())]).await.expect("so many are taken");
    });
}

#[test]
fn a_long_batch_writes_one_version_of_each_row() {
    with_session(async |mut session| {
        create(&mut session).await;
        let runs: Vec<String> = (0..30).map(|run| list(run * 100..run * 100 + 100)).collect();
        let appended = |run: &String| {
            format!(
                "UPDATE t SET l = l + {run} WHERE k = 1 AND c = 1; UPDATE t SET st = st + {run} WHERE k = 1"
            )
        };
        let statements: Vec<String> = runs.iter().map(appended).collect();
        session.run(&format!("BEGIN BATCH {} APPLY BATCH", statements.join("; "))).await;
        let both = list(0..3_000);
        session.check("SELECT l, st FROM t WHERE k = 1", &[&format!("{both} | {both}")]).await;
        let mixed = "BEGIN BATCH UPDATE t SET m[1] = 2, m[3] = 4 WHERE k = 1 AND c = 1; \
                     UPDATE t SET l = ? WHERE k = 1 AND c = 1; DELETE m[1] FROM t WHERE k = 1 AND c = 1; \
                     DELETE st FROM t WHERE k = 1; INSERT INTO t (k, c) VALUES (1, 2) APPLY BATCH";
        session.execute(mixed, vec![bound(all(COUNT))]).await.expect("written");
        let shown =
            [format!("1 | {{3: 4}} | null | {}", list(all(COUNT))), "2 | null | null | null".to_owned()];
        session.check("SELECT c, m, st, l FROM t WHERE k = 1", &[&shown[0], &shown[1]]).await;
    });
}

#[test]
fn functions_of_long_collections_are_those_of_short_ones() {
    with_session(async |mut session| {
        create(&mut session).await;
        session.run("INSERT INTO t (k, c, l) VALUES (1, 1, [3, 4])").await;
        session
            .execute("UPDATE t SET l = ? WHERE k = 1 AND c = 2", vec![bound(all(COUNT))])
            .await
            .expect("written");
        session.execute("UPDATE t SET st = ? WHERE k = 2", vec![bound(all(COUNT))]).await.expect("written");
        let sum = COUNT * (COUNT - 1) / 2;
        session
            .check(
                "SELECT c, collection_count(l), collection_sum(l), to_json(k) FROM t WHERE k = 1",
                &["1 | 2 | 7 | '1'", &format!("2 | {COUNT} | {sum} | '1'")],
            )
            .await;
        let json = |c: i32, elements| format!("'{{\"c\": {c}, \"system.to_json(l)\": \"{elements}\"}}'");
        session
            .check(
                "SELECT JSON c, to_json(l) FROM t WHERE k = 1",
                &[&json(1, "[3, 4]".to_owned()), &json(2, list(all(COUNT)))],
            )
            .await;
        session.check("SELECT k, collection_count(st) FROM t WHERE k = 2", &[&format!("2 | {COUNT}")]).await;
    });
}
