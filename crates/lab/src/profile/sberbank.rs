//! Sberbank, "Battle of two yokozuna: Cassandra vs HBase" (2020): batches of many rows, lists of many keys, three copies.

use super::{Profile, Repeated, Scale, Servers, replicas, sentences};
use crate::manifest::{Pace, Plan};
use crate::report::words::several;
use crate::study::{Offer, Part, Subject};

pub(super) const PROFILE: Profile = Profile {
    name: "sberbank",
    about: "Sberbank's batches: tables, streams, batches of 1 to 100 rows, RF 1 and 3 at ALL, QUORUM and ONE",
    settings: &[("tables", 4), ("streams", 5), ("value-bytes", 100)],
    make,
};

const BATCHES: [u64; 3] = [1, 10, 100];
/// Replicas and level of the writes.
const WRITES: [(u16, &str); 4] = [(1, "ALL"), (3, "ALL"), (3, "QUORUM"), (3, "ONE")];

fn make(scale: &Scale<'_>) -> Repeated {
    let (tables, streams) = (scale.setting("tables").clamp(1, 64), scale.setting("streams").clamp(1, 10_000));
    let (value_bytes, row_count) = (scale.setting("value-bytes"), scale.rows(200_000));
    let part = |kind: &str, replica_count: u16, level: &str, batch: u64, loads: bool| {
        let workload = format!("sberbank-{kind}");
        let plan = Plan {
            row_count,
            keyspace: format!("bench_rf{replica_count}"),
            replication: replicas(replica_count),
            consistency: level.to_owned(),
            pace: Pace::Closed { in_flight: (tables * streams) as usize },
            measured_s: 10.0,
            script: Some(script(&workload, kind, tables, value_bytes, batch)),
            ..scale.plan(&workload)
        };
        let request = if kind == "write" { "a batch" } else { "a list of keys" };
        Part::new(
            format!("{kind}-rf{replica_count}-{}-{batch}", level.to_lowercase()),
            format!("{batch} rows in {request}, RF {replica_count}, {level}"),
            plan,
            loads,
            Offer::AsPlanned,
        )
    };
    let mut parts = Vec::new();
    for (replica_count, level) in WRITES {
        parts.extend(BATCHES.map(|batch| part("write", replica_count, level, batch, false)));
    }
    // What the article read is what it had written, all of it.
    for (first, batch) in BATCHES.into_iter().enumerate() {
        parts.push(part("read", 3, "ONE", batch, first == 0));
    }
    Repeated {
        subject: Subject {
            name: PROFILE.name.to_owned(),
            title: "Sberbank: batches, lists of keys, and what three copies cost".to_owned(),
            source: "https://habr.com/ru/post/484096/".to_owned(),
            claims: sentences(&[
                "Loading took 2 times as long with RF 3 as with RF 1 in 20 streams, 2.7 times in 40 (both at ALL).",
                "Reads of lists of keys: 159,644 rows/s with 20 streams; with 400 streams and token-aware clients 301,969, \
                 447,608 and 625,655 rows/s in lists of 1, 10 and 100.",
                "YCSB's insert: 127,000/s on Cassandra with 4 clients; 343,000 rows/s on HBase in lists of 100, whose \
                 latency the article divides by 100.",
            ]),
            scaled: vec![
                format!(
                    "{tables} tables with {streams} streams each in a closed loop, values of {value_bytes} bytes: \
                     --set tables=8, streams=100 and value-bytes=10 are the article's other ones."
                ),
                format!("{} in each table, where the article had five million.", several(row_count, "row")),
                "Here an operation is a batch or a list, and its latency is that of the whole: to have rows/s, multiply the \
                 rate by the rows of a batch. Nothing is divided."
                    .to_owned(),
                "QUORUM and ONE stand beside the article's ALL for writes.".to_owned(),
            ],
            price: None,
        },
        servers: Servers::nodes(3),
        parts,
    }
}

/// The text of the workload: as many tables as were asked for, in turns.
fn script(name: &str, kind: &str, tables: u64, value_bytes: u64, batch: u64) -> String {
    let all = || 1..=tables;
    let made: String = all()
        .map(|table| {
            format!(
                "    \"CREATE TABLE IF NOT EXISTS {{keyspace}}.t{table} (id bigint PRIMARY KEY, title text) WITH compression \
                 = {{'class': 'LZ4Compressor', 'chunk_length_in_kb': 64}}\",\n"
            )
        })
        .collect();
    let insert = |table: u64| format!("INSERT INTO {{keyspace}}.t{table} (id, title) VALUES (?, ?)");
    let turns: String = all()
        .map(|table| match kind {
            "write" => format!(
                "[[operation.turns]]\nstatement = \"{}\"\nvalues = [\"id\", \"title\"]\ntimes = {batch}\n",
                insert(table)
            ),
            _ => format!(
                "[[operation.turns]]\nstatement = \"SELECT id, title FROM {{keyspace}}.t{table} WHERE id IN ({{times}})\"\n\
                 values = [\"id\"]\nrows = {batch}\ntimes = {batch}\n"
            ),
        })
        .collect();
    // A load of each row into every table: one batch of as many statements.
    let load: Vec<String> = all().map(insert).collect();
    let values = vec!["\"id\", \"title\""; tables as usize].join(", ");
    format!(
        "name = \"{name}\"\nabout = \"{kind} of {batch} rows\"\npartition = \"{}\"\ntables = [\n{made}]\n\n\
         [values]\nid = {{ kind = \"partition\" }}\ntitle = {{ kind = \"derived\", of = [\"id\"], bytes = {value_bytes} }}\n\n\
         [load]\nstatement = \"BEGIN UNLOGGED BATCH {}; APPLY BATCH\"\nvalues = [{values}]\n\n\
         [[operation]]\nname = \"{kind}\"\n{turns}",
        if kind == "write" { "sequence" } else { "uniform" },
        load.join("; "),
    )
}
