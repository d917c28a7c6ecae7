//! One node, read in place. Iterators over it are made where they are used, so what they call is marked `#[inline]`.

use crate::shape::POINTER_NIBBLES;

/// A node of a trie in a page. Every read is checked against the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    /// From the node's first byte to the end of the page.
    bytes: &'a [u8],
    position: u64,
    kind: u8,
    /// Places for children: all there are, or for dense kinds the range.
    slot_count: usize,
}

/// A node that does not fit its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Where a byte stands among a node's children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// At that slot.
    Found(usize),
    /// Nowhere: before that slot.
    Before(usize),
}

impl Search {
    /// The first slot behind the byte.
    #[inline]
    pub(crate) fn next_slot(self) -> usize {
        match self {
            Search::Found(slot) => slot + 1,
            Search::Before(slot) => slot,
        }
    }

    /// How many slots are before the byte.
    #[inline]
    pub(crate) fn slots_before(self) -> usize {
        match self {
            Search::Found(slot) | Search::Before(slot) => slot,
        }
    }
}

impl<'a> Node<'a> {
    /// The node at the start of those bytes, which is at `position` in the file.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], position: u64) -> Result<Self, Malformed> {
        let kind = bytes.first().ok_or(Malformed)? >> 4;
        let slot_count = match kind {
            0 => 0,
            1..=4 => 1,
            5..=9 => usize::from(*bytes.get(1).ok_or(Malformed)?),
            _ => usize::from(*bytes.get(2).ok_or(Malformed)?) + 1,
        };
        let node = Node { bytes, position, kind, slot_count };
        if node.body_bytes() > bytes.len() || (kind >= 10 && usize::from(bytes[1]) + slot_count > 256) {
            return Err(Malformed);
        }
        Ok(node)
    }

    /// Where it is in the file.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Flags of the payload; 0 for none.
    #[inline]
    pub(crate) fn payload_flags(&self) -> u8 {
        if matches!(self.kind, 1 | 3) { 0 } else { self.bytes[0] & 0xf }
    }

    /// What follows the node: its payload first.
    #[inline]
    pub(crate) fn behind(&self) -> &'a [u8] {
        &self.bytes[self.body_bytes()..]
    }

    /// Places for children, some of which may be empty.
    #[inline]
    pub(crate) fn slot_count(&self) -> usize {
        self.slot_count
    }

    #[inline]
    fn nibbles(&self) -> usize {
        usize::from(POINTER_NIBBLES[usize::from(self.kind)])
    }

    #[inline]
    fn body_bytes(&self) -> usize {
        match self.kind {
            0 => 1,
            1 => 2,
            3 => 3,
            2 | 4 => 2 + self.nibbles() / 2,
            5..=9 => 2 + self.slot_count + (self.slot_count * self.nibbles()).div_ceil(2),
            _ => 3 + (self.slot_count * self.nibbles()).div_ceil(2),
        }
    }

    /// Where a byte stands among the children.
    #[inline]
    pub(crate) fn search(&self, byte: u8) -> Search {
        match self.kind {
            0 => Search::Before(0),
            1..=4 => {
                let own = self.bytes[if self.kind == 3 { 2 } else { 1 }];
                match own.cmp(&byte) {
                    std::cmp::Ordering::Equal => Search::Found(0),
                    std::cmp::Ordering::Less => Search::Before(1),
                    std::cmp::Ordering::Greater => Search::Before(0),
                }
            }
            5..=9 => match self.bytes[2..2 + self.slot_count].binary_search(&byte) {
                Ok(slot) => Search::Found(slot),
                Err(slot) => Search::Before(slot),
            },
            _ => match byte.checked_sub(self.bytes[1]).map(usize::from) {
                None => Search::Before(0),
                Some(slot) if slot >= self.slot_count => Search::Before(self.slot_count),
                Some(slot) if self.distance(slot) == 0 => Search::Before(slot),
                Some(slot) => Search::Found(slot),
            },
        }
    }

    /// The child in a slot; `None` in an empty one. Children are always before their parent.
    #[inline]
    pub(crate) fn child(&self, slot: usize) -> Result<Option<u64>, Malformed> {
        if slot >= self.slot_count {
            return Ok(None);
        }
        match self.distance(slot) {
            0 if self.kind >= 10 => Ok(None),
            0 => Err(Malformed),
            distance => self.position.checked_sub(distance).map(Some).ok_or(Malformed),
        }
    }

    /// The first child at or behind a slot, and its slot.
    #[inline]
    pub(crate) fn child_from(&self, slot: usize) -> Result<Option<(usize, u64)>, Malformed> {
        for slot in slot..self.slot_count {
            if let Some(child) = self.child(slot)? {
                return Ok(Some((slot, child)));
            }
        }
        Ok(None)
    }

    /// The last child before a slot, and its slot.
    #[inline]
    pub(crate) fn child_before(&self, slot: usize) -> Result<Option<(usize, u64)>, Malformed> {
        for slot in (0..slot.min(self.slot_count)).rev() {
            if let Some(child) = self.child(slot)? {
                return Ok(Some((slot, child)));
            }
        }
        Ok(None)
    }

    #[inline]
    fn distance(&self, slot: usize) -> u64 {
        let start = match self.kind {
            1 => return u64::from(self.bytes[0] & 0xf),
            3 => return u64::from(self.bytes[0] & 0xf) << 8 | u64::from(self.bytes[1]),
            2 | 4 => 2,
            5..=9 => 2 + self.slot_count,
            _ => 3,
        };
        let nibbles = self.nibbles();
        if nibbles == 3 {
            let at = start + slot * 3 / 2;
            let word = u64::from(self.bytes[at]) << 8 | u64::from(self.bytes[at + 1]);
            return if slot.is_multiple_of(2) { word >> 4 } else { word & 0xfff };
        }
        let bytes = nibbles / 2;
        let at = start + slot * bytes;
        self.bytes[at..at + bytes].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}
