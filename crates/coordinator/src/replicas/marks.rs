//! What other replicas have missed: no rows, but where they are.
//!
//! A write that a replica did not acknowledge marks the slot of its partition, for that node and table. When the node
//! is there again it is brought what it lacks, in one of two ways:
//!
//! ```text
//!   this node has logged the write    it is read again in the log, and sent: logged.rs
//!   it has not, or not any more       rows of the slot are compared and made equal: healing.rs
//! ```
//!
//! So however long a node is away, and however much is written meanwhile, a mark is a bit for each of 4,096 slots and
//! a place in a log that is there anyway. Marks of what is logged stand with the shard of this node that owns the
//! partition, whichever shard has coordinated the write: it is the one that has logged it. Those of what is compared
//! stand with one shard for each slot.

mod compared;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::TableId;
use storage::LogPosition;
use tokio::time::Instant;
use types::Token;
use uuid::Uuid;

use super::handoff::Handoff;
use super::lives::WritesOfOthers;
use super::owed::{Kept, Logged, Owed, Pending};
use super::settled::{End, KEEP_EVERY, UnderWay, WritesUnderWay};
use super::slots::{Places, slot_of};

/// For so long it is known where the log ended when a write began, and where others had this node write: time in which
/// it ran, or more. A write that takes longer is compared.
pub(super) const REMEMBERED_FOR: Duration = Duration::from_secs(5);
/// So often it is noted, and marks are kept that have changed.
pub(super) const NOTE_EVERY: Duration = Duration::from_millis(100);
/// It is kept so late how far the log is settled: by then another node has settled what it has begun, or its silence
/// was noticed, and that is doubted (`lives.rs`).
const KEPT_LATE_BY: Duration = Duration::from_secs(4);
const _: () = {
    let noticed_within = cluster::membership::SILENCE.as_millis() + super::lives::LOOK_EVERY.as_millis();
    assert!(
        noticed_within < KEPT_LATE_BY.as_millis(),
        "silence is noticed before what it leaves is kept as settled"
    );
    assert!(KEPT_LATE_BY.as_millis() < REMEMBERED_FOR.as_millis(), "that long ago is remembered");
};
const ENDS_COUNT_MAX: usize = (REMEMBERED_FOR.as_millis() / NOTE_EVERY.as_millis()) as usize;

/// What others have missed of what this node's shards own. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Marks {
    of_shards: Arc<[ShardMarks]>,
    handoff: Arc<Handoff>,
}

impl Marks {
    /// None yet, of so many shards.
    pub fn new(shard_count: usize, handoff: Arc<Handoff>) -> Marks {
        Marks { of_shards: (0..shard_count).map(|_| ShardMarks::default()).collect(), handoff }
    }

    /// Those of one shard.
    pub(super) fn of(&self, owner: usize) -> &ShardMarks {
        &self.of_shards[owner]
    }

    /// How many shards there are.
    pub(super) fn shard_count(&self) -> usize {
        self.of_shards.len()
    }

    /// Rows there are to be compared with a node's. Each slot stands with one shard: comparing it is comparing what all
    /// shards have of it.
    pub(super) fn compare_all(&self, node: Uuid, places: &Places) {
        for (table, slots) in places.tables() {
            slots.iter().for_each(|slot| self.compare(node, *table, slot));
        }
    }

    /// Rows of the slot are to be compared with a node's.
    pub(super) fn compare(&self, node: Uuid, table: TableId, slot: usize) {
        self.of(slot % self.shard_count()).compare(node, table, slot);
    }

    /// All writes that this node coordinates and that began before are settled; `None` while not all shards have begun.
    pub(super) fn settled_before(&self) -> Option<Instant> {
        let of_shards = self.of_shards.iter().map(|marks| marks.state().settled_before);
        of_shards.min().flatten()
    }

    /// What is done with them.
    pub fn handoff(&self) -> &Arc<Handoff> {
        &self.handoff
    }

    /// What a node has missed, over all tables and shards.
    pub fn pending(&self, node: Uuid) -> Pending {
        let mut pending = Pending::default();
        self.of_shards.iter().for_each(|marks| marks.add_pending(node, &mut pending));
        pending
    }

    /// Where the node wrote lately what another one had asked it for, over all shards.
    pub(super) fn received_of(&self, node: Uuid) -> Places {
        let mut places = Places::default();
        self.of_shards.iter().for_each(|marks| marks.state().of_others.add_to(node, &mut places));
        places
    }

    /// How many slots are marked for a node, over all tables and shards.
    pub fn slot_count(&self, node: Uuid) -> usize {
        let Pending { logged_count, compared_count, .. } = self.pending(node);
        logged_count + compared_count
    }

    /// Forgets what a node has missed, or all nodes have: who wants it equal again repairs it.
    pub fn forget(&self, node: Option<Uuid>) {
        self.of_shards.iter().for_each(|marks| marks.forget(node));
    }
}

/// What others have missed, as far as one shard brings it to them.
#[derive(Debug, Default)]
pub(super) struct ShardMarks {
    state: Mutex<State>,
    /// Held by who writes the file of these marks, or reads it: one after the other. Was it read?
    pub(super) keeping: tokio::sync::Mutex<bool>,
}

#[derive(Debug, Default)]
struct State {
    of_nodes: BTreeMap<Uuid, Owed>,
    /// What was taken to be healed, until that is over: it is kept with the others.
    in_healing: BTreeMap<Uuid, Owed>,
    /// Where the shard's log ended, and when; the oldest first.
    ends: VecDeque<(Instant, End)>,
    /// What the shard coordinates.
    under_way: WritesUnderWay,
    /// What others coordinate, as far as the shard was asked for it.
    of_others: WritesOfOthers,
    /// Of that all is settled that began before.
    settled_before: Option<Instant>,
    /// All that stands before in the shard's log is settled, of an earlier run too once it is marked.
    settled: Option<End>,
    /// What stands from there on others may not have told all replicas.
    doubted_from: Option<End>,
    /// What is kept of that, and since when; `None` until the marks of an earlier run are here.
    kept: Option<(LogPosition, Option<Instant>)>,
    /// Have the marks changed since they were kept?
    is_changed: bool,
}

impl ShardMarks {
    fn state(&self) -> MutexGuard<'_, State> {
        // It is whole between any two of its changes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what an earlier run has kept. Its log may have lost what it had not synced: all of it is compared.
    pub(super) fn restore(&self, kept: Kept) {
        let state = &mut *self.state();
        for (node, table, slots) in kept.into_marks() {
            slots.iter().for_each(|slot| state.compare(node, table, slot));
        }
    }

    /// To be kept, if they have changed since they were last.
    pub(super) fn take_changed(&self) -> Option<Kept> {
        let state = &mut *self.state();
        std::mem::take(&mut state.is_changed).then(|| {
            let owed = state.of_nodes.iter().chain(&state.in_healing);
            let places = owed.flat_map(|(node, owed)| owed.places().map(|places| (*node, places.tables())));
            let marks = places
                .flat_map(|(node, tables)| tables.map(move |(table, slots)| (node, table.0, slots.clone())));
            Kept(marks.collect())
        })
    }

    /// They are not kept as they are.
    pub(super) fn note_change(&self) {
        self.state().is_changed = true;
    }

    /// The shard's log ends there now.
    pub(super) fn note_end(&self, now: Instant, end: End) {
        let state = &mut *self.state();
        state.settled_before = Some(state.under_way.settled_before(now));
        let ends = &mut state.ends;
        let grows = ends.back().is_none_or(|(_, before)| before.position() <= end.position());
        assert!(grows, "a log ends where it ended, or behind");
        ends.push_back((now, end));
        if ends.len() > ENDS_COUNT_MAX {
            ends.pop_front();
        }
    }

    /// Where the shard's log ended a while ago.
    pub(super) fn ended_before(&self) -> Option<End> {
        self.state().ends.front().map(|(_, end)| *end)
    }

    /// What stands in the shard's log from there on other replicas may lack, as others may have begun to write it whose
    /// lives are over, or may be.
    pub(super) fn doubt_from(&self, from: Option<End>) {
        self.state().doubted_from = from;
    }

    /// Another node has asked the shard to write this.
    pub(super) fn note_received(&self, node: Uuid, places: impl Iterator<Item = (TableId, Token)>) {
        self.state().of_others.note(node, places);
    }

    /// What others have asked for longer ago is forgotten, a little at a time.
    pub(super) fn forget_received(&self, now: Instant) {
        self.state().of_others.forget(now);
    }

    /// The shard coordinates a write that began then, in this turn.
    pub(super) fn begin_write(&self, begun: Instant) -> UnderWay {
        self.state().under_way.begin(begun)
    }

    /// All writes that began before are settled, and the log is on the disk up to that place: so what stands where it
    /// ended before is settled, and what is logged later stands behind, whatever becomes of the node.
    pub(super) fn settle(&self, before: Instant, synced_to: LogPosition) {
        let state = &mut *self.state();
        let is_settled = |(at, end): &&(Instant, End)| *at < before && end.position() <= synced_to;
        let Some((_, end)) = state.ends.iter().rev().find(is_settled) else { return };
        if state.settled.is_none_or(|settled| settled.position() < end.position()) {
            state.settled = Some(*end);
        }
    }

    /// What an earlier run had not settled is marked; it is kept that all before that place was.
    pub(super) fn begin_to_keep(&self, from: LogPosition) {
        self.state().kept = Some((from, None));
    }

    /// How far the log is settled, if that is to be kept now: it is not each time, but for the last. What was written
    /// just now or is doubted is left out: if this node is killed, another one may be with it.
    pub(super) fn settled_to_keep(&self, now: Instant, is_last: bool) -> Option<End> {
        let state = &*self.state();
        let ((kept, at), settled) = (state.kept?, state.settled?);
        let is_late = |(at, _): &&(Instant, End)| now.saturating_duration_since(*at) >= KEPT_LATE_BY;
        let a_while_ago = state.ends.iter().rev().find(is_late).or(state.ends.front());
        let a_while_ago = a_while_ago.map(|(_, end)| *end).filter(|_| !is_last);
        let doubtful = a_while_ago.into_iter().chain(state.doubted_from);
        let settled = doubtful.chain([settled]).min_by_key(End::position)?;
        let is_due = is_last || at.is_none_or(|at| now.saturating_duration_since(at) >= KEEP_EVERY);
        (is_due && kept < settled.position()).then_some(settled)
    }

    /// It is kept that all before that place is settled.
    pub(super) fn note_kept(&self, settled: LogPosition, now: Instant) {
        let state = &mut *self.state();
        let is_settled = state.settled.is_some_and(|all| settled <= all.position());
        assert!(is_settled, "no more is kept as settled than is");
        state.kept = Some((settled, Some(now)));
    }

    /// From where on the next run needs the log. When that is too much it will compare all it has.
    pub(super) fn kept_from(&self, is_too_long: bool) -> LogPosition {
        let state = &*self.state();
        let kept = state.kept.map_or(LogPosition::START, |(kept, _)| kept);
        let known = state.ends.front().filter(|_| is_too_long).map(|(_, end)| end.position());
        known.map_or(kept, |known| known.max(kept))
    }

    /// A node has not acknowledged a write to the table at that token, which began then and which the shard has logged.
    /// Is it known where? If not, nothing is marked.
    #[must_use]
    pub(super) fn add_logged(&self, node: Uuid, table: TableId, token: Token, begun: Instant) -> bool {
        let state = &mut *self.state();
        let ended_before = state.ends.iter().rev().find(|(at, _)| *at < begun);
        let Some((since, end)) = ended_before.copied() else { return false };
        let owed = &mut state.of_nodes.entry(node).or_default().logged;
        state.is_changed |= owed.insert((table, slot_of(token)), end.position(), since);
        true
    }

    /// Nodes that have missed something.
    pub(super) fn nodes(&self) -> Vec<Uuid> {
        self.state().of_nodes.keys().copied().collect()
    }

    /// Takes what a node has missed that stands in the log. Who can not send all of it [owes](ShardMarks::owe) the rest
    /// again, and says in the end that healing is over.
    pub(super) fn take_logged(&self, node: Uuid) -> Option<Logged> {
        let state = &mut *self.state();
        let owed = state.of_nodes.get_mut(&node).filter(|owed| !owed.logged.places().is_empty())?;
        let logged = std::mem::take(&mut owed.logged);
        state.forget_if_nothing(node);
        state.in_healing.entry(node).or_default().logged.add_all(&logged);
        Some(logged)
    }

    /// A node has missed this, which stands in the log.
    pub(super) fn owe(&self, node: Uuid, logged: &Logged) {
        let state = &mut *self.state();
        state.of_nodes.entry(node).or_default().logged.add_all(logged);
        state.is_changed = true;
    }

    /// Of what stands in the log from some place on and was missed since some time, the tables that are given up are
    /// taken out: who wants them equal compares them. Gives them by their nodes.
    #[must_use]
    pub(super) fn give_up_log(
        &self,
        is_given_up: impl Fn(TableId, LogPosition, Instant) -> bool,
    ) -> Vec<(Uuid, Places)> {
        let state = &mut *self.state();
        let mut given_up = Vec::new();
        for (node, owed) in state.of_nodes.iter_mut().chain(&mut state.in_healing) {
            let places = owed.logged.give_up(&is_given_up);
            if !places.is_empty() {
                given_up.push((*node, places));
            }
        }
        given_up
    }

    /// What stands in the log and was taken for a node was sent, or was added again.
    pub(super) fn sending_is_over(&self, node: Uuid) {
        let state = &mut *self.state();
        if let Some(owed) = state.in_healing.get_mut(&node) {
            owed.logged = Logged::default();
            state.is_changed = true;
        }
    }

    /// Forgets what a node has missed, or all have.
    pub(super) fn forget(&self, node: Option<Uuid>) {
        let state = &mut *self.state();
        for owed in [&mut state.of_nodes, &mut state.in_healing] {
            owed.retain(|owed, _| node.is_some_and(|node| node != *owed));
        }
        state.is_changed = true;
    }

    /// From where on the log is needed: for what nodes have missed, and for what they may have.
    pub(super) fn held_from(&self) -> LogPosition {
        let state = &*self.state();
        let owed = state.of_nodes.values().chain(state.in_healing.values());
        let known = state.ends.front().map(|(_, end)| *end).into_iter().chain(state.doubted_from);
        let known = known.map(|end| end.position());
        owed.filter_map(|owed| owed.logged.from()).chain(known).min().unwrap_or(LogPosition::END)
    }

    fn add_pending(&self, node: Uuid, pending: &mut Pending) {
        let state = &*self.state();
        // Also what is being healed.
        for owed in [&state.of_nodes, &state.in_healing].into_iter().filter_map(|owed| owed.get(&node)) {
            pending.logged_count += owed.logged.places().count();
            pending.compared_count += owed.compared.count() + owed.waiting.count();
            pending.since = [pending.since, owed.logged.since()].into_iter().flatten().min();
        }
    }
}

impl State {
    fn forget_if_nothing(&mut self, node: Uuid) {
        if self.of_nodes.get(&node).is_some_and(Owed::is_nothing) {
            self.of_nodes.remove(&node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Uuid = Uuid::from_u128(1);
    const TABLE: TableId = TableId(Uuid::from_u128(7));

    fn at(offset: u32) -> LogPosition {
        LogPosition { segment: 1, offset }
    }

    fn end(offset: u32) -> End {
        End::at(at(offset), 1, 0, 1)
    }

    /// Slots to be sent, and to be compared.
    fn counts(marks: &ShardMarks) -> (usize, usize) {
        let mut pending = Pending::default();
        marks.add_pending(NODE, &mut pending);
        (pending.logged_count, pending.compared_count)
    }

    #[test]
    fn a_mark_is_a_slot_of_a_table_and_survives_as_bytes() {
        let (other, second) = (Uuid::from_u128(2), TableId(Uuid::from_u128(8)));
        let marks = ShardMarks::default();
        assert!(marks.take_changed().is_none());
        for token in [0, 1, i64::MAX] {
            marks.compare(NODE, TABLE, slot_of(Token(token)));
        }
        marks.compare(other, second, slot_of(Token(-5)));
        let kept = serde_json::to_string(&marks.take_changed().expect("they have changed")).expect("text");
        marks.compare(NODE, TABLE, slot_of(Token(2)));
        assert!(marks.take_changed().is_none(), "it was marked before");
        let marks = ShardMarks::default();
        marks.restore(serde_json::from_str(&kept).expect("marks"));
        assert_eq!((marks.nodes(), counts(&marks)), (vec![NODE, other], (0, 2)));
        let slots = [Token(0), Token::MAX].map(slot_of).to_vec();
        assert_eq!(marks.take_compared(NODE), Some((TABLE, slots)));
        assert_eq!((marks.take_compared(NODE), marks.nodes()), (None, vec![other]));
    }

    #[test]
    fn marks_in_healing_are_kept_until_it_is_over() {
        let marks = ShardMarks::default();
        let start = Instant::now();
        marks.note_end(start, end(10));
        for token in [0, i64::MAX] {
            marks.compare(NODE, TABLE, slot_of(Token(token)));
            assert!(marks.take_compared(NODE).is_some(), "it is marked");
        }
        assert!(marks.add_logged(NODE, TABLE, Token(i64::MIN + 1), start + Duration::from_millis(1)));
        assert!(marks.take_logged(NODE).is_some(), "it is logged");
        let kept = || {
            let restored = ShardMarks::default();
            restored.restore(marks.take_changed().expect("they have changed"));
            counts(&restored)
        };
        assert_eq!((counts(&marks), kept()), ((1, 2), (0, 3)), "they were taken one after the other");
        marks.healing_is_over();
        assert_eq!(kept(), (0, 0));
    }

    /// A slot is compared on all its replicas, whoever of them has missed something.
    #[test]
    fn a_slot_that_is_compared_is_taken_of_all_nodes_together() {
        let (marks, [other, third]) = (ShardMarks::default(), [2, 3].map(Uuid::from_u128));
        for node in [NODE, other, third] {
            marks.compare(node, TABLE, 7);
        }
        marks.wait(other, TABLE, 8);
        assert_eq!(marks.take_compared(NODE), Some((TABLE, vec![7])));
        assert_eq!(marks.take_of_others(TABLE, 7, |node| node != third), vec![other]);
        assert_eq!(marks.take_of_others(TABLE, 8, |_| true), vec![other], "also what waits");
        let left = marks.nodes();
        let restored = ShardMarks::default();
        restored.restore(marks.take_changed().expect("they have changed"));
        assert_eq!(
            (left, restored.nodes()),
            (vec![third], vec![NODE, other, third]),
            "until healing is over"
        );
        marks.healing_is_over();
        assert_eq!((marks.nodes(), marks.take_compared(third)), (vec![third], Some((TABLE, vec![7]))));
    }

    #[test]
    fn the_log_is_held_from_where_it_ended_when_the_first_missed_write_began() {
        let (marks, start) = (ShardMarks::default(), Instant::now());
        let second = |count| start + Duration::from_secs(count);
        assert!(!marks.add_logged(NODE, TABLE, Token(0), start), "nobody knows where that was");
        for count in 1..=4 {
            marks.note_end(second(count), end(count as u32));
        }
        assert!(marks.add_logged(NODE, TABLE, Token(0), second(3) + Duration::from_millis(1)));
        assert!(marks.add_logged(NODE, TABLE, Token(1), second(4)));
        assert_eq!(marks.held_from(), at(1), "a write that began then may still be missed");
        let ends_count = 13 + ENDS_COUNT_MAX as u64;
        for count in 5..=ends_count {
            marks.note_end(second(count), end(count as u32));
        }
        assert_eq!(marks.held_from(), at(3));
        let logged = marks.take_logged(NODE).expect("it has missed some");
        let facts = (logged.from(), logged.since(), marks.held_from());
        assert_eq!(facts, (Some(at(3)), Some(second(3)), at(3)));
        marks.owe(NODE, &logged.rest(at(7)));
        marks.healing_is_over();
        assert_eq!(marks.held_from(), at(7), "what was sent is not needed");
        assert!(marks.give_up_log(|_, from, _| from < at(7)).is_empty(), "it begins there");
        let [(node, places)] = &marks.give_up_log(|_, _, since| since == second(3))[..] else {
            panic!("one")
        };
        assert_eq!((*node, places.count()), (NODE, 1));
        assert_eq!((marks.held_from(), counts(&marks)), (at(14), (0, 0)), "so many ends are known");
        marks.doubt_from(Some(end(4)));
        assert_eq!(marks.held_from(), at(4), "another node may have left something there");
    }

    #[test]
    fn the_log_is_settled_up_to_where_it_ended_before_the_oldest_write_and_is_on_the_disk() {
        let (marks, start) = (ShardMarks::default(), Instant::now());
        let second = |count| start + Duration::from_secs(count);
        let settled_to = |before, synced_to| {
            marks.settle(before, at(synced_to));
            marks.state().settled.map(|settled| settled.position())
        };
        for count in 1..=4 {
            marks.note_end(second(count), end(count as u32));
        }
        assert_eq!(settled_to(second(1), 9), None, "it may have begun in that moment");
        assert_eq!(settled_to(second(3), 9), Some(at(2)));
        assert_eq!(
            settled_to(second(4), 2),
            Some(at(2)),
            "the rest may be lost, and its places are used again"
        );
        assert_eq!(settled_to(second(2), 9), Some(at(2)), "it stays settled");
        assert_eq!(marks.kept_from(false), LogPosition::START, "an earlier run may have left something");
        assert_eq!(marks.kept_from(true), at(1), "that is too much");
    }

    #[test]
    fn what_is_kept_of_that_is_late_but_for_the_last() {
        let (marks, start) = (ShardMarks::default(), Instant::now());
        let second = |count: u32| start + Duration::from_secs(count.into());
        let to_keep =
            |count, is_last| marks.settled_to_keep(second(count), is_last).map(|end| end.position().offset);
        (1..=4).for_each(|count| marks.note_end(second(count), end(count)));
        marks.settle(second(4), at(9));
        assert_eq!(to_keep(6, true), None, "an earlier run may have left something");
        marks.begin_to_keep(at(0));
        assert_eq!((to_keep(6, false), to_keep(6, true), marks.kept_from(false)), (Some(2), Some(3), at(0)));
        marks.note_kept(at(2), second(6));
        assert_eq!((to_keep(6, false), marks.kept_from(false)), (None, at(2)), "it is kept");
        (5..9).for_each(|count| marks.note_end(second(count), end(count)));
        marks.settle(second(9), at(9));
        assert_eq!([to_keep(10, false), to_keep(10, true)], [Some(6), Some(8)]);
        marks.note_kept(at(3), second(10));
        assert_eq!([to_keep(10, false), to_keep(10, true)], [None, Some(8)], "it was kept just now");
        marks.doubt_from(Some(end(5)));
        assert_eq!([to_keep(11, false), to_keep(11, true)], [Some(5), Some(5)]);
    }

    #[test]
    fn what_a_node_has_missed_that_is_gone_is_forgotten() {
        let marks = ShardMarks::default();
        marks.compare(NODE, TABLE, slot_of(Token(0)));
        assert!(marks.take_compared(NODE).is_some());
        marks.compare(NODE, TABLE, slot_of(Token(1)));
        marks.forget(Some(NODE));
        let restored = ShardMarks::default();
        restored.restore(marks.take_changed().expect("they have changed"));
        assert_eq!((marks.nodes(), restored.nodes()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn what_waits_is_kept_and_compared_when_it_need_not_wait_any_more() {
        let marks = ShardMarks::default();
        marks.wait(NODE, TABLE, 7);
        let restored = ShardMarks::default();
        restored.restore(marks.take_changed().expect("they have changed"));
        assert_eq!((counts(&marks), counts(&restored)), ((0, 1), (0, 1)));
        assert!(marks.take_compared(NODE).is_none());
        marks.stop_waiting();
        assert_eq!(marks.take_compared(NODE), Some((TABLE, vec![7])));
    }

    #[test]
    fn marks_of_another_grid_are_left_out() {
        let kept = r#"[["00000000-0000-0000-0000-000000000001","00000000-0000-0000-0000-000000000007",[1]]]"#;
        let marks = ShardMarks::default();
        marks.restore(serde_json::from_str(kept).expect("marks"));
        assert!(marks.nodes().is_empty());
    }

    #[test]
    fn a_log_never_ends_before_it_ended() {
        let (marks, now) = (ShardMarks::default(), Instant::now());
        marks.note_end(now, end(10));
        marks.note_end(now, end(10));
        let noted = runtime::caught(|| marks.note_end(now, end(9)));
        assert_eq!(noted.expect_err("it is seen").what, "a log ends where it ended, or behind");
    }

    #[test]
    fn what_is_not_settled_is_not_kept_as_settled() {
        let (marks, start) = (ShardMarks::default(), Instant::now());
        marks.note_end(start, end(10));
        marks.settle(start + Duration::from_secs(1), at(10));
        marks.note_kept(at(10), start);
        let kept = runtime::caught(|| marks.note_kept(at(11), start));
        assert_eq!(kept.expect_err("it is seen").what, "no more is kept as settled than is");
    }
}
