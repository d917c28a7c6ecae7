//! What one statement may cost: numbers, texts and lists that would keep a shard for long are refused, or taken in
//! pieces.

mod common;

use common::{Session, int, with_session};
use query::{BatchQuery, BatchStatement, BatchType, BindValue, QueryError, ResponseKind, Values};

const TOO_MANY_DIGITS: &str = "A varint or decimal has at most 10000 digits (4153 bytes)";

#[test]
fn a_number_is_kept_whatever_its_scale_and_refused_where_it_would_be_written_out() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, d decimal, v varint)").await;
        session.run("INSERT INTO t (k, d, v) VALUES (1, 1e999999999, 1)").await;
        session.run("INSERT INTO t (k, d, v) VALUES (2, 1, 2)").await;
        session
            .check(
                "SELECT CAST(d AS text), to_json(d) FROM t WHERE k = 1",
                &["'1E+999999999' | '1E+999999999'"],
            )
            .await;
        session.check("SELECT max(d), min(d) FROM t", &["1E+999999999 | 1"]).await;
        session.check("SELECT k FROM t WHERE d > 2 ALLOW FILTERING", &["1"]).await;
        session.check("SELECT d + 1 - d, CAST(d AS varint) FROM t WHERE k = 1", &["0E+999990000 | 0"]).await;
        for (selected, of) in [("d % 3", '%'), ("d / 3", '/')] {
            let message = format!("the operation 'decimal {of} int' failed: {TOO_MANY_DIGITS}");
            session.refuses(&format!("SELECT {selected} FROM t WHERE k = 1"), &message).await;
        }
        for selected in ["round(d)", "sum(d)", "avg(d)"] {
            session.refuses(&format!("SELECT {selected} FROM t WHERE k = 1"), TOO_MANY_DIGITS).await;
        }
    });
}

#[test]
fn a_number_of_too_many_digits_does_not_come_in_by_any_door() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, d decimal, v varint, l list<varint>)").await;
        let long = "7".repeat(2_000_000);
        for statement in [
            format!("INSERT INTO t (k, v) VALUES (1, {long})"),
            format!("INSERT INTO t (k, d) VALUES (1, -{long}.5e3)"),
            format!("INSERT INTO t (k, l) VALUES (1, [{long}])"),
            format!("SELECT k FROM t WHERE v = {long} ALLOW FILTERING"),
            format!("SELECT v + {long} FROM t"),
        ] {
            session.refuses(&statement, TOO_MANY_DIGITS).await;
        }
        let json = session.send(&format!("INSERT INTO t JSON '{{\"k\": 1, \"v\": \"{long}\"}}'")).await;
        assert!(json.is_err_and(|error| error.to_string().ends_with(TOO_MANY_DIGITS)));
        let bytes = |count: usize| BindValue::Set(vec![1; count].into());
        for column in ["v", "d"] {
            let insert = format!("INSERT INTO t (k, {column}) VALUES (1, ?)");
            session.execute(&insert, vec![bytes(4_153)]).await.expect("is short enough");
            let refused = session.execute(&insert, vec![bytes(4_158)]).await.expect_err("is too long");
            assert_eq!(refused, QueryError::Invalid(TOO_MANY_DIGITS.into()));
        }
        // What fits is multiplied, and what comes out is held to the same.
        let message = format!("the operation 'varint * varint' failed: {TOO_MANY_DIGITS}");
        session.refuses("SELECT v * v FROM t", &message).await;
        session.check("SELECT v / v, v % v, v - v FROM t", &["1 | 0 | 0"]).await;
    });
}

#[test]
fn a_statement_of_more_tokens_than_there_is_memory_for_is_refused_unparsed() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int, l list<int>)").await;
        let list =
            |count: usize| format!("INSERT INTO t (k, l) VALUES (1, [{}])", vec!["1"; count].join(", "));
        let refused = "tokens: more than the 20971 that there is memory for. Bind values to markers, or send several statements";
        for text in [
            list(500_000),
            // Wrong, but who could tell without parsing it?
            format!("SELECT {} FROM", "( ".repeat(100_000)),
            format!("BEGIN BATCH {} APPLY BATCH", "UPDATE t SET v = 1 WHERE k = 1; ".repeat(10_000)),
        ] {
            let error = session.send(&text).await.expect_err("it has too many tokens").to_string();
            assert!(error.ends_with(refused), "{error}");
            let error =
                session.engine.prepare(&session.state, &text, None).await.expect_err("and here").to_string();
            assert!(error.ends_with(refused) || error.starts_with("Prepared statement of size"), "{error}");
        }
        // What is long and has few tokens is no trouble, and neither is what has many, but not too many.
        session.run(&format!("INSERT INTO t (k, v) VALUES (1, /* {} */ 5)", "long ".repeat(1 << 20))).await;
        session.run(&format!("{} /* {} */", list(10_000), "long ".repeat(20_000))).await;
        let update = "UPDATE t SET v = 6 WHERE k = 2; ".repeat(1_600);
        session.run(&format!("BEGIN BATCH /* {} */ {update} APPLY BATCH", "long ".repeat(20_000))).await;
        session.check("SELECT k, v FROM t", &["1 | 5", "2 | 6"]).await;
        assert_eq!(session.rows("SELECT l FROM t WHERE k = 1").await[0].len(), 3 * 10_000);
        assert_eq!(session.engine.answers().held_bytes(), 0, "all room is given back");
    });
}

#[test]
fn the_statements_of_a_batch_message_have_room_together() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        let batch = async |session: &mut Session, count: i32| {
            let statement = |k| BatchStatement {
                query: BatchQuery::Text(format!("INSERT INTO t (k, v) VALUES ({k}, 7)")),
                values: Values::default(),
            };
            let statements: Vec<_> = (0..count).map(statement).collect();
            let mut room = session.engine.answers().room_of_its_own();
            let (engine, options) = (session.engine.clone(), session.options.clone());
            engine.batch(&mut session.state, BatchType::Unlogged, &statements, &options, &mut room).await
        };
        let refused = batch(&mut session, 10_000).await.expect_err("they have too many tokens");
        assert!(refused.to_string().contains("tokens: more than the 20971"), "{refused}");
        batch(&mut session, 1_390).await.expect("there is room for as many");
        session.check("SELECT count(*) FROM t", &["1390"]).await;
        assert_eq!(session.engine.answers().held_bytes(), 0);
    });
}

/// A list of that many numbers.
fn numbers(count: usize) -> String {
    (0..count).map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

#[test]
fn combinations_of_in_lists_are_counted_before_they_are_made() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (a int, b int, c int, d text, v text, PRIMARY KEY ((a, b), c, d))").await;
        let (many, few) = (numbers(300), numbers(200));
        let message = |what: &str, count: usize| {
            format!(
                "Aborting query because the cartesian product of the IN restrictions on {what} produces {count} \
                 values, this exceeds fail threshold of 65535."
            )
        };
        let keys = format!("a IN ({many}) AND b IN ({many})");
        session.refuses(&format!("SELECT v FROM t WHERE {keys}"), &message("partition key", 90_000)).await;
        session.refuses(&format!("DELETE FROM t WHERE {keys}"), &message("partition key", 90_000)).await;
        let texts = (0..300).map(|number| format!("'{number}'")).collect::<Vec<_>>().join(", ");
        let rows = format!("a = 1 AND b = 1 AND c IN ({many}) AND d IN ({texts})");
        session.refuses(&format!("SELECT v FROM t WHERE {rows}"), &message("clustering key", 90_000)).await;
        // Each is allowed, and both together are too many rows to write.
        let both = format!("a IN ({many}) AND b = 1 AND c IN ({many}) AND d = 'x'");
        session.refuses(&format!("UPDATE t SET v = 'x' WHERE {both}"), &message("primary key", 90_000)).await;
        session.check(&format!("SELECT v FROM t WHERE {both}"), &[]).await;
        // Few combinations, but of long values.
        let same = (0..3).map(|_| format!("'{}'", "x".repeat(60_000))).collect::<Vec<_>>().join(", ");
        let rows = format!("a = 1 AND b = 1 AND c IN ({few}) AND d IN ({same}, 'y')");
        session.check(&format!("SELECT v FROM t WHERE {rows}"), &[]).await;
        let different =
            (0..3).map(|at| format!("'{at}{}'", "x".repeat(60_000))).collect::<Vec<_>>().join(", ");
        let rows = format!("a = 1 AND b = 1 AND c IN ({few}) AND d IN ({different})");
        let error = session.send(&format!("SELECT v FROM t WHERE {rows}")).await.expect_err("too long");
        assert!(error.to_string().contains("36003000 bytes"), "{error}");
    });
}

#[test]
fn a_value_is_written_to_many_rows_as_far_as_there_is_memory() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int, c int, v blob, PRIMARY KEY (k, c))").await;
        let update = format!("UPDATE t SET v = ? WHERE k = 1 AND c IN ({})", numbers(100));
        let value = |bytes: usize| vec![BindValue::Set(vec![7; bytes].into())];
        session.execute(&update, value(1_000)).await.expect("not much");
        let error = session.execute(&update, value(1 << 20)).await.expect_err("too much").to_string();
        assert_eq!(error, "The rows that IN names would take more than the 67108864 bytes that they may");
        session.check("SELECT count(v) FROM t WHERE k = 1", &["100"]).await;
    });
}

#[test]
fn points_are_met_in_their_order_whatever_their_directions() {
    with_session(async |mut session| {
        let order = "WITH CLUSTERING ORDER BY (a DESC, b ASC)";
        session
            .run(&format!("CREATE TABLE t (k int, a int, b int, d decimal, PRIMARY KEY (k, a, b)) {order}"))
            .await;
        for (a, b) in [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)] {
            session.run(&format!("INSERT INTO t (k, a, b, d) VALUES (1, {a}, {b}, {a}.{b})")).await;
        }
        let rows = ["2 | 1", "2 | 2", "1 | 1", "1 | 2"];
        session.check("SELECT a, b FROM t WHERE k = 1 AND a IN (1, 2, 1) AND b IN (2, 1, 5)", &rows).await;
        session
            .check("SELECT a, b FROM t WHERE k = 1 AND (a, b) IN ((1, 2), (2, 1), (1, 1), (2, 2))", &rows)
            .await;
        session.check("SELECT a FROM t WHERE k = 1 AND a IN (1, 3) AND b > 1", &["1"]).await;
        // What a filter holds rows against is in order, too: 1.10 is 1.1.
        let filtered = "SELECT a, b FROM t WHERE k = 1 AND d IN (3.1, 9, 1.10, 2.2) ALLOW FILTERING";
        session.check(filtered, &["3 | 1", "2 | 2", "1 | 1"]).await;
    });
}

#[test]
fn many_rows_of_several_keys_are_sorted_in_runs() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int, c int, s int, PRIMARY KEY (k, c, s))").await;
        for k in 0..3 {
            let rows: Vec<String> = (0..1_200)
                .map(|at| format!("INSERT INTO t (k, c, s) VALUES ({k}, {}, {k})", at * 7 % 1_201))
                .collect();
            session.run(&format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", rows.join(";"))).await;
        }
        let mut expected: Vec<(i32, i32)> =
            (0..3).flat_map(|k| (0..1_200).map(move |at| (at * 7 % 1_201, k))).collect();
        expected.sort();
        let shown = |rows: &[(i32, i32)]| rows.iter().map(|(c, k)| format!("{c} | {k}")).collect::<Vec<_>>();
        let select = "SELECT c, k FROM t WHERE k IN (2, 0, 1) ORDER BY c";
        assert_eq!(session.rows(select).await, shown(&expected));
        assert_eq!(session.rows(&format!("{select} LIMIT 5")).await, shown(&expected[..5]));
        expected.sort_by_key(|(c, k)| (-c, *k));
        let mut backwards = session.rows(&format!("{select} DESC")).await;
        backwards.sort_by_key(|row| {
            row.split(" | ").map(|part| part.parse::<i32>().expect("a number")).map(|c| -c).next()
        });
        assert_eq!(session.rows(&format!("{select} DESC, s DESC")).await.len(), expected.len());
        assert_eq!(backwards.len(), expected.len());
    });
}

#[test]
fn what_functions_make_of_a_row_has_a_bound() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v text)").await;
        session.run(&format!("INSERT INTO t (k, v) VALUES (1, '{}')", "\"".repeat(100_000))).await;
        session.run("INSERT INTO t (k, v) VALUES (2, 'short')").await;
        let nested = |depth: usize| format!("{}v{}", "to_json(".repeat(depth), ")".repeat(depth));
        let refused = "The functions of a row may make at most 67108864 bytes";
        session.refuses(&format!("SELECT {} FROM t WHERE k = 1", nested(30)), refused).await;
        session.refuses(&format!("SELECT v{} FROM t WHERE k = 1", " + v".repeat(60)), refused).await;
        session
            .refuses(
                &format!("INSERT INTO t (k, v) VALUES (3, {})", nested(30).replace('v', "'\"'")),
                refused,
            )
            .await;
        // Each row has the same allowance.
        session.run(&format!("SELECT {} FROM t", nested(3))).await;
        assert_eq!(session.rows(&format!("SELECT {} FROM t WHERE k = 2", nested(2))).await.len(), 1);
    });
}

#[test]
fn the_columns_of_an_answer_are_counted_however_often_they_are_asked_for() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))").await;
        for c in 0..200 {
            session.run(&format!("INSERT INTO t (k, c, v) VALUES (1, {c}, '{}')", "x".repeat(1_000))).await;
        }
        let columns = |count: usize| vec!["v"; count].join(", ");
        let refused = "A SELECT has at most 10000 selected columns and expressions, and not 10001";
        session.refuses(&format!("SELECT {} FROM t", columns(10_001)), refused).await;
        // 200 KB of rows are 200 MB so often: the page ends before, and without pages it is too much.
        let repeated = format!("SELECT {} FROM t", columns(1_000));
        let too_much = "The answer would take more than the 8388608 bytes of memory that one may have: \
                        ask for pages, for fewer rows or for fewer columns";
        session.refuses(&repeated, too_much).await;
        session.refuses(&format!("SELECT JSON {} FROM t", columns(1_000)), too_much).await;
        session.options.page_size = Some(1_000);
        let ResponseKind::Rows(page) = session.run(&repeated).await.kind else { panic!("no rows") };
        assert!(
            (1..10).contains(&page.row_count()) && page.paging_state.is_some(),
            "{} rows",
            page.row_count()
        );
        assert_eq!(session.rows("SELECT v FROM t").await.len(), 200);
    });
}

#[test]
fn many_named_values_find_their_markers() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        let names: Vec<String> = (0..20_000).map(|number| format!("name_{number}")).collect();
        let markers: Vec<String> = names.iter().map(|name| format!(":{name}")).collect();
        let values = names.iter().map(|name| (name.clone(), int(7))).collect();
        session.run("INSERT INTO t (k, v) VALUES (7, 1)").await;
        session.options.values = Values::Named(values);
        let text =
            format!("SELECT v FROM t WHERE k IN ({}) AND v IN (1, 2) ALLOW FILTERING", markers.join(","));
        let error = session.send(&text).await.expect_err("too many tokens").to_string();
        assert!(error.contains("tokens: more than"), "{error}");
        let short = format!("SELECT v FROM t WHERE k IN ({})", markers[..9].join(","));
        session.options.values =
            Values::Named(names[..9].iter().rev().map(|name| (name.clone(), int(7))).collect());
        session.check(&short, &["1"]).await;
    });
}

#[test]
fn what_calls_return_is_found_out_once() {
    with_session(async |mut session| {
        session
            .run("CREATE TABLE t (k int PRIMARY KEY, v int, d decimal, n varint, l list<int>, s text)")
            .await;
        let sum = |count: usize| vec!["1"; count].join(" + ");
        session.run(&format!("INSERT INTO t (k, v, d, n) VALUES (1, {0}, {0}, {0})", sum(90))).await;
        session.check("SELECT v, d, n FROM t WHERE k = 1", &["90 | 90.0 | 90"]).await;
        let nested = |open: &str, depth: usize| format!("{}1{}", open.repeat(depth), ")".repeat(depth));
        session.run(&format!("INSERT INTO t (k, s) VALUES (2, {})", nested("to_json(", 12))).await;
        let high = nested("abs(", 45).replace('1', &sum(45));
        session.run(&format!("INSERT INTO t (k, v, n) VALUES (2, {high}, {high})")).await;
        session.run(&format!("SELECT {high}, v FROM t WHERE k = {high}")).await;
        session.run(&format!("INSERT INTO t (k, v) VALUES (3, {})", nested("abs(", 90))).await;
        session.run(&format!("INSERT INTO t (k, v) VALUES (4, {})", nested("(1 + ", 60))).await;
        session.check("SELECT v FROM t WHERE k IN (3, 4)", &["1", "61"]).await;
        // So many are too many for one statement.
        let refused = "The statement has too many functions and operators: finding what they are is given up after 20000 tries";
        let sums = vec!["1+1"; 15_000].join(",");
        session.refuses(&format!("INSERT INTO t (k, l) VALUES (5, [{sums}])"), refused).await;
    });
}

#[test]
fn what_is_nested_in_a_selection_is_planned_once() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
        session.run("INSERT INTO t (k, v) VALUES (1, 7)").await;
        let nested = |open: &str, close: &str| format!("{}v{}", open.repeat(40), close.repeat(40));
        session
            .check(&format!("SELECT {} FROM t", nested("[", "]")), &[&nested("[", "]").replace('v', "7")])
            .await;
        session
            .check(&format!("SELECT {} FROM t", nested("{", "}")), &[&nested("{", "}").replace('v', "7")])
            .await;
        let numbers = format!("[{}v]", "1,".repeat(9_000));
        let deep = format!("{}{numbers}{}", "[".repeat(40), "]".repeat(40));
        assert_eq!(session.rows(&format!("SELECT {deep} FROM t")).await.len(), 1);
        // The name of such a column has an end.
        let ResponseKind::Rows(rows) =
            session.run(&format!("SELECT (text)'{}' FROM t", "x".repeat(90_000))).await.kind
        else {
            panic!("no rows")
        };
        assert_eq!(rows.columns[0].name.len(), 65_535);
    });
}

#[test]
fn long_sets_are_brought_in_order_elsewhere() {
    with_session(async |mut session| {
        session.run("CREATE TABLE t (k int PRIMARY KEY, s frozen<set<int>>)").await;
        let count = 40_000;
        let elements =
            (0..count).rev().chain(0..10).flat_map(|element: i32| [4, element]).flat_map(i32::to_be_bytes);
        let unsorted: Vec<u8> = (count + 10).to_be_bytes().into_iter().chain(elements).collect();
        let insert = "INSERT INTO t (k, s) VALUES (1, ?)";
        session.execute(insert, vec![BindValue::Set(unsorted.into())]).await.expect("a set");
        let expected = format!("{{{}}}", numbers(count as usize));
        session.check("SELECT s FROM t", &[&expected]).await;
        let cut = BindValue::Set(vec![0; 300_000].into());
        let refused = session.execute(insert, vec![cut]).await.expect_err("is no set").to_string();
        assert_eq!(refused, "Unexpected extraneous bytes after set value");
    });
}

#[test]
fn json_is_read_once_and_has_a_bound() {
    with_session(async |mut session| {
        let columns: Vec<String> = (0..500).map(|number| format!("c{number} int")).collect();
        session
            .run(&format!("CREATE TABLE t (k int PRIMARY KEY, l list<int>, s text, {})", columns.join(", ")))
            .await;
        let json = |count: usize| {
            // Commas in a string are no values.
            format!(
                r#"{{"k": 1, "c7": 7, "s": "{}\"{}", "l": [{}]}}"#,
                ",".repeat(300_000),
                "[".repeat(9),
                vec!["1"; count].join(",")
            )
        };
        let insert = "INSERT INTO t JSON ?";
        session.execute(insert, vec![BindValue::Set(json(20_000).into())]).await.expect("is not too much");
        session.check("SELECT k, c7, c8 FROM t", &["1 | 7 | null"]).await;
        assert_eq!(session.rows("SELECT l FROM t").await[0].len(), 3 * 20_000);
        let refused = "The JSON string has 300004 values: more than the 250000 that it may have";
        let long = json(300_000);
        let error =
            session.execute(insert, vec![BindValue::Set(long.clone().into())]).await.expect_err("too many");
        assert_eq!(error.to_string(), refused);
        session.refuses(&format!("INSERT INTO t JSON '{long}'"), refused).await;
    });
}
