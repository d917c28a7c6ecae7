//! CPU time that one thread takes to write and read table files, over the real disk:
//! `cargo run --release -p peristyle-sstable --example throughput`.
//!
//! For a look at one part in isolation; the lab compares whole servers.

#![expect(clippy::print_stdout, reason = "a stop watch that talks")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rows::{
    CellRef, ClusteringBuilder, DeletionTime, EncodingStats, Liveness, PartitionHeader, PartitionKey,
    RingRange, RowBuilder, Slice, Slices, Step, Unfiltered, UnfilteredCursor,
};
use runtime::{Disk, OsDisk};
use schema::{ClusteringOrder, ColumnKind, Table, TableBuilder, TableId};
use sstable::{
    Chunk, ChunkId, ChunkSource, Descriptor, DirectChunks, FileNeed, KeyHash, SstableError, TableFile,
    TableWriter, WriterOptions, id_from_text,
};
use types::CqlType;
use uuid::Uuid;

type Failure = Box<dyn std::error::Error>;

#[derive(Default)]
struct AllChunks(RefCell<HashMap<ChunkId, Chunk>>);

impl ChunkSource for AllChunks {
    fn get(&self, _: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        Ok(self.0.borrow().get(&id).cloned())
    }
}

struct Case {
    name: &'static str,
    table: Arc<Table>,
    partitions: Vec<(PartitionHeader, Vec<Unfiltered>)>,
}

/// YCSB's rows: ten fields of 100 bytes, one row a partition.
fn wide_fields(count: u32) -> Result<Case, Failure> {
    let mut builder = TableBuilder::new(TableId(Uuid::nil()), "ks", "usertable").column(
        "y_id",
        ColumnKind::PartitionKey(0),
        CqlType::Text,
    );
    for field in (0..10).rev() {
        builder = builder.column(format!("field{field}"), ColumnKind::Regular, CqlType::Text);
    }
    let table = Arc::new(builder.build()?);
    let mut noise = 1u64;
    let mut partitions = Vec::new();
    for index in 0..count {
        let key = PartitionKey::new(Bytes::from(format!("user{index:012}")));
        let timestamp = 1_700_000_000_000_000 + i64::from(index);
        let mut row =
            RowBuilder::new(&ClusteringBuilder::new().finish(), Liveness::at(timestamp), DeletionTime::LIVE);
        for id in 1..=10u16 {
            let mut value = [0u8; 100];
            for byte in &mut value {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = b' ' + (noise >> 58) as u8;
            }
            row.cell(schema::ColumnId(id), CellRef::live(timestamp, &value));
        }
        let header = PartitionHeader { key, deletion: DeletionTime::LIVE, static_row: None };
        partitions.push((header, vec![Unfiltered::Row(row.finish())]));
    }
    partitions.sort_by(|a, b| a.0.key.cmp(&b.0.key));
    Ok(Case { name: "1 KB rows, one a partition", table, partitions })
}

/// Short rows, a thousand a partition.
fn short_rows(partition_count: u32, row_count: u32) -> Result<Case, Failure> {
    let table = TableBuilder::new(TableId(Uuid::nil()), "ks", "series")
        .column("sensor", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("at", ColumnKind::Clustering(0, ClusteringOrder::Desc), CqlType::Timestamp)
        .column("value", ColumnKind::Regular, CqlType::Double)
        .column("quality", ColumnKind::Regular, CqlType::Int)
        .build()?;
    let mut partitions = Vec::new();
    for sensor in 0..partition_count {
        let key = PartitionKey::new(Bytes::copy_from_slice(&sensor.to_be_bytes()));
        let mut rows = Vec::new();
        for index in (0..row_count).rev() {
            let at = 1_700_000_000_000 + i64::from(index) * 1000;
            let mut clustering = ClusteringBuilder::new();
            clustering.push(Some(&at.to_be_bytes()));
            let timestamp = at * 1000;
            let mut row = RowBuilder::new(&clustering.finish(), Liveness::at(timestamp), DeletionTime::LIVE);
            row.cell(schema::ColumnId(2), CellRef::live(timestamp, &f64::from(index).sqrt().to_be_bytes()));
            row.cell(schema::ColumnId(3), CellRef::live(timestamp, &(index % 7).to_be_bytes()));
            rows.push(Unfiltered::Row(row.finish()));
        }
        let header = PartitionHeader { key, deletion: DeletionTime::LIVE, static_row: None };
        partitions.push((header, rows));
    }
    partitions.sort_by(|a, b| a.0.key.cmp(&b.0.key));
    Ok(Case { name: "40 B rows, many a partition", table: Arc::new(table), partitions })
}

fn run(case: &Case) -> Result<(), Failure> {
    println!("{}", case.name);
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::new());
    let directory = Path::new("/tmp/peristyle-throughput");
    disk.create_dir_all(directory)?;
    let id = id_from_text("3gj5_0wc1_3vyps2bvkllgjm2qvf").ok_or("an id")?;
    let descriptor = Descriptor::new(directory, id);
    let stats = EncodingStats { min_timestamp: 1_700_000_000_000_000, ..EncodingStats::NONE };
    let options = WriterOptions {
        estimated_partitions: case.partitions.len() as u64,
        encoding_stats: stats,
        ..WriterOptions::for_table(&case.table)
    };
    sstable::delete_table_file(&*disk, &descriptor)?;
    let row_count: usize = case.partitions.iter().map(|(_, items)| items.len()).sum();

    let start = cpu_seconds();
    let mut writer =
        TableWriter::create(Arc::clone(&disk), descriptor.clone(), Arc::clone(&case.table), options.clone())?;
    for (header, items) in &case.partitions {
        writer.start_partition(header)?;
        for item in items {
            writer.append(item)?;
        }
        writer.end_partition()?;
    }
    let data_bytes = writer.data_bytes_written();
    report("write", start, row_count, data_bytes);
    let start = cpu_seconds();
    writer.finish()?;
    report("  and sync", start, row_count, data_bytes);

    let file = TableFile::open(Arc::clone(&disk), descriptor.clone(), &case.table)?;
    let start = cpu_seconds();
    let mut cursor = file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all());
    let mut read_count = 0;
    loop {
        match cursor.step()? {
            Step::End => break,
            Step::Item(_) => read_count += 1,
            _ => {}
        }
    }
    assert_eq!(read_count, row_count);
    report("scan", start, row_count, data_bytes);

    let second = Descriptor::new(directory.join("second"), id);
    disk.create_dir_all(&second.directory)?;
    sstable::delete_table_file(&*disk, &second)?;
    let start = cpu_seconds();
    let mut cursor = file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all());
    let mut writer =
        TableWriter::create(Arc::clone(&disk), second.clone(), Arc::clone(&case.table), options)?;
    let mut is_open = false;
    loop {
        match cursor.step()? {
            Step::End => break,
            Step::Item(item) => writer.append(&item)?,
            Step::Header(header) => {
                if is_open {
                    writer.end_partition()?;
                }
                is_open = true;
                writer.start_partition(&header)?;
            }
            Step::Need(_) => {}
        }
    }
    writer.end_partition()?;
    report("rewrite", start, row_count, data_bytes);
    writer.abort()?;

    let source = AllChunks::default();
    let comparator = rows::ClusteringComparator::new(Arc::clone(case.table.clustering_types()));
    for pass in ["point reads, first", "point reads, from memory", "point reads, few keys"] {
        let start = cpu_seconds();
        let mut count = 0;
        // The last pass stays within the processor's cache, as far as that goes.
        let repeated = if pass.ends_with("few keys") { 200 } else { 1 };
        let keys = case.partitions.len() / repeated / 4 * if repeated > 1 { 1 } else { 4 };
        for (header, items) in (0..repeated).flat_map(|_| &case.partitions[..keys]) {
            for item in items.iter().step_by(items.len().div_ceil(8)) {
                let Unfiltered::Row(row) = item else { continue };
                let slices = if case.table.clustering().is_empty() {
                    Slices::all()
                } else {
                    Slices::new(vec![Slice::prefix(row.clustering())], &comparator)
                };
                if !file.may_contain(&header.key, KeyHash::of(&header.key.bytes)) {
                    continue;
                }
                let mut cursor = file.partition_cursor(
                    &source,
                    &header.key,
                    KeyHash::of(&header.key.bytes),
                    &slices,
                    false,
                );
                loop {
                    match cursor.step()? {
                        Step::End => break,
                        Step::Need(FileNeed::Row(_)) => unreachable!("the cursor reads rows itself"),
                        Step::Need(FileNeed::Chunk(need)) => {
                            let chunk = need.read()?;
                            source.0.borrow_mut().insert(need.id, chunk);
                        }
                        Step::Item(_) => count += 1,
                        Step::Header(_) => {}
                    }
                }
            }
        }
        report(pass, start, count, 0);
    }
    sstable::delete_table_file(&*disk, &descriptor)?;
    Ok(())
}

/// Time this thread has run, by the kernel's account: other work on the machine does not count.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn report(what: &str, start: f64, count: usize, bytes: u64) {
    let seconds = cpu_seconds() - start;
    println!(
        "  {what:26} {:7.0} ns a row, {:6.2} M rows/s, {:6.0} MB/s",
        seconds * 1e9 / count as f64,
        count as f64 / seconds / 1e6,
        bytes as f64 / seconds / 1e6
    );
}

fn main() -> Result<(), Failure> {
    run(&wide_fields(200_000)?)?;
    run(&short_rows(2000, 1000)?)
}
