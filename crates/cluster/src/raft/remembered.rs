//! Commands that were applied a while ago, and what was answered: one that comes twice is applied once.

use std::collections::{BTreeMap, VecDeque};

use bytes::{BufMut, Bytes};
use uuid::Uuid;

use super::bytes_of::{BadBytes, Reader, put_bytes, put_count};

/// So many are remembered: far more than are proposed while anybody still tries to propose one of them again.
const REMEMBERED_COUNT_MAX: usize = 4096;

/// The latest commands by id. The same on all nodes at each index, since it is a part of what the log makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Remembered {
    answers: BTreeMap<Uuid, Bytes>,
    /// The oldest first. Invariant: the same ids as in `answers`.
    order: VecDeque<Uuid>,
}

impl Remembered {
    pub(super) fn answer(&self, id: Uuid) -> Option<&Bytes> {
        self.answers.get(&id)
    }

    pub(super) fn add(&mut self, id: Uuid, answer: Bytes) {
        if self.answers.insert(id, answer).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > REMEMBERED_COUNT_MAX {
            let oldest = self.order.pop_front().expect("there are some");
            self.answers.remove(&oldest);
        }
    }

    pub(super) fn put(&self, out: &mut impl BufMut) {
        put_count(out, self.order.len());
        for id in &self.order {
            out.put_slice(id.as_bytes());
            put_bytes(out, &self.answers[id]);
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Remembered, BadBytes> {
        let mut remembered = Remembered::default();
        for (id, answer) in reader.list(|reader| Ok((reader.uuid()?, reader.bytes()?)))? {
            remembered.add(id, answer);
        }
        Ok(remembered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_and_the_rest_survives_as_bytes() {
        let mut remembered = Remembered::default();
        let id = |number: usize| Uuid::from_u128(number as u128);
        for number in 0..=REMEMBERED_COUNT_MAX {
            remembered.add(id(number), Bytes::from(number.to_string()));
        }
        assert_eq!(remembered.answer(id(0)), None);
        assert_eq!(remembered.answer(id(1)), Some(&Bytes::from("1")));
        let mut bytes = Vec::new();
        remembered.put(&mut bytes);
        assert_eq!(Remembered::read(&mut Reader(&bytes)), Ok(remembered));
    }
}
