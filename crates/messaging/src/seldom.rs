//! What strangers can cause is told seldom, so that they can not fill a log.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// Says when something that happens is to be told: at once, and then once in a while with how often it was.
#[derive(Debug)]
pub struct Seldom {
    every: Duration,
    told_at: Cell<Option<Instant>>,
    untold_count: Cell<u64>,
}

/// Once a second.
impl Default for Seldom {
    fn default() -> Self {
        Seldom::every(Duration::from_secs(1))
    }
}

impl Seldom {
    /// No oftener than that.
    pub fn every(every: Duration) -> Seldom {
        Seldom { every, told_at: Cell::default(), untold_count: Cell::default() }
    }

    /// It happened: how often since it was told, if it is to be told now.
    pub fn note(&self) -> Option<u64> {
        let count = self.untold_count.replace(self.untold_count.get() + 1) + 1;
        let now = Instant::now();
        if self.told_at.get().is_some_and(|told_at| now < told_at + self.every) {
            return None;
        }
        self.told_at.set(Some(now));
        self.untold_count.set(0);
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_told_at_once_and_then_once_a_second_with_how_often_it_was() {
        let seldom = Seldom::default();
        let told: Vec<Option<u64>> = (0..100).map(|_| seldom.note()).collect();
        assert_eq!((told[0], &told[1..]), (Some(1), &[None; 99][..]));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((seldom.note(), seldom.note()), (Some(100), None));
    }
}
