//! A row that is read at once is the row that is read the long way.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::ops::ControlFlow;

use bytes::Bytes;
use common::{Session, int, text, with_node, with_periodic_node};
use query::{
    BindValue, Consistency, POINTS_MAX, PointGroups, PointQuery, PointRead, PointRow, PointStatement,
    PointUpdate, PreparedInfo, QueryOptions, ResponseKind, RowSink, RowsResult, Values,
};

const TABLE: &str = "CREATE TABLE rows (k text PRIMARY KEY, z int, a text, m map<text, int>, l list<int>)";
const SELECTIONS: [&str; 3] = [
    "SELECT * FROM rows WHERE k = ?",
    "SELECT z, m, k FROM rows WHERE k = ? LIMIT 1",
    "SELECT a FROM rows WHERE k = ?",
];

/// The cells of an answer.
#[derive(Debug, Default, PartialEq)]
struct Cells(Vec<Option<Bytes>>);

impl RowSink for Cells {
    fn cell(&mut self, value: Option<&[u8]>) {
        self.0.push(value.map(Bytes::copy_from_slice));
    }
}

fn cells_of(rows: &RowsResult) -> (usize, Cells) {
    let mut cells = Cells::default();
    (rows.write_rows(&mut cells), cells)
}

async fn point_query(session: &Session, statement: &str) -> Option<PointQuery> {
    let prepared = session.engine.prepare(&session.state, statement, None).await.unwrap();
    point_query_of(session, &prepared)
}

/// The same of a statement whose columns may not be there.
async fn point_query_if_any(session: &Session, statement: &str) -> Option<PointQuery> {
    let prepared = session.engine.prepare(&session.state, statement, None).await.ok()?;
    point_query_of(session, &prepared)
}

fn point_query_of(session: &Session, prepared: &PreparedInfo) -> Option<PointQuery> {
    match session.engine.point_statement(&prepared.id) {
        Some(PointStatement::Read(query)) => Some(query),
        _ => None,
    }
}

/// Reads keys together; `None` for those that are left to the long way.
fn together(session: &Session, query: &PointQuery, keys: &[&[u8]]) -> Vec<Option<(usize, Cells)>> {
    let read = |key: &&[u8]| {
        let key = Bytes::copy_from_slice(key);
        session.engine.point_read(query.clone(), key, Consistency::One, Some(5000)).unwrap()
    };
    let reads: Vec<PointRead> = keys.iter().map(read).collect();
    let mut found: Vec<_> = reads.iter().map(|_| None).collect();
    session.engine.point_reads(&reads, |index, row| {
        let mut cells = Cells::default();
        found[index] = Some((row.write(&mut cells), cells));
        ControlFlow::Continue(())
    });
    found
}

fn at_once(session: &Session, query: &PointQuery, key: &str) -> Option<(usize, Cells)> {
    together(session, query, &[key.as_bytes()]).pop().unwrap()
}

async fn the_long_way(session: &mut Session, statement: &str, key: &str) -> (usize, Cells) {
    match session.execute(statement, vec![text(key)]).await.unwrap().kind {
        ResponseKind::Rows(rows) => cells_of(&rows),
        other => panic!("{other:?}"),
    }
}

/// Reads every key both ways. Once the long way has brought chunks of files in, nothing is lacking.
async fn check(session: &mut Session, step: &str) {
    for statement in SELECTIONS {
        let query = point_query(session, statement).await.expect("of one row by one key");
        let keys = ["p", "q", "absent", "p"];
        let found = together(session, &query, &keys.map(str::as_bytes));
        for (key, found) in keys.into_iter().zip(found) {
            let expected = the_long_way(session, statement, key).await;
            // The first time, the chunks of a file may be lacking.
            let found = found.or_else(|| at_once(session, &query, key)).expect("in memory");
            assert_eq!(found, expected, "{statement} of {key} after {step}");
        }
    }
}

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
                let mut found_count = 0;
                for statement in selections {
                    let Some(query) = point_query_if_any(&session, statement).await else { continue };
                    for key in ["p", "q"] {
                        let expected = the_long_way(&mut session, statement, key).await;
                        let found = at_once(&session, &query, key);
                        found_count += usize::from(found.is_some());
                        assert!(found.is_none_or(|found| found == expected), "{statement} of {key}: {step}");
                    }
                }
                assert!(found_count > 0 || step.contains("DROP"), "{step}: none was told at once");
            });
        }
    }
}

#[test]
fn a_column_that_was_dropped_is_not_seen() {
    with_node(1, 64 << 20, async |mut session: Session| {
        session.run(TABLE).await;
        session.run("INSERT INTO rows (k, z, a) VALUES ('p', 1, 'one')").await;
        let query = point_query(&session, "SELECT * FROM rows WHERE k = ?").await.unwrap();
        session.run("ALTER TABLE rows DROP a").await;
        session.run("ALTER TABLE rows ADD a text").await;
        // The old plan is of a schema that is gone; who asks again gets another.
        let again = point_query(&session, "SELECT z, a FROM rows WHERE k = ?").await.unwrap();
        let expected = the_long_way(&mut session, "SELECT z, a FROM rows WHERE k = ?", "p").await;
        assert_eq!(expected.1.0, [Some(Bytes::from_static(&[0, 0, 0, 1])), None]);
        assert!(at_once(&session, &again, "p").is_none_or(|found| found == expected));
        drop(query);
    });
}

#[test]
fn only_a_plain_row_of_one_key_is_read_at_once() {
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
            assert!(point_query(&session, statement).await.is_none(), "{statement}");
        }
    });
}

#[test]
fn what_would_be_refused_or_paged_is_left_to_the_long_way() {
    with_node(1, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE numbers (k int PRIMARY KEY, v int)").await;
        session.run("INSERT INTO numbers (k, v) VALUES (1, 2)").await;
        let query = point_query(&session, "SELECT v FROM numbers WHERE k = ?").await.unwrap();
        let read = |key: &'static [u8], consistency, page_size| {
            let key = Bytes::from_static(key);
            let read = session.engine.point_read(query.clone(), key, consistency, page_size)?;
            let mut row_count = None;
            session.engine.point_reads(&[read], |_, row| {
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

#[test]
fn a_key_that_another_shard_owns_is_read_too() {
    with_node(2, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE numbers (k int PRIMARY KEY, v int)").await;
        let query = point_query(&session, "SELECT v FROM numbers WHERE k = ?").await.unwrap();
        let mut count = 0;
        for key in 0..20 {
            let values = QueryOptions {
                values: Values::Positional(vec![int(key), int(key)]),
                ..QueryOptions::default()
            };
            let insert =
                session.engine.prepare(&session.state, "INSERT INTO numbers (k, v) VALUES (?, ?)", None);
            let id = insert.await.unwrap().id;
            session.engine.execute(&mut session.state, &id, &values).await.unwrap();
            let BindValue::Set(bytes) = int(key) else { unreachable!("an int") };
            // Of another shard that is awake nothing can be told at once.
            if let Some((row_count, cells)) = together(&session, &query, &[&bytes]).pop().unwrap() {
                assert_eq!((row_count, cells.0), (1, vec![Some(bytes)]));
                count += 1;
            }
        }
        assert!(count > 0, "this shard owns some");
    });
}

#[test]
fn rows_read_together_are_the_rows_of_their_keys_wherever_they_lie() {
    with_node(2, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE numbers (k int PRIMARY KEY, v int, t text)").await;
        // Rows in files, some in two, some beyond a chunk; some in memory, some in both, some deleted.
        for key in 0..600 {
            let text = "t".repeat(key % 97 * 9);
            session.run(&format!("INSERT INTO numbers (k, v, t) VALUES ({key}, {key}, '{text}')")).await;
            match key {
                250 | 400 => session.flush().await,
                key if key % 7 == 3 => {
                    session.run(&format!("UPDATE numbers SET v = -1 WHERE k = {}", key / 2)).await;
                }
                key if key % 11 == 5 => {
                    session.run(&format!("DELETE FROM numbers WHERE k = {}", key / 2)).await;
                }
                _ => {}
            }
        }
        session.flush().await;
        session.run("UPDATE numbers SET t = 'new' WHERE k = 100").await;
        let statement = "SELECT v, t FROM numbers WHERE k = ?";
        let query = point_query(&session, statement).await.unwrap();
        let mut count = 0;
        for first in (0..640i32).step_by(POINTS_MAX) {
            let keys: Vec<[u8; 4]> = (first..).take(POINTS_MAX).map(i32::to_be_bytes).collect();
            let mut expected = Vec::new();
            for key in &keys {
                let values = vec![int(i32::from_be_bytes(*key))];
                let ResponseKind::Rows(rows) = session.execute(statement, values).await.unwrap().kind else {
                    panic!("a SELECT")
                };
                expected.push(cells_of(&rows));
            }
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            for (found, expected) in together(&session, &query, &keys).into_iter().zip(expected) {
                count += usize::from(found.is_some());
                assert_eq!(found.as_ref().unwrap_or(&expected), &expected);
            }
        }
        assert!(count > 200, "this shard owns half of them: {count}");
    });
}

#[test]
fn who_has_enough_is_shown_no_more() {
    with_node(1, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE numbers (k int PRIMARY KEY, v int)").await;
        let queries = [
            point_query(&session, "SELECT v FROM numbers WHERE k = ?").await.unwrap(),
            point_query(&session, "SELECT k FROM numbers WHERE k = ?").await.unwrap(),
        ];
        let read = |index: usize| {
            let key = Bytes::copy_from_slice(&(index as i32).to_be_bytes());
            session.engine.point_read(queries[index % 2].clone(), key, Consistency::One, None).unwrap()
        };
        let mut left: Vec<usize> = (0..9).collect();
        while !left.is_empty() {
            let reads: Vec<PointRead> = left.iter().map(|index| read(*index)).collect();
            let mut shown = Vec::new();
            session.engine.point_reads(&reads, |index, _| {
                shown.push(left[index]);
                if shown.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(shown.len(), left.len().min(2));
            left.retain(|index| !shown.contains(index));
        }
    });
}

async fn point_update(session: &Session, statement: &str) -> Option<PointUpdate> {
    let prepared = session.engine.prepare(&session.state, statement, None).await.unwrap();
    match session.engine.point_statement(&prepared.id) {
        Some(PointStatement::Write(update)) => Some(update),
        _ => None,
    }
}

fn write_at_once<'v>(
    session: &Session,
    update: &PointUpdate,
    values: impl Iterator<Item = &'v [u8]>,
    consistency: Consistency,
    timestamp: Option<i64>,
) -> bool {
    let Some(write) = session.engine.point_write(update, values, consistency, timestamp) else {
        return false;
    };
    let mut is_written = false;
    session.engine.point_writes(&[write], |_| is_written = true);
    is_written
}

/// Writes the same to two tables, to one of them at once, and compares all that can be read of them.
#[test]
fn what_is_written_at_once_is_what_is_written_the_long_way() {
    let writes: [(&str, &[&[u8]]); 8] = [
        ("INSERT INTO {} (k, z, a) VALUES (?, ?, ?)", &[b"p", &[0, 0, 0, 1], b"one"]),
        ("UPDATE {} SET a = ? WHERE k = ?", &[b"two", b"p"]),
        ("UPDATE {} SET z = ?, a = ? WHERE k = ?", &[&[0, 0, 0, 2], b"three", b"p"]),
        ("INSERT INTO {} (k) VALUES (?)", &[b"q"]),
        ("INSERT INTO {} (a, k) VALUES (?, ?)", &[b"", b"r"]),
        ("UPDATE {} SET f = ? WHERE k = ?", &[&[0, 0, 0, 1, 0, 0, 0, 1, b'x'], b"p"]),
        ("UPDATE {} SET z = ? WHERE k = ?", &[b"", b"s"]),
        ("INSERT INTO {} (k, z, a) VALUES (?, ?, ?)", &[b"p", &[0, 0, 0, 9], b"last"]),
    ];
    for time_to_live in [0, 1000] {
        with_periodic_node(async |mut session: Session| {
            for table in ["short", "long"] {
                let columns = "k text PRIMARY KEY, z int, a text, f frozen<list<text>>";
                let option = format!("default_time_to_live = {time_to_live}");
                session.run(&format!("CREATE TABLE {table} ({columns}) WITH {option}")).await;
            }
            for (timestamp, (statement, values)) in (1..).zip(writes) {
                let update =
                    point_update(&session, &statement.replace("{}", "short")).await.expect("of one row");
                let given = values.iter().copied();
                let is_written =
                    write_at_once(&session, &update, given, Consistency::Quorum, Some(timestamp));
                assert!(is_written, "{statement}");
                let values = values.iter().map(|value| BindValue::Set(Bytes::copy_from_slice(value)));
                session.options.timestamp = Some(timestamp);
                session.execute(&statement.replace("{}", "long"), values.collect()).await.unwrap();
                session.options.timestamp = None;
                if timestamp == 5 {
                    session.flush().await;
                }
                let seen = "SELECT k, z, a, f, writetime(z), writetime(a), writetime(f), ttl(a) FROM";
                let (short, long) = (
                    session.rows(&format!("{seen} short")).await,
                    session.rows(&format!("{seen} long")).await,
                );
                assert_eq!(short, long, "{statement}");
                // An INSERT leaves a row without cells, an UPDATE does not.
                let unset = "DELETE z, a, f FROM {} USING TIMESTAMP 100 WHERE k = 's'";
                session.run(&unset.replace("{}", "short")).await;
                session.run(&unset.replace("{}", "long")).await;
            }
        });
    }
}

#[test]
fn a_write_without_a_timestamp_gets_one_of_its_own() {
    with_periodic_node(async |mut session: Session| {
        session.run(TABLE).await;
        let update = point_update(&session, "INSERT INTO rows (k, z) VALUES (?, ?)").await.unwrap();
        for z in [1u8, 2] {
            let value = [0, 0, 0, z];
            let values: [&[u8]; 2] = [b"p", &value];
            assert!(write_at_once(&session, &update, values.into_iter(), Consistency::One, None));
        }
        session.check("SELECT z FROM rows WHERE k = 'p'", &["2"]).await;
    });
}

#[test]
fn only_a_plain_change_of_one_row_is_written_at_once() {
    with_periodic_node(async |mut session: Session| {
        session.run(TABLE).await;
        session.run("CREATE TABLE wide (k text, c int, v text, s int static, PRIMARY KEY (k, c))").await;
        session.run("CREATE TABLE sets (k text PRIMARY KEY, f frozen<set<int>>, t tuple<int>)").await;
        for statement in [
            "INSERT INTO rows (k, z) VALUES (?, ?) USING TTL 10",
            "INSERT INTO rows (k, z) VALUES (?, ?) USING TIMESTAMP ?",
            "INSERT INTO rows (k, z) VALUES ('p', ?)",
            "INSERT INTO rows (k, z) VALUES (?, 1)",
            "INSERT INTO rows (k, m) VALUES (?, ?)",
            "INSERT INTO rows JSON ?",
            "UPDATE rows SET l = l + ? WHERE k = ?",
            "UPDATE rows SET z = ? WHERE k IN ?",
            "UPDATE rows SET z = ? WHERE k IN (?, ?)",
            "DELETE FROM rows WHERE k = ?",
            "DELETE z FROM rows WHERE k = ?",
            "INSERT INTO wide (k, c, v) VALUES (?, ?, ?)",
            "UPDATE wide SET s = ? WHERE k = ?",
            "INSERT INTO sets (k, f) VALUES (?, ?)",
        ] {
            assert!(point_update(&session, statement).await.is_none(), "{statement}");
        }
    });
}

#[test]
fn what_would_be_refused_or_waited_for_is_not_written_at_once() {
    let insert = "INSERT INTO rows (k, z) VALUES (?, ?)";
    let write = |session: &Session, update: &PointUpdate, values: &[&[u8]], consistency| {
        write_at_once(session, update, values.iter().copied(), consistency, None)
    };
    let good: [&[u8]; 2] = [b"p", &[0, 0, 0, 1]];
    with_periodic_node(async |mut session: Session| {
        session.run(TABLE).await;
        let update = point_update(&session, insert).await.unwrap();
        let long = vec![b'x'; 65_536];
        let bad: [&[&[u8]]; 6] = [
            &[b"p"],
            &[b"p", &[0, 0, 0, 1], b""],
            &[b"", &[0, 0, 0, 1]],
            &[&long, &[0, 0, 0, 1]],
            &[b"p", &[1]],
            &[b"\xff", &[0, 0, 0, 1]],
        ];
        for values in bad {
            assert!(!write(&session, &update, values, Consistency::One), "{values:?}");
        }
        for consistency in [Consistency::Two, Consistency::Serial, Consistency::LocalSerial] {
            assert!(!write(&session, &update, &good, consistency), "{consistency:?}");
        }
        session.check("SELECT * FROM rows", &[]).await;
        assert!(write(&session, &update, &good, Consistency::Any));
    });
    // Where a write waits for the disk, nothing is written at once.
    with_node(1, 64 << 20, async |mut session: Session| {
        session.run(TABLE).await;
        let update = point_update(&session, insert).await.unwrap();
        assert!(!write(&session, &update, &good, Consistency::One));
        session.check("SELECT * FROM rows", &[]).await;
    });
}

/// Sends groups of reads to their shards, and takes no more of each than `most`; what was seen of each key.
async fn sent(
    session: &Session,
    reads: &[PointRead],
    groups: PointGroups,
    most: usize,
) -> Vec<(usize, usize, Cells)> {
    let mut all = Vec::new();
    for group in groups {
        let indexes: Vec<usize> = (0..reads.len()).filter(|index| group.contains(*index)).collect();
        assert_eq!(indexes.len(), group.len());
        let of_group = indexes.iter().map(|index| reads[*index].clone()).collect();
        let show = move |seen: &mut Vec<_>, index: usize, row: PointRow<'_>| {
            let mut cells = Cells::default();
            seen.push((index, row.write(&mut cells), cells));
            if seen.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let seen = session.engine.send_point_reads(of_group, Vec::new(), show).await.unwrap();
        all.extend(seen.into_iter().map(|(index, count, cells)| (indexes[index], count, cells)));
    }
    all
}

#[test]
fn a_shard_that_is_at_work_reads_and_writes_what_it_is_sent() {
    // Where writes wait for the disk, all of them are sent.
    with_node(2, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE numbers (k int PRIMARY KEY, v text)").await;
        let keys: Vec<[u8; 4]> = (0..POINTS_MAX as i32).map(i32::to_be_bytes).collect();
        let update = point_update(&session, "INSERT INTO numbers (k, v) VALUES (?, ?)").await.unwrap();
        let write = |key: &[u8; 4]| {
            let values: [&[u8]; 2] = [key, &[b'v'; 3]];
            session.engine.point_write(&update, values.into_iter(), Consistency::One, None).unwrap()
        };
        // The last two are not there.
        let writes: Vec<_> = keys[..keys.len() - 2].iter().map(write).collect();
        let groups = session.engine.point_writes(&writes, |index| panic!("{index} is not durable"));
        assert_eq!(groups.iter().map(|group| group.len()).sum::<usize>(), writes.len());
        for group in groups {
            let of_group = (0..writes.len()).filter(|index| group.contains(*index));
            let of_group: Vec<_> = of_group.map(|index| writes[index].clone()).collect();
            let written = session.engine.send_point_writes(of_group).await;
            assert_eq!(written.written_count, group.len());
            assert!(written.doubtful.is_none());
        }
        session.check("SELECT count(*) FROM numbers", &["14"]).await;

        let query = point_query(&session, "SELECT k, v FROM numbers WHERE k = ?").await.unwrap();
        let read = |key: &[u8; 4]| {
            let key = Bytes::copy_from_slice(key);
            session.engine.point_read(query.clone(), key, Consistency::One, Some(5000)).unwrap()
        };
        let reads: Vec<PointRead> = keys.iter().map(read).collect();
        let mut seen = Vec::new();
        let groups = session.engine.point_reads(&reads, |index, row| {
            let mut cells = Cells::default();
            seen.push((index, row.write(&mut cells), cells));
            ControlFlow::Continue(())
        });
        let here = seen.len();
        assert!(here > 0 && here < reads.len(), "each shard has some: {here}");
        assert_eq!(sent(&session, &reads, groups.clone(), 2).await.len(), 2, "no more than what was wanted");
        seen.extend(sent(&session, &reads, groups, usize::MAX).await);
        seen.sort_by_key(|(index, ..)| *index);
        for (number, (index, row_count, cells)) in seen.into_iter().enumerate() {
            let value = [Some(Bytes::copy_from_slice(&keys[index])), Some(Bytes::from_static(b"vvv"))];
            let expected = if index < 14 { (1, value.to_vec()) } else { (0, Vec::new()) };
            assert_eq!((number, row_count, cells.0), (index, expected.0, expected.1));
        }
    });
}

#[test]
fn what_a_shard_can_not_write_is_left_to_the_long_way() {
    with_node(2, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE gone (k int PRIMARY KEY, v text)").await;
        let update = point_update(&session, "INSERT INTO gone (k, v) VALUES (?, ?)").await.unwrap();
        let query = point_query(&session, "SELECT v FROM gone WHERE k = ?").await.unwrap();
        let key = 7i32.to_be_bytes();
        let values: [&[u8]; 2] = [&key, b"v"];
        let write = session.engine.point_write(&update, values.into_iter(), Consistency::One, None).unwrap();
        let key = Bytes::copy_from_slice(&key);
        let read = session.engine.point_read(query, key, Consistency::One, None).unwrap();
        session.run("DROP TABLE gone").await;
        let written = session.engine.send_point_writes(vec![write]).await;
        assert!(written.written_count == 0 && written.doubtful.is_none(), "nothing was written: {written:?}");
        let show = |seen: &mut usize, _: usize, _: PointRow<'_>| {
            *seen += 1;
            ControlFlow::Continue(())
        };
        assert_eq!(session.engine.send_point_reads(vec![read], 0, show).await, Some(0));
    });
}
