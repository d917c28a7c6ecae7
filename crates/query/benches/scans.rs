//! What a row costs in a scan over partitions and in a slice of one, from the bound statement to the
//! cells in an output buffer, storage included; from memory and from table files.
//!
//! A figure is CPU time of this thread, statement and all, divided by the rows. An argument picks the
//! cases whose names contain it.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    missing_docs,
    unused_crate_dependencies,
    reason = "a benchmark"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use common::{Session, int, text, with_node};
use query::{BindValue, QueryOptions, ResponseKind, RowSink, Values};

/// As the server has it.
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// More than a processor's caches hold, as in a real table.
const PARTITIONS: i32 = 60_000;
const ROWS_OF_A_PARTITION: i32 = 5_000;
const SAMPLES: usize = 12;
const ROWS_OF_A_SAMPLE: usize = 100_000;

struct Output(BytesMut);

impl RowSink for Output {
    fn cell(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.0.put_i32(-1),
            Some(value) => {
                self.0.put_i32(value.len() as i32);
                self.0.put_slice(value);
            }
        }
    }
}

/// Time this thread has been on a CPU: the machine may have more to do.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    shard_count: u16,
    prepare: fn(&mut Session) -> Prepared<'_>,
    is_flushed: bool,
    statement: &'static str,
    values: fn(i32) -> Vec<BindValue>,
}

type Prepared<'a> = std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The least and the middle time of a row, µs, over some samples.
fn run(case: Case) {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if wanted.is_some_and(|wanted| !case.name.contains(&wanted)) {
        return;
    }
    with_node(case.shard_count, 4 << 30, async move |mut session: Session| {
        (case.prepare)(&mut session).await;
        if case.is_flushed {
            session.flush().await;
        }
        let prepared = session.engine.prepare(&session.state, case.statement, None).await.unwrap();
        let mut output = Output(BytesMut::with_capacity(1 << 20));
        let mut samples = Vec::new();
        let mut round: i32 = 0;
        while samples.len() < SAMPLES {
            let start = cpu_time();
            let mut row_count = 0;
            while row_count < ROWS_OF_A_SAMPLE {
                round = round.wrapping_add(7919);
                let options = QueryOptions {
                    values: Values::Positional((case.values)(round)),
                    page_size: Some(5000),
                    ..QueryOptions::default()
                };
                let answer = session
                    .engine
                    .execute(
                        &mut session.state,
                        &prepared.id,
                        &options,
                        &mut session.engine.answers().room_of_its_own(),
                    )
                    .await;
                let ResponseKind::Rows(rows) = answer.unwrap().kind else { panic!("no rows") };
                output.0.clear();
                row_count += rows.write_rows(&mut output);
                std::hint::black_box(&output.0);
            }
            samples.push((cpu_time() - start).as_secs_f64() * 1e6 / row_count as f64);
        }
        // The first one fills caches.
        samples.remove(0);
        samples.sort_by(f64::total_cmp);
        println!("{:50} {:6.3} {:6.3}", case.name, samples[0], samples[samples.len() / 2]);
    });
}

fn many_partitions(session: &mut Session) -> Prepared<'_> {
    Box::pin(async {
        let columns: Vec<String> = (0..10).map(|i| format!("field{i} text")).collect();
        session.run(&format!("CREATE TABLE usertable (y_id text PRIMARY KEY, {})", columns.join(", "))).await;
        let insert = "INSERT INTO usertable (y_id, field0, field1, field2, field3, field4, field5, field6, field7, field8, field9) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        for key in 0..PARTITIONS {
            let mut values = vec![user(key)];
            values.extend((0..10).map(|_| BindValue::Set(Bytes::from_static(&[b'x'; 100]))));
            session.execute(insert, values).await.unwrap();
        }
    })
}

fn one_partition(session: &mut Session) -> Prepared<'_> {
    Box::pin(async {
        session.run("CREATE TABLE wide (id int, at int, a text, b int, PRIMARY KEY (id, at))").await;
        for at in 0..ROWS_OF_A_PARTITION {
            let values = vec![int(1), int(at), text("a value of some thirty letters"), int(at)];
            session.execute("INSERT INTO wide (id, at, a, b) VALUES (?, ?, ?, ?)", values).await.unwrap();
        }
    })
}

fn user(key: i32) -> BindValue {
    text(&format!("user{:019}", key.rem_euclid(PARTITIONS)))
}

fn main() {
    let scan = Case {
        name: "scan of 50 rows of 1 KB, memory, 1 shard",
        shard_count: 1,
        prepare: many_partitions,
        is_flushed: false,
        statement: "SELECT * FROM usertable WHERE token(y_id) >= token(?) LIMIT 50",
        values: |round| vec![user(round)],
    };
    let slice = Case {
        name: "slice of 5000 rows of 60 bytes, memory",
        shard_count: 2,
        prepare: one_partition,
        is_flushed: false,
        statement: "SELECT * FROM wide WHERE id = 1 AND at >= 0",
        values: |_| Vec::new(),
    };
    println!("{:50} {:>6} {:>6}", "us of CPU for a row", "least", "middle");
    run(scan);
    run(Case { name: "scan of 50 rows of 1 KB, memory, 2 shards", shard_count: 2, ..scan });
    run(Case { name: "scan of 50 rows of 1 KB, files, 1 shard", is_flushed: true, ..scan });
    run(slice);
    run(Case { name: "slice of 5000 rows of 60 bytes, files", is_flushed: true, ..slice });
}
