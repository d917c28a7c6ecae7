//! One row, in a table whose writes need not wait for the disk.

use bytes::Bytes;
use query::{BindValue, Consistency, PlainUpdate};

use crate::common::{Session, with_node, with_periodic_node};
use crate::given::*;

/// Writes the same to two tables, to one of them the plain way, and compares all that can be read of them.
#[test]
fn what_is_written_the_plain_way_is_what_is_written_the_full_way() {
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
            for table in ["plain_rows", "full_rows"] {
                let columns = "k text PRIMARY KEY, z int, a text, f frozen<list<text>>";
                let option = format!("default_time_to_live = {time_to_live}");
                session.run(&format!("CREATE TABLE {table} ({columns}) WITH {option}")).await;
            }
            for (timestamp, (statement, values)) in (1..).zip(writes) {
                let update =
                    plain_update(&session, &statement.replace("{}", "plain_rows")).await.expect("of one row");
                let given = values.iter().copied();
                let is_written = plain_write(&session, &update, given, Consistency::Quorum, Some(timestamp));
                assert!(is_written, "{statement}");
                let values = values.iter().map(|value| BindValue::Set(Bytes::copy_from_slice(value)));
                session.options.timestamp = Some(timestamp);
                session.execute(&statement.replace("{}", "full_rows"), values.collect()).await.unwrap();
                session.options.timestamp = None;
                if timestamp == 5 {
                    session.flush().await;
                }
                let seen = "SELECT k, z, a, f, writetime(z), writetime(a), writetime(f), ttl(a) FROM";
                let (plain, full) = (
                    session.rows(&format!("{seen} plain_rows")).await,
                    session.rows(&format!("{seen} full_rows")).await,
                );
                assert_eq!(plain, full, "{statement}");
                // An INSERT leaves a row without cells, an UPDATE does not.
                let unset = "DELETE z, a, f FROM {} USING TIMESTAMP 100 WHERE k = 's'";
                session.run(&unset.replace("{}", "plain_rows")).await;
                session.run(&unset.replace("{}", "full_rows")).await;
            }
        });
    }
}

#[test]
fn a_write_without_a_timestamp_gets_one_of_its_own() {
    with_periodic_node(async |mut session: Session| {
        session.run(TABLE).await;
        let update = plain_update(&session, "INSERT INTO rows (k, z) VALUES (?, ?)").await.unwrap();
        for z in [1u8, 2] {
            let value = [0, 0, 0, z];
            let values: [&[u8]; 2] = [b"p", &value];
            assert!(plain_write(&session, &update, values.into_iter(), Consistency::One, None));
        }
        session.check("SELECT z FROM rows WHERE k = 'p'", &["2"]).await;
    });
}

#[test]
fn only_a_plain_change_of_one_row_is_written_the_plain_way() {
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
            assert!(plain_update(&session, statement).await.is_none(), "{statement}");
        }
    });
}

#[test]
fn what_would_be_refused_or_waited_for_is_not_written_at_once() {
    let insert = "INSERT INTO rows (k, z) VALUES (?, ?)";
    let write = |session: &Session, update: &PlainUpdate, values: &[&[u8]], consistency| {
        plain_write(session, update, values.iter().copied(), consistency, None)
    };
    let good: [&[u8]; 2] = [b"p", &[0, 0, 0, 1]];
    with_periodic_node(async |mut session: Session| {
        session.run(TABLE).await;
        let update = plain_update(&session, insert).await.unwrap();
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
        let update = plain_update(&session, insert).await.unwrap();
        assert!(!write(&session, &update, &good, Consistency::One));
        session.check("SELECT * FROM rows", &[]).await;
    });
}
