//! Which table files of a directory are to be imported.

use std::collections::BTreeSet;
use std::path::Path;

use runtime::{Disk, EntryKind};
use sstable::{Component, Descriptor, SstableError};

use crate::UpkeepError;
use crate::transactions::files_that_do_not_count;

/// The table files of a directory that count, in the order of their names.
///
/// # Errors
/// There is no such directory, a transaction log in it is damaged, or a file is of a version that is
/// not read.
pub fn list_source(disk: &dyn Disk, directory: &Path) -> Result<Vec<Descriptor>, UpkeepError> {
    let fail = |source| UpkeepError::Disk { act: "look for files to import", source };
    if !disk.exists(directory).map_err(fail)? {
        let what = "there is no such directory".into();
        return Err(UpkeepError::Directory { path: directory.to_owned(), what });
    }
    let entries = disk.list(directory).map_err(fail)?;
    let files = entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
    let mut names: Vec<String> = files.map(|entry| entry.name).collect();
    names.sort();
    let ignored = files_that_do_not_count(disk, directory, &names)?;
    let mut found = BTreeSet::new();
    let mut sources = Vec::new();
    for name in &names {
        if ignored.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        match Descriptor::from_path(&directory.join(name)) {
            Ok((descriptor, Component::Data)) if found.insert((descriptor.version, descriptor.id)) => {
                sources.push(descriptor);
            }
            Ok(_) | Err(SstableError::FileName { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sources)
}
