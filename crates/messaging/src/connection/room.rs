//! What all connections with other nodes hold in memory, together, and how much of it one of them may have.
//!
//! ```text
//!   all that there is     |####|######|##|.....................|
//!                          A    B      C   free: D may go on while it holds less than this
//! ```
//!
//! A connection may hold more while it holds less than is free. So one whose other side takes nothing gets half of all
//! at most, two of them a third each, and as much again is always left for the others: nobody has to be told how many
//! connections there will be (A. K. Choudhury, E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet
//! switches", 1998). A little is every connection's own, so that what is urgent gets through.
//!
//! What is counted: messages that were not handed over to the system yet, requests that came and are not answered, and
//! frames that have come in part.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// So much a connection may hold whatever others do.
pub(super) const OWN_BYTES: usize = 64 << 10;
/// Threads share the count: it is brought up to date when so much has changed.
const STEP_BYTES: usize = 4 << 10;

/// So much may be held. Cheap to clone; of all threads.
#[derive(Clone, Debug)]
pub struct Room(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes_max: usize,
    held_bytes: AtomicUsize,
    /// One frame may go beyond it: is there one that does?
    is_exceeded: AtomicBool,
    turned_away: AtomicU64,
}

/// As much as anybody wants.
impl Default for Room {
    fn default() -> Self {
        Room::new(usize::MAX)
    }
}

impl Room {
    /// So many bytes for all connections.
    pub fn new(bytes_max: usize) -> Room {
        Room(Arc::new(Inner {
            bytes_max,
            held_bytes: AtomicUsize::new(0),
            is_exceeded: AtomicBool::new(false),
            turned_away: AtomicU64::new(0),
        }))
    }

    /// How much may be held, in bytes.
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// How much is held, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.0.held_bytes.load(Ordering::Relaxed)
    }

    /// How many messages were not sent since there was no room for them.
    pub fn turned_away(&self) -> u64 {
        self.0.turned_away.load(Ordering::Relaxed)
    }

    pub(super) fn note_turned_away(&self) {
        self.0.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    fn free_bytes(&self) -> usize {
        self.0.bytes_max.saturating_sub(self.held_bytes())
    }

    /// A connection that holds nothing yet.
    pub(super) fn part(&self) -> Part {
        Part { room: self.clone(), counted_bytes: 0, is_exceeding: false }
    }
}

/// What one connection holds of it; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Part {
    room: Room,
    counted_bytes: usize,
    /// Is it the one that may hold what there is no room for?
    is_exceeding: bool,
}

impl Part {
    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// It holds so much from now on.
    pub(super) fn hold(&mut self, bytes: usize) {
        let bytes = bytes / STEP_BYTES * STEP_BYTES;
        let held = &self.room.0.held_bytes;
        if bytes > self.counted_bytes {
            held.fetch_add(bytes - self.counted_bytes, Ordering::Relaxed);
        } else if bytes < self.counted_bytes {
            held.fetch_sub(self.counted_bytes - bytes, Ordering::Relaxed);
        }
        self.counted_bytes = bytes;
    }

    /// May it hold more?
    pub(super) fn has_room(&self) -> bool {
        self.counted_bytes < OWN_BYTES || self.counted_bytes < self.room.free_bytes()
    }

    /// May it hold more than there is room for? One at a time, so that what is longer than all of it gets through.
    pub(super) fn may_exceed(&mut self) -> bool {
        self.is_exceeding |= !self.room.0.is_exceeded.swap(true, Ordering::Relaxed);
        self.is_exceeding
    }

    /// Leaves that to others.
    pub(super) fn exceed_no_more(&mut self) {
        if std::mem::take(&mut self.is_exceeding) {
            self.room.0.is_exceeded.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.hold(0);
        self.exceed_no_more();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM_BYTES: usize = 8 << 20;

    /// Has each of some parts hold as much as it may, in turns; what each has then.
    fn filled(parts: &mut [Part]) -> Vec<usize> {
        while parts.iter().any(Part::has_room) {
            for part in parts.iter_mut().filter(|part| part.has_room()) {
                part.hold(part.counted_bytes + STEP_BYTES);
            }
        }
        parts.iter().map(|part| part.counted_bytes).collect()
    }

    #[test]
    fn whoever_takes_all_it_can_leaves_as_much_to_others() {
        for count in [1, 2, 7] {
            let room = Room::new(ROOM_BYTES);
            let mut parts: Vec<Part> = (0..count).map(|_| room.part()).collect();
            let share = ROOM_BYTES / (count + 1);
            for held in filled(&mut parts) {
                assert!(held.abs_diff(share) <= (count + 1) * STEP_BYTES, "{held} of {share} for {count}");
            }
            let mut late = room.part();
            assert!(late.has_room(), "the next one has room");
            late.hold(OWN_BYTES);
            assert!(late.has_room());
            drop(late);
            drop(parts);
            assert_eq!(room.held_bytes(), 0);
        }
    }

    #[test]
    fn a_little_is_everybodys_own() {
        let room = Room::new(OWN_BYTES);
        let mut parts: Vec<Part> = (0..20).map(|_| room.part()).collect();
        assert_eq!(filled(&mut parts), [OWN_BYTES; 20]);
    }

    #[test]
    fn one_at_a_time_goes_beyond_the_room() {
        let room = Room::new(0);
        let (mut one, mut other) = (room.part(), room.part());
        assert!(one.may_exceed() && one.may_exceed());
        assert!(!other.may_exceed());
        other.exceed_no_more();
        assert!(!other.may_exceed(), "it was not the one");
        drop(one);
        assert!(other.may_exceed());
    }
}
