//! Many rows, a page at a time.

use embedded::{BatchType, Database, FromRow, Row};

use crate::{in_memory, run};

const ROW_COUNT: i32 = 20_000;

fn filled() -> Database {
    let database = in_memory();
    run(&database, "CREATE TABLE t (part int, id int, name text, PRIMARY KEY (part, id))");
    let insert =
        database.prepare("INSERT INTO t (part, id, name) VALUES (?, ?, ?)").wait().expect("prepared");
    for first in (0..ROW_COUNT).step_by(100) {
        let mut batch = database.batch(BatchType::Unlogged);
        for id in first..first + 100 {
            batch = batch.add(&insert, (id / 10_000, id, format!("name {id}")));
        }
        batch.wait().expect("inserted");
    }
    database
}

#[test]
fn twenty_thousand_rows_come_page_by_page() {
    let database = filled();
    let mut count = 0;
    for row in
        database.query("SELECT id, name FROM t WHERE part = ?", (1,)).page_size(37).wait().expect("rows")
    {
        let (id, name) = row.expect("row").to::<(i32, String)>().expect("values");
        assert_eq!((id, name), (10_000 + count, format!("name {id}")));
        count += 1;
    }
    assert_eq!(count, ROW_COUNT / 2);
    for page_size in [1_000, 5_000, 20_000, 50_000] {
        let rows = database.query("SELECT id FROM t", ()).page_size(page_size).wait().expect("rows");
        let mut ids: Vec<i32> = rows.typed::<(i32,)>().map(|row| row.expect("row").0).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..ROW_COUNT).collect::<Vec<_>>());
    }
    let unpaged = database.query("SELECT id FROM t", ()).unpaged().wait().expect("rows");
    assert_eq!(unpaged.all::<(i32,)>().wait().expect("all").len(), ROW_COUNT as usize);
}

#[test]
fn rows_can_be_awaited_and_streamed() {
    use futures_util::TryStreamExt;
    let database = filled();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    runtime.block_on(async {
        let select = database.prepare("SELECT part, id FROM t").await.expect("prepared");
        let mut rows = database.query(&select, ()).page_size(999).await.expect("rows");
        let mut count = 0;
        while rows.next_row().await.expect("row").is_some() {
            count += 1;
        }
        assert_eq!(count, ROW_COUNT);
        let rows = database.query(&select, ()).await.expect("rows");
        let streamed: Vec<Row> = rows.stream().try_collect().await.expect("rows");
        assert_eq!(streamed.len(), ROW_COUNT as usize);
        assert!(<(i32, i32)>::from_row(&streamed[0]).is_ok());
    });
}

#[test]
fn pages_that_hold_no_row_are_turned() {
    let database = filled();
    let select = "SELECT id FROM t WHERE id = ? ALLOW FILTERING";
    let rows = database.query(select, (19_999,)).page_size(10).wait().expect("rows");
    assert_eq!(rows.first().wait().expect("row"), Some((19_999,)));
}
