//! Memory that the small mutations of one batch share.

use bytes::{Bytes, BytesMut};
use schema::TableId;
use types::Token;

use super::{Mutation, write_row};
use crate::row::SMALL_ROW_BYTES_MAX;
use crate::{RowBuilder, room_for};

/// Makes mutations of one row that are written together and forgotten together. Those of small rows lie one
/// behind the other in memory that they share; who takes their rows in copies them ([`crate::Row::is_small`]).
/// The others have memory of their own, which their row may stay in.
#[derive(Debug, Default)]
pub struct MutationMemory {
    shared: BytesMut,
    /// Where a mutation is put together.
    scratch: Vec<u8>,
    likely_bytes: usize,
}

impl MutationMemory {
    /// None yet; as much as `likely_bytes` is taken when some is needed.
    pub fn new(likely_bytes: usize) -> Self {
        MutationMemory { shared: BytesMut::new(), scratch: Vec::new(), likely_bytes }
    }

    /// As [`Mutation::of_row`].
    pub fn mutation_of_row(
        &mut self,
        table: TableId,
        (token, key): (Token, &[u8]),
        row_bytes: usize,
        write: impl FnOnce(Vec<u8>) -> RowBuilder,
    ) -> Mutation {
        if row_bytes > SMALL_ROW_BYTES_MAX {
            return Mutation::of_row(table, (token, key), row_bytes, write);
        }
        debug_assert_eq!(token, Token::of(key), "the token of its key");
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let (written, place) = write_row(scratch, table, key, write);
        let encoded = match place.row.len() <= SMALL_ROW_BYTES_MAX {
            true => self.share(&written),
            false => Bytes::copy_from_slice(&written),
        };
        self.scratch = written;
        Mutation::at(table, token, encoded, place)
    }

    /// A copy in shared memory.
    fn share(&mut self, bytes: &[u8]) -> Bytes {
        let room = room_for(&mut self.shared, bytes.len(), self.likely_bytes);
        room.extend_from_slice(bytes);
        room.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use schema::ColumnId;

    use super::*;
    use crate::{CellRef, DeletionTime, Liveness, MutationBuilder, PartitionKey};

    fn builder(out: Vec<u8>, value: &[u8]) -> RowBuilder {
        let mut row = RowBuilder::appending(out, b"", Liveness::at(1), DeletionTime::LIVE);
        row.cell(ColumnId(1), CellRef::live(1, value));
        row
    }

    #[test]
    fn mutations_in_shared_memory_are_those_of_a_builder_whatever_is_guessed_of_their_length() {
        let table = TableId(uuid::Uuid::from_u128(7));
        let mut memory = MutationMemory::new(500);
        let mut made = Vec::new();
        for (number, length) in [0, 1, 100, 220, 230, 256, 300, 5000, 10].into_iter().enumerate() {
            let (key, value) = (vec![number as u8; number + 1], vec![3; length]);
            for guessed in [0, length, 300] {
                let place = (Token::of(&key), &key[..]);
                made.push(memory.mutation_of_row(table, place, guessed, |out| builder(out, &value)));
                let mut expected = MutationBuilder::new(table, PartitionKey::new(key.clone().into()));
                expected.row(builder(Vec::new(), &value).finish());
                assert_eq!(made.last(), Some(&expected.finish()));
                assert_eq!(
                    made.last(),
                    Some(&Mutation::of_row(table, place, guessed, |out| builder(out, &value)))
                );
            }
        }
        for mutation in &made {
            assert_eq!(Mutation::from_encoded(mutation.as_encoded().clone()).as_ref(), Ok(mutation));
        }
    }

    #[test]
    fn a_row_that_may_stay_in_its_memory_shares_it_with_no_other_mutation() {
        let mut memory = MutationMemory::new(4096);
        let table = TableId(uuid::Uuid::from_u128(7));
        let mut make = |length: usize| {
            let write = |out| builder(out, &vec![3; length]);
            memory.mutation_of_row(table, (Token::of(b"k"), b"k"), length, write)
        };
        let mutations: Vec<Mutation> = [100, 400, 250, 100].into_iter().map(&mut make).collect();
        for (mutation, is_shared) in mutations.into_iter().zip([true, false, false, true]) {
            let Mutation { mut rows, key, encoded, .. } = mutation;
            let row = rows.remove(0);
            assert_eq!(row.is_small(), is_shared);
            drop((key, encoded, rows));
            assert_eq!(!row.as_encoded().is_unique(), is_shared);
        }
    }
}
