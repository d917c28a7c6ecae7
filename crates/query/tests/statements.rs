//! Statements end to end: through planning, the coordinator and storage, and back as rows.

mod common;

use common::{PREPARED, Session, int, show, text, with_log_segments, with_session};
use query::{BindValue, QueryError, QueryOptions, ResponseKind, Values};

#[test]
fn what_is_inserted_is_selected_again() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int, c int, v text, s text STATIC, PRIMARY KEY (k, c))").await;
        for c in 0..4 {
            session.run(&format!("INSERT INTO t (k, c, v) VALUES (1, {c}, 'v{c}')")).await;
        }
        session.run("INSERT INTO t (k, s) VALUES (2, 'alone')").await;
        session.check("SELECT v FROM t WHERE k = 1", &["'v0'", "'v1'", "'v2'", "'v3'"]).await;
        session.check("SELECT c FROM t WHERE k = 1 AND c > 1 ORDER BY c DESC", &["3", "2"]).await;
        session.check("SELECT c FROM t WHERE k = 1 AND c IN (3, 0, 9) LIMIT 1", &["0"]).await;
        session.check("SELECT k, c, s FROM t WHERE k = 2", &["2 | null | 'alone'"]).await;
        session.check("SELECT k, c FROM t WHERE k = 2 AND c > 0", &[]).await;
        session.check("SELECT count(*) FROM t", &["5"]).await;
        session.check("SELECT max(c), min(v) FROM t WHERE k = 1", &["3 | 'v0'"]).await;
        session.run("UPDATE t SET v = null WHERE k = 1 AND c = 0").await;
        session.run("DELETE FROM t WHERE k = 1 AND c >= 2").await;
        session.check("SELECT c, v FROM t WHERE k = 1", &["0 | null", "1 | 'v1'"]).await;
        session.run("DELETE FROM t WHERE k = 1").await;
        session.check("SELECT * FROM t WHERE k = 1", &[]).await;
        session.run("TRUNCATE t").await;
        session.check("SELECT * FROM t", &[]).await;
    });
}

#[test]
fn collections_change_piece_by_piece() {
    with_session(async |mut session| {
        session
            .run("CREATE TABLE c (k int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, f frozen<list<int>>)")
            .await;
        session.run("INSERT INTO c (k, l, s, m, f) VALUES (1, [1, 2], {'b', 'a'}, {'x': 1}, [9])").await;
        session.run("UPDATE c SET l = l + [3], s = s + {'c'}, m['y'] = 2 WHERE k = 1").await;
        session.run("UPDATE c SET l = [-1, 0] + l WHERE k = 1").await;
        session.run("UPDATE c SET l = [-2] + l, m = m - {'x'}, s = s - {'a'} WHERE k = 1").await;
        session
            .check(
                "SELECT l, s, m, f FROM c WHERE k = 1",
                &["[-2, -1, 0, 1, 2, 3] | {'b', 'c'} | {'y': 2} | [9]"],
            )
            .await;
        session.run("UPDATE c SET l[0] = 7 WHERE k = 1").await;
        session.run("UPDATE c SET l = l - [2, 0] WHERE k = 1").await;
        session.run("DELETE l[1] FROM c WHERE k = 1").await;
        session.check("SELECT l FROM c", &["[7, 1, 3]"]).await;
        session
            .refuses("UPDATE c SET l[5] = 1 WHERE k = 1", "List index 5 out of bound, list has size 3")
            .await;
        session.check("SELECT m['y'], s['b'], s['z'] FROM c", &["2 | 'b' | null"]).await;
        session.check("SELECT k FROM c WHERE s CONTAINS 'c' ALLOW FILTERING", &["1"]).await;
        session.check("SELECT k FROM c WHERE m CONTAINS KEY 'x' ALLOW FILTERING", &[]).await;
        session.run("UPDATE c SET l = [], m = null WHERE k = 1").await;
        session.check("SELECT l, m FROM c", &["null | null"]).await;
    });
}

#[test]
fn pages_join_to_the_whole() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))").await;
        for k in 0..7 {
            for c in 0..5 {
                session.run(&format!("INSERT INTO t (k, c, v) VALUES ({k}, {c}, {})", k * c % 3)).await;
            }
        }
        let statements = [
            "SELECT k, c FROM t",
            "SELECT k, c FROM t LIMIT 13",
            "SELECT k, c FROM t PER PARTITION LIMIT 2",
            "SELECT k, c FROM t PER PARTITION LIMIT 3 LIMIT 11",
            "SELECT k, c FROM t WHERE v = 1 ALLOW FILTERING",
            "SELECT k, c FROM t WHERE v = 1 PER PARTITION LIMIT 1 ALLOW FILTERING",
            "SELECT k, c FROM t WHERE k IN (5, 2, 3) AND c > 1",
            "SELECT k, c FROM t WHERE k = 4 ORDER BY c DESC",
            "SELECT DISTINCT k FROM t",
            "SELECT k, count(*), sum(c) FROM t GROUP BY k",
            "SELECT k, c, count(v) FROM t GROUP BY k, c",
            "SELECT k, c, count(v) FROM t GROUP BY k, c PER PARTITION LIMIT 3",
            "SELECT k, c, sum(v) FROM t GROUP BY k, c PER PARTITION LIMIT 2 LIMIT 9",
            "SELECT token(k), k FROM t WHERE token(k) > -5000000000000000000",
        ];
        for statement in statements {
            let whole = session.rows(statement).await;
            for page_size in [1, 2, 3, 5, 7, 100] {
                let mut options = QueryOptions { page_size: Some(page_size), ..session.options.clone() };
                let mut joined = Vec::new();
                for _ in 0..200 {
                    let response = session
                        .engine
                        .query(
                            &mut session.state,
                            statement,
                            &options,
                            &mut session.engine.answers().room_of_its_own(),
                        )
                        .await
                        .unwrap();
                    let ResponseKind::Rows(rows) = response.kind else { panic!("{statement}") };
                    assert!(rows.row_count() <= page_size as usize, "{statement}");
                    joined.extend(show(&rows));
                    options.paging_state = rows.paging_state;
                    if options.paging_state.is_none() {
                        break;
                    }
                }
                assert_eq!(joined, whole, "{statement} by {page_size}");
            }
        }
    });
}

#[test]
fn prepared_statements_take_values_and_follow_the_schema() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (a int, b text, v int, PRIMARY KEY ((a, b)))").await;
        let insert = "INSERT INTO t (a, b, v) VALUES (?, ?, ?)";
        session.execute(insert, vec![int(1), text("x"), int(5)]).await.unwrap();
        session.execute(insert, vec![int(1), text("x"), BindValue::Unset]).await.unwrap();
        session.check("SELECT v FROM t", &["5"]).await;
        let too_few = session.execute(insert, vec![int(1)]).await.unwrap_err();
        assert_eq!(too_few.to_string(), "there were 3 markers(?) in CQL but 1 bound variables");

        let select = "SELECT * FROM t WHERE b = ? AND a = ?";
        let prepared = session.engine.prepare(&session.state, select, None).await.unwrap();
        assert_eq!(&*prepared.partition_key_indexes, [1, 0]);
        assert_eq!(prepared.result_columns.len(), 3);
        let options = QueryOptions {
            values: Values::Named(vec![("a".into(), int(1)), ("b".into(), text("x"))]),
            ..QueryOptions::default()
        };
        session
            .engine
            .execute(
                &mut session.state,
                &prepared.id,
                &options,
                &mut session.engine.answers().room_of_its_own(),
            )
            .await
            .unwrap();
        session.run("CREATE TABLE other (k int PRIMARY KEY)").await;
        session
            .engine
            .execute(
                &mut session.state,
                &prepared.id,
                &options,
                &mut session.engine.answers().room_of_its_own(),
            )
            .await
            .unwrap();
        session.run("ALTER TABLE t ADD w int").await;
        let gone = session
            .engine
            .execute(
                &mut session.state,
                &prepared.id,
                &options,
                &mut session.engine.answers().room_of_its_own(),
            )
            .await
            .unwrap_err();
        assert_eq!(gone, QueryError::Unprepared { id: prepared.id });
    });
}

#[test]
fn a_set_bound_in_any_order_is_one_key() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k frozen<set<int>> PRIMARY KEY, v int)").await;
        let set = |elements: &[i32]| {
            let bytes: Vec<[u8; 4]> = elements.iter().map(|element| element.to_be_bytes()).collect();
            let parts = bytes.iter().map(|element| Some(element.as_slice()));
            BindValue::Set(types::encoding::collection(bytes.len(), parts).into())
        };
        session.execute("INSERT INTO t (k, v) VALUES (?, ?)", vec![set(&[3, 1, 2]), int(1)]).await.unwrap();
        session.execute("UPDATE t SET v = ? WHERE k = ?", vec![int(2), set(&[2, 3, 1, 3])]).await.unwrap();
        session.check("SELECT k, v FROM t", &["{1, 2, 3} | 2"]).await;
        session.check("SELECT v FROM t WHERE k = {2, 1, 3}", &["2"]).await;
    });
}

#[test]
fn multi_column_slices_hold_in_mixed_order() {
    with_session(async |mut session| {
        session
            .run("CREATE TABLE t (k int, a int, b int, c int, PRIMARY KEY (k, a, b, c)) WITH CLUSTERING ORDER BY (a ASC, b DESC, c ASC)")
            .await;
        let mut all = Vec::new();
        for (a, b, c) in (0..27).map(|i| (i / 9, i / 3 % 3, i % 3)) {
            session.run(&format!("INSERT INTO t (k, a, b, c) VALUES (0, {a}, {b}, {c})")).await;
            all.push((a, b, c));
        }
        all.sort_by_key(|(a, b, c)| (*a, -*b, *c));
        for (x, y, z) in [(0, 0, 0), (1, 1, 1), (2, 2, 2), (1, 0, 2), (0, 2, 1)] {
            let expected = |test: &dyn Fn(&(i32, i32, i32)) -> bool| -> Vec<String> {
                all.iter().filter(|t| test(t)).map(|(a, b, c)| format!("{a} | {b} | {c}")).collect()
            };
            let ask = |condition: &str| format!("SELECT a, b, c FROM t WHERE k = 0 AND {condition}");
            let greater = ask(&format!("(a, b, c) > ({x}, {y}, {z})"));
            assert_eq!(session.rows(&greater).await, expected(&|t| *t > (x, y, z)));
            let less = ask(&format!("(a, b) <= ({x}, {y})"));
            assert_eq!(session.rows(&less).await, expected(&|t| (t.0, t.1) <= (x, y)));
            let both = ask(&format!("(a, b) >= ({x}, {y}) AND (a, b, c) < (2, 1, 1)"));
            assert_eq!(session.rows(&both).await, expected(&|t| (t.0, t.1) >= (x, y) && *t < (2, 1, 1)));
        }
    });
}

#[test]
fn batches_are_one_write() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int, c int, v int, s int STATIC, PRIMARY KEY (k, c))").await;
        session
            .run(
                "BEGIN UNLOGGED BATCH USING TIMESTAMP 7 \
                 INSERT INTO t (k, c, v, s) VALUES (1, 1, 1, 1); \
                 UPDATE t SET s = 2 WHERE k = 1; \
                 INSERT INTO t (k, c, v) VALUES (2, 1, 5); \
                 APPLY BATCH",
            )
            .await;
        session
            .check("SELECT k, c, v, s, writetime(v) FROM t", &["1 | 1 | 1 | 2 | 7", "2 | 1 | 5 | null | 7"])
            .await;
        session
            .refuses(
                "BEGIN BATCH USING TIMESTAMP 7 INSERT INTO t (k, c) VALUES (1, 1) USING TIMESTAMP 3; APPLY BATCH",
                "Timestamp must be set either on BATCH or individual statements",
            )
            .await;
    });
}

#[test]
fn functions_are_computed() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, b bigint, d double, t text, ts timestamp)").await;
        session
            .run("INSERT INTO t (k, b, d, t, ts) VALUES (7, 3000000000, 2.5, 'héllo', '2024-05-06 07:08:09+0000')")
            .await;
        session
            .check(
                "SELECT CAST(b AS int), CAST(k AS text), CAST(d AS bigint) FROM t",
                &["-1294967296 | '7' | 2"],
            )
            .await;
        session.check("SELECT k + b, k * d, k % 4, -k FROM t", &["3000000007 | 17.5 | 3 | -7"]).await;
        session
            .check("SELECT blobAsText(textAsBlob(t)), intAsBlob(k) FROM t", &["'héllo' | 0x00000007"])
            .await;
        session
            .check("SELECT toDate(ts), to_unix_timestamp(ts) FROM t", &["'2024-05-06' | 1714979289000"])
            .await;
        session.check("SELECT JSON k, t FROM t", &["'{\"k\": 7, \"t\": \"héllo\"}'"]).await;
        session.run("INSERT INTO t JSON '{\"k\": 8, \"t\": \"j\", \"d\": 1.5}'").await;
        session.check("SELECT k, d, t FROM t WHERE k = 8", &["8 | 1.5 | 'j'"]).await;
        session.refuses("SELECT nofunction(k) FROM t", "Unknown function 'nofunction'").await;
        session
            .refuses("SELECT k FROM t WHERE t = 'x'", "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If you want to execute this query despite the performance unpredictability, use ALLOW FILTERING")
            .await;
    });
}

/// As it is read on another thread, whichever way it comes.
#[test]
fn a_long_json_text_means_what_a_short_one_does() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v text)").await;
        for length in [100, 300_000] {
            let value = "é".repeat(length);
            let json = |k: i32| format!(r#"{{"k": {k}, "v": "{value}"}}"#);
            session.run(&format!("INSERT INTO t JSON '{}'", json(1))).await;
            session.run(&format!("BEGIN BATCH INSERT INTO t JSON '{}' APPLY BATCH", json(2))).await;
            session.execute("INSERT INTO t JSON ?", vec![text(&json(3))]).await.expect("is written");
            for k in 1..=3 {
                session.check(&format!("SELECT v FROM t WHERE k = {k}"), &[&format!("'{value}'")]).await;
            }
            let wrong = format!("{}, {value}", json(4));
            let refusals = [
                session.send(&format!("INSERT INTO t JSON '{wrong}'")).await.expect_err("is no JSON"),
                session.execute("INSERT INTO t JSON ?", vec![text(&wrong)]).await.expect_err("is no JSON"),
            ];
            for refusal in refusals.map(|refusal| refusal.to_string()) {
                assert!(refusal.starts_with("Could not decode JSON string as a map: "), "{refusal}");
                assert!(refusal.len() < 10_000, "{} bytes", refusal.len());
            }
        }
    });
}

#[test]
fn a_column_may_be_deleted_twice_in_one_statement() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int, m map<int, int>)").await;
        session.run("INSERT INTO t (k, v, m) VALUES (1, 1, {1: 1, 2: 2})").await;
        session.run("DELETE v, m[1], v, m[1] FROM t WHERE k = 1").await;
        session.check("SELECT v, m FROM t", &["null | {2: 2}"]).await;
    });
}

#[test]
fn a_paging_state_that_nobody_gave_is_refused_or_harmless() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))").await;
        for c in 0..5 {
            session.run(&format!("INSERT INTO t (k, c) VALUES (1, {c})")).await;
        }
        let mut options = QueryOptions { page_size: Some(2), ..session.options.clone() };
        let first = session
            .engine
            .query(
                &mut session.state,
                "SELECT * FROM t",
                &options,
                &mut session.engine.answers().room_of_its_own(),
            )
            .await
            .unwrap();
        let ResponseKind::Rows(rows) = first.kind else { panic!("no rows") };
        let state = rows.paging_state.unwrap().to_vec();
        for at in 0..state.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = state.clone();
                damaged[at] = value;
                options.paging_state = Some(damaged.into());
                let _ = session
                    .engine
                    .query(
                        &mut session.state,
                        "SELECT * FROM t",
                        &options,
                        &mut session.engine.answers().room_of_its_own(),
                    )
                    .await;
            }
        }
    });
}

#[test]
fn a_batch_that_comes_back_to_a_partition_changes_it_as_its_statements_in_turn() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int, c int, s int static, v text, PRIMARY KEY (k, c))").await;
        session.run("CREATE TABLE u (k int PRIMARY KEY, v text)").await;
        session.run("INSERT INTO t (k, c, v) VALUES (3, 1, 'old') USING TIMESTAMP 1").await;
        session
            .run(
                "BEGIN UNLOGGED BATCH USING TIMESTAMP 7 \
                 INSERT INTO u (k, v) VALUES (1, 'b'); INSERT INTO u (k, v) VALUES (2, 'x'); \
                 INSERT INTO t (k, c, v) VALUES (1, 1, 'a'); INSERT INTO t (k, c, s) VALUES (2, 1, 5); \
                 INSERT INTO u (k, v) VALUES (1, 'c'); INSERT INTO t (k, c, s) VALUES (1, 2, 3); \
                 DELETE FROM t WHERE k = 3; UPDATE t SET s = 4 WHERE k = 1; INSERT INTO u (k, v) VALUES (1, 'a'); \
                 DELETE FROM t WHERE k = 2 AND c > 3; INSERT INTO t (k, c, v) VALUES (1, 1, 'b'); \
                 UPDATE t SET v = 'gone' WHERE k = 3 AND c = 2; DELETE FROM u WHERE k = 2; APPLY BATCH",
            )
            .await;
        // Of equal timestamps a deletion wins, then the greater value.
        session.check("SELECT * FROM u", &["1 | 'c'"]).await;
        session.check("SELECT k, c, s, v FROM t WHERE k = 1", &["1 | 1 | 4 | 'b'", "1 | 2 | 4 | null"]).await;
        session.check("SELECT k, c, s, v FROM t WHERE k = 2", &["2 | 1 | 5 | null"]).await;
        session.check("SELECT k, c, s, v FROM t WHERE k = 3", &[]).await;
    });
}

/// INSERTs of one shape share a plan; each still means what it means alone.
#[test]
fn inserts_of_a_batch_mean_what_they_mean_alone() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, a text, b double, s set<int>)").await;
        session.run("CREATE TABLE c (k int, c text, v int, PRIMARY KEY (k, c))").await;
        let same = "INSERT INTO t (k, a, b) VALUES";
        session
            .run(&format!(
                "BEGIN UNLOGGED BATCH USING TIMESTAMP 7 {same} (1, 'one', 1); {same} (2, $$two$$, 2.5); {same} (3, null, 3);
                 INSERT INTO t (k, s) VALUES (1, {{4}}); {same} (1, 'one', 0); INSERT INTO t (a, k) VALUES ('five', 5);
                 INSERT INTO t (a, k) VALUES ('six', 6); INSERT INTO c (k, c, v) VALUES (1, 'x', 1);
                 INSERT INTO c (k, c, v) VALUES (1, 'y', 2); INSERT INTO ks.c (k, c, v) VALUES (1, 'z', 3);
                 UPDATE t SET a = 'seven' WHERE k = 7; DELETE FROM t WHERE k = 6; APPLY BATCH"
            ))
            .await;
        // Of two values of one time the greater stays; a deletion of the same time wins.
        let rows = [
            "1 | 'one' | 1.0 | {4}",
            "2 | 'two' | 2.5 | null",
            "3 | null | 3.0 | null",
            "5 | 'five' | null | null",
            "7 | 'seven' | null | null",
        ];
        let mut found = session.rows("SELECT k, a, b, s FROM t").await;
        found.sort_unstable();
        assert_eq!(found, rows);
        session.check("SELECT c, v FROM c WHERE k = 1", &["'x' | 1", "'y' | 2", "'z' | 3"]).await;
        session.check("SELECT writetime(a) FROM t WHERE k = 2", &["7"]).await;
        for (wrong, message) in [
            ("(9, 'x', 'y')", "Invalid STRING constant (y) for \"b\" of type double"),
            ("(99999999999, 'x', 1)", "Unable to make int from '99999999999'"),
            ("(9, 'x')", "Unmatched column names/values"),
            ("(null, 'x', 1)", "Invalid null value in condition for column k"),
        ] {
            session.refuses(&format!("{same} {wrong}"), message).await;
            session
                .refuses(&format!("BEGIN BATCH {same} (8, 'x', 1); {same} {wrong}; APPLY BATCH"), message)
                .await;
        }
        session.check("SELECT k FROM t WHERE k = 8", &[]).await;
    });
}

#[test]
fn prepared_statements_make_room_for_others_and_are_prepared_again() {
    with_session(async |mut session: Session| {
        session.run("CREATE TABLE t (p int, c int, v int, PRIMARY KEY (p, c))").await;
        session.run("INSERT INTO t (p, c, v) VALUES (1, 2, 3)").await;
        let markers = vec!["?"; 1000].join(", ");
        let text = |number: usize| format!("SELECT v FROM t WHERE p IN ({markers}) AND c = {number}");
        let values: Vec<BindValue> = (0..1000).map(int).collect();
        let mut ids = Vec::new();
        for number in 0..6_000 {
            ids.push(session.engine.prepare(&session.state, &text(number), None).await.unwrap().id);
        }
        let figures = session.engine.prepared_figures();
        assert!(figures.text_bytes <= PREPARED.text_bytes, "{figures:?}");
        assert!(figures.plan_bytes <= PREPARED.plan_bytes, "{figures:?}");
        assert_eq!(figures.count as u64 + figures.evicted_count, 6_000);
        assert!(figures.evicted_count > 0, "{figures:?}");
        let options = QueryOptions { values: Values::Positional(values), ..QueryOptions::default() };
        let mut unprepared_count = 0;
        for number in [0, 2, 3_000, 5_999] {
            let mut room = session.engine.answers().room_of_its_own();
            let mut answer =
                session.engine.execute(&mut session.state, &ids[number], &options, &mut room).await;
            if let Err(QueryError::Unprepared { id }) = answer {
                assert_eq!(id, ids[number]);
                unprepared_count += 1;
                session.engine.prepare(&session.state, &text(number), None).await.unwrap();
                answer = session.engine.execute(&mut session.state, &id, &options, &mut room).await;
            }
            let ResponseKind::Rows(rows) = answer.unwrap().kind else { panic!("rows") };
            assert_eq!(show(&rows).len(), usize::from(number == 2), "of statement {number}");
        }
        assert_eq!(unprepared_count, 2, "the first ones made room");
    });
}

#[test]
fn a_statement_whose_plan_is_too_large_to_be_kept_is_planned_each_time() {
    with_session(async |mut session: Session| {
        session.run("CREATE TABLE t (p int PRIMARY KEY, v int)").await;
        session.run("INSERT INTO t (p, v) VALUES (7, 8)").await;
        let comment = "x".repeat(PREPARED.plan_bytes - (1 << 10));
        let text = format!("SELECT v FROM t WHERE p = 7 AND v = ? ALLOW FILTERING /* {comment} */");
        let id = session.engine.prepare(&session.state, &text, None).await.unwrap().id;
        assert_eq!(session.engine.prepared_figures().plan_bytes, 0, "it is not kept");
        for _ in 0..2 {
            let options =
                QueryOptions { values: Values::Positional(vec![int(8)]), ..QueryOptions::default() };
            let mut room = session.engine.answers().room_of_its_own();
            let answer = session.engine.execute(&mut session.state, &id, &options, &mut room).await.unwrap();
            let ResponseKind::Rows(rows) = answer.kind else { panic!("rows") };
            assert_eq!(show(&rows), ["8"]);
        }
        let too_large = "x".repeat(PREPARED.text_bytes + 1);
        let refused = session.engine.prepare(&session.state, &too_large, None).await.unwrap_err();
        assert!(
            matches!(&refused, QueryError::Invalid(why) if why.contains("larger than allowed")),
            "{refused:?}"
        );
    });
}

/// It was answered as our fault, as if it were worth another try.
#[test]
fn a_write_that_is_too_large_for_the_log_is_its_clients_fault() {
    with_log_segments(64 << 10, async |mut session: Session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v text)").await;
        let insert = "INSERT INTO t (k, v) VALUES (?, ?)";
        let refused = session.execute(insert, vec![int(1), text(&"x".repeat(60_000))]).await.unwrap_err();
        assert!(
            matches!(&refused, QueryError::Invalid(why) if why.contains("larger than the")),
            "{refused:?}"
        );
        session.execute(insert, vec![int(1), text("short")]).await.unwrap();
        session.check("SELECT v FROM t", &["'short'"]).await;
    });
}
