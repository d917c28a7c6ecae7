//! Tries on disk: what Partitions.db and Rows.db of Cassandra's BTI table files are made of.
//!
//! Pure: pages are handed in ([`Pages`], or [`follow_in_page`] for one at a time), and whoever writes a trie
//! gives the file it is appended to ([`PageFile`]).
//!
//! A trie maps byte strings to small payloads. Nodes are written children first, so that every
//! pointer goes back, as a distance; no node crosses a page of 4 KiB, and as much of a branch as
//! fits is laid into one page, so that a lookup touches few of them.
//!
//! A node's first byte is its kind (high four bits) and, where it can have one, the flags of its
//! payload (low four bits, 0 for none). The payload follows the node:
//!
//! ```text
//!   0       payload only
//!   1, 3    one child, no payload: distance in 4 or 12 bits of the first bytes; its byte
//!   2, 4    one child: its byte; distance of 1 or 2 bytes
//!   5..9    sparse: count; their bytes; distances of 1, 1½, 2, 3 or 5 bytes
//!   10..15  dense: first byte, count - 1; distances of 1½, 2, 3, 4, 5 or 8 bytes, 0 for no child
//! ```

mod iterator;
mod node;
mod shape;
mod walk;
mod writer;

pub use iterator::PayloadIterator;
pub use node::Malformed;
use node::Node;
pub use walk::{Followed, follow_in_page};
pub use writer::{PageFile, Payload, TrieWriter};

/// Bytes of a page: no node crosses from one to the next.
pub const PAGE_BYTES: usize = 4096;

/// What a walk needs: the bytes from a position to the end of its page.
pub trait Pages {
    /// Why a page is not there: to be fetched, or damaged.
    type Interrupt;

    /// The rest of the page from that position on.
    ///
    /// # Errors
    /// It is not there.
    fn page(&mut self, position: u64) -> Result<&[u8], Self::Interrupt>;

    /// The trie is not one.
    fn damaged(&self, position: u64, what: &'static str) -> Self::Interrupt;
}

/// The longest payload: a row index entry with an open deletion.
const PAYLOAD_BYTES_MAX: usize = 24;

/// A payload taken out of its page, as far as it can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payloads {
    /// Flags of the node; 0 when it has no payload.
    pub flags: u8,
    bytes: [u8; PAYLOAD_BYTES_MAX],
    length: usize,
    /// Where the node is.
    pub position: u64,
}

impl Payloads {
    #[inline]
    fn of(node: &Node<'_>) -> Self {
        let behind = node.behind();
        let length = behind.len().min(PAYLOAD_BYTES_MAX);
        let mut bytes = [0; PAYLOAD_BYTES_MAX];
        bytes[..length].copy_from_slice(&behind[..length]);
        Payloads { flags: node.payload_flags(), bytes, length, position: node.position() }
    }

    /// The payload, and what may follow it.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Bytes that hold a signed integer, at least one.
#[inline]
pub fn signed_bytes(value: i64) -> usize {
    let magnitude = if value < 0 { !value } else { value } as u64;
    (72 - magnitude.leading_zeros() as usize) / 8
}

/// Appends the low bytes of a value.
#[inline]
pub fn push_low_bytes(value: u64, bytes: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
}

/// Reads a signed integer of up to eight bytes.
#[inline]
pub fn read_signed(bytes: &[u8]) -> i64 {
    let start = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(start, |value, byte| value << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests;
