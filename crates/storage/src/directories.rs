//! Several directories of table files (`data_file_directories`): who owns them, and which may be used.
//!
//! ```text
//!   <directory>/LOCK            held while a node runs on it
//!   <directory>/directory.json  whose it is: the node's host id
//!   <directory>/<keyspace>/<table>-<table id>/…
//! ```
//!
//! A start deletes files that no manifest names, so it must not come upon those of another node: a directory
//! is taken when it is empty, and only used by the node that took it.

use std::path::Path;

use manifest::state_file::{read_state, write_state};
use runtime::{DirectoryLock, Runtime};
use serde::{Deserialize, Serialize};
use table::TableError;
use uuid::Uuid;

use crate::node::take_directory;

const OWNER: &str = "directory.json";
/// What an empty directory may hold.
const HARMLESS: [&str; 4] = ["LOCK", "lost+found", "directory.json", "directory.json.tmp"];

#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    host_id: Uuid,
}

/// Locks a directory of table files and makes it the node's, if it is nobody's.
///
/// # Errors
/// Another process or another node has it, or the disk fails.
pub(crate) fn take(runtime: &Runtime, path: &Path, host_id: Uuid) -> Result<DirectoryLock, TableError> {
    let disk = &*runtime.disk;
    disk.create_dir_all(path).map_err(|source| TableError::Disk { act: "create data directory", source })?;
    let lock = take_directory(runtime, path)?;
    let marker = path.join(OWNER);
    let refuse = |what: String| Err(TableError::Directory { path: path.into(), what });
    match read_state::<Owner>(disk, &marker)? {
        Some(owner) if owner.host_id == host_id => {}
        Some(owner) => return refuse(format!("it belongs to the node {}", owner.host_id)),
        None => {
            let entries =
                disk.list(path).map_err(|source| TableError::Disk { act: "list data directory", source })?;
            if let Some(entry) = entries.iter().find(|entry| !HARMLESS.contains(&entry.name.as_str())) {
                return refuse(format!(
                    "it belongs to no node and is not empty: there is {}; data comes in with nodetool import",
                    entry.name
                ));
            }
            write_state(disk, &marker, &Owner { host_id })?;
        }
    }
    Ok(lock)
}
