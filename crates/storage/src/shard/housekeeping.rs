//! What a shard does as time goes by, asked by nobody.
//!
//! - A memtable older than its table's `memtable_flush_period_in_ms` is written out.
//! - Strategies are asked at the start and then once a minute, as Cassandra asks them: files expire, tombstones
//!   come of age, and after a start or a change of strategy there are files for which no flush will speak.

use std::rc::Rc;
use std::time::Duration;

use memtable::Memtable;

use super::{Shard, TableStore};

/// Strategies are asked so often.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// However short the periods of tables, others on the shard have their turn in between.
const PAUSE_MIN: Duration = Duration::from_millis(10);

impl Shard {
    /// Starts it.
    pub(super) fn keep_house(self: &Rc<Self>) {
        let (this, periods_changed) = (Rc::downgrade(self), Rc::clone(&self.periods_changed));
        runtime::spawn_local("housekeeping", async move {
            let mut next_look = Duration::ZERO;
            loop {
                let Some(shard) = this.upgrade() else { return };
                if shard.check_open().is_err() {
                    return;
                }
                let now = shard.runtime.clock.elapsed();
                if next_look <= now {
                    shard.ask_strategies();
                    next_look = now + LOOK_EVERY;
                }
                let next = shard.flush_aged(now).map_or(next_look, |due| due.min(next_look));
                drop(shard);
                // Of the system's clock and the timer's either may be ahead of the other.
                let pause = next.saturating_sub(now).max(PAUSE_MIN);
                _ = tokio::time::timeout(pause, periods_changed.notified()).await;
            }
        });
    }

    /// Has a worker look at each table that has files and none.
    fn ask_strategies(self: &Rc<Self>) {
        let is_at_rest = |store: &Rc<TableStore>| !store.files.borrow().is_empty() && !store.is_compacting();
        self.stores().iter().filter(|store| is_at_rest(store)).for_each(|store| self.start_compaction(store));
    }

    /// Starts flushes of memtables that have reached their table's period; when the next one will.
    fn flush_aged(self: &Rc<Self>, now: Duration) -> Option<Duration> {
        self.stores().iter().filter_map(|store| self.flush_if_aged(store, now)).min()
    }

    fn flush_if_aged(self: &Rc<Self>, store: &Rc<TableStore>, now: Duration) -> Option<Duration> {
        let period_ms = store.table.borrow().options().memtable_flush_period_in_ms;
        let period = (period_ms > 0).then(|| Duration::from_millis(period_ms.into()))?;
        if store.active_since.get() + period <= now {
            store.active_since.set(now);
            if !store.active.borrow().with(Memtable::is_empty) {
                self.spawn_flush(Rc::clone(store));
            }
        }
        Some(store.active_since.get() + period)
    }
}
