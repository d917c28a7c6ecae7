//! Reads bytes that may be anything as what other nodes say about membership: what the fuzzer calls.
//!
//! Nothing may panic, loop, or take memory beyond what the bytes are worth; and what is read can be written and read
//! again.

use bytes::BytesMut;

use super::message::{Reply, Said};

/// Reads a message and an answer.
///
/// # Panics
/// When a promise is broken: that is what it is for.
pub fn read_membership(bytes: &[u8]) {
    let mut again = BytesMut::new();
    if let Some(said) = Said::read(bytes) {
        said.put(&mut again);
        assert_eq!(Said::read(&again), Some(said), "a message is read as it was written");
    }
    again.clear();
    if let Some(reply) = Reply::read(bytes) {
        reply.put(&mut again);
        assert_eq!(Reply::read(&again), Some(reply), "an answer is read as it was written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the fuzzer begins with: if nothing could be made of it, it would begin with nothing.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "kept files of the repository")]
    fn kept_inputs_are_read() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/membership");
        let kept = |name: &str| std::fs::read(folder.join(name)).expect("it was kept");
        for name in ["heartbeat", "question_ring", "question_join"] {
            read_membership(&kept(name));
            assert!(Said::read(&kept(name)).is_some(), "{name}");
        }
        for name in ["reply_ring", "reply_admitted", "reply_refused", "reply_later"] {
            read_membership(&kept(name));
            assert!(Reply::read(&kept(name)).is_some(), "{name}");
        }
    }
}
