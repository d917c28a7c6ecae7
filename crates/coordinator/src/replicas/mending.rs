//! A replica is brought what it lacks of some rows, as other replicas have it.

use futures_util::future::join_all;
use ring::NodeIndex;
use rows::Mutation;
use storage::Unit;
use tokio::time::{Instant, timeout_at};

use super::write::{is_outdated, said_of};
use super::{Missed, Replicas};

/// What goes to a replica as one record of its log: less than the least segment has room for. One mutation may be more.
const REPAIR_BYTES: usize = 16 << 10;

impl Replicas {
    /// Brings a replica what it lacks, in parts that its log has room for.
    pub(super) async fn repair(
        &self,
        node: NodeIndex,
        mutations: &[Mutation],
        deadline: Instant,
    ) -> Result<(), Missed> {
        let parts = parts_of(mutations).into_iter().map(|part| self.repair_part(node, part, deadline));
        join_all(parts).await.into_iter().collect()
    }

    async fn repair_part(
        &self,
        node: NodeIndex,
        mutations: &[Mutation],
        deadline: Instant,
    ) -> Result<(), Missed> {
        let write = self.begin_write(node, Unit::All, mutations, deadline);
        let written = timeout_at(deadline, write).await;
        let said = said_of(&written.unwrap_or(Err(Missed::Silent { was_sent: true })), 0);
        // There is nothing to be brought to a table that was emptied since.
        if is_outdated(&said) { Ok(()) } else { said }
    }
}

/// Mutations in their order, in parts of so many bytes.
fn parts_of(mutations: &[Mutation]) -> Vec<&[Mutation]> {
    let (mut parts, mut first, mut byte_count) = (Vec::new(), 0, 0);
    for (index, mutation) in mutations.iter().enumerate() {
        let bytes = mutation.as_encoded().len();
        if index > first && byte_count + bytes > REPAIR_BYTES {
            parts.push(&mutations[first..index]);
            (first, byte_count) = (index, 0);
        }
        byte_count += bytes;
    }
    parts.push(&mutations[first..]);
    parts
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rows::{DeletionTime, MutationBuilder, PartitionKey};
    use schema::TableId;
    use uuid::Uuid;

    use super::*;

    fn of_bytes(key_bytes: usize) -> Mutation {
        let key = PartitionKey::new(Bytes::from(vec![7; key_bytes]));
        let mut mutation = MutationBuilder::new(TableId(Uuid::from_u128(1)), key);
        mutation.partition_deletion(DeletionTime { timestamp: 1, local_deletion_time: 1 });
        mutation.finish()
    }

    #[test]
    fn a_repair_goes_in_parts_that_a_log_has_room_for() {
        let check = |sizes: &[usize], expected: &[usize]| {
            let mutations: Vec<Mutation> = sizes.iter().map(|bytes| of_bytes(*bytes)).collect();
            let parts = parts_of(&mutations);
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), expected, "{sizes:?}");
            assert_eq!(parts.concat(), mutations);
        };
        check(&[10], &[1]);
        check(&[6_000, 6_000, 6_000, 6_000, 10], &[2, 3]);
        check(&[40_000, 10, 40_000], &[1, 1, 1]);
    }
}
