//! What statements cost on one shard, from the values of a frame to the cells of the answer,
//! storage in memory included.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    unused_crate_dependencies,
    reason = "a benchmark"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{Session, int, with_session};
use criterion::{Criterion, criterion_group, criterion_main};
use query::{BindValue, QueryOptions, ResponseKind, RowSink, Values};

struct Count(usize);

impl RowSink for Count {
    fn cell(&mut self, value: Option<&[u8]>) {
        self.0 += value.map_or(1, <[u8]>::len);
    }
}

/// Time this thread has been on a CPU: the machine may have more to do.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Runs `statement` with the values of each round; the time of all.
fn run(
    criterion: &mut Criterion,
    name: &str,
    statement: &'static str,
    values: impl Fn(i32) -> Vec<BindValue> + Copy + 'static,
) {
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|rounds| {
            let spent = std::rc::Rc::new(std::cell::Cell::new(Duration::ZERO));
            let out = std::rc::Rc::clone(&spent);
            with_session(async move |mut session: Session| {
                prepare_table(&mut session).await;
                let prepared = session.engine.prepare(&session.state, statement, None).await.unwrap();
                let start = cpu_time();
                for round in 0..rounds {
                    let values = values((round % 1000) as i32);
                    let options =
                        QueryOptions { values: Values::Positional(values), ..QueryOptions::default() };
                    let answer = session
                        .engine
                        .execute(
                            &mut session.state,
                            &prepared.id,
                            &options,
                            &mut session.engine.answers().room_of_its_own(),
                        )
                        .await;
                    if let ResponseKind::Rows(rows) = answer.unwrap().kind {
                        let mut count = Count(0);
                        rows.write_rows(&mut count);
                        std::hint::black_box(count.0);
                    }
                }
                out.set(cpu_time() - start);
            });
            spent.get()
        });
    });
}

async fn prepare_table(session: &mut Session) {
    let columns: Vec<String> = (0..10).map(|i| format!("field{i} text")).collect();
    session.run(&format!("CREATE TABLE usertable (y_id int PRIMARY KEY, {})", columns.join(", "))).await;
    for key in 0..1000 {
        let mut values = vec![int(key)];
        values.extend((0..10).map(|_| field()));
        session
            .execute(
                "INSERT INTO usertable (y_id, field0, field1, field2, field3, field4, field5, field6, field7, field8, field9) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            .await
            .unwrap();
    }
}

fn field() -> BindValue {
    BindValue::Set(Bytes::from_static(&[b'x'; 100]))
}

fn statements(criterion: &mut Criterion) {
    run(criterion, "select a 1 KB row", "SELECT * FROM usertable WHERE y_id = ?", |k| vec![int(k)]);
    run(criterion, "update a field", "UPDATE usertable SET field3 = ? WHERE y_id = ?", |k| {
        vec![field(), int(k)]
    });
    run(
        criterion,
        "insert a 1 KB row",
        "INSERT INTO usertable (y_id, field0, field1, field2, field3, field4, field5, field6, field7, field8, field9) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        |k| {
            let mut values = vec![int(k)];
            values.extend((0..10).map(|_| field()));
            values
        },
    );
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(2));
    targets = statements
}
criterion_main!(benches);
