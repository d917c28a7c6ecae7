//! How a node stands with another one: what it has heard of it. All threads look at it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::known::lock;

/// How this node stands with another one.
#[derive(Debug, Default)]
pub struct Other {
    /// It was heard not long ago.
    pub(super) is_alive: AtomicBool,
    /// And it serves clients.
    pub(super) is_up: AtomicBool,
    /// That of the schema that is in force on it, as far as it has said.
    pub(super) schema_epoch: AtomicU64,
    /// How often the ring has changed, as far as it has come.
    pub(super) ring_epoch: AtomicU64,
    /// It is no member any more.
    pub(super) is_gone: AtomicBool,
    /// That of its last life that was heard; 0 before.
    pub(super) incarnation: AtomicU64,
    /// How old its last heartbeat was when it was looked last; `None` before the first, and when it has withdrawn.
    silence: Mutex<Option<Duration>>,
    /// It was heard not long ago, if only to say that it has withdrawn.
    is_heard: AtomicBool,
    /// Bytes of its table files, as far as it has said.
    load_bytes: Mutex<Option<u64>>,
}

impl Other {
    /// One that nobody watches, and that is taken to live.
    pub fn unwatched() -> Arc<Other> {
        let other = Other::default();
        other.is_alive.store(true, Ordering::Relaxed);
        Arc::new(other)
    }

    /// Was it heard not long ago? Then it answers as a replica.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed)
    }

    /// Does it serve clients, too?
    pub fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// That of the schema that is in force on it, as far as it has said.
    pub fn schema_epoch(&self) -> u64 {
        self.schema_epoch.load(Ordering::Acquire)
    }

    /// How often the ring has changed, as far as it has said that it has come.
    pub fn ring_epoch(&self) -> u64 {
        self.ring_epoch.load(Ordering::Acquire)
    }

    /// Is it no member any more, as far as this node knows? Then what it acknowledges counts for nothing.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// When its life began that was heard last, in µs since 1970 by its clock; `None` before it was heard.
    pub fn incarnation(&self) -> Option<u64> {
        Some(self.incarnation.load(Ordering::Relaxed)).filter(|incarnation| *incarnation > 0)
    }

    /// How old its last heartbeat was when it was looked last; `None` before the first, and when it has withdrawn.
    pub fn silence(&self) -> Option<Duration> {
        *lock(&self.silence)
    }

    /// Does it have its part in the agreement, as far as is known? Also when it says to be taken for one that does not
    /// live.
    pub(super) fn is_heard(&self) -> bool {
        self.is_heard.load(Ordering::Acquire)
    }

    pub(super) fn note_silence(&self, silence: Option<Duration>, is_heard: bool) {
        *lock(&self.silence) = silence;
        self.is_heard.store(is_heard, Ordering::Release);
    }

    /// Bytes of its table files, as far as it has said.
    pub fn load_bytes(&self) -> Option<u64> {
        *lock(&self.load_bytes)
    }

    pub(super) fn set_load_bytes(&self, bytes: u64) {
        *lock(&self.load_bytes) = Some(bytes);
    }
}
