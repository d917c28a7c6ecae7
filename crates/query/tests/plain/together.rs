//! Several rows at once, of this shard and of others.

use std::ops::ControlFlow;

use bytes::Bytes;
use query::{
    BindValue, Consistency, PLAIN_BATCH_MAX, PlainRead, PlainRow, QueryOptions, ResponseKind, Values,
};

use crate::common::{Session, int, with_node};
use crate::given::*;

#[test]
fn a_key_that_another_shard_owns_is_read_too() {
    with_node(2, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE numbers (k int PRIMARY KEY, v int)").await;
        let query = plain_query(&session, "SELECT v FROM numbers WHERE k = ?").await.unwrap();
        let mut of_another_count = 0;
        for key in 0..20 {
            let values = QueryOptions {
                values: Values::Positional(vec![int(key), int(key)]),
                ..QueryOptions::default()
            };
            let insert =
                session.engine.prepare(&session.state, "INSERT INTO numbers (k, v) VALUES (?, ?)", None);
            let id = insert.await.unwrap().id;
            session
                .engine
                .execute(&mut session.state, &id, &values, &mut session.engine.answers().room_of_its_own())
                .await
                .unwrap();
            let BindValue::Set(bytes) = int(key) else { unreachable!("an int") };
            let expected = (1, Cells(vec![Some(bytes.clone())]));
            assert_eq!(together_at_last(&session, &query, &[&bytes]), [expected]);
            of_another_count += usize::from(session.owner(&bytes) != 0);
        }
        assert!((1..20).contains(&of_another_count), "each shard owns some: {of_another_count}");
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
        let query = plain_query(&session, statement).await.unwrap();
        for first in (0..640i32).step_by(PLAIN_BATCH_MAX) {
            let keys: Vec<[u8; 4]> = (first..).take(PLAIN_BATCH_MAX).map(i32::to_be_bytes).collect();
            let mut expected = Vec::new();
            for key in &keys {
                let values = vec![int(i32::from_be_bytes(*key))];
                let ResponseKind::Rows(rows) = session.execute(statement, values).await.unwrap().kind else {
                    panic!("a SELECT")
                };
                expected.push(cells_of(&rows));
            }
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let found = together(&session, &query, &keys);
            for ((key, found), expected) in keys.iter().zip(&found).zip(&expected) {
                // The other shard may be at work, and what it has is told another time.
                assert!(found.is_some() || session.owner(key) != 0, "its own rows are told: {key:?}");
                assert!(found.as_ref().is_none_or(|found| found == expected), "{key:?}: {found:?}");
            }
            assert_eq!(together_at_last(&session, &query, &keys), expected);
        }
    });
}

#[test]
fn who_has_enough_is_shown_no_more() {
    with_node(1, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE numbers (k int PRIMARY KEY, v int)").await;
        let queries = [
            plain_query(&session, "SELECT v FROM numbers WHERE k = ?").await.unwrap(),
            plain_query(&session, "SELECT k FROM numbers WHERE k = ?").await.unwrap(),
        ];
        let read = |index: usize| {
            let key = Bytes::copy_from_slice(&(index as i32).to_be_bytes());
            session.engine.plain_read(queries[index % 2].clone(), key, Consistency::One, None).unwrap()
        };
        let mut left: Vec<usize> = (0..9).collect();
        while !left.is_empty() {
            let reads: Vec<PlainRead> = left.iter().map(|index| read(*index)).collect();
            let mut shown = Vec::new();
            session.engine.plain_reads(&reads, |index, _| {
                shown.push(left[index]);
                if shown.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(shown.len(), left.len().min(2));
            left.retain(|index| !shown.contains(index));
        }
    });
}

#[test]
fn a_shard_that_is_at_work_reads_and_writes_what_it_is_sent() {
    // Where writes wait for the disk, all of them are sent.
    with_node(2, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE numbers (k int PRIMARY KEY, v text)").await;
        let keys: Vec<[u8; 4]> = (0..PLAIN_BATCH_MAX as i32).map(i32::to_be_bytes).collect();
        let update = plain_update(&session, "INSERT INTO numbers (k, v) VALUES (?, ?)").await.unwrap();
        let write = |key: &[u8; 4]| {
            let values: [&[u8]; 2] = [key, &[b'v'; 3]];
            session.engine.plain_write(&update, values.into_iter(), Consistency::One, None).unwrap()
        };
        // The last two are not there.
        let writes: Vec<_> = keys[..keys.len() - 2].iter().map(write).collect();
        let (done, batches) = session.engine.plain_writes(&writes);
        assert!(done.is_empty(), "none of {done:?} is durable");
        assert_eq!(batches.iter().map(|batch| batch.len()).sum::<usize>(), writes.len());
        for batch in batches {
            let of_batch = (0..writes.len()).filter(|index| batch.contains(*index));
            let of_batch: Vec<_> = of_batch.map(|index| writes[index].clone()).collect();
            let written = session.engine.remote_writes(of_batch).await;
            assert_eq!((written.done.len(), written.doubtful.is_empty()), (batch.len(), true));
        }
        session.check("SELECT count(*) FROM numbers", &["14"]).await;

        let query = plain_query(&session, "SELECT k, v FROM numbers WHERE k = ?").await.unwrap();
        let read = |key: &[u8; 4]| {
            let key = Bytes::copy_from_slice(key);
            session.engine.plain_read(query.clone(), key, Consistency::One, Some(5000)).unwrap()
        };
        let reads: Vec<PlainRead> = keys.iter().map(read).collect();
        let mut seen = Vec::new();
        let batches = session.engine.plain_reads(&reads, |index, row| {
            let mut cells = Cells::default();
            seen.push((index, row.write(&mut cells), cells));
            ControlFlow::Continue(())
        });
        let here = seen.len();
        assert!(here > 0 && here < reads.len(), "each shard has some: {here}");
        assert_eq!(sent(&session, &reads, batches.clone(), 2).await.len(), 2, "no more than what was wanted");
        seen.extend(sent(&session, &reads, batches, usize::MAX).await);
        seen.sort_by_key(|(index, ..)| *index);
        for (number, (index, row_count, cells)) in seen.into_iter().enumerate() {
            let value = [Some(Bytes::copy_from_slice(&keys[index])), Some(Bytes::from_static(b"vvv"))];
            let expected = if index < 14 { (1, value.to_vec()) } else { (0, Vec::new()) };
            assert_eq!((number, row_count, cells.0), (index, expected.0, expected.1));
        }
    });
}

#[test]
fn what_a_shard_can_not_write_is_left_to_the_full_way() {
    with_node(2, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE gone (k int PRIMARY KEY, v text)").await;
        let update = plain_update(&session, "INSERT INTO gone (k, v) VALUES (?, ?)").await.unwrap();
        let query = plain_query(&session, "SELECT v FROM gone WHERE k = ?").await.unwrap();
        let key = 7i32.to_be_bytes();
        let values: [&[u8]; 2] = [&key, b"v"];
        let write = session.engine.plain_write(&update, values.into_iter(), Consistency::One, None).unwrap();
        let key = Bytes::copy_from_slice(&key);
        let read = session.engine.plain_read(query, key, Consistency::One, None).unwrap();
        session.run("DROP TABLE gone").await;
        let written = session.engine.remote_writes(vec![write]).await;
        assert!(written.done.is_empty() && written.doubtful.is_empty(), "nothing was written: {written:?}");
        assert!(written.error.is_none(), "whoever writes it by itself finds out why: {written:?}");
        let show = |seen: &mut usize, _: usize, _: PlainRow<'_>| {
            *seen += 1;
            ControlFlow::Continue(())
        };
        assert_eq!(session.engine.remote_reads(vec![read], 0, show).await, Ok(Some(0)));
    });
}
