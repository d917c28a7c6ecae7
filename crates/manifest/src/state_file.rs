//! Small checked files of a node's state: a header line with the CRC-32 of the rest, then JSON.

use std::path::Path;

use runtime::Disk;
use serde::Serialize;

use crate::StateError;

const HEADER: &str = "peristyle state 1 crc32 ";
/// What headers of all versions begin with.
const NAME: &str = "peristyle state ";

/// Reads a state file; `None` when there is none.
///
/// # Errors
/// The disk fails, or the file is damaged.
pub fn read_state<T: serde::de::DeserializeOwned>(
    disk: &dyn Disk,
    path: &Path,
) -> Result<Option<T>, StateError> {
    if !disk.exists(path).map_err(|source| StateError::Disk { act: "look for state file", source })? {
        return Ok(None);
    }
    let bytes = disk.read(path).map_err(|source| StateError::Disk { act: "read state file", source })?;
    let damaged = |what: String| StateError::Damaged { path: path.into(), what };
    let text = std::str::from_utf8(&bytes).map_err(|error| damaged(format!("not text: {error}")))?;
    let (header, body) = text.split_once('\n').ok_or_else(|| damaged("no header line".into()))?;
    if let Some(version) =
        header.strip_prefix(NAME).and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok())
        && version > 1
    {
        let what = format!("it is of version {version}, this program reads version 1: a newer one wrote it");
        return Err(StateError::Newer { path: path.into(), what });
    }
    let expected = header
        .strip_prefix(HEADER)
        .and_then(|crc| u32::from_str_radix(crc, 16).ok())
        .ok_or_else(|| damaged("header line is not ours".into()))?;
    let got = crc32fast::hash(body.as_bytes());
    // Another spelling of the same number is a change too.
    if got != expected || header != format!("{HEADER}{got:08x}") {
        return Err(damaged(format!("checksum {got:#010x}, expected {expected:#010x}")));
    }
    serde_json::from_str(body).map(Some).map_err(|error| damaged(error.to_string()))
}

/// As [`write_state`]; the directory is made if it is not there.
///
/// # Errors
/// As [`write_state`].
pub fn write_state_below<T: Serialize>(disk: &dyn Disk, path: &Path, state: &T) -> Result<(), StateError> {
    if let Some(directory) = path.parent() {
        let fail = |source| StateError::Disk { act: "create directory of state files", source };
        disk.create_dir_all(directory).map_err(fail)?;
    }
    write_state(disk, path, state)
}

/// Writes a state file so that a power cut leaves the old or the new one.
///
/// # Errors
/// The disk fails.
pub fn write_state<T: Serialize>(disk: &dyn Disk, path: &Path, state: &T) -> Result<(), StateError> {
    let body = serde_json::to_string_pretty(state)
        .map_err(|error| StateError::Damaged { path: path.into(), what: error.to_string() })?;
    let text = format!("{HEADER}{:08x}\n{body}", crc32fast::hash(body.as_bytes()));
    disk.write_atomically(path, text.as_bytes())
        .map_err(|source| StateError::Disk { act: "write state file", source })
}
