//! Scans of a node of several shards: whatever the page and the limit, the same rows in ring order.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use bytes::Bytes;
use common::{ANSWER_BYTES_MAX, Session, int, show, with_node};
use query::{BindValue, QueryOptions, ResponseKind};

/// With about so many bytes a page ends however few its rows.
const PAGE_BYTES: usize = 700_000;

/// All rows of a statement, page by page.
async fn paged(session: &mut Session, statement: &str, page_size: i32) -> Vec<String> {
    let mut rows = Vec::new();
    let mut options = QueryOptions { page_size: Some(page_size as u32), ..QueryOptions::default() };
    loop {
        let answer = session
            .engine
            .query(&mut session.state, statement, &options, &mut session.engine.answers().room_of_its_own())
            .await
            .unwrap();
        let ResponseKind::Rows(page) = answer.kind else { panic!("no rows") };
        assert!(page.row_count() <= page_size as usize, "{statement}: page too large");
        let cell_bytes: usize = page.to_cells().iter().flatten().flatten().map(Bytes::len).sum();
        let is_full = page.row_count() == page_size as usize || cell_bytes > PAGE_BYTES;
        assert!(page.paging_state.is_none() || is_full, "{statement}: short page");
        rows.extend(show(&page));
        match page.paging_state {
            None => return rows,
            state => options.paging_state = state,
        }
    }
}

async fn prepare(session: &mut Session) {
    session.run("CREATE TABLE t (id int, at int, s text static, v int, PRIMARY KEY (id, at))").await;
    for id in 0..400 {
        if id % 5 == 0 {
            session.run(&format!("INSERT INTO t (id, s) VALUES ({id}, 'static')")).await;
            continue;
        }
        for at in 0..if id % 7 == 0 { 40 } else { 1 } {
            let insert = "INSERT INTO t (id, at, v) VALUES (?, ?, ?)";
            session.execute(insert, vec![int(id), int(at), int(at)]).await.unwrap();
        }
    }
    session.flush().await;
    for id in (0..400).filter(|id| id % 3 == 0) {
        session.run(&format!("DELETE FROM t WHERE id = {id}")).await;
    }
}

fn tokens(rows: &[String]) -> Vec<i64> {
    rows.iter().map(|row| row.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn pages_and_limits_of_a_scan_give_the_same_rows_in_ring_order() {
    for shard_count in [1, 2, 5] {
        with_node(shard_count, 64 << 20, async |mut session: Session| {
            prepare(&mut session).await;
            let all = session.rows("SELECT token(id), id, at, s, v FROM t").await;
            let there = |id: &i32| id % 3 != 0;
            let expected: i32 =
                (0..400).filter(there).map(|id| if id % 5 != 0 && id % 7 == 0 { 40 } else { 1 }).sum();
            assert_eq!(all.len(), expected as usize);
            assert!(tokens(&all).is_sorted());
            for page_size in [7, 50, 333] {
                assert_eq!(
                    paged(&mut session, "SELECT token(id), id, at, s, v FROM t", page_size).await,
                    all
                );
            }
            for limit in [1, 10, 100, 600] {
                let limited = format!("SELECT token(id), id, at, s, v FROM t LIMIT {limit}");
                assert_eq!(paged(&mut session, &limited, 70).await, all[..limit.min(all.len())]);
            }
            for start in [0, all.len() / 2, all.len() - 1] {
                let token = tokens(&all)[start];
                let rest: Vec<String> =
                    all.iter().filter(|row| tokens(&[(*row).clone()])[0] >= token).cloned().collect();
                let from = format!("SELECT token(id), id, at, s, v FROM t WHERE token(id) >= {token}");
                assert_eq!(paged(&mut session, &from, 64).await, rest);
            }
            let distinct = paged(&mut session, "SELECT DISTINCT id FROM t", 9).await;
            assert_eq!(distinct.len(), (0..400).filter(there).count());
            let two = paged(&mut session, "SELECT token(id), id, at FROM t PER PARTITION LIMIT 2", 11).await;
            let of_two = (0..400).filter(there).map(|id| if id % 5 != 0 && id % 7 == 0 { 2 } else { 1 });
            assert_eq!(two.len(), of_two.sum::<usize>());
            session.check("SELECT id FROM t WHERE token(id) > 5 AND token(id) < 5", &[]).await;
        });
    }
}

/// Without pages an answer is as large as a table, and a node that gathers all of it has no memory left for others.
#[test]
fn an_answer_that_would_take_too_much_memory_is_refused_and_can_be_had_by_pages() {
    const ROWS: i32 = 1_200;
    with_node(2, 64 << 20, async |mut session| {
        session.run("CREATE TABLE large (id int PRIMARY KEY, v text)").await;
        let value = "x".repeat(ANSWER_BYTES_MAX / 1_000);
        for id in 0..ROWS {
            let insert = "INSERT INTO large (id, v) VALUES (?, ?)";
            session.execute(insert, vec![int(id), BindValue::Set(value.clone().into())]).await.unwrap();
        }
        let refused = "The answer would take more than the 8388608 bytes of memory that one may have: ask for pages, for fewer rows or for fewer columns";
        session.refuses("SELECT id, v FROM large", refused).await;
        session.refuses("SELECT id, v FROM large WHERE v > 'a' ALLOW FILTERING", refused).await;
        assert_eq!(session.rows("SELECT id, v FROM large LIMIT 800").await.len(), 800);
        assert_eq!(session.rows("SELECT count(*) FROM large").await, [ROWS.to_string()]);
        assert_eq!(paged(&mut session, "SELECT id, v FROM large", 500).await.len(), ROWS as usize);
    });
}

/// Pages of 5,000 rows of 4 KiB were refused, or took 20 MB each.
#[test]
fn a_page_ends_by_bytes_and_columns_that_are_not_selected_cost_nothing() {
    for shard_count in [1, 2] {
        with_node(shard_count, 64 << 20, async |mut session| {
            session.run("CREATE TABLE t (p int, c int, v text, w text, PRIMARY KEY (p, c))").await;
            session.run("CREATE TABLE one (p int PRIMARY KEY, v text, w text)").await;
            let value = || BindValue::Set(vec![b'x'; 20_000].into());
            for number in 0..200 {
                let insert = "INSERT INTO t (p, c, v, w) VALUES (?, ?, ?, 'w')";
                session.execute(insert, vec![int(number / 50), int(number), value()]).await.unwrap();
                let insert = "INSERT INTO one (p, v, w) VALUES (?, ?, 'w')";
                session.execute(insert, vec![int(number), value()]).await.unwrap();
            }
            for place in ["memory", "files"] {
                for (wide, narrow) in [
                    ("SELECT * FROM t", "SELECT c FROM t"),
                    ("SELECT * FROM one", "SELECT p, w FROM one"),
                    ("SELECT * FROM t WHERE p IN (3, 1, 0, 2)", "SELECT w FROM t WHERE p IN (3, 1, 0, 2)"),
                ] {
                    let pages = page_lengths(&mut session, wide, 5_000).await;
                    assert_eq!(pages.iter().sum::<usize>(), 200, "{wide}, {place}");
                    let most = pages.iter().max().copied().unwrap_or_default();
                    assert!((20..=55).contains(&most), "{wide}, {place}: about 1 MiB each, {pages:?}");
                    let pages = page_lengths(&mut session, narrow, 5_000).await;
                    assert_eq!(pages, [200], "{narrow}, {place}");
                }
                let json = page_lengths(&mut session, "SELECT JSON * FROM t WHERE p = 1", 30).await;
                assert_eq!(json, [30, 20, 0][..json.len()], "the page's rows end it first, {place}");
                let backwards = paged(&mut session, "SELECT c FROM t WHERE p = 1 ORDER BY c DESC", 7).await;
                assert!(backwards.first().is_some_and(|row| row == "99") && backwards.len() == 50);
                session.flush().await;
            }
        });
    }
}

/// How many rows each page of a statement has.
async fn page_lengths(session: &mut Session, statement: &str, page_size: u32) -> Vec<usize> {
    let mut options = QueryOptions { page_size: Some(page_size), ..session.options.clone() };
    let mut lengths = Vec::new();
    loop {
        let mut room = session.engine.answers().room_of_its_own();
        let answer = session.engine.query(&mut session.state, statement, &options, &mut room).await.unwrap();
        let ResponseKind::Rows(rows) = answer.kind else { panic!("no rows") };
        lengths.push(rows.row_count());
        match rows.paging_state {
            Some(state) => options.paging_state = Some(state),
            None => return lengths,
        }
    }
}
