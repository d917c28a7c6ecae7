//! A read of one partition from as many replicas as must answer.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use read::{
    Digester, LivePage, PageDigest, ReadCommand, ReadPage, ReadTarget, TombstoneThresholds, UnfilteredPage,
    UnfilteredRows, merge_answers, missing,
};
use replica::{Answer, Request, Wanted, is_in_order};
use ring::NodeIndex;
use storage::StorageError;
use tokio::time::{Instant, timeout_at};

use super::error::ReplicaError;
use super::requirement::{Counted, Requirement};
use super::view::Plan;
use super::write::Tally;
use super::{Missed, Replicas, ask, misanswered};
use crate::{Consistency, CoordinatorError};

/// What one replica has.
struct Held {
    node: NodeIndex,
    page: UnfilteredPage,
}

impl Replicas {
    /// Reads one page of one partition. What the replicas that answer do not have in common is made equal on them
    /// before: a later read from as many never shows less, unless one of them loses its power with what it had shown
    /// and not yet synced.
    ///
    /// # Errors
    /// `Unavailable` at once; or too few answered, or could be made equal.
    ///
    /// # Panics
    /// When the command is not of one key.
    pub async fn read(
        &self,
        command: &ReadCommand,
        consistency: Consistency,
        patience: Duration,
    ) -> Result<ReadPage, ReplicaError> {
        let ReadTarget::Keys(keys) = &command.target else { panic!("ranges are read stretch by stretch") };
        let [key] = &keys[..] else { panic!("keys are read one by one") };
        let (plan, requirement) = self.admit(command.table.id(), key.token, consistency)?;
        let deadline = Instant::now() + patience;
        let command = &bounded(command);
        let held = self.gather(command, &plan, &requirement, deadline).await?;
        let whole = self.make_equal(command, held, &requirement, deadline).await?;
        let page = LivePage::new(command, self.shard.local().tombstone_thresholds(&command.table));
        Ok(merge_answers(command, [whole], page).map_err(merging_failed)?)
    }

    /// Asks as many replicas as must answer, the nearest first, and another one for each that does not.
    async fn gather(
        &self,
        command: &ReadCommand,
        plan: &Plan<'_>,
        requirement: &Requirement,
        deadline: Instant,
    ) -> Result<Vec<Held>, ReplicaError> {
        let mut candidates = self.view.nearest_first(plan).into_iter();
        let (mut asked, mut expected) = (FuturesUnordered::new(), Counted::none(plan.factors));
        let centers = plan.nodes.iter().map(|node| self.view.center_of(*node));
        let mut tally = Tally::new(requirement.clone(), Counted::none(plan.factors), centers);
        let mut held = Vec::new();
        loop {
            // Those that were asked and have not answered count as if they would.
            while requirement.shortage(&expected).is_some()
                && let Some(node) = candidates.find(|node| {
                    let mut with = expected.clone();
                    with.add(self.view.center_of(*node));
                    requirement.gains(&expected, &with)
                })
            {
                expected.add(self.view.center_of(node));
                asked.push(async move { (node, self.read_from(node, command, deadline).await) });
            }
            if tally.is_enough() {
                return Ok(held);
            }
            if tally.is_decided() {
                return Err(tally.read_error());
            }
            let Ok(Some((node, answer))) = timeout_at(deadline, asked.next()).await else {
                return Err(tally.read_error());
            };
            let center = self.view.center_of(node);
            match answer {
                Ok(page) => {
                    tally.take_in(center, Ok(()));
                    held.push(Held { node, page });
                }
                Err(missed) => {
                    tally.take_in(center, Err(missed));
                    expected.remove(center);
                }
            }
        }
    }

    async fn read_from(
        &self,
        node: NodeIndex,
        command: &ReadCommand,
        deadline: Instant,
    ) -> Result<UnfilteredPage, Missed> {
        let answer = match self.view.peer(node) {
            None => replica::read(&self.shard, Wanted::Rows, command.clone()).await,
            Some(peer) => ask(peer, deadline, |out| Request::put_read(Wanted::Rows, command, out)).await?,
        };
        match answer {
            Answer::Rows(page) if is_in_order(&page, command) => Ok(page),
            Answer::Failed(failure) => Err(Missed::Failed(failure)),
            _ => Err(misanswered()),
        }
    }

    /// What all of them have together, once each of them has it.
    async fn make_equal(
        &self,
        command: &ReadCommand,
        held: Vec<Held>,
        requirement: &Requirement,
        deadline: Instant,
    ) -> Result<UnfilteredPage, ReplicaError> {
        let mut pages = held.iter().map(|held| held.page.clone());
        if let [_] = &held[..] {
            return Ok(pages.next().expect("there is one"));
        }
        let rows = UnfilteredRows::new(command, TombstoneThresholds::NONE);
        let whole = merge_answers(command, pages, rows).map_err(merging_failed)?;
        for Held { node, page } in held.iter().filter(|held| held.page != whole) {
            if digest(command, page)? == digest(command, &whole)? {
                continue;
            }
            let mutations = missing(command, &whole, page);
            if !mutations.is_empty() && self.repair(*node, &mutations, deadline).await.is_err() {
                let required = requirement.count();
                return Err(ReplicaError::ReadTimeout { received: required.saturating_sub(1), required });
            }
        }
        Ok(whole)
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
fn digest(command: &ReadCommand, page: &UnfilteredPage) -> Result<PageDigest, ReplicaError> {
    let digester = Digester::new(command, TombstoneThresholds::NONE);
    Ok(merge_answers(command, [page.clone()], digester).map_err(merging_failed)?)
}

fn merging_failed(error: read::ReadError) -> CoordinatorError {
    CoordinatorError::from(StorageError::from(error))
}
