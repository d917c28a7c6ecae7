//! The data directory of a node of a ring that is stopped: what it knows of the ring, without starting it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use cluster::membership::{RecoveryError, StoppedMember};
use runtime::{DirectoryLock, Runtime};
use storage::{Layout, lock_directory};

use crate::{AssemblyError, base_schema};

/// A member that is stopped. No node starts on its directory as long as this lives.
pub struct StoppedNode {
    /// What it has of its ring.
    pub member: StoppedMember,
    _lock: DirectoryLock,
}

impl StoppedNode {
    /// Reads what the node in a directory has of its ring. Blocks.
    ///
    /// # Errors
    /// A node runs there, there is none, or it is alone.
    pub fn open(runtime: &Runtime, data_dir: &Path) -> Result<StoppedNode, AssemblyError> {
        let layout = Layout::new(data_dir);
        let empty = || AssemblyError::Ring(format!("there is no node in {}", data_dir.display()));
        let exists = runtime.disk.exists(data_dir).unwrap_or(false);
        if !exists {
            return Err(empty());
        }
        let lock = lock_directory(runtime, data_dir)?;
        let facts = layout.read_facts(&*runtime.disk)?.ok_or_else(empty)?;
        let base = Arc::new(base_schema()?);
        let member = StoppedMember::read(&runtime.disk, &layout.agreement(), facts.host_id, base);
        let member = member.map_err(|error| AssemblyError::Ring(error.to_string()))?;
        Ok(StoppedNode { member, _lock: lock })
    }

    /// As [`StoppedMember::recover`]; the directory is locked meanwhile.
    ///
    /// # Errors
    /// As there.
    pub fn recover(self, survivors: &[SocketAddr], runtime: &Runtime) -> Result<(), RecoveryError> {
        self.member.recover(survivors, &*runtime.random)
    }
}
