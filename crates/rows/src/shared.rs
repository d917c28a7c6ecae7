//! Memory that keys, rows and mutations share, one behind the other.

use bytes::BytesMut;

/// Shared memory with room for so many bytes more. When it is used up, as much as `likely_bytes` is taken for these
/// and what follows them; what lies in the old one stays there.
pub fn room_for(memory: &mut BytesMut, bytes: usize, likely_bytes: usize) -> &mut BytesMut {
    assert!(memory.is_empty(), "what lies in shared memory was split off");
    if memory.capacity() < bytes {
        *memory = BytesMut::with_capacity(bytes.max(likely_bytes));
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "what lies in shared memory was split off")]
    fn what_one_row_left_in_shared_memory_is_not_the_beginning_of_the_next() {
        let mut memory = BytesMut::from(&b"left behind"[..]);
        room_for(&mut memory, 8, 64);
    }
}
