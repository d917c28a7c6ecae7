//! Any bytes as a manifest: for the fuzzer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtime::{Disk, MemoryDisk};

use crate::Manifest;
use crate::format::correct;

const PATH: &str = "/hostile/shard-0.log";
/// In the first byte: the checks are set right first, so that what they guard is reached.
const IS_CORRECTED: u8 = 1;

/// Opens a manifest of all bytes but the first, which says how, twice, and makes an edit.
///
/// # Panics
/// When a promise of the manifest is broken: that is what it is for.
pub fn read(bytes: &[u8]) {
    let Some((settings, bytes)) = bytes.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if settings & IS_CORRECTED != 0 {
        correct(&mut bytes);
    }
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let written = disk
        .create_dir_all(Path::new("/hostile"))
        .and_then(|()| disk.write_atomically(Path::new(PATH), &bytes));
    assert!(written.is_ok(), "a memory disk has room: {written:?}");
    let open = || Manifest::open(Arc::clone(&disk), PathBuf::from(PATH));
    let Ok(first) = open() else { return };
    let second = open().map(|manifest| manifest.state().clone());
    assert_eq!(second.ok().as_ref(), Some(first.state()), "what a first start found");
    let edited = first.with_roster();
    let state = edited.state().clone();
    let written = edited.write();
    assert!(written.is_ok(), "{written:?}");
    assert_eq!(open().ok().map(|manifest| manifest.state().clone()), Some(state), "behind an edit");
}
