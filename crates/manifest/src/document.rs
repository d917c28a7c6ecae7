//! The manifest as it was before it was a log: one JSON document, `shard-<n>.json`, written whole each time.
//!
//! ```text
//!   document ──► read ──► log written beside it ──► document gone, durably ──► first edit of the log
//! ```
//!
//! While the document is there it is what counts, and a log beside it is a carrying over that was cut off: no log is
//! edited before its document is gone. So a version that knows documents alone may still be started until then.

use std::path::{Path, PathBuf};

use runtime::Disk;

use crate::StateError;
use crate::state::ManifestState;
use crate::state_file::read_state;

/// The document that is to be carried over to the log at that path; `None` when there is none.
///
/// # Errors
/// It is damaged, or the disk fails.
pub(super) fn read(disk: &dyn Disk, log: &Path) -> Result<Option<ManifestState>, StateError> {
    let path = path(log);
    let state: Option<ManifestState> = read_state(disk, &path)?;
    if let Some(state) = &state {
        state.check_whole().map_err(|misfit| StateError::unfit(&path, 0, misfit))?;
    }
    Ok(state)
}

/// Removes the document that the log at that path has taken the place of, durably.
///
/// # Errors
/// The disk fails.
pub(super) fn remove(disk: &dyn Disk, log: &Path) -> Result<(), StateError> {
    let (path, fail) = (path(log), |source| StateError::Disk { act: "remove old manifest", source });
    if !disk.exists(&path).map_err(fail)? {
        return Ok(());
    }
    disk.remove_file(&path).map_err(fail)?;
    path.parent().map_or(Ok(()), |directory| disk.sync_dir(directory).map_err(fail))
}

fn path(log: &Path) -> PathBuf {
    log.with_extension("json")
}
