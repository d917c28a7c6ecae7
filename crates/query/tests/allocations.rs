//! What a row of a scan or of a slice allocates: nothing of its own; a row of a text batch, and one that is read or
//! written by its key: next to nothing.

#![allow(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a test fails by panicking, and counts what is allocated"
)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

use bytes::{BufMut, Bytes, BytesMut};
use common::{Session, int, text, with_node, with_periodic_node};
use query::{
    BindValue, Consistency, PLAIN_BATCH_MAX, PlainRead, PlainStatement, PlainWrite, QueryOptions,
    ResponseKind, RowSink, Values,
};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    /// Allocated and not freed, as far as this thread did either.
    static LIVE_BYTES: Cell<isize> = const { Cell::new(0) };
    /// The most that this has been since it was last set.
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get() + layout.size() as isize);
        PEAK_BYTES.set(PEAK_BYTES.get().max(LIVE_BYTES.get()));
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE_BYTES.set(LIVE_BYTES.get() - layout.size() as isize);
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
        let answer = session
            .engine
            .execute(
                &mut session.state,
                &prepared.id,
                &options,
                &mut session.engine.answers().room_of_its_own(),
            )
            .await
            .unwrap();
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

/// How much is allocated for as many rows as are read together by their keys, in memory or in the cache.
async fn read_allocations(session: &Session) -> u64 {
    let statement = "SELECT * FROM narrow WHERE id = ?";
    let prepared = session.engine.prepare(&session.state, statement, None).await.unwrap();
    let Some(PlainStatement::Read(query)) = session.engine.plain_statement(&prepared.id) else {
        panic!("of one row by one key")
    };
    let mut reads: Vec<PlainRead> = Vec::with_capacity(PLAIN_BATCH_MAX);
    let mut output = Output(BytesMut::with_capacity(1 << 20));
    let mut least = u64::MAX;
    for _ in 0..3 {
        let keys: Vec<Bytes> =
            (0..PLAIN_BATCH_MAX as i32).map(|key| key.to_be_bytes().to_vec().into()).collect();
        reads.clear();
        output.0.clear();
        let (before, mut count) = (COUNT.get(), 0);
        let read = |key| session.engine.plain_read(query.clone(), key, Consistency::One, Some(5000)).unwrap();
        reads.extend(keys.into_iter().map(read));
        session.engine.plain_reads(&reads, |_, row| {
            count += row.write(&mut output);
            ControlFlow::Continue(())
        });
        least = least.min(COUNT.get() - before);
        assert_eq!(count, PLAIN_BATCH_MAX, "all are found at once");
    }
    least
}

/// And for as many that are written.
async fn write_allocations(session: &Session, field: &[u8]) -> u64 {
    let statement = "UPDATE narrow SET a = ? WHERE id = ?";
    let prepared = session.engine.prepare(&session.state, statement, None).await.unwrap();
    let Some(PlainStatement::Write(update)) = session.engine.plain_statement(&prepared.id) else {
        panic!("of one row by one key")
    };
    let mut writes: Vec<PlainWrite> = Vec::with_capacity(PLAIN_BATCH_MAX);
    let mut least = u64::MAX;
    for _ in 0..3 {
        writes.clear();
        let before = COUNT.get();
        for key in 0..PLAIN_BATCH_MAX as i32 {
            let key = key.to_be_bytes();
            let write =
                session.engine.plain_write(&update, [field, &key].into_iter(), Consistency::One, None);
            writes.push(write.unwrap());
        }
        let (done, _) = session.engine.plain_writes(&writes);
        least = least.min(COUNT.get() - before);
        assert_eq!(done.len(), PLAIN_BATCH_MAX, "all are written at once");
    }
    least
}

#[test]
fn rows_that_are_read_and_written_by_their_keys_allocate_next_to_nothing() {
    with_periodic_node(async |mut session: Session| {
        session.run("CREATE TABLE narrow (id int PRIMARY KEY, a text, b text)").await;
        for number in 0..100 {
            let field = || BindValue::Set(Bytes::from_static(&[b'x'; 300]));
            let insert = "INSERT INTO narrow (id, a, b) VALUES (?, ?, ?)";
            session.execute(insert, vec![int(number), field(), field()]).await.unwrap();
        }
        assert_eq!(read_allocations(&session).await, 0, "reads from memory");
        let written = write_allocations(&session, &[b'y'; 300]).await;
        assert!(
            written <= 2 * PLAIN_BATCH_MAX as u64,
            "{written} for the memory of a mutation and its count"
        );
        session.flush().await;
        session.run("SELECT * FROM narrow").await;
        let read = read_allocations(&session).await;
        assert!(
            read <= 3 * PLAIN_BATCH_MAX as u64 + 8,
            "{read} for a row, its count and the path of its key"
        );
    });
}

/// What preparing that many statements, with a number each for `#`, leaves allocated, and what the plans of them are
/// taken for, in bytes.
async fn bytes_of_plans(session: &Session, text: &str, count: usize) -> (usize, usize) {
    let (live_before, before) = (LIVE_BYTES.get(), session.engine.prepared_figures());
    for number in 0..count {
        let text = text.replace('#', &number.to_string());
        session.engine.prepare(&session.state, &text, None).await.unwrap();
    }
    let after = session.engine.prepared_figures();
    let live = usize::try_from(LIVE_BYTES.get() - live_before).unwrap();
    (live - (after.text_bytes - before.text_bytes), after.plan_bytes - before.plan_bytes)
}

#[test]
fn a_plan_is_taken_for_what_it_is() {
    with_node(1, 64 << 20, async |mut session: Session| {
        session.run("CREATE TABLE kept (p int, c int, v text, m map<text, int>, PRIMARY KEY (p, c))").await;
        let columns: Vec<String> = (0..100).map(|number| format!("column_{number} text")).collect();
        session.run(&format!("CREATE TABLE wide (p int PRIMARY KEY, {})", columns.join(", "))).await;
        let many = |what: &str, count: usize| vec![what; count].join(", ");
        let markers = many("?", 1000);
        let numbers = many("1", 1000);
        let entries: Vec<String> = (0..500).map(|number| format!("'entry {number}': {number}")).collect();
        let rows = "INSERT INTO kept (p, c, v) VALUES (?, ?, ?); ".repeat(20);
        let kinds: [(&str, String); 9] = [
            ("point", "SELECT v FROM kept WHERE p = ? AND c = #".into()),
            ("slice", "SELECT * FROM kept WHERE p = ? AND c > # LIMIT 10".into()),
            ("markers", format!("SELECT v FROM kept WHERE p IN ({markers}) AND c = #")),
            ("numbers", format!("SELECT v FROM kept WHERE p IN ({numbers}) AND c = #")),
            ("insert", "INSERT INTO kept (p, c, v, m) VALUES (?, #, ?, ?)".into()),
            ("map", format!("UPDATE kept SET m = {{{}}} WHERE p = 1 AND c = #", entries.join(", "))),
            ("batch", format!("BEGIN BATCH {rows} DELETE FROM kept WHERE p = # APPLY BATCH")),
            ("wide", "SELECT * FROM wide WHERE p = #".into()),
            ("other", "CREATE TABLE t# (a int PRIMARY KEY, b text, c map<int, text>)".into()),
        ];
        for (kind, text) in kinds {
            let (live, told) = bytes_of_plans(&session, &text, 8).await;
            assert!(live <= told, "{kind}: {live} bytes are taken for {told}");
            assert!(told <= 6 * live, "{kind}: {live} bytes are taken for {told}");
        }
    });
}

/// What there is room for by token of a statement (`prepare/parse.rs`).
const BYTES_OF_TOKEN: isize = 400;

#[test]
fn what_becomes_of_a_large_text_has_room() {
    with_node(1, 64 << 20, async |mut session: Session| {
        session
            .run("CREATE TABLE t (k int, c int, v int, l list<int>, m map<int, int>, PRIMARY KEY (k, c))")
            .await;
        let many = |what: &str| vec![what; 4_000].join(",");
        let kinds = [
            format!("SELECT v FROM t WHERE k IN ({})", many("1")),
            format!("SELECT v FROM t WHERE k IN ({})", many("?")),
            format!("SELECT v FROM t WHERE k = 1 AND (c) IN ({})", many("(1)")),
            format!("SELECT {} FROM t", many("v")),
            format!("SELECT {} FROM t", many("v+1")),
            format!("SELECT v FROM t WHERE {}", vec!["v = 1"; 4_000].join(" AND ")),
            format!("INSERT INTO t (k, c, l) VALUES (1, 1, [{}])", many("1")),
            format!("INSERT INTO t (k, c, m) VALUES (1, 1, {{{}}})", many("1:1")),
            format!("INSERT INTO t (k, c, v) VALUES (1, 1, f({}))", many("1")),
            format!("BEGIN BATCH {} APPLY BATCH", "INSERT INTO t (k, c, v) VALUES (1, 1, 1);".repeat(500)),
            format!("BEGIN BATCH {} APPLY BATCH", "UPDATE t SET v = 1 WHERE k = 1 AND c = 1;".repeat(500)),
            format!("CREATE TABLE u (k int PRIMARY KEY, {})", many("a int")),
        ];
        for text in kinds {
            let before = LIVE_BYTES.get();
            PEAK_BYTES.set(before);
            drop(session.send(&text).await);
            let taken = PEAK_BYTES.get() - before;
            // Small texts need no room, and cost no less.
            let counted = cql::token_count(&text) as isize * BYTES_OF_TOKEN;
            assert!(taken <= counted, "{taken} bytes are taken of {counted} for {}", &text[..60]);
        }
    });
}
