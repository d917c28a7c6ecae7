//! Snapshots of a table over all shards, and how they may be called.

use std::collections::BTreeSet;
use std::rc::Rc;

use schema::TableId;

use crate::{Shard, Shards, StorageError};

/// Bytes of a snapshot's name, at most: what file systems take as the name of a directory.
const NAME_BYTES_MAX: usize = 255;

impl Shards {
    /// Makes a snapshot of a table, after writing out its memtables unless `skip_flush`.
    ///
    /// # Errors
    /// The name is none ([`check_snapshot_name`]), the table has a snapshot of it, or the disk fails.
    ///
    /// # Cancel safety
    /// Dropped, a part of the snapshot may be there, without its manifest.
    pub async fn snapshot(&self, table: TableId, tag: &str, skip_flush: bool) -> Result<(), StorageError> {
        check_snapshot_name(tag)?;
        let name = tag.to_owned();
        let check = move |shard: Rc<Shard>| async move {
            let table = shard.table(table)?.table();
            Ok::<_, StorageError>(shard.snapshots().check_new(&table, name).await?)
        };
        self.on_when_free(0, check).await??;
        let mut files = BTreeSet::new();
        for shard in 0..self.count() {
            let name = tag.to_owned();
            let link = move |shard: Rc<Shard>| async move {
                Ok::<_, StorageError>(shard.table(table)?.snapshot(name, skip_flush).await?)
            };
            files.extend(self.on_when_free(shard, link).await??);
        }
        let (name, files) = (tag.to_owned(), files.into_iter().collect());
        let finish = move |shard: Rc<Shard>| async move {
            let table = shard.table(table)?.table();
            Ok(shard.snapshots().finish(&table, &name, files).await?)
        };
        self.on_when_free(0, finish).await?
    }
}

/// Checks that a snapshot may be called so: it is the name of a directory, and a word in lists for people and scripts.
/// Names have 1 to 255 bytes of letters, digits, punctuation and spaces, without `/` and `\`, and begin with no dot.
/// Cassandra 5.0 refuses `/` alone, and fails at the disk when a name is too long.
///
/// # Errors
/// [`StorageError::SnapshotName`] says what is wrong with it.
pub fn check_snapshot_name(tag: &str) -> Result<(), StorageError> {
    let breaks_lines = |letter: char| letter.is_control() || (letter.is_whitespace() && letter != ' ');
    let problem = if tag.is_empty() {
        "You must supply a snapshot name."
    } else if tag.len() > NAME_BYTES_MAX {
        "Snapshot name cannot be longer than 255 bytes"
    } else if tag.contains('/') {
        "Snapshot name cannot contain /"
    } else if tag.contains('\\') {
        "Snapshot name cannot contain \\"
    } else if tag.starts_with('.') {
        "Snapshot name cannot begin with a dot"
    } else if tag.contains(breaks_lines) {
        "Snapshot name cannot contain control characters or white space other than spaces"
    } else {
        return Ok(());
    };
    Err(StorageError::SnapshotName { problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word_that_a_directory_may_have() {
        let longest = "x".repeat(NAME_BYTES_MAX);
        for tag in ["s", "2026-11-23T14:31:19", "before the upgrade", "größe", "truncated-1-t", &longest] {
            assert!(check_snapshot_name(tag).is_ok(), "{tag:?}");
        }
        let too_long = format!("{longest}x");
        for (tag, word) in [
            ("", "must supply"),
            (".", "dot"),
            ("..", "dot"),
            (".hidden", "dot"),
            ("../../etc", "/"),
            ("a/b", "/"),
            ("a\\b", "\\"),
            ("a\nb", "control"),
            ("a\0", "control"),
            ("a\tb", "control"),
            ("a\u{2028}b", "white space"),
            (&too_long, "255"),
        ] {
            let refused = check_snapshot_name(tag).expect_err("no name").to_string();
            assert!(refused.contains(word), "{tag:?}: {refused}");
        }
    }
}
