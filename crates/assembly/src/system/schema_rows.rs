//! `system_schema` and `system_virtual_schema`: the schema as rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use read::PartitionRows;
use schema::{
    ClusteringOrder, Column, ColumnKind, CompressionOptions, Keyspace, Schema, Table, TableOptions,
};
use types::encoding;

use super::made_up::{MadeUpRows, Timestamp, Value};

/// All rows of a table of `system_schema`. Of what the schema does not have (views, indexes,
/// functions, triggers, masks) there are none.
pub(super) fn rows(table: &Table, schema: &Schema) -> Vec<PartitionRows> {
    let mut rows = MadeUpRows::new(table);
    for keyspace in schema.keyspaces().values() {
        match table.name() {
            "keyspaces" => add_keyspace(&mut rows, keyspace),
            "tables" => keyspace.tables.values().for_each(|of| add_table(&mut rows, of)),
            "columns" => add_columns(&mut rows, keyspace),
            "dropped_columns" => keyspace.tables.values().for_each(|of| add_dropped_columns(&mut rows, of)),
            "types" => add_types(&mut rows, keyspace),
            _ => {}
        }
    }
    rows.finish()
}

/// All rows of a table of `system_virtual_schema`.
pub(super) fn virtual_rows(table: &Table, keyspaces: &[Arc<Keyspace>]) -> Vec<PartitionRows> {
    let mut rows = MadeUpRows::new(table);
    for keyspace in keyspaces {
        match table.name() {
            "keyspaces" => rows.add([("keyspace_name", (&keyspace.name).into())]),
            "tables" => keyspace.tables.values().for_each(|of| {
                rows.add([
                    ("keyspace_name", of.keyspace().into()),
                    ("table_name", of.name().into()),
                    ("comment", (&of.options().comment).into()),
                ]);
            }),
            "columns" => add_columns(&mut rows, keyspace),
            _ => {}
        }
    }
    rows.finish()
}

fn add_keyspace(rows: &mut MadeUpRows<'_>, keyspace: &Keyspace) {
    let mut replication = keyspace.replication.options.clone();
    replication.insert("class".into(), keyspace.replication.class.clone());
    rows.add([
        ("keyspace_name", (&keyspace.name).into()),
        ("durable_writes", keyspace.durable_writes.into()),
        ("replication", (&replication).into()),
    ]);
}

fn add_table(rows: &mut MadeUpRows<'_>, table: &Table) {
    let options = table.options();
    let number = |number: u32| Value::from(i32::try_from(number).unwrap_or(i32::MAX));
    rows.add([
        ("keyspace_name", table.keyspace().into()),
        ("table_name", table.name().into()),
        ("additional_write_policy", (&options.additional_write_policy.0).into()),
        ("bloom_filter_fp_chance", options.bloom_filter_fp_chance.0.into()),
        ("caching", (&options.caching.entries()).into()),
        ("comment", (&options.comment).into()),
        ("compaction", (&compaction(options)).into()),
        ("compression", (&compression(&options.compression)).into()),
        ("crc_check_chance", options.crc_check_chance.0.into()),
        ("dclocal_read_repair_chance", 0f64.into()),
        ("default_time_to_live", number(options.default_time_to_live)),
        ("extensions", (&options.extensions).into()),
        ("flags", flags(table)),
        ("gc_grace_seconds", number(options.gc_grace_seconds)),
        ("id", table.id().0.into()),
        ("max_index_interval", number(options.max_index_interval)),
        ("memtable_flush_period_in_ms", number(options.memtable_flush_period_in_ms)),
        ("min_index_interval", number(options.min_index_interval)),
        ("read_repair", (&options.read_repair).into()),
        ("read_repair_chance", 0f64.into()),
        ("speculative_retry", (&options.speculative_retry.0).into()),
        // As from Cassandra, these have no value until somebody sets one.
        ("allow_auto_snapshot", (!options.allow_auto_snapshot).then_some(false).into()),
        ("cdc", options.cdc.then_some(true).into()),
        ("incremental_backups", (!options.incremental_backups).then_some(false).into()),
        ("memtable", Some(&options.memtable).filter(|name| *name != "default").into()),
    ]);
}

fn compaction(options: &TableOptions) -> BTreeMap<String, String> {
    let mut entries = options.compaction.options.clone();
    entries.insert("class".into(), options.compaction.class.clone());
    entries
}

fn compression(options: &CompressionOptions) -> BTreeMap<String, String> {
    let Some(class) = &options.class else { return [("enabled".into(), "false".into())].into() };
    let mut entries = options.options.clone();
    entries.insert("class".into(), class.clone());
    entries.insert("chunk_length_in_kb".into(), options.chunk_length.text());
    entries
}

fn flags(table: &Table) -> Value {
    let flags: &[&str] = if table.is_counter() { &["compound", "counter"] } else { &["compound"] };
    Value::Simple(encoding::collection(flags.len(), flags.iter().map(|flag| Some(flag.as_bytes()))))
}

fn add_columns(rows: &mut MadeUpRows<'_>, keyspace: &Keyspace) {
    for table in keyspace.tables.values() {
        // In the order they are read in, so that sorting them again costs little.
        let mut columns: Vec<&Column> = table.columns().iter().collect();
        columns.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for column in columns {
            add_column(rows, table, column);
        }
    }
}

fn add_column(rows: &mut MadeUpRows<'_>, table: &Table, column: &Column) {
    let (position, order) = match column.kind {
        ColumnKind::PartitionKey(position) => (i32::from(position), "none"),
        ColumnKind::Clustering(position, ClusteringOrder::Asc) => (i32::from(position), "asc"),
        ColumnKind::Clustering(position, ClusteringOrder::Desc) => (i32::from(position), "desc"),
        ColumnKind::Static | ColumnKind::Regular => (-1, "none"),
    };
    rows.add([
        ("keyspace_name", table.keyspace().into()),
        ("table_name", table.name().into()),
        ("column_name", (&column.name).into()),
        ("clustering_order", order.into()),
        ("column_name_bytes", (&column.name).into()),
        ("kind", kind(column.kind).into()),
        ("position", position.into()),
        ("type", column.cql_type.to_string().into()),
    ]);
}

fn kind(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::PartitionKey(_) => "partition_key",
        ColumnKind::Clustering(..) => "clustering",
        ColumnKind::Static => "static",
        ColumnKind::Regular => "regular",
    }
}

fn add_dropped_columns(rows: &mut MadeUpRows<'_>, table: &Table) {
    for dropped in table.dropped_columns().values() {
        rows.add([
            ("keyspace_name", table.keyspace().into()),
            ("table_name", table.name().into()),
            ("column_name", (&dropped.column.name).into()),
            ("dropped_time", Timestamp(dropped.dropped_time_us.div_euclid(1000)).into()),
            ("kind", kind(dropped.column.kind).into()),
            ("type", dropped.column.cql_type.to_string().into()),
        ]);
    }
}

fn add_types(rows: &mut MadeUpRows<'_>, keyspace: &Keyspace) {
    for definition in keyspace.types.values() {
        let (names, types): (Vec<String>, Vec<String>) =
            definition.fields.iter().map(|(name, cql_type)| (name.clone(), cql_type.to_string())).unzip();
        rows.add([
            ("keyspace_name", (&keyspace.name).into()),
            ("type_name", (&definition.name).into()),
            ("field_names", names[..].into()),
            ("field_types", types[..].into()),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::definitions::{base_schema, virtual_keyspaces};
    use super::super::made_up::testing::text;
    use super::*;

    fn find(lines: &[String], start: &str) -> String {
        lines.iter().find(|line| line.starts_with(start)).cloned().unwrap_or_default()
    }

    #[test]
    fn keyspaces_tables_and_columns_are_told_as_cassandra_tells_them() {
        let schema = base_schema().expect("schema");
        let check = |table: &str, start: &str, expected: &str| {
            let table = schema.table("system_schema", table).expect("table");
            let lines = text(table, &rows(table, &schema));
            assert_eq!(find(&lines, start), format!("{start}{expected}"));
        };
        check(
            "keyspaces",
            "keyspace_name=system_traces ",
            "durable_writes=true replication={'class': 'org.apache.cassandra.locator.SimpleStrategy', \
             'replication_factor': '2'}",
        );
        check(
            "columns",
            "keyspace_name=system_traces table_name=events column_name=event_id ",
            "clustering_order=asc column_name_bytes=6576656e745f6964 kind=clustering position=0 type=timeuuid",
        );
        check(
            "columns",
            "keyspace_name=system table_name=repairs column_name=cfids ",
            "clustering_order=none column_name_bytes=6366696473 kind=regular position=-1 type=set<uuid>",
        );
        check(
            "tables",
            "keyspace_name=system table_name=batches ",
            "additional_write_policy=99p bloom_filter_fp_chance=0.01 caching={'keys': 'ALL', \
             'rows_per_partition': 'NONE'} comment=batches awaiting replay compaction={'class': \
             'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy', 'max_threshold': '32', \
             'min_threshold': '2'} compression={'chunk_length_in_kb': '16', 'class': \
             'org.apache.cassandra.io.compress.LZ4Compressor'} crc_check_chance=1.0 \
             dclocal_read_repair_chance=0.0 default_time_to_live=0 extensions={} flags={'compound'} \
             gc_grace_seconds=0 id=919a4bc5-7a33-3573-b03e-13fc3f68b465 max_index_interval=2048 \
             memtable_flush_period_in_ms=3600000 min_index_interval=128 read_repair=BLOCKING \
             read_repair_chance=0.0 speculative_retry=99p",
        );
    }

    #[test]
    fn virtual_tables_are_told_of_in_their_own_keyspace_and_not_in_the_schema() {
        let keyspaces = virtual_keyspaces().expect("keyspaces");
        let tables = &keyspaces[1].tables;
        let lines = text(&tables["tables"], &virtual_rows(&tables["tables"], &keyspaces));
        assert_eq!(lines.len(), 47);
        let expected = "keyspace_name=system_views table_name=settings comment=current settings";
        assert_eq!(find(&lines, "keyspace_name=system_views table_name=settings"), expected);
        let schema = base_schema().expect("schema");
        let stored = schema.table("system_schema", "tables").expect("table");
        assert_eq!(find(&text(stored, &rows(stored, &schema)), "keyspace_name=system_views"), "");
    }
}
