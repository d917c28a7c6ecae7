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
//! waited too long are refused: their client has given up, or soon will, and time spent on them is lost to those
//! behind.
//!
//! Refusing goes on beyond what was seen, because what the client's own side still holds back is as old. It ends when
//! the socket is empty, or when a stream comes again that was refused: a client uses a stream again when it has
//! its answer, so that request was sent after the refusing began, and so was all behind it. A client that
//! sends as much as is answered is therefore never refused for good.

use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Duration;

/// No mark is made sooner after another one.
const MARK_EVERY: Duration = Duration::from_millis(5);
/// So many marks are kept; they are made more rarely when there are as many.
const MARK_COUNT_MAX: usize = 32;
/// A pause between two turns counts for no more than this: a machine that stood still is no crowd.
const PAUSE_MAX: Duration = Duration::from_millis(50);
const _: () = assert!(MARK_EVERY.as_millis() < PAUSE_MAX.as_millis(), "a pause is longer than a turn");
const _: () = assert!(MARK_COUNT_MAX > 1, "there is a first mark and a last");

/// A shard's time, of which pauses of the machine are left out.
#[derive(Debug, Default)]
pub(super) struct Pace {
    last: Cell<Duration>,
    spent: Cell<Duration>,
}

impl Pace {
    /// The time, now that the clock says this.
    pub(super) fn at(&self, now: Duration) -> Duration {
        let pause = now.saturating_sub(self.last.replace(now));
        self.spent.set(self.spent.get() + pause.min(PAUSE_MAX));
        self.spent.get()
    }
}

/// What is known of how long a connection's bytes have waited.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    read_bytes: u64,
    marks: VecDeque<Mark>,
    /// When the frames at hand were read.
    read_at: Duration,
    refused: Option<StreamSet>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The stream's bytes up to here were there.
    end: u64,
    seen: Duration,
}

/// Streams, a bit each; as large as the greatest of them needs.
#[derive(Debug, Default)]
struct StreamSet(Vec<u64>);

impl StreamSet {
    /// Puts one in; `false` if it was in already.
    fn insert(&mut self, stream: i16) -> bool {
        let stream = usize::from(stream.unsigned_abs());
        let (word, bit) = (stream / 64, 1 << (stream % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

impl Backlog {
    /// Notes a read of so many bytes that emptied the socket.
    pub(super) fn emptied(&mut self, count: usize) {
        self.read_bytes += count as u64;
        self.marks.clear();
        self.refused = None;
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
        if self.marks.front().is_some_and(|mark| now.saturating_sub(mark.seen) > wait_max) {
            self.refused.get_or_insert_default();
        }
        let pause = if self.marks.len() < MARK_COUNT_MAX { MARK_EVERY } else { wait_max };
        if self.marks.back().is_none_or(|mark| now.saturating_sub(mark.seen) >= pause) {
            self.marks.push_back(Mark { end: self.read_bytes + unread_bytes, seen: now });
        }
    }

    /// Notes that frames which were read before are taken up again.
    pub(super) fn resumed(&mut self, now: Duration, wait_max: Duration) {
        if now.saturating_sub(self.read_at) > wait_max {
            self.refused.get_or_insert_default();
        }
    }

    /// When frames were read that stay for later.
    pub(super) fn read_at(&mut self, now: Duration) {
        self.read_at = now;
    }

    /// Have requests waited for too long?
    pub(super) fn is_refusing(&self) -> bool {
        self.refused.is_some()
    }

    /// Is the next request, on this stream, to be refused?
    pub(super) fn refuses(&mut self, stream: i16) -> bool {
        let Some(refused) = &mut self.refused else { return false };
        if refused.insert(stream) {
            return true;
        }
        // All that is older is gone; what is at hand was sent since.
        self.refused = None;
        self.marks.clear();
        false
    }

    /// How much memory this takes while requests are refused.
    pub(super) fn held_bytes(&self) -> usize {
        self.refused.as_ref().map_or(0, |refused| refused.0.capacity() * 8)
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
        assert!(!backlog.refuses(1));
        // Bytes 600 to 1100 were there at 0.
        backlog.left(200, 4000, at(501), MAX);
        assert!(backlog.refuses(1));
        // These came later, but what is behind them may be as old.
        backlog.left(1000, 4000, at(502), MAX);
        assert!(backlog.refuses(2));
        backlog.emptied(4000);
        assert!(!backlog.refuses(3));
        backlog.left(100, 10, at(5000), MAX);
        assert!(!backlog.refuses(4), "marks of before are gone");
    }

    #[test]
    fn what_comes_in_as_fast_as_it_is_read_is_not_refused() {
        let mut backlog = Backlog::default();
        for millis in 0..10_000 {
            // A hundred milliseconds' worth stands in the socket all the time.
            backlog.left(10, 1000, at(millis), MAX);
            assert!(!backlog.refuses(1), "{millis}");
        }
        assert!(backlog.marks.len() <= MARK_COUNT_MAX + 1);
    }

    #[test]
    fn a_stream_that_was_refused_and_comes_again_ends_it() {
        let mut backlog = Backlog::default();
        backlog.left(1, 1 << 20, at(0), MAX);
        backlog.left(1, 1 << 20, at(600), MAX);
        assert!((0..1000).all(|stream| backlog.refuses(stream)));
        assert!(backlog.held_bytes() >= 125);
        assert!(!backlog.refuses(7), "sent after it was refused");
        assert!(!backlog.refuses(1001) && !backlog.is_refusing());
    }

    #[test]
    fn frames_that_stood_in_line_for_long_are_refused() {
        let mut backlog = Backlog::default();
        backlog.emptied(100);
        backlog.read_at(at(100));
        backlog.resumed(at(300), MAX);
        assert!(!backlog.refuses(1));
        backlog.resumed(at(700), MAX);
        assert!(backlog.refuses(1));
    }

    #[test]
    fn a_machine_that_stood_still_has_not_made_anybody_wait() {
        let pace = Pace::default();
        let start = pace.at(at(1000));
        assert_eq!(pace.at(at(1020)) - start, at(20));
        assert_eq!(pace.at(at(9020)) - start, at(20) + PAUSE_MAX);
    }
}
