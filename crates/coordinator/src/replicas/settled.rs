//! How far the writes of this node are settled in the log of a shard: all their replicas have them, or are marked.
//!
//! ```text
//!   log   ────────────────┬───────────────────────┬────► end
//!          settled        │ perhaps not           │
//!                         kept in a file, once a second, behind the marks
//! ```
//!
//! A node that was killed does not know any more who has acknowledged its last writes. What its log has from the kept
//! place on it owes to all other replicas, and sends it to them again (decision 0031). The place is kept some seconds
//! late: since then it may have got writes of another node that was killed with it (`lives.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ring::NodeIndex;
use runtime::Plant;
use schema::{Schema, TableId};
use serde::{Deserialize, Serialize};
use storage::{HeldLog, LogPosition, Shard, StateError, StorageError};
use tokio::time::Instant;
use types::Token;

use super::healing::gc_grace;
use super::owed::Logged;
use super::slots::{Places, slot_of};
use super::{Replicas, RingSeat};

/// So often the place is kept, when it is another one.
pub(super) const KEEP_EVERY: Duration = Duration::from_secs(1);
/// Records after which others have their turn.
const TURN_COUNT: usize = 256;

/// Where the log of a shard ended once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    segment: u64,
    offset: u32,
    /// How far the shard had come in the history of the schema.
    schema_epoch: u64,
    /// What the node's clock showed.
    micros: i64,
    /// Of so many logs of the node it was one: it means nothing to a node of another number of shards.
    shard_count: usize,
}

impl End {
    /// That of the shard's log as it is now.
    pub(super) fn of(shard: &Rc<Shard>, shard_count: usize) -> End {
        let schema_epoch = shard.with_schema(Schema::epoch);
        End::at(HeldLog(shard).end(), schema_epoch, shard.runtime().clock.now_micros(), shard_count)
    }

    pub(super) fn at(position: LogPosition, schema_epoch: u64, micros: i64, shard_count: usize) -> End {
        let LogPosition { segment, offset } = position;
        End { segment, offset, schema_epoch, micros, shard_count }
    }

    pub(super) fn position(&self) -> LogPosition {
        LogPosition { segment: self.segment, offset: self.offset }
    }
}

/// Writes that a shard coordinates and that are not settled, by when they began.
#[derive(Debug, Default)]
pub(super) struct WritesUnderWay {
    /// When a period began, and what its writes hold; the oldest first.
    periods: VecDeque<(Instant, Arc<()>)>,
}

/// Held by a write until it is settled.
#[derive(Debug)]
pub(super) struct UnderWay(#[expect(dead_code, reason = "it is counted, and dropped")] Arc<()>);

impl WritesUnderWay {
    /// A write began then, in this turn.
    pub(super) fn begin(&mut self, begun: Instant) -> UnderWay {
        if self.periods.is_empty() {
            self.periods.push_back((begun, Arc::default()));
        }
        let (since, held) = self.periods.back().expect("there is one");
        assert!(*since <= begun, "a write is held by the period in which it began");
        UnderWay(Arc::clone(held))
    }

    /// Begins another period. All writes that began before the time that is given are settled.
    pub(super) fn settled_before(&mut self, now: Instant) -> Instant {
        while self.periods.pop_front_if(|(_, held)| Arc::strong_count(held) == 1).is_some() {}
        self.periods.push_back((now, Arc::default()));
        self.periods[0].0
    }
}

/// Where it is kept how far a shard's log is settled.
pub(super) fn file_of(owner: usize) -> String {
    format!("settled-{owner}.json")
}

impl RingSeat {
    /// Keeps how far the shard's log is settled, if it is time to: behind the marks of all shards.
    ///
    /// # Errors
    /// The disk fails.
    pub(super) async fn keep_settled(&self, is_last: bool) -> Result<(), StateError> {
        let (marks, now) = (self.own_marks(), Instant::now());
        let Some(settled) = marks.settled_to_keep(now, is_last) else { return Ok(()) };
        for owner in 0..self.marks().shard_count() {
            if !self.keep(owner).await? {
                return Ok(());
            }
        }
        self.write_kept(&file_of(self.shard().local().index()), settled).await?;
        marks.note_kept(settled.position(), now);
        Ok(())
    }
}

/// Owes to others what an earlier run has logged and may have sent to some of its replicas only. From then on it is
/// kept how far the log is settled.
pub(super) async fn owe_unsettled(seat: &RingSeat) {
    let (shard, shard_count) = (seat.shard().local(), seat.marks().shard_count());
    let kept: Result<Option<End>, StateError> = seat.read_kept(&file_of(shard.index())).await;
    let kept = kept.unwrap_or_else(|error| {
        tracing::error!(%error, "it is not known how far the commit log is settled");
        None
    });
    let log = HeldLog(shard);
    let begins = kept.map_or(log.begins(), |kept| kept.position());
    if let Some(replicas) = seat.replicas().filter(|_| !seat.has_planted(Plant::UnsettledForgotten)) {
        let is_of_these_shards = kept.is_none_or(|kept| kept.shard_count == shard_count);
        let unsettled = match is_of_these_shards {
            true => unsettled_from(shard, &replicas, begins).await,
            false => Ok(None),
        };
        match unsettled {
            Ok(Some(unsettled)) => owe(seat, &replicas, kept, unsettled),
            Ok(None) => {
                tracing::warn!(
                    "the commit log of an earlier run is gone: rows are compared with the other replicas"
                );
                owe(seat, &replicas, None, everything(&replicas));
            }
            Err(error) => {
                tracing::error!(%error, "the commit log can not be read: rows are compared with the other replicas");
                owe(seat, &replicas, None, everything(&replicas));
            }
        }
    }
    seat.own_marks().begin_to_keep(begins);
}

/// Where other replicas may have missed something that the shard has logged from there on; `None` when some of that is
/// gone.
async fn unsettled_from(
    shard: &Rc<Shard>,
    replicas: &Replicas,
    from: LogPosition,
) -> Result<Option<BTreeMap<NodeIndex, Places>>, StorageError> {
    let Some(mut reading) = HeldLog(shard).read(from).await? else { return Ok(None) };
    let (mut unsettled, mut record_count) = (BTreeMap::<NodeIndex, Places>::new(), 0);
    while let Some(logged) = reading.next().await? {
        for mutation in logged.mutations {
            let (table, token) = (mutation.table, mutation.key.token);
            for node in replicas.others_of(table, token) {
                unsettled.entry(node).or_default().insert(table, slot_of(token));
            }
        }
        record_count += 1;
        if record_count % TURN_COUNT == 0 {
            tokio::task::yield_now().await;
        }
    }
    Ok(Some(unsettled))
}

/// All that this node and others are replicas of.
fn everything(replicas: &Replicas) -> BTreeMap<NodeIndex, Places> {
    shared_of(replicas, |_| true)
}

/// What this node and others are replicas of, of some tables.
fn shared_of(replicas: &Replicas, is_wanted: impl Fn(TableId) -> bool) -> BTreeMap<NodeIndex, Places> {
    let mut places = BTreeMap::<NodeIndex, Places>::new();
    for table in replicas.tables().into_iter().filter(|table| is_wanted(table.id())) {
        let mut first = Token(i64::MIN + 1);
        while let Ok(last) = replicas.end_of_replicas(table.id(), first, Token::MAX) {
            let here = replicas.view.here();
            let is_here = replicas.plan_of(table.id(), last).is_some_and(|plan| plan.nodes.contains(&here));
            for node in replicas.others_of(table.id(), last).into_iter().filter(|_| is_here) {
                let of_node = places.entry(node).or_default();
                (slot_of(first)..=slot_of(last)).for_each(|slot| _ = of_node.insert(table.id(), slot));
            }
            if last >= Token::MAX {
                break;
            }
            first = Token(last.0 + 1);
        }
    }
    places
}

/// Owes to all other replicas what stands in these places of the log, from where it ended once.
pub(super) fn owe_places(seat: &RingSeat, from: End, left: &Places) {
    let Some(replicas) = seat.replicas().filter(|_| !left.is_empty()) else { return };
    let mut owed = shared_of(&replicas, |table| left.tables().any(|(of, _)| *of == table));
    owed.values_mut().for_each(|places| places.retain_all(left));
    owed.retain(|_, places| !places.is_empty());
    owe(seat, &replicas, Some(from), owed);
}

/// Owes this to others: from the log, where it ended once, or compared.
fn owe(seat: &RingSeat, replicas: &Replicas, from: Option<End>, unsettled: BTreeMap<NodeIndex, Places>) {
    let shard = seat.shard().local();
    let age = |from: End| {
        let micros = shard.runtime().clock.now_micros().saturating_sub(from.micros);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    let sent = from.and_then(|from| Some((from, age(from), Instant::now().checked_sub(age(from))?)));
    // What was emptied since may stand before that in the log, or behind it.
    let is_sent = |table: TableId| {
        sent.is_some_and(|(from, age, _)| {
            let truncated_at = shard.with_schema(|schema| schema.truncated_at(table));
            truncated_at <= from.schema_epoch && age < gc_grace(shard, table)
        })
    };
    for (node, mut places) in unsettled {
        if !seat.marks().handoff().is_for(replicas.view.center_name_of(node)) {
            continue;
        }
        let host = replicas.view.host_of(node);
        seat.marks().compare_all(host, &places.take_tables(|table| !is_sent(table)));
        if let Some((from, _, since)) = sent.filter(|_| !places.is_empty()) {
            let slot_count = places.count();
            tracing::info!(node = %host, slot_count, "what a node may have missed of a life that is over is sent to it");
            seat.own_marks().owe(host, &Logged::of(places, from.position(), since));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_before_the_oldest_write_that_is_not_settled_is() {
        let (mut writes, start) = (WritesUnderWay::default(), Instant::now());
        let second = |count| start + Duration::from_secs(count);
        assert_eq!(writes.settled_before(second(1)), second(1), "there are none");
        let (first, second_of_it) = (writes.begin(second(2)), writes.begin(second(2)));
        assert_eq!(writes.settled_before(second(3)), second(1));
        let later = writes.begin(second(4));
        drop(first);
        assert_eq!(writes.settled_before(second(5)), second(1), "one of two is not settled");
        drop(second_of_it);
        assert_eq!(writes.settled_before(second(6)), second(3));
        drop(later);
        assert_eq!(writes.settled_before(second(7)), second(7));
        assert_eq!(writes.periods.len(), 1);
    }

    #[test]
    #[should_panic(expected = "held by the period in which it began")]
    fn a_write_that_began_before_its_period_ends_the_program() {
        let (mut writes, start) = (WritesUnderWay::default(), Instant::now());
        writes.settled_before(start + Duration::from_secs(1));
        drop(writes.begin(start));
    }
}
