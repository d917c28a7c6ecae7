//! Tables of every compaction strategy and every compressor, compacted, for a Cassandra to serve.
//!
//! Each is written in rounds that overlap, flushed after each, and compacted; windows, levels and bounds of
//! the ring are crossed. The statements are made here, as no two tables differ in more than their options.

use std::collections::BTreeMap;

use super::statements::{ask, table_ids};
use super::{Writer, dump};
use crate::report::{Failure, Tally, complain};
use crate::wire::Connection;

/// Where the tables are.
pub(super) const KEYSPACE: &str = "formats_compacted";
/// Deleted below zero: what Cassandra's format can not say of a partition is said of a range over all of it.
const BELOW_ZERO: &str = "below_zero";

/// Of counters, some of which were deleted and count again.
const COUNTED: &str = "counted";

const STRATEGIES: [(&str, &str); 4] = [
    ("stcs", "{'class': 'SizeTieredCompactionStrategy'}"),
    ("lcs", "{'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '1', 'fanout_size': '2'}"),
    (
        "twcs",
        "{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS', 'compaction_window_size': '1'}",
    ),
    (
        "ucs",
        "{'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L4, N, T4', 'base_shard_count': '4', 'min_sstable_size': '0B', 'target_sstable_size': '1MiB'}",
    ),
];
const COMPRESSORS: [(&str, &str); 6] = [
    ("lz4", "{'class': 'LZ4Compressor'}"),
    ("snappy", "{'class': 'SnappyCompressor', 'chunk_length_in_kb': '64'}"),
    ("deflate", "{'class': 'DeflateCompressor', 'chunk_length_in_kb': '4'}"),
    ("zstd", "{'class': 'ZstdCompressor', 'compression_level': '1'}"),
    ("noop", "{'class': 'NoopCompressor', 'chunk_length_in_kb': '8'}"),
    ("none", "{'enabled': 'false'}"),
];

const ROUNDS: u64 = 4;
const BATCHES: u64 = 15;
const ROWS_OF_A_BATCH: u64 = 20;
const PARTITIONS: u64 = 97;
/// Bytes of a value; half of them are of no pattern.
const VALUE_BYTES: usize = 2000;
const START_MICROS: u64 = 1_704_067_200_000_000;
/// The rounds of a table with windows are in windows of their own.
const MICROS_OF_A_ROUND: u64 = 3_600_000_000;

/// What is asked of the tables.
pub(super) fn queries() -> Vec<String> {
    let of_table = |table: String| {
        [
            format!("SELECT k, c, n, st, s, writetime(v) FROM {table}"),
            format!("SELECT v FROM {table} WHERE k = 7"),
            format!("SELECT c, n FROM {table} WHERE k IN (1, 2, 3, 50, 96) ORDER BY c DESC"),
            format!("SELECT c FROM {table} WHERE k = 5 AND c > 100 AND c <= 2000"),
            format!("SELECT count(*) FROM {table}"),
        ]
    };
    let others = [
        format!("SELECT k, c, v, writetime(v) FROM {BELOW_ZERO}"),
        format!("SELECT * FROM {COUNTED}"),
        format!("SELECT sum(n), max(m) FROM {COUNTED} WHERE k = 1"),
    ];
    names().into_iter().flat_map(|(table, ..)| of_table(table)).chain(others).collect()
}

fn names() -> Vec<(String, &'static str, &'static str)> {
    let of_strategy = |(strategy, compaction): (&'static str, &'static str)| {
        COMPRESSORS
            .map(|(compressor, compression)| (format!("{strategy}_{compressor}"), compaction, compression))
    };
    STRATEGIES.into_iter().flat_map(of_strategy).collect()
}

/// Makes the tables, fills and compacts them; gives their ids.
pub(super) fn fill(writer: &Writer) -> Result<BTreeMap<String, String>, Failure> {
    let mut connection = Connection::open(&writer.address, 5)?;
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    ask(&mut connection, &format!("CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}"))?;
    ask(&mut connection, &format!("USE {KEYSPACE}"))?;
    for (table, compaction, compression) in names() {
        ask(
            &mut connection,
            &format!(
                "CREATE TABLE {table} (k int, c int, n int, st text STATIC, s set<int>, v text, PRIMARY KEY (k, c)) WITH compaction = {compaction} AND compression = {compression}"
            ),
        )?;
    }
    below_zero(&mut connection)?;
    let columns = "k int, c int, n counter, m counter, s counter STATIC";
    ask(&mut connection, &format!("CREATE TABLE {COUNTED} ({columns}, PRIMARY KEY (k, c))"))?;
    for round in 0..ROUNDS {
        for (table, ..) in names() {
            fill_once(&mut connection, &table, round)?;
        }
        count_once(&mut connection, round)?;
        writer.nodetool(&["flush", KEYSPACE])?;
    }
    writer.nodetool(&["compact", KEYSPACE])?;
    table_ids(&mut connection, KEYSPACE)
}

fn below_zero(connection: &mut Connection) -> Result<(), Failure> {
    ask(connection, &format!("CREATE TABLE {BELOW_ZERO} (k int, c int, v int, PRIMARY KEY (k, c))"))?;
    for (key, time) in [(1, -20), (1, 5), (2, -20), (3, -5)] {
        let sort = time + 100;
        let columns = format!("INSERT INTO {BELOW_ZERO} (k, c, v) VALUES ({key}, {sort}, {key})");
        ask(connection, &format!("{columns} USING TIMESTAMP {time}"))?;
    }
    for key in [1, 2, 3, 4] {
        ask(connection, &format!("DELETE FROM {BELOW_ZERO} USING TIMESTAMP -10 WHERE k = {key}"))?;
    }
    Ok(())
}

/// What is counted in a round; what is deleted is counted in again by the next.
fn count_once(connection: &mut Connection, round: u64) -> Result<(), Failure> {
    for key in 1..=3 {
        for text in [
            format!("UPDATE {COUNTED} SET n = n + {key}, s = s + 1 WHERE k = {key} AND c IN (1, 2, 3)"),
            format!("UPDATE {COUNTED} SET m = m - 9223372036854775807 WHERE k = {key} AND c = {round}"),
        ] {
            ask(connection, &text)?;
        }
    }
    for text in [
        format!("DELETE n FROM {COUNTED} WHERE k = 1 AND c = {round}"),
        format!("DELETE FROM {COUNTED} WHERE k = 2 AND c = {round}"),
        format!("DELETE FROM {COUNTED} WHERE k = 3 AND c > {round}"),
        format!("DELETE s FROM {COUNTED} WHERE k = {round}"),
    ] {
        ask(connection, &text)?;
    }
    Ok(())
}

/// Half of the rows of a round are written over by the next.
fn fill_once(connection: &mut Connection, table: &str, round: u64) -> Result<(), Failure> {
    let time = START_MICROS + round * MICROS_OF_A_ROUND;
    let rows = BATCHES * ROWS_OF_A_BATCH;
    for batch in 0..BATCHES {
        let mut text = format!("BEGIN UNLOGGED BATCH USING TIMESTAMP {time}\n");
        for row in 0..ROWS_OF_A_BATCH {
            let number = round * rows / 2 + batch * ROWS_OF_A_BATCH + row;
            let key = number % PARTITIONS;
            text += &format!(
                "INSERT INTO {table} (k, c, n, s, v) VALUES ({key}, {number}, {round}, {{{round}, {batch}}}, '{}');\n",
                value(number ^ (round << 32))
            );
        }
        ask(connection, &(text + "APPLY BATCH"))?;
    }
    let key = round * 7 + 1;
    for text in [
        format!("DELETE FROM {table} USING TIMESTAMP {} WHERE k = {key}", time + 1),
        format!(
            "DELETE FROM {table} USING TIMESTAMP {} WHERE k = {} AND c > 200 AND c < 500",
            time + 1,
            key + 1
        ),
        format!(
            "DELETE n FROM {table} USING TIMESTAMP {} WHERE k = {} AND c = {}",
            time + 1,
            key + 2,
            key + 2
        ),
        format!("UPDATE {table} USING TIMESTAMP {time} SET st = 'static {round}' WHERE k = {key}"),
        format!(
            "UPDATE {table} USING TIMESTAMP {time} AND TTL 315360000 SET n = 5 WHERE k = {key} AND c = -1"
        ),
    ] {
        ask(connection, &text)?;
    }
    Ok(())
}

fn value(seed: u64) -> String {
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut text = String::with_capacity(VALUE_BYTES);
    while text.len() < VALUE_BYTES / 2 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text += &format!("{:08x}", state >> 32);
    }
    text + &"x".repeat(VALUE_BYTES / 2)
}

/// Every table was compacted; the tool reads what was deleted below zero.
pub(super) fn check(writer: &Writer) -> Result<Tally, Failure> {
    let history = writer.nodetool(&["compactionhistory"])?;
    let mut tally = Tally::default();
    for (table, ..) in names() {
        let is_listed = |line: &str| line.split_whitespace().nth(2) == Some(table.as_str());
        if history.lines().any(is_listed) {
            tally += Tally::PASS;
        } else {
            complain!("{table} was never compacted");
            tally += Tally::FAIL;
        }
    }
    let partitions = dump::partitions(&dump::data_files(&writer.data, KEYSPACE, BELOW_ZERO)?)?;
    let bounds = dump::partitions_text(&partitions)?.matches("range_tombstone_bound\"").count();
    // A partition that has nothing but its deletion is still there.
    match (partitions.len(), bounds) {
        (4, 8) => {
            println!("ok: sstabledump of partitions deleted below zero");
            tally += Tally::PASS;
        }
        (count, bounds) => {
            complain!("sstabledump of partitions deleted below zero: {count} partitions, {bounds} bounds");
            tally += Tally::FAIL;
        }
    }
    Ok(tally)
}
