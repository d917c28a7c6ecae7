//! One entry of the history, and what all of them together have made.

use std::sync::Arc;

use schema::{Schema, Transformation};
use serde::{Deserialize, Serialize};

use super::{Members, MetadataError};

/// One step of the history. Changes of the schema and of the members are counted apart: who joins changes no plan of a
/// statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    /// The schema changes.
    Schema {
        /// That of the schema after it.
        epoch: u64,
        /// How.
        change: Transformation,
    },
    /// There are other members from now on.
    Members {
        /// All of them.
        members: Box<Members>,
    },
}

/// What nodes agree on, at one moment.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Keyspaces and tables.
    pub schema: Arc<Schema>,
    /// Who forms the ring; `None` as long as the node is alone.
    pub members: Option<Arc<Members>>,
}

impl Metadata {
    /// Before anything has happened.
    pub fn new(base: Arc<Schema>) -> Metadata {
        Metadata { schema: base, members: None }
    }

    /// Is that a step of the history which was taken already?
    pub fn has(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Schema { epoch, .. } => *epoch <= self.schema.epoch(),
            Entry::Members { members } => members.epoch() <= self.ring_epoch(),
        }
    }

    /// How often the ring has changed.
    pub fn ring_epoch(&self) -> u64 {
        self.members.as_ref().map_or(0, |members| members.epoch())
    }

    /// What it is after one more step.
    ///
    /// # Errors
    /// It is not the next one, or does not fit.
    pub fn after(&self, entry: &Entry) -> Result<Metadata, MetadataError> {
        let mut after = self.clone();
        let (found, expected) = match entry {
            Entry::Schema { epoch, change } => {
                after.schema = Arc::new(change.apply(&self.schema)?);
                (*epoch, after.schema.epoch())
            }
            Entry::Members { members } => {
                after.members = Some(Arc::new(members.remembering(self.members.as_deref())));
                (members.epoch(), self.ring_epoch() + 1)
            }
        };
        match found == expected {
            true => Ok(after),
            false => Err(MetadataError::OutOfOrder { found, expected }),
        }
    }
}
