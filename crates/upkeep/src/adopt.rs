//! Brings a table file into a directory under a new id: by second names for its components, or by
//! copies.
//!
//! A table file counts as finished with its list of components, so that comes last. What is shared
//! with the place it came from is never written to again: the one component that changes in a
//! finished file, Statistics, is replaced, not overwritten.

use std::io;
use std::path::Path;

use runtime::{Disk, OpenMode};
use sstable::{Component, Descriptor, SstableError, write_checksums};

/// Bytes copied at once.
const COPY_BYTES: usize = 1 << 20;

/// How components are brought in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bring {
    /// By a second name; copied where that can not be (another file system).
    Link,
    /// By copies, whatever is possible.
    Copy,
}

/// Makes `to` the same table file as `from`, durable, with our checksums. Blocks.
///
/// # Errors
/// The disk fails, or a component is missing. What was made of `to` is removed again.
pub(crate) fn adopt(
    disk: &dyn Disk,
    from: &Descriptor,
    to: &Descriptor,
    bring: Bring,
) -> Result<(), SstableError> {
    assert_eq!(from.version, to.version, "a file is read as what it was written as");
    // What is there is not ours to clean up.
    let taken = to.path(Component::Data);
    if disk.exists(&taken)? {
        return Err(SstableError::Misuse { path: taken, what: "the id is taken" });
    }
    let adopted = bring_all(disk, from, to, bring).and_then(|()| write_checksums(disk, to));
    if adopted.is_err() {
        // The first failure says more than one of cleaning up; the next start sweeps what is left.
        let _ = sstable::delete_table_file(disk, to);
    }
    adopted
}

fn bring_all(disk: &dyn Disk, from: &Descriptor, to: &Descriptor, bring: Bring) -> Result<(), SstableError> {
    let toc = from.path(Component::Toc);
    if !disk.exists(&toc)? {
        let what = "it is missing: an unfinished file";
        return Err(SstableError::Damaged { path: toc, offset: 0, what });
    }
    disk.create_dir_all(&to.directory)?;
    let others = Component::ALL.into_iter().filter(|component| *component != Component::Toc);
    for component in others.chain([Component::Toc]) {
        // Checksums and list are made anew.
        let is_made_anew = matches!(component, Component::Checksums | Component::Toc);
        let source = from.path(component);
        if component == Component::Checksums || !disk.exists(&source)? {
            continue;
        }
        let bring = if is_made_anew { Bring::Copy } else { bring };
        place(disk, &source, &to.path(component), bring)?;
    }
    Ok(disk.sync_dir(&to.directory)?)
}

/// Gives a file a second name, or copies it. The bytes are durable then; the name is not.
fn place(disk: &dyn Disk, source: &Path, target: &Path, bring: Bring) -> Result<(), SstableError> {
    if bring == Bring::Link {
        match disk.hard_link(source, target) {
            Ok(()) => return Ok(disk.open(target, OpenMode::Read)?.sync_all()?),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error.into()),
            // Another file system, or one without second names.
            Err(_) => {}
        }
    }
    let (from, to) = (disk.open(source, OpenMode::Read)?, disk.open(target, OpenMode::CreateNew)?);
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        let read = from.read_at(&mut buffer, offset)?;
        if read == 0 {
            break;
        }
        to.write_all_at(&buffer[..read], offset)?;
        offset += read as u64;
    }
    Ok(to.sync_all()?)
}

/// Gives all components of a table file second names in another directory, under the same id: a
/// snapshot. One that is there already is left as it is. Gives their names.
///
/// # Errors
/// The disk fails.
pub fn link_into(disk: &dyn Disk, from: &Descriptor, directory: &Path) -> Result<Vec<String>, SstableError> {
    assert_ne!(from.directory, directory, "a snapshot has names of its own");
    let mut names = Vec::new();
    for component in Component::ALL {
        let source = from.path(component);
        if !disk.exists(&source)? {
            continue;
        }
        let name = from.file_name(component);
        match disk.hard_link(&source, &directory.join(&name)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
        names.push(name);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use runtime::{MemoryDisk, OsDisk};
    use sstable::{TableFile, table_of_header};
    use uuid::Uuid;

    use super::*;

    /// A table file that Cassandra 4 wrote.
    fn fixture() -> Descriptor {
        let folder =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats/cassandra-big/nb/compound");
        let files = OsDisk::new().list(&folder).expect("fixtures are in the repository");
        let found = files.iter().find_map(|file| Descriptor::from_path(&folder.join(&file.name)).ok());
        found.expect("a table file").0
    }

    #[test]
    #[should_panic(expected = "a snapshot has names of its own")]
    fn a_file_in_its_own_directory_is_no_snapshot_of_itself() {
        let from = fixture();
        _ = link_into(&OsDisk::new(), &from, &from.directory);
    }

    #[test]
    #[should_panic(expected = "a file is read as what it was written as")]
    fn a_file_is_not_adopted_as_one_of_another_version() {
        let from = fixture();
        let to = Descriptor::new("/to", from.id);
        _ = adopt(&OsDisk::new(), &from, &to, Bring::Copy);
    }

    #[test]
    fn adopted_file_is_whole_and_its_source_unchanged() {
        let disk = MemoryDisk::new();
        let theirs = fixture();
        let from = Descriptor::of_version("/from", theirs.id, theirs.version);
        disk.create_dir_all("/from".as_ref()).expect("made");
        for component in Component::ALL {
            if OsDisk::new().exists(&theirs.path(component)).expect("asked") {
                let bytes = OsDisk::new().read(&theirs.path(component)).expect("there");
                disk.write_atomically(&from.path(component), &bytes).expect("written");
            }
        }
        let toc = disk.read(&from.path(Component::Toc)).expect("there");
        for (number, bring) in [(1, Bring::Link), (2, Bring::Copy)] {
            let to = Descriptor::of_version("/to", Uuid::from_u64_pair(number, 1), theirs.version);
            adopt(&disk, &from, &to, bring).expect("adopted");
            let survived = disk.crash(number);
            assert!(survived.exists(&to.path(Component::Checksums)).expect("asked"));
            let table = Arc::new(table_of_header(&survived, &to, "ks", "t").expect("known types"));
            let file = TableFile::open(Arc::new(survived), to, &table).expect("opens");
            file.verify().expect("whole");
        }
        assert_eq!(disk.read(&from.path(Component::Toc)).expect("there"), toc);
    }
}
