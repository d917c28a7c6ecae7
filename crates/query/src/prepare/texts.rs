//! The texts of prepared statements, shared by all shards.
//!
//! A driver prepares on one connection and executes on any, and connections are spread over
//! shards. Each shard keeps plans of its own; when it meets an id it has no plan for it looks here,
//! once, and plans for itself. The lock is never taken on the hot path.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// A statement as it was prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PreparedText {
    /// The keyspace of its unqualified names.
    pub(crate) keyspace: Option<String>,
    /// The text.
    pub(crate) text: String,
}

/// The texts of the statements prepared on a node, up to a number of bytes.
#[derive(Debug)]
pub struct PreparedTexts {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_id: HashMap<[u8; 16], (PreparedText, u64)>,
    bytes: usize,
    clock: u64,
}

impl PreparedTexts {
    /// Keeps texts of up to that many bytes in all.
    pub fn new(bytes_max: usize) -> Self {
        PreparedTexts { bytes_max, kept: Mutex::default() }
    }

    pub(crate) fn get(&self, id: &[u8; 16]) -> Option<PreparedText> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let clock = kept.clock;
        let (text, used) = kept.by_id.get_mut(id)?;
        *used = clock;
        Some(text.clone())
    }

    /// Keeps a text; those used least recently make room for it.
    pub(crate) fn put(&self, id: [u8; 16], text: PreparedText) {
        let mut guard = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *guard;
        kept.clock += 1;
        kept.bytes += cost(&text);
        if let Some((old, _)) = kept.by_id.insert(id, (text, kept.clock)) {
            kept.bytes -= cost(&old);
        }
        if kept.bytes <= self.bytes_max {
            return;
        }
        // A quarter at once, so that a full list is not sorted at every new statement.
        let mut by_age: Vec<([u8; 16], u64)> =
            kept.by_id.iter().map(|(id, (_, used))| (*id, *used)).collect();
        by_age.sort_by_key(|(_, used)| *used);
        for (old, _) in by_age {
            if kept.bytes <= self.bytes_max / 4 * 3 || old == id {
                break;
            }
            if let Some((text, _)) = kept.by_id.remove(&old) {
                kept.bytes -= cost(&text);
            }
        }
    }

    pub(crate) fn remove(&self, id: &[u8; 16]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((text, _)) = kept.by_id.remove(id) {
            kept.bytes -= cost(&text);
        }
    }
}

fn cost(text: &PreparedText) -> usize {
    text.text.len() + text.keyspace.as_ref().map_or(0, String::len) + 128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_text_goes_first() {
        let texts = PreparedTexts::new(1000);
        let text = |of: u8| PreparedText { keyspace: None, text: char::from(of).to_string().repeat(100) };
        for id in 0..4 {
            texts.put([id; 16], text(b'a' + id));
        }
        assert_eq!(texts.get(&[0; 16]), Some(text(b'a')));
        texts.put([9; 16], text(b'z'));
        assert_eq!(texts.get(&[0; 16]), Some(text(b'a')));
        assert_eq!(texts.get(&[1; 16]), None);
        assert_eq!(texts.get(&[9; 16]), Some(text(b'z')));
    }
}
