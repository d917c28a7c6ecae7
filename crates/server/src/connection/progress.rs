//! Does a client that holds memory go on taking its answers, or sending its request?
//!
//! What a client has not taken, and a frame that has come in part, are memory that others may wait for. A client that
//! moves less than [`MOVED_BYTES_MIN`] in [`crate::Limits::stall`] meanwhile is let go: a byte now and then does not
//! keep it.

use std::time::Duration;

use tokio::time::Instant;

/// How many bytes it has to move in that time.
const MOVED_BYTES_MIN: usize = 64 << 10;

/// What a connection has moved of late.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Since when something is expected of the client.
    since: Option<Instant>,
    moved_bytes: usize,
}

impl Progress {
    /// Is something expected of the client from now on, if it was not before?
    pub(super) fn expect(&mut self, is_expected: bool) {
        match is_expected {
            false => *self = Progress::default(),
            true if self.since.is_none() => self.since = Some(Instant::now()),
            true => {}
        }
    }

    /// So much was taken or sent.
    pub(super) fn moved(&mut self, bytes: usize) {
        if self.since.is_none() {
            return;
        }
        self.moved_bytes += bytes;
        if self.moved_bytes >= MOVED_BYTES_MIN {
            self.forgive();
        }
    }

    /// Its time begins anew.
    pub(super) fn forgive(&mut self) {
        *self = Progress { since: Some(Instant::now()), moved_bytes: 0 };
    }

    /// Resolves when too little was moved for so long.
    pub(super) async fn stalled(&self, limit: Duration) {
        match self.since.and_then(|since| since.checked_add(limit)) {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_is_no_progress_and_enough_of_them_are() {
        let mut progress = Progress::default();
        progress.expect(true);
        let start = Instant::now();
        for _ in 0..9 {
            tokio::time::advance(Duration::from_secs(1)).await;
            progress.moved(1);
            progress.expect(true);
        }
        progress.stalled(STALL).await;
        assert_eq!(start.elapsed(), STALL);
        progress.moved(MOVED_BYTES_MIN);
        progress.stalled(STALL).await;
        assert_eq!(start.elapsed(), 2 * STALL, "it has moved enough to have all of its time again");
        progress.expect(false);
        let waiting = tokio::time::timeout(Duration::from_secs(100), progress.stalled(STALL));
        assert!(waiting.await.is_err(), "nothing is expected of who holds nothing");
    }
}
