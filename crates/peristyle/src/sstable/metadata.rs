//! What is known of a table file as a whole, in sstablemetadata's words.

use std::io::Write;
use std::path::Path;

use sstable::id_to_text;

use super::{Opened, ToolError};

/// Prints the metadata of one file.
pub(super) fn print(path: &Path, opened: &Opened, out: &mut dyn Write) -> Result<(), ToolError> {
    let (summary, descriptor) = (opened.file.summary(), opened.file.descriptor());
    writeln!(out, "SSTable: {}", path.display().to_string().trim_end_matches("-Data.db"))?;
    writeln!(out, "Version: {} ({})", descriptor.version, descriptor.version.format())?;
    writeln!(out, "Id: {}", id_to_text(descriptor.id))?;
    writeln!(out, "Partitioner: org.apache.cassandra.dht.Murmur3Partitioner")?;
    writeln!(out, "Minimum timestamp: {}", summary.min_timestamp)?;
    writeln!(out, "Maximum timestamp: {}", summary.max_timestamp)?;
    writeln!(out, "SSTable min local deletion time: {}", time(summary.min_local_deletion_time))?;
    writeln!(out, "SSTable max local deletion time: {}", time(summary.max_local_deletion_time))?;
    writeln!(out, "Compression ratio: {}", summary.compression_ratio)?;
    writeln!(out, "TTL min: {}", summary.min_ttl)?;
    writeln!(out, "TTL max: {}", summary.max_ttl)?;
    for (name, key) in [("First", &summary.first_key), ("Last", &summary.last_key)] {
        let hex: String = key.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{name} token: {} (key=0x{hex})", key.token.0)?;
    }
    writeln!(out, "SSTable Level: {}", summary.level)?;
    writeln!(out, "Repaired at: {}", summary.repaired_at)?;
    let pending = summary.pending_repair.map_or("--".to_owned(), |id| id.to_string());
    writeln!(out, "Pending repair: {pending}")?;
    writeln!(out, "totalColumnsSet: {}", summary.column_count)?;
    writeln!(out, "totalRows: {}", summary.row_count)?;
    writeln!(out, "Estimated partitions: {}", summary.partition_count)?;
    writeln!(out, "Data: {} bytes, {} uncompressed", summary.data_file_bytes, summary.uncompressed_bytes)?;
    writeln!(out, "Estimated tombstone drop times:")?;
    for (point, count) in summary.tombstone_drop_times.points() {
        writeln!(out, "{point}: {count}")?;
    }
    writeln!(out, "EncodingStats minTTL: {}", summary.encoding_stats.min_ttl)?;
    writeln!(out, "EncodingStats minLocalDeletionTime: {}", summary.encoding_stats.min_local_deletion_time)?;
    writeln!(out, "EncodingStats minTimestamp: {}", summary.encoding_stats.min_timestamp)?;
    let keys = opened.table.partition_key().iter().chain(opened.table.clustering());
    let columns = opened.table.static_columns().iter().chain(opened.table.regular_columns());
    for (name, list) in [("Keys", keys.collect::<Vec<_>>()), ("Columns", columns.collect())] {
        let list: Vec<String> =
            list.iter().map(|column| format!("{}:{}", column.name, column.cql_type)).collect();
        writeln!(out, "{name}: {}", list.join(", "))?;
    }
    Ok(())
}

fn time(seconds: u32) -> String {
    if seconds == rows::NO_DELETION_TIME { "no tombstones".into() } else { seconds.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_says_what_the_statistics_say() {
        let folder = "../../tests/formats/cassandra-big/nb/compound/nb-1-big-Data.db";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut out = Vec::new();
        print(&path, &Opened::open(&path).expect("opens"), &mut out).expect("printed");
        let text = String::from_utf8(out).expect("text");
        for line in ["Version: nb (big)", "Id: 1", "SSTable Level: 0", "TTL max: 0", "Pending repair: --"] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(text.contains(":int, ") && text.contains("Columns: v:int\n"), "{text}");
    }
}
