//! A write to the replicas of its partitions.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use replica::{Answer, Failure, Request, Written};
use ring::NodeIndex;
use rows::Mutation;
use storage::Unit;
use tokio::time::{Instant, timeout_at};

use super::error::ReplicaError;
use super::requirement::{Counted, Requirement};
use super::view::Plan;
use super::{Missed, Replicas};
use crate::Consistency;

impl Replicas {
    /// Writes mutations of one keyspace to all their replicas, and returns when as many as the level asks for have
    /// them. Those of one set of replicas go together.
    ///
    /// # Errors
    /// Nothing is written after `Unavailable`. After others some may be, or will be.
    ///
    /// # Cancel safety
    /// Dropped, what was sent goes on.
    pub async fn write(
        &self,
        mutations: Vec<Mutation>,
        consistency: Consistency,
        patience: Duration,
    ) -> Result<(), ReplicaError> {
        let Some(keyspace) = self.keyspace_of_all(&mutations) else {
            return if mutations.is_empty() { Ok(()) } else { Err(ReplicaError::NoTable) };
        };
        let mut groups: BTreeMap<&[NodeIndex], (Plan<'_>, Vec<Mutation>)> = BTreeMap::new();
        for mutation in mutations {
            let plan = self.view.plan(&keyspace, mutation.key.token).ok_or(ReplicaError::NoTable)?;
            groups.entry(plan.nodes).or_insert_with(|| (plan, Vec::new())).1.push(mutation);
        }
        // None is sent before all are found to have replicas enough.
        for (plan, _) in groups.values() {
            let requirement = Requirement::of(consistency, plan.factors);
            if let Some(shortage) = requirement.shortage(&self.view.alive(plan)) {
                return Err(shortage.unavailable(consistency));
            }
        }
        let deadline = Instant::now() + patience;
        let writes: FuturesUnordered<_> = groups
            .into_values()
            .map(|(plan, mutations)| self.write_group(plan, mutations, consistency, deadline))
            .collect();
        let outcomes: Vec<Result<(), ReplicaError>> = writes.collect().await;
        outcomes.into_iter().collect()
    }

    /// Writes what has the same replicas.
    async fn write_group(
        &self,
        plan: Plan<'_>,
        mutations: Vec<Mutation>,
        consistency: Consistency,
        deadline: Instant,
    ) -> Result<(), ReplicaError> {
        let requirement = Requirement::of(consistency, plan.factors);
        let ask = |node: &NodeIndex| {
            let (node, mutations) = (*node, &mutations);
            async move { (node, self.write_to(node, mutations, deadline).await) }
        };
        let mut asked: FuturesUnordered<_> = plan.nodes.iter().map(ask).collect();
        let mut tally = Tally::new(Counted::none(plan.factors));
        while let Ok(Some((node, written))) = timeout_at(deadline, asked.next()).await {
            tally.take_in(self.view.center_of(node), written);
            if requirement.shortage(&tally.done).is_none() {
                return Ok(());
            }
        }
        Err(tally.write_error(&requirement, consistency))
    }

    /// Has one replica write, and waits until it says that it has.
    async fn write_to(
        &self,
        node: NodeIndex,
        mutations: &[Mutation],
        deadline: Instant,
    ) -> Result<(), Missed> {
        let written = match self.view.peer(node) {
            None => replica::write(&self.shard, Unit::All, mutations.to_vec()).await,
            Some(peer) => {
                let put = |out: &mut bytes::BytesMut| Request::put_write(Unit::All, mutations, out);
                let asked = peer.ask(deadline.saturating_duration_since(Instant::now()), put);
                let answer = asked.map_err(|error| failed(error.to_string()))?.await?;
                match Answer::read(answer) {
                    Ok(Answer::Written(written)) => written,
                    Ok(_) => return Err(failed("an answer to something else".to_owned())),
                    Err(error) => return Err(failed(error.to_string())),
                }
            }
        };
        outcome(written)
    }

    /// Brings a replica what it lacks.
    pub(super) async fn repair(
        &self,
        node: NodeIndex,
        mutations: &[Mutation],
        deadline: Instant,
    ) -> Result<(), Missed> {
        timeout_at(deadline, self.write_to(node, mutations, deadline))
            .await
            .unwrap_or(Err(Missed::Silent { was_sent: true }))
    }
}

/// What all units of a write came to on one replica.
fn outcome(written: Written) -> Result<(), Missed> {
    match written.failure {
        None if written.done.contains(0) => Ok(()),
        None => Err(failed("nothing was written".to_owned())),
        Some(failure) => Err(Missed::Failed(failure)),
    }
}

pub(super) fn failed(what: String) -> Missed {
    Missed::Failed(Failure::Other { what })
}

/// What replicas have said.
pub(super) struct Tally {
    pub(super) done: Counted,
    failures: Vec<Failure>,
    was_sent: bool,
}

impl Tally {
    pub(super) fn new(none: Counted) -> Tally {
        Tally { done: none, failures: Vec::new(), was_sent: false }
    }

    pub(super) fn take_in(&mut self, center: usize, said: Result<(), Missed>) {
        match said {
            Ok(()) => {
                self.was_sent = true;
                self.done.add(center);
            }
            Err(Missed::Silent { was_sent }) => self.was_sent |= was_sent,
            Err(Missed::Failed(failure)) => {
                self.was_sent = true;
                self.failures.push(failure);
            }
        }
    }

    /// What a client hears of a write of which too few replicas said that they have it.
    fn write_error(mut self, requirement: &Requirement, consistency: Consistency) -> ReplicaError {
        let (received, required) = (self.done.total(), requirement.count());
        if !self.was_sent && received == 0 {
            // Those that seemed to live did not, and nobody has heard of it.
            return ReplicaError::Unavailable { consistency, required, alive: 0 };
        }
        match self.failures.len() {
            0 => ReplicaError::WriteTimeout { received, required },
            count => {
                let (failure_count, first) = (count as u32, self.failures.swap_remove(0));
                ReplicaError::WriteFailure { received, required, failure_count, first }
            }
        }
    }

    /// The same of a read.
    pub(super) fn read_error(mut self, requirement: &Requirement) -> ReplicaError {
        let (received, required) = (self.done.total(), requirement.count());
        match self.failures.len() {
            0 => ReplicaError::ReadTimeout { received, required },
            count => {
                let (failure_count, first) = (count as u32, self.failures.swap_remove(0));
                ReplicaError::ReadFailure { received, required, failure_count, first }
            }
        }
    }
}
