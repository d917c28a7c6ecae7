//! Which shards use which table file.
//!
//! After a change of the number of shards a file may hold keys of several: each lists it in its
//! own manifest and reads its own tokens from it. It is deleted when the last of them gives it up.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// Counts the shards that list a file. Asked when files come and go, never by a read or a write.
#[derive(Debug, Default)]
pub(crate) struct FileRegistry {
    users: Mutex<HashMap<Uuid, usize>>,
}

impl FileRegistry {
    /// One more shard lists the file.
    pub(crate) fn retain(&self, file: Uuid) {
        *self.users.lock().unwrap_or_else(PoisonError::into_inner).entry(file).or_default() += 1;
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
