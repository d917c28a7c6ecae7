//! How long hosts are busy with what comes to them: here nothing that they do takes time, so that is made up.
//!
//! ```text
//!   packets of all connections ──► one after the other, each for its time ──► read
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::pool::lock;

/// What it takes a host to take something in.
#[derive(Clone, Copy, Debug)]
pub struct Toll {
    /// For whatever was written at once.
    pub packet: Duration,
    /// For each byte of it, up to [`Toll::BULK_FROM`].
    pub byte: Duration,
    /// For each byte beyond: much that comes at once is less work than many requests.
    pub bulk_byte: Duration,
}

impl Toll {
    /// So many bytes of a packet may be requests.
    pub const BULK_FROM: u32 = 1_024;

    fn of(&self, byte_count: usize) -> Duration {
        let bytes = u32::try_from(byte_count).unwrap_or(u32::MAX);
        let bulk = bytes.saturating_sub(Toll::BULK_FROM);
        self.packet + self.byte * (bytes - bulk) + self.bulk_byte * bulk
    }
}

/// Hosts that are charged, and until when each is busy.
#[derive(Debug, Default)]
pub(super) struct Tolls(Mutex<BTreeMap<IpAddr, (Toll, Instant)>>);

impl Tolls {
    pub(super) fn charge(&self, host: IpAddr, toll: Toll) {
        lock(&self.0).insert(host, (toll, Instant::now()));
    }

    /// When a host has taken in so many bytes that reach it then; nothing is no work.
    pub(super) fn taken_in(&self, host: IpAddr, arrives: Instant, byte_count: usize) -> Instant {
        let tolls = &mut *lock(&self.0);
        let Some((toll, busy_until)) = tolls.get_mut(&host).filter(|_| byte_count > 0) else {
            return arrives;
        };
        *busy_until = arrives.max(*busy_until) + toll.of(byte_count);
        *busy_until
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn packets_are_taken_in_one_after_the_other() {
        let (tolls, now) = (Tolls::default(), Instant::now());
        let [host, other] = [1, 2].map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        let [packet, byte, bulk_byte] = [2_000, 1_000, 1].map(Duration::from_micros);
        let toll = Toll { packet, byte, bulk_byte };
        tolls.charge(host, toll);
        let after = |millis| now + Duration::from_millis(millis);
        assert_eq!(tolls.taken_in(host, after(1), 3), after(6));
        assert_eq!(tolls.taken_in(host, after(2), 1), after(9), "it is busy until 6");
        assert_eq!(tolls.taken_in(host, after(20), 1), after(23), "it has rested");
        assert_eq!(toll.of(1_024 + 7), Duration::from_micros(2_000 + 1_024_000 + 7));
        assert_eq!((tolls.taken_in(host, now, 0), tolls.taken_in(other, now, 7)), (now, now));
    }
}
