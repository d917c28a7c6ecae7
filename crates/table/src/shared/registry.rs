//! Which shards use which table file.
//!
//! After a change of the number of shards a file may hold keys of several: each lists it in its
//! own manifest and reads its own tokens from it. It is deleted when the last of them gives it up.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use schema::TableId;
use uuid::Uuid;

/// Counts the shards that list a file. Asked when files come and go, never by a read or a write.
#[derive(Debug, Default)]
pub struct FileRegistry {
    users: Mutex<HashMap<Uuid, usize>>,
    /// Is each flushed file kept in `backups` too?
    incremental_backups: AtomicBool,
    /// The last snapshot that tables made by themselves, for shards to agree on its name: and which
    /// shards know it.
    own_snapshots: Mutex<HashMap<(TableId, &'static str), OwnSnapshot>>,
}

/// Its name, and the shards that know it.
type OwnSnapshot = (String, BTreeSet<usize>);

impl FileRegistry {
    /// One more shard lists the file.
    pub fn retain(&self, file: Uuid) {
        *self.users.lock().unwrap_or_else(PoisonError::into_inner).entry(file).or_default() += 1;
    }

    /// Is each flushed file kept in `backups` too?
    pub(crate) fn incremental_backups(&self) -> bool {
        self.incremental_backups.load(Ordering::Relaxed)
    }

    /// Begins or ends keeping flushed files.
    pub fn set_incremental_backups(&self, enabled: bool) {
        self.incremental_backups.store(enabled, Ordering::Relaxed);
    }

    /// The name of a snapshot that a table makes by itself: `proposed` for the first shard that asks, the
    /// same for the others. A shard that asks again asks for the next one.
    pub(crate) fn snapshot_tag(
        &self,
        table: TableId,
        occasion: &'static str,
        shard: usize,
        proposed: String,
    ) -> String {
        let mut tags = self.own_snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let (tag, known) = tags.entry((table, occasion)).or_default();
        if tag.is_empty() || !known.insert(shard) {
            (*tag, *known) = (proposed, BTreeSet::from([shard]));
        }
        tag.clone()
    }

    /// Do several shards list it?
    pub(crate) fn is_shared(&self, file: Uuid) -> bool {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.get(&file).is_some_and(|count| *count > 1)
    }

    /// One shard less lists it; was it the last?
    pub(crate) fn release(&self, file: Uuid) -> bool {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        match users.get_mut(&file) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            _ => {
                users.remove(&file);
                true
            }
        }
    }
}
