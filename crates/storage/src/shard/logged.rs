//! What a shard has logged is held, and read again, for nodes that have missed it.

use std::rc::Rc;

use commitlog::{LogPosition, Reread, segment_path};
use rows::Mutation;
use runtime::Plant;
use schema::TableId;

use super::Shard;
use crate::StorageError;
use crate::record::{Content, LogRecord};

/// The log of a shard as other nodes need it, from the shard's own thread.
pub struct HeldLog<'s>(pub &'s Rc<Shard>);

impl HeldLog<'_> {
    /// What is written from now on is logged there or behind.
    pub fn end(&self) -> LogPosition {
        self.0.shared.log.end()
    }

    /// What is logged before that is not there any more.
    pub fn begins(&self) -> LogPosition {
        self.0.shared.log.begins()
    }

    /// All that was logged before is on the disk, or lost.
    pub fn synced_to(&self) -> LogPosition {
        self.0.shared.log.synced_to()
    }

    /// Holds what was logged from there on until another place is given, though tables need it no more. A node that
    /// stops, or has no room on its disk, holds nothing.
    pub fn hold_from(&self, position: LogPosition) {
        if !self.0.shared.is_stopping() {
            self.0.shared.log.hold_from(position);
        }
    }

    /// Keeps what was logged from there on for the next run, until another place is given.
    pub fn keep_from(&self, position: LogPosition) {
        self.0.shared.log.keep_from(position);
    }

    /// Bytes on the disk that nobody else needs.
    pub fn held_bytes(&self) -> u64 {
        self.0.shared.log.statistics().held_bytes
    }

    /// Lets go of what is not held any more.
    ///
    /// # Errors
    /// The disk fails; the next flush tries again.
    pub async fn discard(&self) -> Result<(), StorageError> {
        self.0.shared.log.discard_unheld().await?;
        Ok(())
    }

    /// Begins to read all that was logged from there on until now; `None` when some of it is gone.
    ///
    /// # Errors
    /// It can not be brought to the disk.
    pub async fn read(&self, from: LogPosition) -> Result<Option<LoggedMutations>, StorageError> {
        let reread = self.0.shared.log.reread(from).await?;
        Ok(reread.map(|reread| LoggedMutations { shard: Rc::clone(self.0), reread }))
    }
}

/// Mutations that are read again, record by record.
pub struct LoggedMutations {
    shard: Rc<Shard>,
    reread: Reread,
}

/// A record that was read again.
pub struct Logged {
    /// Where it stands.
    pub position: LogPosition,
    /// What it changed, but for tables that were emptied since.
    pub mutations: Vec<Mutation>,
}

impl LoggedMutations {
    /// The next record; `None` behind the last one.
    ///
    /// # Errors
    /// The disk fails, or the log is damaged: what follows is not known.
    pub async fn next(&mut self) -> Result<Option<Logged>, StorageError> {
        let Some(replayed) = self.reread.next().await? else { return Ok(None) };
        let position = replayed.position;
        let record = LogRecord::decode(replayed.payload, replayed.version).map_err(|source| {
            let path = segment_path(&self.shard.layout.commitlog(), replayed.stream, position.segment);
            StorageError::LoggedRecord { path, offset: position.offset, source }
        })?;
        let mut mutations = match record.content {
            Content::Mutations(mutations) => mutations,
            Content::PassedOver => Vec::new(),
        };
        mutations.retain(|mutation| self.is_in_force(mutation.table, position));
        Ok(Some(Logged { position, mutations }))
    }

    /// Was the table not emptied, or dropped, since?
    fn is_in_force(&self, table: TableId, position: LogPosition) -> bool {
        let is_planted = self.shard.shared.runtime.plants.has(Plant::EmptiedSent);
        let store = self.shard.table(table);
        store.is_ok_and(|store| is_planted || store.memtables().emptied_to() <= position)
    }
}
