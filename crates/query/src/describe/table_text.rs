//! A table as the statement that makes it.

use std::fmt::Write as _;

use schema::{ClusteringOrder, Column, ColumnKind, Table, TableOptions};
use types::quote_if_needed;

use super::text::{map, map_with_class, quoted};
use crate::ddl::double_text;

/// The statement, with id and dropped columns if asked for; a comment when the table is made up.
pub(super) fn table(table: &Table, is_virtual: bool, with_internals: bool) -> String {
    let name = full_name(table);
    let mut text = String::with_capacity(2048);
    if is_virtual {
        text.push_str(&format!(
            "/*\nWarning: Table {name} is a virtual table and cannot be recreated with CQL.\n\
             Structure, for reference:\n"
        ));
    }
    let create = if is_virtual { "VIRTUAL" } else { "CREATE" };
    text.push_str(&format!("{create} TABLE {name} (\n"));
    let key_is_one_column = table.partition_key().len() == 1 && table.clustering().is_empty();
    for line in column_lines(table, key_is_one_column, with_internals) {
        _ = writeln!(text, "    {line}");
    }
    if !key_is_one_column {
        _ = writeln!(text, "    {}", primary_key(table));
    }
    let options = option_lines(table, is_virtual, with_internals);
    _ = write!(text, ") WITH {};", options.join("\n    AND "));
    if is_virtual {
        text.push_str("\n*/");
    }
    if with_internals {
        push_drops(table, &mut text);
    }
    text
}

fn full_name(table: &Table) -> String {
    format!("{}.{}", quote_if_needed(table.keyspace()), quote_if_needed(table.name()))
}

fn column_text(column: &Column) -> String {
    let is_static = if column.is_static() { " static" } else { "" };
    format!("{} {}{is_static}", quote_if_needed(&column.name), column.cql_type)
}

/// Keys first, then static and regular columns, the multi-cell ones of each last.
fn column_lines(table: &Table, key_is_one_column: bool, with_dropped: bool) -> Vec<String> {
    let mut columns: Vec<&Column> = table.columns().iter().collect();
    columns.sort_by_key(|column| (rank(column), column.cql_type.is_multi_cell() && !column.is_primary_key()));
    let dropped = table.dropped_columns();
    // One that has come back is made as the dropped one here, and added again behind its DROP.
    let is_shown = |column: &&&Column| !with_dropped || !dropped.contains_key(&column.name);
    let mut lines: Vec<String> = columns
        .iter()
        .filter(is_shown)
        .map(|column| {
            let key = if key_is_one_column && column.is_primary_key() { " PRIMARY KEY" } else { "" };
            format!("{}{key}", column_text(column))
        })
        .collect();
    if with_dropped {
        lines.extend(dropped.values().map(|dropped| column_text(&dropped.column)));
    }
    let last = lines.len();
    for (index, line) in lines.iter_mut().enumerate() {
        if !key_is_one_column || index + 1 < last {
            line.push(',');
        }
    }
    lines
}

/// Columns are in the order of `SELECT *` already; only the multi-cell ones move.
fn rank(column: &Column) -> u8 {
    match column.kind {
        ColumnKind::PartitionKey(_) => 0,
        ColumnKind::Clustering(..) => 1,
        ColumnKind::Static => 2,
        ColumnKind::Regular => 3,
    }
}

fn names(columns: &[Column]) -> String {
    let names: Vec<String> = columns.iter().map(|column| quote_if_needed(&column.name)).collect();
    names.join(", ")
}

fn primary_key(table: &Table) -> String {
    let partition = names(table.partition_key());
    let partition = if table.partition_key().len() > 1 { format!("({partition})") } else { partition };
    let comma = if table.clustering().is_empty() { "" } else { ", " };
    format!("PRIMARY KEY ({partition}{comma}{})", names(table.clustering()))
}

fn clustering_order(table: &Table) -> String {
    let order = |column: &Column| {
        let order = match column.kind {
            ColumnKind::Clustering(_, ClusteringOrder::Desc) => "DESC",
            _ => "ASC",
        };
        format!("{} {order}", quote_if_needed(&column.name))
    };
    let orders: Vec<String> = table.clustering().iter().map(order).collect();
    format!("CLUSTERING ORDER BY ({})", orders.join(", "))
}

/// What stands between the ANDs.
fn option_lines(table: &Table, is_virtual: bool, with_internals: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if with_internals {
        lines.push(format!("ID = {}", table.id().0));
    }
    if !table.clustering().is_empty() {
        lines.push(clustering_order(table));
    }
    if is_virtual {
        lines.push(format!("comment = {}", quoted(&table.options().comment)));
    } else {
        push_options(table.options(), &mut lines);
    }
    lines
}

fn push_options(options: &TableOptions, lines: &mut Vec<String>) {
    let caching = options.caching.entries();
    let caching = map(caching.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let compaction = map_with_class(&options.compaction.class, &options.compaction.options);
    let extensions: Vec<String> = options
        .extensions
        .iter()
        .map(|(name, value)| format!("{}: 0x{}", quoted(name), types::blob::format(value)))
        .collect();
    lines.extend([
        format!("additional_write_policy = {}", quoted(&options.additional_write_policy.0)),
        format!("allow_auto_snapshot = {}", options.allow_auto_snapshot),
        format!("bloom_filter_fp_chance = {}", double_text(options.bloom_filter_fp_chance.0)),
        format!("caching = {caching}"),
        format!("cdc = {}", options.cdc),
        format!("comment = {}", quoted(&options.comment)),
        format!("compaction = {compaction}"),
        format!("compression = {}", compression(options)),
        format!("memtable = {}", quoted(&options.memtable)),
        format!("crc_check_chance = {}", double_text(options.crc_check_chance.0)),
        format!("default_time_to_live = {}", options.default_time_to_live),
        format!("extensions = {{{}}}", extensions.join(", ")),
        format!("gc_grace_seconds = {}", options.gc_grace_seconds),
        format!("incremental_backups = {}", options.incremental_backups),
        format!("max_index_interval = {}", options.max_index_interval),
        format!("memtable_flush_period_in_ms = {}", options.memtable_flush_period_in_ms),
        format!("min_index_interval = {}", options.min_index_interval),
        format!("read_repair = {}", quoted(&options.read_repair)),
        format!("speculative_retry = {}", quoted(&options.speculative_retry.0)),
    ]);
}

fn compression(options: &TableOptions) -> String {
    let Some(class) = &options.compression.class else { return map([("enabled", "false")]) };
    let mut all = options.compression.options.clone();
    all.insert("chunk_length_in_kb".into(), options.compression.chunk_length.text());
    map_with_class(class, &all)
}

/// The columns that were dropped, and those that came back.
fn push_drops(table: &Table, text: &mut String) {
    let name = full_name(table);
    for (column, dropped) in table.dropped_columns() {
        let (quoted, time) = (quote_if_needed(column), dropped.dropped_time_us);
        _ = write!(text, "\nALTER TABLE {name} DROP {quoted} USING TIMESTAMP {time};");
        if let Some(back) = table.column(column) {
            _ = write!(text, "\nALTER TABLE {name} ADD {};", column_text(back));
        }
    }
}
