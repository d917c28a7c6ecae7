//! Memory that keys, rows and mutations share, one behind the other.

use bytes::BytesMut;

/// Shared memory with room for so many bytes more. When it is used up, as much as `likely_bytes` is taken for these
/// and what follows them; what lies in the old one stays there.
pub fn room_for(memory: &mut BytesMut, bytes: usize, likely_bytes: usize) -> &mut BytesMut {
    if memory.capacity() < bytes {
        *memory = BytesMut::with_capacity(bytes.max(likely_bytes));
    }
    memory
}
