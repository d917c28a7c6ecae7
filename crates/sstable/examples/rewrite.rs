//! Reads a table file and writes what it holds into a new one beside no other:
//! `cargo run -p peristyle-sstable --example rewrite -- …-Data.db TO-DIRECTORY [--plain]`. `--plain` does not
//! compress.
//!
//! For looking at our files with Cassandra's tools (`sstabledump`, `sstablemetadata`,
//! `sstableverify`), which need no schema but that of the file.

#![expect(clippy::print_stdout, reason = "the path of the new file is what a caller wants")]

use std::path::Path;
use std::sync::Arc;

use rows::{RingRange, Slices, Step, UnfilteredCursor};
use runtime::{Disk, OsDisk};
use sstable::{Component, Descriptor, DirectChunks, TableFile, TableWriter, WriterOptions, table_of_header};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, flags @ ..] = arguments.as_slice() else {
        return Err("rewrite FILE-Data.db TO-DIRECTORY [--plain]".into());
    };
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::new());
    let (from, _) = Descriptor::from_path(Path::new(from))?;
    let to = Descriptor::new(to, from.id);
    let table = Arc::new(table_of_header(&*disk, &from, "da", "rewritten")?);
    let file = TableFile::open(Arc::clone(&disk), from, &table)?;
    file.verify()?;
    disk.create_dir_all(&to.directory)?;
    let mut options = WriterOptions {
        estimated_partitions: file.summary().partition_count,
        encoding_stats: file.summary().encoding_stats,
        ..WriterOptions::for_table(&table)
    };
    if flags.iter().any(|flag| flag == "--plain") {
        options.compression.class = None;
    }
    let mut writer = TableWriter::create(Arc::clone(&disk), to.clone(), table, options)?;
    let mut cursor = file.scan(DirectChunks::new(), &RingRange::ALL, &Slices::all());
    let mut is_open = false;
    loop {
        match cursor.step()? {
            Step::Header(header) => {
                if is_open {
                    writer.end_partition()?;
                }
                writer.start_partition(&header)?;
                is_open = true;
            }
            Step::Item(item) => writer.append(&item)?,
            Step::Need(_) => unreachable!("direct chunks wait"),
            Step::End => break,
        }
    }
    if is_open {
        writer.end_partition()?;
    }
    writer.finish()?;
    println!("{}", to.path(Component::Data).display());
    Ok(())
}
