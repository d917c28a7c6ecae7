//! The byte-comparable forms of clusterings, of bounds between them, and of partition keys.

use super::value::{Form, encode_value, escape};
use super::{
    NEXT_COMPONENT, NEXT_COMPONENT_EMPTY, NEXT_COMPONENT_EMPTY_REVERSED, NEXT_COMPONENT_NULL, TERMINATOR,
};
use crate::{CqlType, Token};

/// What a prefix of clustering values stands for: a row, or a place before or after the rows that
/// have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ClusteringBoundKind {
    /// The static row, before all others.
    Static = 0x18,
    /// Before every bound: the open lower end of a table file's covered slice.
    SstableLower = 0x1f,
    /// Before the rows with this prefix: an inclusive start, an exclusive end, the boundary
    /// between the two.
    Before = 0x20,
    /// A row.
    Clustering = TERMINATOR,
    /// After the rows with this prefix: an inclusive end, an exclusive start, the boundary
    /// between the two.
    After = 0x60,
    /// After every bound: the open upper end of a table file's covered slice.
    SstableUpper = 0x61,
}

/// Appends the form of a clustering, or of a bound on a prefix of one.
///
/// `types` are the clustering columns with "is it in descending order"; there may be fewer
/// `components` than types, which is how a bound is made.
pub fn clustering<'a>(
    types: &[(CqlType, bool)],
    components: impl IntoIterator<Item = Option<&'a [u8]>>,
    kind: ClusteringBoundKind,
    out: &mut Vec<u8>,
) {
    for ((of, reversed), component) in types.iter().zip(components) {
        clustering_component(of, *reversed, component, out);
    }
    out.push(kind as u8);
}

fn clustering_component(of: &CqlType, reversed: bool, value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(value) = value else {
        out.push(NEXT_COMPONENT_NULL);
        return;
    };
    let separator_at = out.len();
    out.push(NEXT_COMPONENT);
    match encode_value(of, value, out) {
        Form::Written if reversed => {
            out[separator_at + 1..].iter_mut().for_each(|byte| *byte ^= 0xff);
        }
        Form::Written => {}
        Form::Absent if reversed => out[separator_at] = NEXT_COMPONENT_EMPTY_REVERSED,
        Form::Absent => out[separator_at] = NEXT_COMPONENT_EMPTY,
    }
}

/// Appends the form of a token: eight bytes.
pub fn token(token: Token, out: &mut Vec<u8>) {
    out.extend_from_slice(&(token.0 as u64 ^ 1 << 63).to_be_bytes());
}

/// Appends the form of a partition key behind its token: the order of the ring, and of a table
/// file's partitions.
pub fn decorated_key(at: Token, key: &[u8], out: &mut Vec<u8>) {
    ring_position(at, key, TERMINATOR, out);
}

/// Appends a place just before or after a partition key.
pub fn decorated_key_bound(at: Token, key: &[u8], side: ClusteringBoundKind, out: &mut Vec<u8>) {
    ring_position(at, key, side as u8, out);
}

fn ring_position(at: Token, key: &[u8], end: u8, out: &mut Vec<u8>) {
    out.push(NEXT_COMPONENT);
    token(at, out);
    out.push(NEXT_COMPONENT);
    escape(key, out);
    out.push(end);
}
