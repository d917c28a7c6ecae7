//! Payloads of a trie one after the other, from a key on, in either direction.

use crate::node::Search;
use crate::walk::node_at;
use crate::{Malformed, Pages, Payloads};

/// A path no file of ours or Cassandra's comes near: keys have at most 65,535 bytes.
const DEPTH_MAX: usize = 1 << 18;

/// Where an iterator stands between calls. A call that is interrupted changes nothing.
#[derive(Clone, Debug)]
pub struct PayloadIterator {
    /// From the root down to the node reached.
    stack: Vec<Frame>,
    reversed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    position: u64,
    /// Forward: the first slot not visited. Reversed: the slot behind the last one not visited.
    slot: usize,
    /// Is the node's own payload still to come? It sorts before those of its children.
    own: bool,
}

impl PayloadIterator {
    /// Forward from the first payload whose key has `key` for a continuation or is not below it.
    ///
    /// # Errors
    /// A page is not there, or damaged.
    pub fn forward<S: Pages>(pages: &mut S, root: u64, key: &[u8]) -> Result<Self, S::Interrupt> {
        Self::start(pages, root, key, false)
    }

    /// Backward from the last payload whose key is not above `key`, or is its prefix: the floor.
    ///
    /// # Errors
    /// A page is not there, or damaged.
    pub fn reversed<S: Pages>(pages: &mut S, root: u64, key: &[u8]) -> Result<Self, S::Interrupt> {
        Self::start(pages, root, key, true)
    }

    fn start<S: Pages>(pages: &mut S, root: u64, key: &[u8], reversed: bool) -> Result<Self, S::Interrupt> {
        let mut stack = Vec::new();
        let mut position = root;
        let mut rest = key.iter();
        loop {
            let node = node_at(pages, position)?;
            let search = rest.next().map_or(Search::Before(0), |byte| node.search(*byte));
            let slot = if reversed { search.slots_before() } else { search.next_slot() };
            let child = match search {
                Search::Found(slot) => node.child(slot),
                Search::Before(_) => Ok(None),
            };
            let next = child.map_err(|Malformed| pages.damaged(position, "a trie node points nowhere"))?;
            // Going forward, a node passed on the way is a prefix of the key and so below it.
            stack.push(Frame { position, slot, own: reversed || next.is_none() });
            match next {
                Some(child) => position = child,
                None => return Ok(PayloadIterator { stack, reversed }),
            }
        }
    }

    /// The next payload.
    ///
    /// # Errors
    /// A page is not there, or damaged.
    pub fn next<S: Pages>(&mut self, pages: &mut S) -> Result<Option<Payloads>, S::Interrupt> {
        loop {
            let Some(frame) = self.stack.last().copied() else { return Ok(None) };
            let node = node_at(pages, frame.position)?;
            if frame.own && !self.reversed {
                let payload = Payloads::of(&node);
                self.top(|frame| frame.own = false);
                if payload.flags != 0 {
                    return Ok(Some(payload));
                }
                continue;
            }
            let found =
                if self.reversed { node.child_before(frame.slot) } else { node.child_from(frame.slot) };
            let payload = Payloads::of(&node);
            match found {
                Err(Malformed) => return Err(pages.damaged(frame.position, "a trie node points nowhere")),
                Ok(Some((slot, child))) => {
                    if self.stack.len() >= DEPTH_MAX {
                        return Err(pages.damaged(frame.position, "a trie is too deep"));
                    }
                    let (visited, first) = if self.reversed { (slot, usize::MAX) } else { (slot + 1, 0) };
                    self.top(|frame| frame.slot = visited);
                    self.stack.push(Frame { position: child, slot: first, own: true });
                }
                Ok(None) => {
                    let is_whole = frame.slot == if self.reversed { usize::MAX } else { 0 };
                    if is_whole && payload.flags == 0 {
                        // Without such nodes every step down ends in a payload, however hostile the file.
                        return Err(pages.damaged(frame.position, "a trie node leads to nothing"));
                    }
                    self.stack.pop();
                    if self.reversed && frame.own && payload.flags != 0 {
                        return Ok(Some(payload));
                    }
                }
            }
        }
    }

    fn top(&mut self, change: impl FnOnce(&mut Frame)) {
        if let Some(frame) = self.stack.last_mut() {
            change(frame);
        }
    }
}
