//! Makes a seed for the fuzz target `table_file` of a table file whose Data is not compressed:
//! `cargo run -p peristyle-sstable --example fuzz_seed -- …-Data.db SEED`.

use std::path::Path;

use runtime::{Disk, OsDisk};
use sstable::{Component, Descriptor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = arguments.as_slice() else { return Err("fuzz_seed FILE-Data.db SEED".into()) };
    let disk = OsDisk::new();
    let (from, _) = Descriptor::from_path(Path::new(from))?;
    let read = |component| disk.read(&from.path(component));
    let seed = sstable::hostile::join(
        &read(Component::Statistics)?,
        &read(Component::Partitions)?,
        &read(Component::Rows)?,
        &read(Component::Data)?,
    );
    disk.write_atomically(Path::new(to), &seed)?;
    Ok(())
}
