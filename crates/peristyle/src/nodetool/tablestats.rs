//! `nodetool tablestats`.

use std::io::Write;

use clap::Args;
use serde_json::{Map, Value, json};

use super::NodetoolError;
use super::http::Management;
use super::numbers::{double, file_size, mean_ms, memory};
use management::{ChosenLength, ChunkLength, Keyspace, LengthCost, Prefetch, Table, TableStats};

/// Options of the command.
#[derive(Args, Debug, Default)]
pub(super) struct TablestatsArguments {
    /// Ignore the list of tables and display the remaining tables
    #[arg(short = 'i')]
    ignore: bool,
    /// Display bytes in human readable form, i.e. KiB, MiB, GiB, TiB
    #[arg(short = 'H', long)]
    human_readable: bool,
    /// Output format (json)
    #[arg(short = 'F', long)]
    format: Option<String>,
    /// Sort tables by a key: reads, writes, read_latency, write_latency, space_used_live,
    /// space_used_total, sstable_count, table_name, full_name, memtable_data_size
    #[arg(short, long)]
    sort: Option<String>,
    /// Show only the top K tables for the sort key
    #[arg(short, long)]
    top: Option<usize>,
    /// List of tables (or keyspace) names
    names: Vec<String>,
}

/// Asks, filters, prints.
pub(super) fn run(
    management: &Management,
    options: &TablestatsArguments,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let bad_use = |text: &str| Err(NodetoolError::BadUse(text.to_owned()));
    if options.top.is_some() && options.sort.is_none() {
        return bad_use("cannot filter top K tables without specifying a sort key.");
    }
    let stats: TableStats = management.get("/v1/tablestats", &[])?;
    let keyspaces = select(stats.keyspaces, options)?;
    match (options.format.as_deref(), &options.sort) {
        (Some("json"), _) => writeln!(out, "{}", as_json(&keyspaces, options.human_readable))?,
        (Some("yaml"), _) => return bad_use("-F yaml is not built yet; -F json is."),
        (Some(_), _) => return bad_use("arguments for -F are json,yaml only."),
        (None, None) => print(&keyspaces, options.human_readable, out)?,
        (None, Some(key)) => print_sorted(&keyspaces, key, options, out)?,
    }
    Ok(())
}

/// Keeps the keyspaces and tables named, or the others.
fn select(keyspaces: Vec<Keyspace>, options: &TablestatsArguments) -> Result<Vec<Keyspace>, NodetoolError> {
    for name in &options.names {
        let (keyspace, table) = name.split_once('.').map_or((name.as_str(), None), |(k, t)| (k, Some(t)));
        let Some(found) = keyspaces.iter().find(|other| other.name == keyspace) else {
            return Err(NodetoolError::BadUse(format!("Unknown keyspace: {keyspace}")));
        };
        if table.is_some_and(|table| !found.tables.iter().any(|other| other.name == table)) {
            return Err(NodetoolError::BadUse(format!("Unknown tables: {}", table.unwrap_or_default())));
        }
    }
    let is_named = |keyspace: &str, table: &str| {
        options.names.iter().any(|name| match name.split_once('.') {
            Some((k, t)) => k == keyspace && t == table,
            None => name == keyspace,
        })
    };
    let mut selected = Vec::new();
    for mut keyspace in keyspaces {
        if !options.names.is_empty() {
            let name = keyspace.name.clone();
            keyspace.tables.retain(|table| is_named(&name, &table.name) != options.ignore);
            if keyspace.tables.is_empty() {
                continue;
            }
        }
        selected.push(keyspace);
    }
    Ok(selected)
}

/// Keyspace by keyspace.
fn print(keyspaces: &[Keyspace], human: bool, out: &mut impl Write) -> Result<(), NodetoolError> {
    let table_count: usize = keyspaces.iter().map(|keyspace| keyspace.tables.len()).sum();
    if table_count == 0 {
        return Ok(());
    }
    writeln!(out, "Total number of tables: {table_count}\n----------------")?;
    for keyspace in keyspaces {
        writeln!(out, "Keyspace: {}", keyspace.name)?;
        writeln!(out, "\tRead Count: {}", keyspace.read_count)?;
        writeln!(out, "\tRead Latency: {} ms", double(mean_ms(keyspace.read_total_us, keyspace.read_count)))?;
        writeln!(out, "\tWrite Count: {}", keyspace.write_count)?;
        writeln!(
            out,
            "\tWrite Latency: {} ms",
            double(mean_ms(keyspace.write_total_us, keyspace.write_count))
        )?;
        writeln!(out, "\tPending Flushes: {}", keyspace.pending_flushes)?;
        if keyspace.tables.is_empty() {
            continue;
        }
        for table in &keyspace.tables {
            print_table(table, &table.name, "\t\t", human, out)?;
        }
        writeln!(out, "----------------")?;
    }
    Ok(())
}

/// Table by table, the largest first.
fn print_sorted(
    keyspaces: &[Keyspace],
    key: &str,
    options: &TablestatsArguments,
    out: &mut impl Write,
) -> Result<(), NodetoolError> {
    let mut tables: Vec<(String, &Table)> = keyspaces
        .iter()
        .flat_map(|keyspace| {
            keyspace.tables.iter().map(|table| (format!("{}.{}", keyspace.name, table.name), table))
        })
        .collect();
    tables.sort_by(|a, b| a.0.cmp(&b.0));
    if !matches!(key, "full_name" | "table_name") {
        let Some(rank) = sort_key(key) else {
            return Err(NodetoolError::BadUse(format!(
                "argument for sort must be one of the sort keys, not {key}"
            )));
        };
        tables.sort_by(|a, b| rank(b.1).total_cmp(&rank(a.1)));
    }
    let table_count = tables.len();
    let shown = options.top.unwrap_or(table_count).min(table_count);
    if shown == 0 {
        return Ok(());
    }
    let suffix = options.top.map(|_| format!(" (showing top {shown} by {key})")).unwrap_or_default();
    writeln!(out, "Total number of tables: {table_count}{suffix}\n----------------")?;
    for (name, table) in tables.iter().take(shown) {
        print_table(table, name, "\t", options.human_readable, out)?;
    }
    writeln!(out, "----------------")?;
    Ok(())
}

fn sort_key(key: &str) -> Option<fn(&Table) -> f64> {
    Some(match key {
        "reads" | "local_read_count" => |table| table.read_count as f64,
        "writes" | "local_write_count" => |table| table.write_count as f64,
        "read_latency" | "local_read_latency_ms" => {
            |table| mean_ms(table.read_total_us, table.read_count).max(0.0)
        }
        "write_latency" | "local_write_latency_ms" => {
            |table| mean_ms(table.write_total_us, table.write_count).max(0.0)
        }
        "space_used_live" => |table| table.space_live_bytes as f64,
        "space_used_total" => |table| table.space_total_bytes as f64,
        "sstable_count" => |table| table.sstable_count as f64,
        "memtable_data_size" => |table| table.memtable_bytes as f64,
        "number_of_partitions_estimate" => |table| table.partition_count_estimate as f64,
        _ => return None,
    })
}

/// The lines of one table: label and value, in Cassandra's order.
fn lines(table: &Table, human: bool) -> Vec<(&'static str, String)> {
    let size = |bytes: u64| if human { file_size(bytes) } else { bytes.to_string() };
    let unrepaired = table.unrepaired_bytes + table.pending_repair_bytes;
    let percent_repaired = match table.repaired_bytes + unrepaired {
        0 => 100.0,
        total => (table.repaired_bytes as f64 / total as f64 * 10_000.0).round() / 100.0,
    };
    let compression_ratio = match table.uncompressed_bytes {
        0 => -1.0,
        uncompressed => table.compressed_bytes as f64 / uncompressed as f64,
    };
    let read_write_ratio = match table.write_count {
        0 => 0.0,
        writes => table.read_count as f64 / writes as f64,
    };
    let milliseconds = |total_us, count| {
        let mean = mean_ms(total_us, count);
        if mean.is_nan() { "NaN ms".to_owned() } else { format!("{mean:.3} ms") }
    };
    let mean = |mean: Option<f64>| double(mean.unwrap_or(f64::NAN));
    let mut lines = vec![
        ("SSTable count", table.sstable_count.to_string()),
        ("Old SSTable count", table.old_sstable_count.to_string()),
        ("Max SSTable size", memory(table.sstable_size_max_bytes)),
        ("Space used (live)", size(table.space_live_bytes)),
        ("Space used (total)", size(table.space_total_bytes)),
        ("Space used by snapshots (total)", size(table.space_snapshots_bytes)),
        ("Off heap memory used (total)", size(table.off_heap_bytes)),
        ("SSTable Compression Ratio", format!("{compression_ratio:.5}")),
        ("Number of partitions (estimate)", table.partition_count_estimate.to_string()),
        ("Memtable cell count", table.memtable_cell_count.to_string()),
        ("Memtable data size", size(table.memtable_bytes)),
        ("Memtable off heap memory used", size(table.memtable_off_heap_bytes)),
        ("Memtable switch count", table.memtable_switch_count.to_string()),
        ("Speculative retries", table.speculative_retries.to_string()),
        ("Local read count", table.read_count.to_string()),
        ("Local read latency", milliseconds(table.read_total_us, table.read_count)),
        ("Local write count", table.write_count.to_string()),
        ("Local write latency", milliseconds(table.write_total_us, table.write_count)),
        ("Local read/write ratio", format!("{read_write_ratio:.5}")),
        ("Pending flushes", table.pending_flushes.to_string()),
        ("Percent repaired", double(percent_repaired)),
        ("Bytes repaired", memory(table.repaired_bytes)),
        ("Bytes unrepaired", memory(table.unrepaired_bytes)),
        ("Bytes pending repair", memory(table.pending_repair_bytes)),
        ("Bloom filter false positives", table.filter_false_positives.to_string()),
        ("Bloom filter false ratio", format!("{:.5}", table.filter_false_ratio)),
        ("Bloom filter space used", size(table.filter_bytes)),
        ("Bloom filter off heap memory used", size(table.filter_off_heap_bytes)),
        ("Index summary off heap memory used", size(table.index_summary_off_heap_bytes)),
        ("Compression metadata off heap memory used", size(table.compression_metadata_off_heap_bytes)),
        ("Compacted partition minimum bytes", table.partition_min_bytes.to_string()),
        ("Compacted partition maximum bytes", table.partition_max_bytes.to_string()),
        ("Compacted partition mean bytes", table.partition_mean_bytes.to_string()),
        ("Average live cells per slice (last five minutes)", mean(table.live_cells_per_slice_mean)),
        ("Maximum live cells per slice (last five minutes)", table.live_cells_per_slice_max.to_string()),
        ("Average tombstones per slice (last five minutes)", mean(table.tombstones_per_slice_mean)),
        ("Maximum tombstones per slice (last five minutes)", table.tombstones_per_slice_max.to_string()),
        ("Droppable tombstone ratio", format!("{:.5}", table.droppable_tombstone_ratio)),
        ("Chunk cache hit ratio", hit_ratio(table)),
    ];
    if let Some(length) = &table.chunk_length {
        lines.push(("Chunk length (auto)", chosen_length(length)));
        lines.push(("Chunk length chosen from", reason_of_length(length)));
    }
    if let Some(current) = table.current_sstable_count.filter(|current| *current < table.sstable_count) {
        lines.push(("Rewritten as the table asks", rewritten(table, current)));
    }
    if let Some(prefetch) = &table.prefetch {
        lines.push(("Prefetch", progress(prefetch)));
    }
    lines
}

/// How many files are compressed as the table's options say, in the current version; the others are written anew.
fn rewritten(table: &Table, current: u64) -> String {
    let (bytes, all) = (file_size(table.current_compressed_bytes), file_size(table.compressed_bytes));
    format!("{current} of {} files, {bytes} of {all}", table.sstable_count)
}

/// How much of a table came into memory after the start.
fn progress(prefetch: &Prefetch) -> String {
    let Prefetch { wanted, state, planned_chunks, read_chunks, read_bytes } = prefetch;
    format!("{wanted}, {state}: {read_chunks} of {planned_chunks} chunks, {}", file_size(*read_bytes))
}

/// What the next file is written with: of two shards, `4 KiB`, or `4 KiB (1 shard), 16 KiB (1 shard)`.
fn chosen_length(length: &ChunkLength) -> String {
    if let [only] = length.chosen.as_slice() {
        return file_size(only.bytes);
    }
    let one = |chosen: &ChosenLength| {
        let plural = if chosen.shards == 1 { "" } else { "s" };
        format!("{} ({} shard{plural})", file_size(chosen.bytes), chosen.shards)
    };
    length.chosen.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// From what it was chosen, in words.
fn reason_of_length(length: &ChunkLength) -> String {
    let seen = format!(
        "{} reads that went to the disk ({} of ranges), which wanted {} on the average",
        length.cold_reads,
        length.cold_range_reads,
        file_size(length.wanted_bytes_mean)
    );
    let few = match length.chosen.iter().map(|chosen| chosen.shards).sum::<u64>() {
        shards if length.cold_reads < length.cold_reads_min * shards => {
            format!(
                "; a shard that has counted fewer than {} stays with what is there",
                length.cold_reads_min
            )
        }
        _ => String::new(),
    };
    if length.cold_reads == 0 {
        return format!("no read went to the disk{few}");
    }
    let cost = |cost: &LengthCost| format!("{} as {}", file_size(cost.bytes), file_size(cost.read_bytes));
    let costs: Vec<String> = length.costs.iter().map(cost).collect();
    format!("{seen}; a read costs with chunks of {}{few}", costs.join(", "))
}

/// Cassandra has no such line; `NaN` before the first request, as it prints ratios.
fn hit_ratio(table: &Table) -> String {
    let requests = table.cache_hits + table.cache_misses;
    if requests > 0 { format!("{:.5}", table.cache_hits as f64 / requests as f64) } else { "NaN".into() }
}

fn print_table(
    table: &Table,
    name: &str,
    indent: &str,
    human: bool,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let index = if table.is_index { " (index)" } else { "" };
    writeln!(out, "{indent}Table{index}: {name}")?;
    for (label, value) in lines(table, human) {
        writeln!(out, "{indent}{label}: {value}")?;
    }
    writeln!(out)
}

/// The same lines as one object, with names as Cassandra's JSON has them.
fn as_json(keyspaces: &[Keyspace], human: bool) -> Value {
    let mut all = Map::new();
    let table_count: usize = keyspaces.iter().map(|keyspace| keyspace.tables.len()).sum();
    all.insert("total_number_of_tables".to_owned(), json!(table_count));
    for keyspace in keyspaces {
        let mut tables = Map::new();
        for table in &keyspace.tables {
            let fields = lines(table, human).into_iter().map(|(label, value)| field(label, &value));
            let mut fields: Map<String, Value> = fields.collect();
            // Bare numbers here, whatever -H says.
            let bare = [
                ("max_sstable_size", table.sstable_size_max_bytes),
                ("bytes_repaired", table.repaired_bytes),
                ("bytes_unrepaired", table.unrepaired_bytes),
                ("bytes_pending_repair", table.pending_repair_bytes),
            ];
            fields.extend(bare.map(|(name, bytes)| (name.to_owned(), json!(bytes))));
            tables.insert(table.name.clone(), Value::Object(fields));
        }
        let read_ms = mean_ms(keyspace.read_total_us, keyspace.read_count);
        let write_ms = mean_ms(keyspace.write_total_us, keyspace.write_count);
        let fields = json!({
            "read_count": keyspace.read_count, "read_latency_ms": read_ms, "read_latency": read_ms,
            "write_count": keyspace.write_count, "write_latency_ms": write_ms,
            "pending_flushes": keyspace.pending_flushes, "tables": tables,
        });
        all.insert(keyspace.name.clone(), fields);
    }
    Value::Object(all)
}

/// `Space used (live)` becomes `space_used_live`; whole numbers are numbers.
fn field(label: &str, value: &str) -> (String, Value) {
    let name = match label {
        "Local read latency" => "local_read_latency_ms".to_owned(),
        "Local write latency" => "local_write_latency_ms".to_owned(),
        "Bloom filter space used" => "bloom_filter_space_used".to_owned(),
        label => label.to_lowercase().replace(['(', ')'], "").replace([' ', '/'], "_"),
    };
    let value = value.strip_suffix(" ms").unwrap_or(value);
    let value = value.parse::<u64>().map_or_else(|_| Value::String(value.to_owned()), Value::from);
    (name, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyspaces() -> Vec<Keyspace> {
        let table =
            |name: &str, space| Table { name: name.into(), space_live_bytes: space, ..Table::default() };
        vec![Keyspace {
            name: "ks".into(),
            read_count: 2,
            read_total_us: 3000,
            tables: vec![table("a", 10), table("b", 4096)],
            ..Keyspace::default()
        }]
    }

    #[test]
    fn tables_are_nested_under_their_keyspace() {
        let mut out = Vec::new();
        print(&keyspaces(), true, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let start = "Total number of tables: 2\n----------------\nKeyspace: ks\n\tRead Count: 2\n\
                     \tRead Latency: 1.5 ms\n\tWrite Count: 0\n\tWrite Latency: NaN ms\n\tPending Flushes: 0\n\
                     \t\tTable: a\n\t\tSSTable count: 0\n";
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains("\t\tSpace used (live): 4 KiB\n"));
        assert!(text.contains("\t\tLocal read latency: NaN ms\n"));
        assert!(text.ends_with("\n\n----------------\n"));
    }

    #[test]
    fn a_chunk_length_of_our_choice_is_explained_and_others_have_no_line() {
        let cost = |bytes, read_bytes| LengthCost { bytes, read_bytes };
        let mut length = ChunkLength {
            chosen: vec![ChosenLength { bytes: 4096, shards: 2 }],
            cold_reads: 5000,
            cold_range_reads: 12,
            cold_reads_min: 1024,
            wanted_bytes_mean: 1024,
            costs: vec![cost(4096, 28_160), cost(16_384, 36_992)],
        };
        let text = |length: &ChunkLength| {
            let table = Table { chunk_length: Some(length.clone()), ..Table::default() };
            lines(&table, true).split_off(39).into_iter().map(|(_, value)| value).collect::<Vec<_>>()
        };
        let reason = "5000 reads that went to the disk (12 of ranges), which wanted 1 KiB on the average; a read \
                      costs with chunks of 4 KiB as 27.5 KiB, 16 KiB as 36.12 KiB";
        assert_eq!(text(&length), ["4 KiB", reason]);
        length.cold_reads = 0;
        length.chosen = [4096, 16_384].map(|bytes| ChosenLength { bytes, shards: 1 }).into();
        let reason =
            "no read went to the disk; a shard that has counted fewer than 1024 stays with what is there";
        assert_eq!(text(&length), ["4 KiB (1 shard), 16 KiB (1 shard)", reason]);
        assert_eq!(lines(&Table::default(), true).len(), 39);
    }

    #[test]
    fn a_table_that_comes_into_memory_by_itself_tells_how_far_it_is() {
        let (wanted, state) = ("HOT".to_owned(), "going on".to_owned());
        let prefetch = Prefetch { wanted, state, planned_chunks: 9, read_chunks: 4, read_bytes: 16_384 };
        let table = Table { prefetch: Some(prefetch), ..Table::default() };
        let line = lines(&table, false).pop();
        assert_eq!(line, Some(("Prefetch", "HOT, going on: 4 of 9 chunks, 16 KiB".to_owned())));
    }

    #[test]
    fn files_that_are_not_as_the_table_asks_are_told_of_until_there_is_none() {
        let of = |current_sstable_count| {
            let (current_compressed_bytes, compressed_bytes) = (3 << 19, 6 << 20);
            let table =
                Table { sstable_count: 4, compressed_bytes, current_compressed_bytes, ..Table::default() };
            lines(&Table { current_sstable_count, ..table }, false).pop()
        };
        let line = ("Rewritten as the table asks", "1 of 4 files, 1.5 MiB of 6 MiB".to_owned());
        assert_eq!(of(Some(1)), Some(line));
        for none in [Some(4), None] {
            assert_eq!(of(none).map(|(label, _)| label), Some("Chunk cache hit ratio"));
        }
    }

    #[test]
    fn a_sort_key_orders_tables_and_top_cuts_them() {
        let options = TablestatsArguments { top: Some(1), ..Default::default() };
        let mut out = Vec::new();
        print_sorted(&keyspaces(), "space_used_live", &options, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("(showing top 1 by space_used_live)"));
        assert!(text.contains("\tTable: ks.b\n") && !text.contains("ks.a"));
    }

    #[test]
    fn names_select_or_exclude() {
        let mut options = TablestatsArguments { names: vec!["ks.a".into()], ..Default::default() };
        assert_eq!(select(keyspaces(), &options).unwrap()[0].tables[0].name, "a");
        options.ignore = true;
        assert_eq!(select(keyspaces(), &options).unwrap()[0].tables[0].name, "b");
        options.names = vec!["nope".into()];
        assert!(select(keyspaces(), &options).is_err());
    }
}
