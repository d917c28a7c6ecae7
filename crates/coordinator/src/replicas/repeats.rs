//! What a log has several times is sent once: several nodes may have brought this one the same write, and each copy is
//! a record. If all of them were sent on, they would grow with each node that is killed.

use std::collections::HashSet;

use rows::Mutation;
use twox_hash::XxHash3_128;

/// So many that were sent last are known at least: 1 MiB of hashes at most.
const KNOWN_COUNT: usize = 1 << 15;

/// Mutations that were sent to a node lately, in one go through the log.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    lately: HashSet<u128>,
    before: HashSet<u128>,
}

impl Repeats {
    /// One is about to be sent. Was it not yet, as far as is known?
    pub(super) fn is_new(&mut self, mutation: &Mutation) -> bool {
        let hash = XxHash3_128::oneshot(mutation.as_encoded());
        if self.lately.len() >= KNOWN_COUNT {
            self.before = std::mem::take(&mut self.lately);
        }
        !self.before.contains(&hash) && self.lately.insert(hash)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rows::{DeletionTime, MutationBuilder, PartitionKey};
    use schema::TableId;
    use uuid::Uuid;

    use super::*;

    fn deletion(key: usize, timestamp: i64) -> Mutation {
        let key = PartitionKey::new(Bytes::copy_from_slice(&key.to_be_bytes()));
        let mut mutation = MutationBuilder::new(TableId(Uuid::from_u128(1)), key);
        mutation.partition_deletion(DeletionTime { timestamp, local_deletion_time: 1 });
        mutation.finish()
    }

    #[test]
    fn what_was_sent_not_long_before_is_not_new() {
        let mut repeats = Repeats::default();
        assert_eq!(
            [1, 1, 2, 1].map(|timestamp| repeats.is_new(&deletion(0, timestamp))),
            [true, false, true, false]
        );
        assert!((1..=KNOWN_COUNT).all(|key| repeats.is_new(&deletion(key, 1))));
        assert!(!repeats.is_new(&deletion(0, 1)));
        assert!((1..=KNOWN_COUNT).all(|key| repeats.is_new(&deletion(key, 2))));
        assert!(repeats.is_new(&deletion(0, 1)), "that is long ago");
    }
}
