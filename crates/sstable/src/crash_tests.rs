//! Power cuts and full disks while a table file is written: a list of components means a whole file.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rows::{
    CellRef, ClusteringBuilder, DeletionTime, Liveness, PartitionHeader, PartitionKey, RowBuilder, Unfiltered,
};
use runtime::{Disk, MemoryDisk};
use schema::{ClusteringOrder, ColumnId, ColumnKind, Table, TableBuilder, TableId};
use types::CqlType;
use uuid::Uuid;

use crate::{Component, Descriptor, SstableError, TableFile, TableWriter, WriterOptions, id_from_text};

fn table() -> Arc<Table> {
    let builder = TableBuilder::new(TableId(Uuid::nil()), "ks", "t")
        .column("k", ColumnKind::PartitionKey(0), CqlType::Text)
        .column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Blob);
    Arc::new(builder.build().expect("a table"))
}

fn write(disk: &MemoryDisk, descriptor: &Descriptor) -> Result<(), SstableError> {
    let table = table();
    disk.create_dir_all(&descriptor.directory)?;
    let options = WriterOptions::for_table(&table);
    let mut writer = TableWriter::create(Arc::new(disk.clone()), descriptor.clone(), table, options)?;
    let mut keys: Vec<_> = (0..20).map(|key| PartitionKey::new(Bytes::from(format!("{key}")))).collect();
    keys.sort();
    for key in keys {
        writer.start_partition(&PartitionHeader { key, deletion: DeletionTime::LIVE, static_row: None })?;
        for index in 0..50i32 {
            let mut clustering = ClusteringBuilder::new();
            clustering.push(Some(&index.to_be_bytes()));
            let mut row = RowBuilder::new(&clustering.finish(), Liveness::at(1), DeletionTime::LIVE);
            row.cell(ColumnId(2), CellRef::live(1, &[index as u8; 200]));
            writer.append(&Unfiltered::Row(row.finish()))?;
        }
        writer.end_partition()?;
    }
    writer.finish().map(|_| ())
}

fn descriptor() -> Descriptor {
    Descriptor::new("/t", id_from_text("3gj5_0wc1_3vyps2bvkllgjm2qvf").expect("an id"))
}

fn is_whole(disk: MemoryDisk) -> Result<(), SstableError> {
    TableFile::open(Arc::new(disk), descriptor(), &table())?.verify()
}

fn is_listed_and_whole(disk: &MemoryDisk) -> bool {
    let toc = descriptor().path(Component::Toc);
    disk.exists(&toc).expect("asked") && is_whole(disk.clone()).is_ok()
}

#[test]
fn finished_file_survives_a_power_cut() {
    let disk = MemoryDisk::new();
    write(&disk, &descriptor()).expect("written");
    for seed in 0..20 {
        is_whole(disk.crash(seed)).expect("whole");
    }
}

#[test]
fn power_cut_while_writing_leaves_no_file_that_opens_damaged() {
    let counted = MemoryDisk::new();
    write(&counted, &descriptor()).expect("written");
    let change_count = counted.faults().change_count();
    for cut in 0..change_count {
        let disk = MemoryDisk::new();
        disk.faults().power_off_after(cut);
        assert!(write(&disk, &descriptor()).is_err(), "cut after {cut} of {change_count}");
        for seed in 0..4 {
            let found = disk.crash(seed);
            let opened = TableFile::open(Arc::new(found.clone()), descriptor(), &table());
            assert!(
                opened.is_err() || is_listed_and_whole(&found),
                "cut after {cut} of {change_count}, seed {seed}"
            );
        }
    }
}

#[test]
fn failed_writing_is_told_and_leaves_nothing_behind() {
    let counted = MemoryDisk::new();
    write(&counted, &descriptor()).expect("written");
    let disk = MemoryDisk::new();
    disk.faults().set_capacity_bytes(counted.used_bytes() - 1);
    let error = write(&disk, &descriptor()).expect_err("no room");
    assert!(matches!(error, SstableError::Disk(_)), "{error}");
    assert_eq!(disk.list(Path::new("/t")).expect("there"), []);
}
