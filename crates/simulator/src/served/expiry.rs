//! When values end by themselves, as far as a client can tell.
//!
//! A write that lives for a while ends so many seconds after the node has taken it, by the node's wall clock. The
//! client knows when it sent the write and when it was acknowledged; so it knows two seconds between which the end
//! lies. Of a read it knows as much: in between it shows the value or nothing.
//!
//! ```text
//!   write    sent ─────── acknowledged
//!                 + ttl                + ttl
//!   value    ── there ────┤ perhaps ├──── gone ──
//! ```

use tokio::time::Instant;

/// A node's wall clock in one life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    at: Instant,
    micros: i64,
}

impl WallClock {
    /// It shows that now.
    pub(crate) fn shows(micros: i64) -> WallClock {
        WallClock { at: Instant::now(), micros }
    }

    /// What it shows now, in microseconds since 1970.
    pub(crate) fn micros(&self) -> i64 {
        self.micros + i64::try_from(self.at.elapsed().as_micros()).expect("runs are short")
    }

    /// The second that it is in.
    pub(crate) fn second(&self) -> i64 {
        self.micros() / 1_000_000
    }
}

/// Seconds within which something happened, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seconds {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Seconds {
    /// From when a write may be gone, and from when it is.
    fn plus(self, ttl: u32) -> Seconds {
        let ttl = i64::from(ttl);
        Seconds { first: self.first + ttl, last: self.last.saturating_add(ttl) }
    }

    /// May a read then show what was written for so long at these?
    pub(crate) fn may_last(self, ttl: u32, read: Seconds) -> bool {
        read.first < self.plus(ttl).last
    }

    /// May it show nothing of it any more?
    pub(crate) fn may_be_over(self, ttl: u32, read: Seconds) -> bool {
        read.last >= self.plus(ttl).first
    }

    /// May it tell that so many seconds are left?
    pub(crate) fn may_leave(self, ttl: u32, read: Seconds, left: i64) -> bool {
        let end = self.plus(ttl);
        (end.first - read.last..=end.last.saturating_sub(read.first)).contains(&left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_seconds_a_value_is_there_or_gone() {
        let written = Seconds { first: 10, last: 12 };
        let at = |second| Seconds { first: second, last: second };
        let told = |second| (written.may_last(5, at(second)), written.may_be_over(5, at(second)));
        assert_eq!([14, 15, 16, 17].map(told), [(true, false), (true, true), (true, true), (false, true)]);
        assert!(written.may_leave(5, at(14), 1) && written.may_leave(5, at(14), 3));
        assert!(!written.may_leave(5, at(14), 0) && !written.may_leave(5, at(14), 4));
    }
}
