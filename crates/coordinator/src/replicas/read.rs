//! A read from as many replicas as must answer.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use read::{
    Digester, LivePage, PageDigest, ReadCommand, ReadPage, ReadTarget, TombstoneThresholds, UnfilteredPage,
    UnfilteredRows, merge_answers, missing,
};
use replica::{Answer, Failure, Request, Wanted, is_in_order};
use ring::NodeIndex;
use rows::{Mutation, RingRange};
use runtime::{Plant, trace};
use storage::StorageError;
use tokio::time::Instant;
use types::Token;

use super::error::ReplicaError;
use super::requirement::{Counted, Requirement};
use super::view::Plan;
use super::write::Tally;
use super::{Missed, Replicas, misanswered, speculation};
use crate::range::Stretches;
use crate::{Consistency, CoordinatorError};

/// What is read, from whom, until when.
struct Reading<'r> {
    command: &'r ReadCommand,
    wanted: Wanted,
    plan: Plan<'r>,
    requirement: Requirement,
    deadline: Instant,
    /// Those that could not take what they lacked: they are not asked again.
    failed: Vec<NodeIndex>,
    /// Those that took long to take it: others are asked before them.
    late: Vec<NodeIndex>,
}

/// Replicas that were to be made equal.
enum Equal {
    /// They are, and have this.
    All(UnfilteredPage),
    /// This one can not be, and there are others.
    Failed(NodeIndex),
    /// These are not soon, and there are others.
    Late(Vec<NodeIndex>),
}

/// What one replica has.
pub(super) struct Held {
    pub(super) node: NodeIndex,
    pub(super) page: UnfilteredPage,
}

impl Replicas {
    /// Reads one page. What the replicas that answer do not have in common is made equal on them before: a later read
    /// from as many never shows less, unless one of them loses its power with what it had shown and not yet synced.
    ///
    /// # Errors
    /// `Unavailable` at once; or too few answered, or could be made equal.
    pub async fn read(
        &self,
        command: &ReadCommand,
        consistency: Consistency,
        patience: Duration,
    ) -> Result<ReadPage, ReplicaError> {
        let deadline = Instant::now() + patience;
        match &command.target {
            ReadTarget::Keys(keys) => match &keys[..] {
                [key] => self.read_until(command, key.token, consistency, deadline).await,
                _ => Box::pin(self.read_keys(command, keys, consistency, deadline)).await,
            },
            ReadTarget::Range(range) => {
                Box::pin(self.read_range(command, range, consistency, deadline)).await
            }
        }
    }

    /// A range: one part after the other, each as far as it has the same replicas.
    async fn read_range(
        &self,
        command: &ReadCommand,
        range: &RingRange,
        consistency: Consistency,
        deadline: Instant,
    ) -> Result<ReadPage, ReplicaError> {
        let mut stretches = Stretches::new(command, range);
        loop {
            let last = self.end_of_replicas(command.table.id(), stretches.first(), range.last_token())?;
            let part = stretches.next_until(last);
            let read = match self.read_until(&part, last, consistency, deadline).await {
                Err(error) if is_row_too_large(&error) && stretches.can_end() => {
                    return Ok(stretches.end());
                }
                read => read?,
            };
            stretches = match stretches.take(read, last) {
                ControlFlow::Break(page) => return Ok(page),
                ControlFlow::Continue(more) => more,
            };
        }
    }

    /// What the replicas of a token have, which are those of all that the command asks for.
    pub(super) async fn read_until(
        &self,
        command: &ReadCommand,
        token: Token,
        consistency: Consistency,
        deadline: Instant,
    ) -> Result<ReadPage, ReplicaError> {
        let (plan, requirement) = self.admit(command.table.id(), token, consistency)?;
        let command = &bounded(command);
        let wanted = wanted_of(command, consistency, &plan, &requirement);
        let (failed, late) = (Vec::new(), Vec::new());
        let mut reading = Reading { command, wanted, plan, requirement, deadline, failed, late };
        let whole = loop {
            let held = self.gather(&reading).await?;
            match self.make_equal(&reading, held).await? {
                Equal::All(whole) => break whole,
                Equal::Failed(node) => reading.failed.push(node),
                Equal::Late(nodes) => reading.late.extend(nodes),
            }
        };
        let page = LivePage::new(command, self.shard.local().tombstone_thresholds(&command.table));
        Ok(merge_answers(command, [whole], page).map_err(merging_failed)?)
    }

    /// Asks as many replicas as must answer, the nearest first, and another one for each that does not.
    async fn gather(&self, reading: &Reading<'_>) -> Result<Vec<Held>, ReplicaError> {
        let Reading { command, wanted, plan, requirement, deadline, failed, late: slow } = reading;
        let (command, wanted, deadline) = (*command, *wanted, *deadline);
        let mut candidates = self.view.readers(plan);
        candidates.retain(|node| !failed.contains(node));
        candidates.sort_by_key(|node| slow.contains(node));
        let (mut asked, mut expected) = (FuturesUnordered::new(), Counted::none(plan.factors));
        let centers = candidates.iter().map(|node| self.view.center_of(*node));
        let mut tally = Tally::new(requirement.clone(), Counted::none(plan.factors), centers);
        let mut held = Vec::new();
        let ask =
            |node: NodeIndex| async move { (node, self.read_from(node, wanted, command, deadline).await) };
        let late = self.lateness(&command.table, plan.nodes);
        let mut late_at = late.map(|late| Instant::now() + late);
        loop {
            // Those that were asked and have not answered count as if they would.
            while requirement.shortage(&expected).is_some()
                && let Some(node) =
                    self.take_gain(&mut candidates, |center| requirement.would_gain(&expected, center))
            {
                expected.add(self.view.center_of(node));
                asked.push(ask(node));
            }
            if tally.is_enough() {
                return Ok(held);
            }
            if tally.is_decided() {
                return Err(tally.read_error());
            }
            let (node, answer) =
                match self.alarm.timeout_at(late_at.unwrap_or(deadline).min(deadline), asked.next()).await {
                    Ok(Some(answered)) => answered,
                    // Somebody is late: one more is asked, as long as there are any.
                    Err(_) if late_at.is_some_and(|late_at| late_at < deadline) => {
                        let more = self.take_gain(&mut candidates, |center| tally.would_gain(center));
                        late_at = more.and(late).map(|late| Instant::now() + late);
                        if let Some(node) = more {
                            speculation::count(&self.shard, &command.table, 1);
                            trace::note(|| {
                                format!("speculating read retry on /{}", self.view.address_of(node))
                            });
                            expected.add(self.view.center_of(node));
                            asked.push(ask(node));
                        }
                        continue;
                    }
                    Ok(None) | Err(_) => return Err(tally.read_error()),
                };
            let center = self.view.center_of(node);
            match answer {
                Ok(page) => {
                    tally.take_in(&self.view, node, Ok(()));
                    held.push(Held { node, page });
                }
                Err(missed) => {
                    tally.take_in(&self.view, node, Err(missed));
                    expected.remove(center);
                }
            }
        }
    }

    /// Takes out the first candidate whose data centre would gain. The others stay: they may be needed when one fails.
    fn take_gain(&self, candidates: &mut Vec<NodeIndex>, gains: impl Fn(usize) -> bool) -> Option<NodeIndex> {
        let place = candidates.iter().position(|node| gains(self.view.center_of(*node)))?;
        Some(candidates.remove(place))
    }

    pub(super) async fn read_from(
        &self,
        node: NodeIndex,
        wanted: Wanted,
        command: &ReadCommand,
        deadline: Instant,
    ) -> Result<UnfilteredPage, Missed> {
        let answer = match self.view.peer(node) {
            None => replica::read(&self.shard, wanted, command.clone()).await,
            Some(_) => {
                let put = |out: &mut BytesMut| Request::put_read(wanted, command, out);
                self.ask_to_read(node, command.table.id(), deadline, put).await?
            }
        };
        match answer {
            Answer::Rows(page) if is_in_order(&page, command) => {
                let next = page.next.filter(|_| !self.has_planted(Plant::CutTakenForWhole));
                Ok(UnfilteredPage { next, ..page })
            }
            Answer::Failed(failure) => Err(Missed::Failed(failure)),
            _ => Err(misanswered()),
        }
    }

    /// What all of them have together, once each of them has it. One that does not take what it lacks, or not soon, is
    /// not waited for when others can be asked in its place. A table with `read_repair = 'NONE'` is left as it is: its
    /// writes of one partition stay atomic, and a later read may see less.
    async fn make_equal(&self, reading: &Reading<'_>, held: Vec<Held>) -> Result<Equal, ReplicaError> {
        let Reading { command, requirement, deadline, .. } = reading;
        let held = match <[Held; 1]>::try_from(held) {
            Ok([only]) => return Ok(Equal::All(only.page)),
            Err(held) => held,
        };
        let now = if self.has_planted(Plant::ExpiredCompared) { 0 } else { command.now };
        let compared = &ReadCommand { now, ..(*command).clone() };
        let whole = whole_of(compared, &held)?;
        if !command.table.options().repairs_reads() {
            return Ok(Equal::All(whole));
        }
        let lacking = lacking(compared, &whole, &held)?;
        self.read_repairs.note(!lacking.is_empty());
        let lacking = self.spoilt(lacking);
        let mut behind: Vec<NodeIndex> = lacking.iter().map(|(node, _)| *node).collect();
        let repair = |(node, mutations): &'_ (NodeIndex, Vec<Mutation>)| {
            let (node, mutations) = (*node, mutations.clone());
            async move { (node, self.repair(node, &mutations, *deadline).await) }
        };
        let mut repairs: FuturesUnordered<_> = lacking.iter().map(repair).collect();
        // Each time they are given longer, so that nobody is read over and over.
        let times = 1 + u32::try_from(reading.late.len()).unwrap_or(u32::MAX);
        let late = self.lateness(&command.table, &behind);
        let late = late.map(|late| late.max(REPAIR_LATE).saturating_mul(times));
        let mut late_at = late.map(|late| Instant::now() + late);
        loop {
            let (node, outcome) = match self
                .alarm
                .timeout_at(late_at.unwrap_or(*deadline).min(*deadline), repairs.next())
                .await
            {
                Ok(Some(repaired)) => repaired,
                Ok(None) if behind.is_empty() => return Ok(Equal::All(whole)),
                Err(_) if late_at.is_some_and(|late_at| late_at < *deadline) => {
                    if self.can_do_without(reading, &behind) {
                        return Ok(Equal::Late(behind));
                    }
                    late_at = late.map(|late| Instant::now() + late);
                    continue;
                }
                Ok(None) | Err(_) => {
                    let (required, failed) = (requirement.count(), behind.len() as u32);
                    let received = required.saturating_sub(failed);
                    return Err(ReplicaError::ReadTimeout { received, required });
                }
            };
            match outcome {
                Ok(()) => behind.retain(|of| *of != node),
                Err(_) if self.can_do_without(reading, &[node]) => return Ok(Equal::Failed(node)),
                Err(_) => {}
            }
        }
    }

    /// What is to be repaired, but for what a planted fault leaves out.
    fn spoilt(&self, mut lacking: Lacking) -> Lacking {
        if self.has_planted(Plant::UnrepairedRead) {
            lacking.clear();
        }
        if self.has_planted(Plant::DeletionUnrepaired) {
            let deletes = |mutation: &Mutation| !mutation.ranges.is_empty() || !mutation.deletion.is_live();
            lacking.iter_mut().for_each(|(_, mutations)| mutations.retain(|mutation| !deletes(mutation)));
            lacking.retain(|(_, mutations)| !mutations.is_empty());
        }
        lacking
    }

    /// Are there enough replicas that live without these, and without those that failed?
    fn can_do_without(&self, reading: &Reading<'_>, nodes: &[NodeIndex]) -> bool {
        let Reading { plan, requirement, failed, .. } = reading;
        let mut left = Counted::none(plan.factors);
        let is_left =
            |node: &&NodeIndex| self.view.is_alive(**node) && !nodes.contains(node) && !failed.contains(node);
        let readers = self.view.readers(plan);
        readers.iter().filter(is_left).for_each(|node| left.add(self.view.center_of(*node)));
        requirement.shortage(&left).is_none()
    }
}

/// What is read of each replica at that level. A conditional change is told before it is written, once a quorum has
/// accepted it: so rows are wanted in which it is, of as many replicas as meet each quorum. Who reads keys for an
/// agreement has settled all of that.
pub(super) fn wanted_of(
    command: &ReadCommand,
    consistency: Consistency,
    plan: &Plan<'_>,
    requirement: &Requirement,
) -> Wanted {
    let is_of_agreement = matches!(consistency, Consistency::Serial | Consistency::LocalSerial);
    let is_settled = is_of_agreement && matches!(command.target, ReadTarget::Keys(_));
    let agreed = Requirement::of(Consistency::Serial, plan.factors);
    let meets_each = (requirement.count() + agreed.count()) as usize > plan.nodes.len();
    match meets_each && plan.tells_chosen() && !is_settled {
        true => Wanted::WrittenRows,
        false => Wanted::Rows,
    }
}

/// What would make replicas equal: for each of those that lack something, that.
type Lacking = Vec<(NodeIndex, Vec<Mutation>)>;

/// What all of them have together.
pub(super) fn whole_of(command: &ReadCommand, held: &[Held]) -> Result<UnfilteredPage, ReplicaError> {
    let rows = UnfilteredRows::new(command, TombstoneThresholds::NONE);
    let pages = held.iter().map(|held| held.page.clone());
    Ok(merge_answers(command, pages, rows).map_err(merging_failed)?)
}

/// What each lacks of that.
pub(super) fn lacking(
    command: &ReadCommand,
    whole: &UnfilteredPage,
    held: &[Held],
) -> Result<Lacking, ReplicaError> {
    let mut lacking = Vec::new();
    for Held { node, page } in held.iter().filter(|held| held.page != *whole) {
        let mutations = match digest(command, page)? == digest(command, whole)? {
            true => Vec::new(),
            false => missing(command, whole, page),
        };
        if !mutations.is_empty() {
            lacking.push((*node, mutations));
        }
    }
    Ok(lacking)
}

/// A replica that takes what it lacks is not late before, however fast it reads: it may have to sync its log.
const REPAIR_LATE: Duration = Duration::from_millis(50);

/// Is there a row for which the page has no room?
pub(super) fn is_row_too_large(error: &ReplicaError) -> bool {
    match error {
        ReplicaError::Coordinator(CoordinatorError::Storage(StorageError::RowTooLarge { .. })) => true,
        ReplicaError::ReadFailure { failures, .. } => {
            failures.iter().any(|(_, failure)| matches!(failure, Failure::RowTooLarge { .. }))
        }
        _ => false,
    }
}

/// What replicas answer has to fit into a message, and what one lacks into a record of its log.
const ANSWER_BYTES_MAX: usize = 8 << 20;

fn bounded(command: &ReadCommand) -> ReadCommand {
    let mut bounded = command.clone();
    bounded.limits.bytes_max = bounded.limits.bytes_max.min(ANSWER_BYTES_MAX);
    bounded
}

/// By which answers are compared: what compaction may have dropped on one of them makes no difference.
pub(super) fn digest(command: &ReadCommand, page: &UnfilteredPage) -> Result<PageDigest, ReplicaError> {
    let digester = Digester::new(command, TombstoneThresholds::NONE);
    Ok(merge_answers(command, [page.clone()], digester).map_err(merging_failed)?)
}

fn merging_failed(error: read::ReadError) -> CoordinatorError {
    CoordinatorError::from(StorageError::from(error))
}
