//! How long requests have waited in a connection's socket before the server came to read them.
//!
//! Nobody tells when bytes came. But how many there are can be asked, and whatever is there now has waited since
//! now at least:
//!
//! ```text
//!   read so far ──► |......... 300 KB are there at 10:00:00.0 .........|.. came since ..|
//!                               ▲ read at 10:00:00.7: it has waited 0.7 s or longer
//! ```
//!
//! So a *mark* (up to which byte, seen when) is made whenever a read found more than it took. Requests that have
//! waited too long are refused: their client has given up, or soon will, and time spent on them is
//! lost to those behind. Refusing goes on until the socket is empty, not only until the wait is short again: what
//! the client's own side still holds back can not be seen, and is as old.

use std::collections::VecDeque;
use std::time::Duration;

/// No mark is made sooner after another one.
const MARK_EVERY: Duration = Duration::from_millis(5);
/// So many marks are kept; they are made more rarely when there are as many.
const MARK_COUNT_MAX: usize = 32;
/// One of so many is carried out although it has waited long: whoever sends without a pause, and only as much as
/// was answered, is not refused for ever.
const SPARED_EVERY: u32 = 256;

/// What is known of how long a connection's bytes have waited.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    read_bytes: u64,
    marks: VecDeque<Mark>,
    /// When the frames at hand were read.
    read_at: Duration,
    is_refusing: bool,
    refused_count: u32,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The stream's bytes up to here were there.
    end: u64,
    seen: Duration,
}

impl Backlog {
    /// Notes a read of so many bytes that emptied the socket.
    pub(super) fn emptied(&mut self, count: usize) {
        self.read_bytes += count as u64;
        self.marks.clear();
        self.is_refusing = false;
    }

    /// Notes a read of so many bytes, behind which there are so many more. Decides whether what was read
    /// has waited for longer than it may.
    pub(super) fn left(&mut self, count: usize, unread_bytes: u64, now: Duration, wait_max: Duration) {
        let start = self.read_bytes;
        self.read_bytes += count as u64;
        self.read_at = now;
        while self.marks.front().is_some_and(|mark| mark.end <= start) {
            self.marks.pop_front();
        }
        self.is_refusing |= self.marks.front().is_some_and(|mark| now.saturating_sub(mark.seen) > wait_max);
        let pause = if self.marks.len() < MARK_COUNT_MAX { MARK_EVERY } else { wait_max };
        if self.marks.back().is_none_or(|mark| now.saturating_sub(mark.seen) >= pause) {
            self.marks.push_back(Mark { end: self.read_bytes + unread_bytes, seen: now });
        }
    }

    /// Notes that frames which were read before are taken up again.
    pub(super) fn resumed(&mut self, now: Duration, wait_max: Duration) {
        self.is_refusing |= now.saturating_sub(self.read_at) > wait_max;
    }

    /// When frames were read that stay for later.
    pub(super) fn read_at(&mut self, now: Duration) {
        self.read_at = now;
    }

    /// Have requests waited for too long?
    pub(super) fn is_refusing(&self) -> bool {
        self.is_refusing
    }

    /// Is the next request to be refused?
    pub(super) fn refuses_next(&mut self) -> bool {
        if self.is_refusing {
            self.refused_count = self.refused_count.wrapping_add(1);
        }
        self.is_refusing && !self.refused_count.is_multiple_of(SPARED_EVERY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(500);

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn what_was_seen_long_ago_is_refused_until_the_socket_is_empty() {
        let mut backlog = Backlog::default();
        backlog.left(100, 1000, at(0), MAX);
        backlog.left(500, 2000, at(400), MAX);
        assert!(!backlog.refuses_next());
        // Bytes 600 to 1100 were there at 0.
        backlog.left(200, 4000, at(501), MAX);
        assert!(backlog.refuses_next());
        // These came later, but what is behind them may be as old.
        backlog.left(1000, 4000, at(502), MAX);
        assert!(backlog.refuses_next());
        backlog.emptied(4000);
        assert!(!backlog.refuses_next());
        backlog.left(100, 10, at(5000), MAX);
        assert!(!backlog.refuses_next(), "marks of before are gone");
    }

    #[test]
    fn what_comes_in_as_fast_as_it_is_read_is_not_refused() {
        let mut backlog = Backlog::default();
        for millis in 0..10_000 {
            // A hundred milliseconds' worth stands in the socket all the time.
            backlog.left(10, 1000, at(millis), MAX);
            assert!(!backlog.refuses_next(), "{millis}");
        }
        assert!(backlog.marks.len() <= MARK_COUNT_MAX + 1);
    }

    #[test]
    fn some_are_carried_out_all_the_same() {
        let mut backlog = Backlog::default();
        backlog.left(1, 1 << 20, at(0), MAX);
        backlog.left(1, 1 << 20, at(600), MAX);
        let carried_out = (0..2560).filter(|_| !backlog.refuses_next()).count();
        assert_eq!(carried_out, 10);
    }

    #[test]
    fn frames_that_stood_in_line_for_long_are_refused() {
        let mut backlog = Backlog::default();
        backlog.emptied(100);
        backlog.read_at(at(100));
        backlog.resumed(at(300), MAX);
        assert!(!backlog.refuses_next());
        backlog.resumed(at(700), MAX);
        assert!(backlog.refuses_next());
    }
}
