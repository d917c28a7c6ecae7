//! One row by its key.

use std::ops::ControlFlow;

use bytes::Bytes;
use query::{Consistency, ResponseKind};

use crate::common::{Session, with_node};
use crate::given::*;

#[test]
fn the_row_is_the_same_whatever_was_written_and_wherever_it_lies() {
    let steps = [
        "INSERT INTO rows (k, z, a, m, l) VALUES ('p', 1, 'one', {'x': 1, 'y': 2}, [1, 2, 3])",
        "UPDATE rows SET a = 'two' WHERE k = 'p'",
        "UPDATE rows SET m['z'] = 3, l = l + [4] WHERE k = 'p'",
        "INSERT INTO rows (k) VALUES ('q')",
        "UPDATE rows USING TTL 1000 SET z = 5 WHERE k = 'q'",
        "DELETE a FROM rows WHERE k = 'p'",
        "DELETE m['x'] FROM rows WHERE k = 'p'",
        "DELETE FROM rows WHERE k = 'q'",
        "UPDATE rows SET z = 6 WHERE k = 'q'",
        "DELETE z FROM rows WHERE k = 'q'",
        "DELETE FROM rows WHERE k = 'p'",
        "INSERT INTO rows (k, z, a) VALUES ('p', 9, 'nine')",
    ];
    // With a flush after every so many steps, rows lie in several places.
    for flush_every in [usize::MAX, 1, 2, 5] {
        with_node(1, 64 << 20, async |mut session: Session| {
            session.run(TABLE).await;
            check(&mut session, "nothing").await;
            for (index, step) in steps.iter().enumerate() {
                session.run(step).await;
                check(&mut session, step).await;
                if (index + 1) % flush_every == 0 {
                    session.flush().await;
                    check(&mut session, "a flush").await;
                }
            }
        });
    }
}

/// Rows of single cells, in the order of their columns' names, are shown where they lie in a file. Whatever else
/// there is to say of such a row, or of another place, is not to be overlooked.
#[test]
fn a_row_of_single_cells_is_the_same_wherever_it_lies() {
    let selections = [
        "SELECT * FROM cells WHERE k = ?",
        "SELECT d, a, k, d FROM cells WHERE k = ?",
        "SELECT b FROM cells WHERE k = ?",
        "SELECT c FROM cells WHERE k = ?",
    ];
    let whole = format!("INSERT INTO cells (k, a, b, d) VALUES ('p', '{}', 1, 2)", "one".repeat(100));
    let then = [
        "INSERT INTO cells (k, a, b, d) VALUES ('q', 'other', 3, 4)",
        "INSERT INTO cells (k, a, b) VALUES ('p', '', 1)",
        "INSERT INTO cells (k) VALUES ('q')",
        "INSERT INTO cells (k, a, b, d) VALUES ('p', null, 1, 2)",
        "UPDATE cells SET a = 'two' WHERE k = 'p'",
        "UPDATE cells USING TTL 1000 SET d = 5 WHERE k = 'p'",
        "INSERT INTO cells (k, a, b, d) VALUES ('p', 'two', 6, 7) USING TTL 1000",
        "DELETE a FROM cells WHERE k = 'p'",
        "DELETE FROM cells WHERE k = 'p'",
        "DELETE FROM cells USING TIMESTAMP 1 WHERE k = 'p'",
        "ALTER TABLE cells ADD c text",
        "ALTER TABLE cells DROP b",
    ];
    for step in then {
        for (is_flushed_between, is_flushed_after) in [(true, false), (true, true), (false, true)] {
            with_node(1, 64 << 20, async |mut session: Session| {
                session.run("CREATE TABLE cells (k text PRIMARY KEY, a text, b int, d bigint)").await;
                session.run(&whole).await;
                if is_flushed_between {
                    session.flush().await;
                }
                session.run(step).await;
                if is_flushed_after {
                    session.flush().await;
                }
                let mut statement_count = 0;
                for statement in selections {
                    let Some(query) = plain_query_if_any(&session, statement).await else { continue };
                    statement_count += 1;
                    for key in ["p", "q"] {
                        let expected = full_read(&mut session, statement, key).await;
                        // Of a table that has lost a column, nothing is told at once.
                        let expected = (!step.contains("DROP")).then_some(expected);
                        assert_eq!(
                            plain_read(&session, &query, key),
                            expected,
                            "{statement} of {key}: {step}"
                        );
                    }
                }
                // `c` is there once it is added, `b` until it is dropped.
                let expected_count =
                    3 + usize::from(step.contains("ADD")) - usize::from(step.contains("DROP"));
                assert_eq!(statement_count, expected_count, "{step}");
            });
        }
    }
}

/// Single cells of several versions are shown where they lie too.
#[test]
fn a_row_of_many_versions_is_the_same_wherever_they_lie() {
    let all = "SELECT k, a, b, d FROM cells WHERE k = ?";
    let steps = [
        "INSERT INTO cells (k, a, b, d) VALUES ('p', 'one', 1, 2) USING TIMESTAMP 10",
        "UPDATE cells USING TIMESTAMP 20 SET a = 'two' WHERE k = 'p'",
        "UPDATE cells USING TIMESTAMP 5 SET a = 'late', b = 9 WHERE k = 'p'",
        "UPDATE cells USING TIMESTAMP 30 SET b = 3, d = 4 WHERE k = 'p'",
        "INSERT INTO cells (k, d) VALUES ('p', 7) USING TIMESTAMP 40",
        "UPDATE cells USING TTL 1000 AND TIMESTAMP 50 SET a = 'expires' WHERE k = 'p'",
        "UPDATE cells USING TIMESTAMP 60 SET a = 'stays' WHERE k = 'p'",
        "DELETE b FROM cells USING TIMESTAMP 70 WHERE k = 'p'",
        "UPDATE cells USING TIMESTAMP 80 SET b = 8 WHERE k = 'p'",
        "DELETE FROM cells USING TIMESTAMP 60 WHERE k = 'p'",
        "UPDATE cells USING TIMESTAMP 90 SET d = 10 WHERE k = 'p'",
    ];
    for flush_every in [usize::MAX, 1, 2, 3] {
        with_node(1, 64 << 20, async |mut session: Session| {
            session.run("CREATE TABLE cells (k text PRIMARY KEY, a text, b int, d bigint)").await;
            session.run("INSERT INTO cells (k, a) VALUES ('q', 'another')").await;
            let query = plain_query(&session, all).await.unwrap();
            for (index, step) in steps.iter().enumerate() {
                session.run(step).await;
                if (index + 1) % flush_every == 0 {
                    session.flush().await;
                }
                let expected = full_read(&mut session, all, "p").await;
                assert_eq!(plain_read(&session, &query, "p").as_ref(), Some(&expected), "{step}");
                let scan = session.execute("SELECT k, a, b, d FROM cells", vec![]).await.unwrap();
                let ResponseKind::Rows(rows) = scan.kind else { panic!("{scan:?}") };
                let (_, cells) = cells_of(&rows);
                let of_p = cells.0.chunks(4).find(|row| row[0].as_deref() == Some(b"p"));
                assert_eq!(of_p, Some(&expected.1.0[..]), "a scan: {step}");
            }
        });
    }
}

/// What was written to a column before it was dropped still lies in the row. Only a full read passes over it.
#[test]
fn a_row_with_a_column_that_was_dropped_is_left_to_the_full_way() {
    const ONE: Bytes = Bytes::from_static(&[0, 0, 0, 1]);
    let statement = "SELECT z, a FROM rows WHERE k = ?";
    for is_flushed in [false, true] {
        with_node(1, 64 << 20, async |mut session: Session| {
            session.run(TABLE).await;
            session.run("INSERT INTO rows (k, z, a) VALUES ('p', 1, 'one')").await;
            if is_flushed {
                session.flush().await;
            }
            let before = full_read(&mut session, statement, "p").await;
            assert_eq!(before.1.0, [Some(ONE), Some(Bytes::from_static(b"one"))]);
            let query = plain_query(&session, statement).await.unwrap();
            assert_eq!(plain_read(&session, &query, "p"), Some(before), "nothing is dropped yet");
            session.run("ALTER TABLE rows DROP a").await;
            session.run("ALTER TABLE rows ADD a text").await;
            // The old plan is of a schema that is gone; who asks again gets another.
            let query = plain_query(&session, statement).await.unwrap();
            assert_eq!(full_read(&mut session, statement, "p").await.1.0, [Some(ONE), None]);
            assert_eq!(plain_read(&session, &query, "p"), None, "it would be told with what was dropped");
        });
    }
}

#[test]
fn only_a_plain_row_of_one_key_is_read_the_plain_way() {
    with_node(1, 64 << 20, async |mut session: Session| {
        session.run(TABLE).await;
        session.run("CREATE TABLE wide (k text, c int, v text, PRIMARY KEY (k, c))").await;
        session.run("CREATE TABLE pairs (j text, k text, v text, PRIMARY KEY ((j, k)))").await;
        for statement in [
            "SELECT * FROM wide WHERE k = ?",
            "SELECT * FROM wide WHERE k = 'p' AND c = ?",
            "SELECT * FROM pairs WHERE j = ? AND k = ?",
            "SELECT * FROM rows WHERE k = ? LIMIT ?",
            "SELECT * FROM rows WHERE k = 'p'",
            "SELECT * FROM rows WHERE k IN ?",
            "SELECT * FROM rows WHERE token(k) = ?",
            "SELECT * FROM rows WHERE k = ? AND z = 1 ALLOW FILTERING",
            "SELECT count(*) FROM rows WHERE k = ?",
            "SELECT ttl(a) FROM rows WHERE k = ?",
            "SELECT JSON * FROM rows WHERE k = ?",
            "SELECT DISTINCT k FROM rows WHERE k = ?",
            "SELECT a, z FROM rows WHERE k = ? GROUP BY k",
            "INSERT INTO rows (k) VALUES (?)",
            "UPDATE rows SET z = 1 WHERE k = ?",
        ] {
            assert!(plain_query(&session, statement).await.is_none(), "{statement}");
        }
    });
}

#[test]
fn what_would_be_refused_or_paged_is_left_to_the_full_way() {
    with_node(1, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE numbers (k int PRIMARY KEY, v int)").await;
        session.run("INSERT INTO numbers (k, v) VALUES (1, 2)").await;
        let query = plain_query(&session, "SELECT v FROM numbers WHERE k = ?").await.unwrap();
        let read = |key: &'static [u8], consistency, page_size| {
            let key = Bytes::from_static(key);
            let read = session.engine.plain_read(query.clone(), key, consistency, page_size)?;
            let mut row_count = None;
            session.engine.plain_reads(&[read], |_, row| {
                row_count = Some(row.write(&mut Cells::default()));
                ControlFlow::Continue(())
            });
            row_count
        };
        assert_eq!(read(&[0, 0, 0, 1], Consistency::One, None), Some(1));
        assert_eq!(read(&[0, 0, 0, 1], Consistency::Quorum, Some(2)), Some(1));
        assert_eq!(read(&[0, 0, 0, 2], Consistency::One, None), Some(0));
        assert_eq!(read(&[0, 0, 1], Consistency::One, None), None, "not an int");
        assert_eq!(read(&[], Consistency::One, None), None, "an empty key");
        assert_eq!(read(&[0, 0, 0, 1], Consistency::One, Some(1)), None, "a full page");
        assert_eq!(read(&[0, 0, 0, 1], Consistency::Any, None), None, "not for reads");
        assert_eq!(read(&[0, 0, 0, 1], Consistency::Two, None), None, "one node alone");
    });
}
