//! What the nodes agree on: for each client the greatest number that it sent.

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use cluster::raft::Machine;
use uuid::Uuid;

use super::World;

/// A command: a client, and its number.
pub(super) fn command(client: u64, number: u64) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u64(client);
    out.put_u64(number);
    out.freeze()
}

/// On one node, in one life.
pub(super) struct Register {
    world: Rc<World>,
    node: usize,
    /// The index of the last command.
    index: u64,
    /// A hash of all commands so far, with their indexes.
    history: u64,
    numbers: BTreeMap<u64, u64>,
}

impl Register {
    pub(super) fn new(world: Rc<World>, node: usize) -> Register {
        Register { world, node, index: 0, history: 0, numbers: BTreeMap::new() }
    }

    pub(super) fn number(&self, client: u64) -> u64 {
        self.numbers.get(&client).copied().unwrap_or(0)
    }
}

impl Machine for Register {
    fn listens_to(&self, _node: Uuid) -> bool {
        true
    }

    fn may_be_proposed(&self, _command: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn apply(&mut self, index: u64, command: &[u8]) -> Result<Bytes, String> {
        let numbers: Vec<u64> =
            command.chunks(8).filter_map(|chunk| chunk.try_into().ok()).map(u64::from_be_bytes).collect();
        let [client, number] = numbers[..] else { unreachable!("the log gives back what it was given") };
        let bytes = index.to_be_bytes().into_iter().chain(command.iter().copied());
        // FNV-1a, as of events.
        self.history = bytes.fold(self.history ^ 0xCBF2_9CE4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        self.index = index;
        let largest = self.numbers.entry(client).or_default();
        *largest = number.max(*largest);
        let Register { world, node, history, .. } = self;
        world.note(format_args!("{node} applies {client}/{number} at {index}, {history:016x}"));
        world.checker.borrow_mut().applied(*node, index, self.history, (client, number));
        Ok(Bytes::copy_from_slice(&index.to_be_bytes()))
    }

    fn snapshot(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_u64(self.index);
        out.put_u64(self.history);
        for (client, number) in &self.numbers {
            out.put_u64(*client);
            out.put_u64(*number);
        }
        out.freeze()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        let numbers: Vec<u64> =
            snapshot.chunks(8).filter_map(|chunk| chunk.try_into().ok()).map(u64::from_be_bytes).collect();
        let [index, history, rest @ ..] = &numbers[..] else { return Err("too short".to_owned()) };
        (self.index, self.history) = (*index, *history);
        self.numbers = rest.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let Register { world, node, .. } = self;
        world.note(format_args!("{node} has a snapshot up to {index}, {history:016x}"));
        world.checker.borrow_mut().restored(*node, *index, *history);
        Ok(())
    }
}
