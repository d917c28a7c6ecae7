//! What it costs to parse the statements that clients send as text.
//!
//! `cargo bench -p peristyle-cql`. A row of a text batch has a budget of 1.6 µs from frame to log; parsing
//! may take a fraction of it.
#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn bench(criterion: &mut Criterion, name: &str, text: &str, row_count: u64) {
    let mut group = criterion.benchmark_group("parse");
    group.throughput(Throughput::Elements(row_count));
    group.bench_function(name, |bencher| {
        bencher.iter(|| cql::parse_statement(black_box(text)).expect("a statement"));
    });
    group.finish();
}

/// A hundred rows in one unlogged batch.
fn batch(row: impl Fn(usize) -> String) -> String {
    let rows: String = (0..100).map(row).collect();
    format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH")
}

fn parse(criterion: &mut Criterion) {
    let short = batch(|index| format!("INSERT INTO ks.kv (k, v) VALUES ({index}, 'hello world {index}');"));
    bench(criterion, "batch of 100 short inserts", &short, 100);
    let field = "x".repeat(100);
    let wide = batch(|index| {
        let fields = vec![format!("'{field}'"); 10].join(", ");
        format!(
            "INSERT INTO ycsb.usertable (y_id, field0, field1, field2, field3, field4, field5, field6, field7, \
             field8, field9) VALUES ('user{index}', {fields});"
        )
    });
    bench(criterion, "batch of 100 inserts of 1 KB", &wide, 100);
    bench(criterion, "select", "SELECT a, b, c FROM ks.t WHERE k = ? AND c > ? LIMIT 10", 1);
    let values: Vec<String> = (0..1000).map(|value| value.to_string()).collect();
    bench(criterion, "in list of 1000", &format!("SELECT * FROM t WHERE k IN ({})", values.join(", ")), 1000);
}

criterion_group!(benches, parse);
criterion_main!(benches);
