//! `system.size_estimates` and `system.table_estimates`: about how many partitions, of what size, lie in
//! each range of this node. Spark and others split their work by it.
//!
//! Cassandra writes them down every five minutes; here they are made up from the table files when
//! somebody asks. As there, what is in memory alone does not count.

use read::PartitionRows;
use schema::{Schema, Table};
use storage::{FileSpan, PartitionBytes, TableStats};
use types::Token;

use super::made_up::MadeUpRows;
use super::ranges::{self, Placed};
use super::view::NodeView;
use crate::NodeStats;

/// Keyspaces of every node's own, which have no place on the ring.
const LOCAL_KEYSPACES: [&str; 2] = ["system", "system_schema"];

/// What there is in one range.
struct Estimate {
    start: String,
    end: String,
    partition_count: u64,
    mean_bytes: u64,
}

/// All rows of the two tables.
pub(super) fn rows(table: &Table, view: &NodeView, schema: &Schema, stats: &NodeStats) -> Vec<PartitionRows> {
    let mut rows = MadeUpRows::new(table);
    let local_primary = ranges::local_primary(view);
    let has_types = table.name() == "table_estimates";
    for ((keyspace, name), stats) in &stats.tables {
        if LOCAL_KEYSPACES.contains(&keyspace.as_str()) {
            continue;
        }
        let mut by_type = vec![("local_primary", local_primary.clone())];
        if let Some(keyspace) = schema.keyspace(keyspace).filter(|_| has_types) {
            by_type.push(("primary", Placed::new(view, &keyspace.replication).own_primary()));
        }
        for (range_type, ranges) in by_type {
            for estimate in estimates(&ranges, stats) {
                rows.add([
                    ("keyspace_name", keyspace.into()),
                    ("table_name", name.into()),
                    ("range_type", range_type.into()),
                    ("range_start", (&estimate.start).into()),
                    ("range_end", (&estimate.end).into()),
                    ("mean_partition_size", estimate.mean_bytes.into()),
                    ("partitions_count", estimate.partition_count.into()),
                ]);
            }
        }
    }
    rows.finish()
}

/// In the order of the clustering, which is that of texts.
fn estimates(ranges: &[(i64, i64)], stats: &TableStats) -> Vec<Estimate> {
    let mut estimates: Vec<Estimate> = ranges.iter().map(|range| estimate(*range, &stats.spans)).collect();
    estimates.sort_by(|a, b| (&a.start, &a.end).cmp(&(&b.start, &b.end)));
    estimates
}

fn estimate((start, end): (i64, i64), spans: &[FileSpan]) -> Estimate {
    // The least token as an end stands for the ring's.
    let last = if end == i64::MIN { i64::MAX } else { end };
    let mut partition_count = 0.0;
    let mut bytes = PartitionBytes::default();
    for span in spans.iter().filter(|span| span.first.0 <= last && span.last.0 > start) {
        partition_count += span.partitions_between(Token(start), Token(last));
        bytes.add(&span.partition_bytes);
    }
    Estimate {
        start: start.to_string(),
        end: end.to_string(),
        partition_count: partition_count.round() as u64,
        mean_bytes: bytes.mean(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::definitions::base_schema;
    use super::super::made_up::testing::text;
    use super::*;

    #[test]
    fn each_range_has_its_share_of_a_tables_partitions() {
        let bytes = PartitionBytes { min: 10, max: 30, count: 1000, total: 20_000 };
        let span =
            FileSpan { first: Token(1), last: Token(1000), partition_count: 1000, partition_bytes: bytes };
        let stats = TableStats { spans: vec![span, span], ..TableStats::default() };
        let estimates = estimates(&[(-500, 400), (400, i64::MIN), (i64::MIN, -500)], &stats);
        let found: Vec<_> =
            estimates.iter().map(|of| (of.start.as_str(), of.partition_count, of.mean_bytes)).collect();
        let min = i64::MIN.to_string();
        assert_eq!(found, [("-500", 800, 20), (min.as_str(), 0, 0), ("400", 1200, 20)]);
        assert_eq!(
            base_schema().expect("schema").table("system", "size_estimates").map(|t| text(t, &[])),
            Some(vec![])
        );
    }
}
