//! Keys as bytes that `memcmp` orders as their types do: what the tries of table files branch on.
//!
//! This is version OSS50 of Cassandra's byte-comparable encoding, byte for byte, since table files
//! hold parts of it. Two rules make it work:
//!
//! * A value's form is never a prefix of another value's form, unless the byte that follows in a
//!   sequence decides as the comparison would ("weakly prefix-free"), for the form and for its
//!   inversion. Byte strings are therefore escaped and end in zero.
//! * A sequence puts a separator before each part and a terminator behind the last. The separator
//!   also says that a part is null or empty, and the terminator where a bound stands:
//!
//! ```text
//!   18  the static row              38  a clustering, or the end of a collection
//!   1f  before everything here      3e  next part is null       (nothing follows)
//!   20  before what has this prefix 3f  next part is empty      (nothing follows)
//!   60  after what has this prefix  40  next part follows
//!   61  after everything here       41  next part is empty, reversed column
//! ```
//!
//! The form does not lead back to the value: 1.0 and 1.00 have the same one.

mod key;
mod value;

pub use key::{ClusteringBoundKind, clustering, decorated_key, decorated_key_bound, token};
pub use value::{Form, encode_value};

/// The next part follows.
pub(crate) const NEXT_COMPONENT: u8 = 0x40;
/// The next part is the empty value of a type to which that means nothing.
pub(crate) const NEXT_COMPONENT_EMPTY: u8 = 0x3f;
/// The same in a reversed column, where it sorts last.
pub(crate) const NEXT_COMPONENT_EMPTY_REVERSED: u8 = 0x41;
/// The next part is null; sorts first even in a reversed column.
pub(crate) const NEXT_COMPONENT_NULL: u8 = 0x3e;
/// The sequence ends.
pub(crate) const TERMINATOR: u8 = 0x38;

/// The shortest prefix of `next` that is greater than `previous`: what an index may keep between
/// two neighbours. `previous` must sort before `next`.
pub fn separator<'a>(previous: &[u8], next: &'a [u8]) -> &'a [u8] {
    let shared = shared_prefix_bytes(previous, next);
    &next[..next.len().min(shared + 1)]
}

/// Appends the shortest bytes above `previous` and every continuation of its kept prefix, but not
/// above `next`: the shared prefix, then the byte after `previous`'s own. `previous` must sort
/// before `next` and not be its prefix.
pub fn separator_above(previous: &[u8], next: &[u8], out: &mut Vec<u8>) {
    let shared = shared_prefix_bytes(previous, next);
    out.extend_from_slice(&previous[..shared]);
    if let Some(byte) = previous.get(shared) {
        out.push(byte.saturating_add(1));
    }
}

fn shared_prefix_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
