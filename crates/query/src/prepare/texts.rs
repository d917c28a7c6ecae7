//! The texts of prepared statements, shared by all shards.
//!
//! A driver prepares on one connection and executes on any, and connections are spread over
//! shards. Each shard keeps plans of its own; when it meets an id it has no plan for it looks here,
//! once, and plans for itself. The lock is never taken on the hot path.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stdx::id_map::IdHash;
use stdx::weighed_lru::WeighedLru;

/// A statement as it was prepared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PreparedText {
    /// The keyspace of its unqualified names.
    pub(crate) keyspace: Option<String>,
    /// The text.
    pub(crate) text: String,
}

/// What prepared statements may take.
#[derive(Clone, Copy, Debug)]
pub struct PreparedLimits {
    /// Bytes of the texts of all of them.
    pub text_bytes: usize,
    /// Bytes of the plans that each shard has of them.
    pub plan_bytes: usize,
    /// Bytes of what each shard keeps of the columns of their results, in the form that clients are told them.
    pub metadata_bytes: usize,
}

/// What there is of prepared statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreparedFigures {
    /// How many are known.
    pub count: usize,
    /// Bytes of their texts.
    pub text_bytes: usize,
    /// Bytes of the plans of all shards.
    pub plan_bytes: usize,
    /// How many had to make room for others, since the start.
    pub evicted_count: u64,
}

/// The texts of the statements prepared on a node, up to a number of bytes.
#[derive(Debug)]
pub struct PreparedTexts {
    limits: PreparedLimits,
    kept: Mutex<Kept>,
    /// Of all shards together.
    plan_bytes: AtomicUsize,
}

#[derive(Debug)]
struct Kept {
    by_id: WeighedLru<[u8; 16], Arc<PreparedText>, IdHash>,
    reported: Reported,
}

/// What the log has of evictions.
#[derive(Debug, Default)]
struct Reported {
    evicted_count: u64,
    at_millis: Option<i64>,
}

/// The log is told of evictions once in so many milliseconds, as by Cassandra.
const REPORT_EVERY_MILLIS: i64 = 60_000;

impl PreparedTexts {
    /// Keeps texts, and has shards keep plans, of up to that many bytes.
    pub fn new(limits: PreparedLimits) -> Self {
        let by_id = WeighedLru::new(limits.text_bytes);
        let kept = Mutex::new(Kept { by_id, reported: Reported::default() });
        PreparedTexts { limits, kept, plan_bytes: AtomicUsize::new(0) }
    }

    /// What they may take.
    pub fn limits(&self) -> PreparedLimits {
        self.limits
    }

    /// What there is.
    pub fn figures(&self) -> PreparedFigures {
        let by_id = &self.kept().by_id;
        PreparedFigures {
            count: by_id.count(),
            text_bytes: by_id.bytes(),
            plan_bytes: self.plan_bytes.load(Ordering::Relaxed),
            evicted_count: by_id.evicted_count(),
        }
    }

    pub(crate) fn get(&self, id: &[u8; 16]) -> Option<Arc<PreparedText>> {
        self.kept().by_id.get(id).map(Arc::clone)
    }

    /// Keeps a text; those used least recently make room for it.
    pub(crate) fn put(&self, id: [u8; 16], text: PreparedText) {
        let bytes = size_of::<PreparedText>()
            + text.text.capacity()
            + text.keyspace.as_ref().map_or(0, String::capacity);
        self.kept().by_id.put(id, Arc::new(text), bytes);
    }

    pub(crate) fn remove(&self, id: &[u8; 16]) {
        self.kept().by_id.remove(id);
    }

    /// Counts what the plans of one shard have, in the place of what they had.
    pub(crate) fn count_plans(&self, bytes_before: usize, bytes: usize) {
        // The sum may go below zero for a moment only if it goes back: it wraps, and back.
        self.plan_bytes.fetch_add(bytes.wrapping_sub(bytes_before), Ordering::Relaxed);
    }

    /// How many were evicted since the log was told last, if it is time to tell it again.
    pub(crate) fn evictions_to_report(&self, now_millis: i64) -> Option<u64> {
        let kept = &mut *self.kept();
        let evicted_count = kept.by_id.evicted_count();
        let is_time =
            kept.reported.at_millis.is_none_or(|at| now_millis.saturating_sub(at) >= REPORT_EVERY_MILLIS);
        if evicted_count == kept.reported.evicted_count || !is_time {
            return None;
        }
        let before =
            std::mem::replace(&mut kept.reported, Reported { evicted_count, at_millis: Some(now_millis) });
        Some(evicted_count - before.evicted_count)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_with(count: u8) -> PreparedTexts {
        let texts = PreparedTexts::new(PreparedLimits { text_bytes: 1200, plan_bytes: 0, metadata_bytes: 0 });
        (0..count).for_each(|id| texts.put([id; 16], text(id)));
        texts
    }

    fn text(of: u8) -> PreparedText {
        PreparedText { keyspace: None, text: char::from(b'a' + of).to_string().repeat(100) }
    }

    #[test]
    fn the_least_recently_used_text_goes_first() {
        let texts = texts_with(4);
        assert_eq!(texts.get(&[0; 16]).as_deref(), Some(&text(0)));
        texts.put([9; 16], text(9));
        assert_eq!(texts.get(&[0; 16]).as_deref(), Some(&text(0)));
        assert_eq!(texts.get(&[1; 16]), None);
        assert_eq!(texts.get(&[9; 16]).as_deref(), Some(&text(9)));
        let figures = texts.figures();
        assert_eq!((figures.count, figures.evicted_count), (4, 1));
        assert!(figures.text_bytes <= 1200, "{figures:?}");
    }

    #[test]
    fn evictions_are_told_once_a_minute() {
        let texts = texts_with(4);
        assert_eq!(texts.evictions_to_report(0), None);
        texts.put([9; 16], text(9));
        assert_eq!(texts.evictions_to_report(1_000), Some(1));
        texts.put([10; 16], text(10));
        texts.put([11; 16], text(11));
        assert_eq!(texts.evictions_to_report(60_999), None, "the log was told less than a minute ago");
        assert_eq!(texts.evictions_to_report(61_000), Some(2));
        assert_eq!(texts.evictions_to_report(200_000), None, "nothing happened since");
    }
}
