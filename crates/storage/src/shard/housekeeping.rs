//! What a shard does as time goes by, asked by nobody.
//!
//! - A memtable older than its table's `memtable_flush_period_in_ms` is written out.
//! - Strategies are asked at the start and then once a minute, as Cassandra asks them: files expire, tombstones
//!   come of age, and after a start or a change of strategy there are files for which no flush will speak.

use std::rc::{Rc, Weak};
use std::time::Duration;

use table::{Shared, TableStore, Tables};
use tokio::sync::Notify;

/// Strategies are asked so often.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// However short the periods of tables, others on the shard have their turn in between.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// Does it, as long as there are tables.
pub(super) struct Housekeeper {
    tables: Weak<Tables>,
    /// Told when a table may have another `memtable_flush_period_in_ms` than before.
    periods_changed: Rc<Notify>,
    next_look: Duration,
}

impl Housekeeper {
    /// For these tables; it is told when their periods may be others.
    pub(super) fn new(tables: &Rc<Tables>, periods_changed: &Rc<Notify>) -> Self {
        let periods_changed = Rc::clone(periods_changed);
        Housekeeper { tables: Rc::downgrade(tables), periods_changed, next_look: Duration::ZERO }
    }

    /// Begins, in the background.
    pub(super) fn start(mut self, shared: &Rc<Shared>) {
        let shared = Rc::downgrade(shared);
        runtime::spawn_local("housekeeping", async move {
            while let Some(pause) = self.look(&shared) {
                _ = tokio::time::timeout(pause, self.periods_changed.notified()).await;
            }
        });
    }

    /// Does what is due; how long until the next time? `None` when there is none.
    fn look(&mut self, shared: &Weak<Shared>) -> Option<Duration> {
        let (tables, shared) = (self.tables.upgrade()?, shared.upgrade()?);
        shared.check_open().ok()?;
        let (all, now) = (tables.all(), shared.runtime.clock.elapsed());
        if self.next_look <= now {
            ask_strategies(&all);
            self.next_look = now + LOOK_EVERY;
        }
        let next = all.iter().filter_map(|store| flush_if_aged(store, now)).min();
        let next = next.map_or(self.next_look, |due| due.min(self.next_look));
        // Of the system's clock and the timer's either may be ahead of the other.
        Some(next.saturating_sub(now).max(PAUSE_MIN))
    }
}

/// Has a worker look at each table that has files and none.
fn ask_strategies(tables: &[Rc<TableStore>]) {
    let is_at_rest = |store: &&Rc<TableStore>| !store.files().all().is_empty() && !store.is_compacting();
    tables.iter().filter(is_at_rest).for_each(|store| store.start_compaction());
}

/// Starts a flush of a memtable that has reached its table's period; when the next one will.
fn flush_if_aged(store: &Rc<TableStore>, now: Duration) -> Option<Duration> {
    let period_ms = store.with_table(|table| table.options().memtable_flush_period_in_ms);
    let period = (period_ms > 0).then(|| Duration::from_millis(period_ms.into()))?;
    let memtables = store.memtables();
    if memtables.active_since() + period <= now {
        memtables.rejuvenate(now);
        if !memtables.is_active_empty() {
            store.spawn_flush();
        }
    }
    Some(memtables.active_since() + period)
}
