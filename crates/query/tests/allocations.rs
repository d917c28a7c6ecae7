//! What a row of a scan or of a slice allocates: nothing of its own; and a row of a text batch: next to nothing.

#![allow(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a test fails by panicking, and counts what is allocated"
)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::{BufMut, Bytes, BytesMut};
use common::{Session, int, text, with_node};
use query::{BindValue, QueryOptions, ResponseKind, RowSink, Values};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Output(BytesMut);

impl RowSink for Output {
    fn cell(&mut self, value: Option<&[u8]>) {
        self.0.put_i32(value.map_or(-1, |value| value.len() as i32));
        self.0.put_slice(value.unwrap_or_default());
    }
}

/// How much is allocated for a page of that many rows.
async fn allocations(session: &mut Session, statement: &str, row_count: i32) -> u64 {
    let prepared = session.engine.prepare(&session.state, statement, None).await.unwrap();
    let mut output = Output(BytesMut::with_capacity(1 << 20));
    let mut least = u64::MAX;
    for _ in 0..3 {
        let options =
            QueryOptions { values: Values::Positional(vec![int(row_count)]), ..QueryOptions::default() };
        output.0.clear();
        let before = COUNT.get();
        let answer = session.engine.execute(&mut session.state, &prepared.id, &options).await.unwrap();
        let ResponseKind::Rows(rows) = answer.kind else { panic!("no rows") };
        assert_eq!(rows.write_rows(&mut output), row_count as usize);
        drop(rows);
        least = least.min(COUNT.get() - before);
    }
    least
}

/// A thousand rows more must not take a hundred allocations more.
async fn check(session: &mut Session, statement: &str, case: &str) {
    let few = allocations(session, statement, 500).await;
    let many = allocations(session, statement, 1500).await;
    assert!(many < few + 100, "{case}: {few} for 500 rows, {many} for 1500");
}

#[test]
fn rows_of_scans_and_slices_allocate_nothing_of_their_own() {
    for shard_count in [1, 2] {
        with_node(shard_count, 64 << 20, async |mut session: Session| {
            session.run("CREATE TABLE narrow (id int PRIMARY KEY, a text, b text)").await;
            session.run("CREATE TABLE wide (id int, at int, a text, b text, PRIMARY KEY (id, at))").await;
            for number in 0..2000 {
                let field = || BindValue::Set(Bytes::from_static(&[b'x'; 60]));
                let narrow = "INSERT INTO narrow (id, a, b) VALUES (?, ?, ?)";
                session.execute(narrow, vec![int(number), field(), text("b")]).await.unwrap();
                let wide = "INSERT INTO wide (id, at, a, b) VALUES (7, ?, ?, ?)";
                session.execute(wide, vec![int(number), field(), text("b")]).await.unwrap();
            }
            for place in ["memory", "files"] {
                let case = format!("{shard_count} shards, {place}");
                check(&mut session, "SELECT * FROM narrow LIMIT ?", &format!("scan, {case}")).await;
                check(&mut session, "SELECT * FROM wide WHERE id = 7 LIMIT ?", &format!("slice, {case}"))
                    .await;
                session.flush().await;
            }
        });
    }
}

/// How much is allocated for a text batch of that many rows, which are there already and not in the arena.
async fn batch_allocations(session: &mut Session, row_count: i32) -> u64 {
    let row = |number| format!("INSERT INTO narrow (id, a, b) VALUES ({number}, '{:060}', 'b');", number);
    let rows: String = (0..row_count).map(row).collect();
    let batch = format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH");
    let mut least = u64::MAX;
    for _ in 0..5 {
        let before = COUNT.get();
        session.run(&batch).await;
        least = least.min(COUNT.get() - before);
    }
    least
}

#[test]
fn a_row_of_a_text_batch_allocates_its_constants_list_and_its_long_text_and_nothing_else() {
    for shard_count in [1, 2] {
        with_node(shard_count, 64 << 20, async |mut session: Session| {
            session.run("CREATE TABLE narrow (id int PRIMARY KEY, a text, b text)").await;
            let few = batch_allocations(&mut session, 100).await;
            let many = batch_allocations(&mut session, 600).await;
            assert!(many < few + 2 * 500 + 60, "{few} for 100 rows, {many} for 600");
        });
    }
}
