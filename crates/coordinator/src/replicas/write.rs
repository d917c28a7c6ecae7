//! A write to the replicas of its partitions.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use replica::{Answer, Failure, Request, Written};
use ring::NodeIndex;
use rows::Mutation;
use schema::TableId;
use smallvec::SmallVec;
use storage::Unit;
use tokio::time::{Instant, timeout_at};
use types::Token;

use super::error::ReplicaError;
use super::missed::Marks;
use super::requirement::{Counted, Requirement};
use super::view::{Plan, RingView};
use super::{Missed, Replicas, ask, failed, misanswered};
use crate::Consistency;

impl Replicas {
    /// Writes mutations to all their replicas, and returns when as many as the level asks for have them. Those of one
    /// set of replicas go together.
    ///
    /// # Errors
    /// Nothing is written after `Unavailable`. After others some may be, or will be.
    ///
    /// # Cancel safety
    /// Dropped, what was sent goes on; all is sent before anything is waited for.
    pub async fn write(
        &self,
        mutations: Vec<Mutation>,
        consistency: Consistency,
        patience: Duration,
    ) -> Result<(), ReplicaError> {
        // None is sent before all are found to have replicas enough.
        let mut groups: Vec<(Plan<'_>, Requirement, Vec<Mutation>)> = Vec::new();
        for mutation in mutations {
            let (plan, requirement) = self.admit(mutation.table, mutation.key.token, consistency)?;
            // Two keyspaces may have the same nodes, and want more or fewer of them.
            let is_same = |group: &&mut (Plan<'_>, Requirement, _)| {
                group.0.nodes == plan.nodes && group.1 == requirement
            };
            match groups.iter_mut().find(is_same) {
                Some((_, _, mutations)) => mutations.push(mutation),
                None => groups.push((plan, requirement, vec![mutation])),
            }
        }
        let deadline = Instant::now() + patience;
        let begun: Vec<GroupWrite> = groups
            .into_iter()
            .map(|(plan, requirement, mutations)| self.begin_group(&plan, requirement, &mutations, deadline))
            .collect();
        let outcomes = join_all(begun.into_iter().map(|group| group.finish(consistency, deadline))).await;
        together(outcomes)
    }

    /// Are there replicas enough of these?
    ///
    /// # Errors
    /// `Unavailable`, or `NoTable`.
    pub(crate) fn check<'m>(
        &self,
        mutations: impl IntoIterator<Item = &'m Mutation>,
        consistency: Consistency,
    ) -> Result<(), ReplicaError> {
        let mut mutations = mutations.into_iter();
        mutations
            .try_for_each(|mutation| self.admit(mutation.table, mutation.key.token, consistency).map(drop))
    }

    /// Asks all replicas of what has the same ones.
    fn begin_group(
        &self,
        plan: &Plan<'_>,
        requirement: Requirement,
        mutations: &[Mutation],
        deadline: Instant,
    ) -> GroupWrite {
        let asked = plan.nodes.iter().map(|node| {
            let (node, write) = (*node, self.begin_write(*node, mutations, deadline));
            async move { (node, write.await) }.boxed_local()
        });
        let asked = asked.collect();
        let centers = plan.nodes.iter().map(|node| self.view.center_of(*node));
        let tally = Tally::new(requirement, Counted::none(plan.factors), centers);
        let places = mutations.iter().map(|mutation| (mutation.table, mutation.key.token)).collect();
        let watched = Watched::new(self, plan.nodes, places);
        GroupWrite { view: Rc::clone(&self.view), asked, tally, watched }
    }

    /// Has one replica write; what comes of it can be waited for.
    fn begin_write(
        &self,
        node: NodeIndex,
        mutations: &[Mutation],
        deadline: Instant,
    ) -> LocalBoxFuture<'static, Result<(), Missed>> {
        let Some(peer) = self.view.peer(node) else {
            let (shard, mutations) = (self.shard.clone(), mutations.to_vec());
            let write = async move { replica::write(&shard, Unit::All, mutations).await };
            // A task, so that it goes on when the others were enough.
            let write = runtime::spawn_local("a replica's own write", Box::pin(write));
            let written =
                async move { write.await.map_err(|error| failed(error.to_string())).and_then(outcome) };
            return written.boxed_local();
        };
        let answer = ask(peer, deadline, |out| Request::put_write(Unit::All, mutations, out));
        async move {
            match answer.await? {
                Answer::Written(written) => outcome(written),
                _ => Err(misanswered()),
            }
        }
        .boxed_local()
    }

    /// Brings a replica what it lacks.
    pub(super) async fn repair(
        &self,
        node: NodeIndex,
        mutations: &[Mutation],
        deadline: Instant,
    ) -> Result<(), Missed> {
        let write = self.begin_write(node, mutations, deadline);
        timeout_at(deadline, write).await.unwrap_or(Err(Missed::Silent { was_sent: true }))
    }
}

/// A write of one group that all its replicas were asked for.
struct GroupWrite {
    view: Rc<RingView>,
    asked: Asked<Result<(), Missed>>,
    tally: Tally,
    watched: Watched,
}

/// Asked of replicas, by node.
pub(super) type Asked<T> = FuturesUnordered<LocalBoxFuture<'static, (NodeIndex, T)>>;

/// Replicas that have not acknowledged a write yet, of which it is marked when they do not.
pub(super) struct Watched {
    view: Rc<RingView>,
    marks: Rc<Marks>,
    left: SmallVec<[NodeIndex; 4]>,
    places: Rc<[(TableId, Token)]>,
}

impl Watched {
    /// All of them.
    pub(super) fn new(replicas: &Replicas, nodes: &[NodeIndex], places: Rc<[(TableId, Token)]>) -> Watched {
        let (view, marks) = (Rc::clone(&replicas.view), Rc::clone(&replicas.marks));
        Watched { view, marks, left: SmallVec::from_slice(nodes), places }
    }

    /// One has answered: which of the writes has it?
    pub(super) fn answered(&mut self, node: NodeIndex, has: impl Fn(usize) -> bool) {
        self.left.retain(|left| *left != node);
        for (index, (table, token)) in self.places.iter().enumerate() {
            if !has(index) {
                self.marks.add(self.view.host_of(node), *table, *token);
            }
        }
    }

    /// Waits for the others behind the client's answer. Dropped or late, they have missed it.
    pub(super) fn watch_rest<T: 'static>(
        mut self,
        mut asked: Asked<T>,
        deadline: Instant,
        has: impl Fn(&T, usize) -> bool + 'static,
    ) {
        if self.left.is_empty() {
            return;
        }
        let watch = async move {
            while let Ok(Some((node, answer))) = timeout_at(deadline, asked.next()).await {
                self.answered(node, |index| has(&answer, index));
            }
        };
        runtime::spawn_local("the rest of a write", Box::pin(watch));
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        for node in std::mem::take(&mut self.left) {
            self.answered(node, |_| false);
        }
    }
}

impl GroupWrite {
    async fn finish(mut self, consistency: Consistency, deadline: Instant) -> Result<(), ReplicaError> {
        while !self.tally.is_decided()
            && let Ok(Some((node, written))) = timeout_at(deadline, self.asked.next()).await
        {
            self.watched.answered(node, |_| written.is_ok());
            self.tally.take_in(&self.view, node, written);
        }
        // Those who have not answered were sent it, or may be yet.
        self.tally.was_sent |= !self.asked.is_empty();
        self.watched.watch_rest(self.asked, deadline, |written, _| written.is_ok());
        self.tally.write_outcome(consistency)
    }
}

/// What several groups come to. Where one is `Unavailable` and another was sent, something was.
fn together(outcomes: Vec<Result<(), ReplicaError>>) -> Result<(), ReplicaError> {
    let is_unavailable =
        |outcome: &Result<(), ReplicaError>| matches!(outcome, Err(ReplicaError::Unavailable { .. }));
    let is_nothing_sent = outcomes.iter().all(is_unavailable);
    outcomes.into_iter().try_for_each(|outcome| match outcome {
        Err(ReplicaError::Unavailable { required, .. }) if !is_nothing_sent => {
            Err(ReplicaError::WriteTimeout { received: 0, required })
        }
        outcome => outcome,
    })
}

/// What all units of a write came to on one replica.
pub(super) fn outcome(written: Written) -> Result<(), Missed> {
    match written.failure {
        None if written.done.contains(0) => Ok(()),
        None => Err(failed("nothing was written".to_owned())),
        Some(failure) => Err(Missed::Failed(failure)),
    }
}

/// What replicas have said, against what is required of them.
#[derive(Clone)]
pub(super) struct Tally {
    requirement: Requirement,
    done: Counted,
    /// Those who have done it or may yet.
    possible: Counted,
    /// All but those who said that they can not.
    not_failed: Counted,
    failures: Vec<(IpAddr, Failure)>,
    pub(super) was_sent: bool,
}

impl Tally {
    /// Of candidates in these data centres.
    pub(super) fn new(
        requirement: Requirement,
        none: Counted,
        candidates: impl Iterator<Item = usize>,
    ) -> Tally {
        let mut all = none.clone();
        candidates.for_each(|center| all.add(center));
        let (possible, not_failed) = (all.clone(), all);
        Tally { requirement, done: none, possible, not_failed, failures: Vec::new(), was_sent: false }
    }

    pub(super) fn take_in(&mut self, view: &RingView, node: NodeIndex, said: Result<(), Missed>) {
        let center = view.center_of(node);
        match said {
            Ok(()) => {
                self.was_sent = true;
                self.done.add(center);
            }
            Err(Missed::Silent { was_sent }) => {
                self.was_sent |= was_sent;
                self.possible.remove(center);
            }
            Err(Missed::Failed(failure)) => {
                self.was_sent = true;
                self.failures.push((view.address_of(node), failure));
                self.possible.remove(center);
                self.not_failed.remove(center);
            }
        }
    }

    /// Would one more of a data centre bring it nearer?
    pub(super) fn would_gain(&self, center: usize) -> bool {
        self.requirement.would_gain(&self.done, center)
    }

    pub(super) fn is_enough(&self) -> bool {
        self.requirement.shortage(&self.done).is_none()
    }

    /// Will nothing that is still to come change the outcome?
    pub(super) fn is_decided(&self) -> bool {
        self.is_enough() || self.requirement.shortage(&self.possible).is_some()
    }

    pub(super) fn write_outcome(mut self, consistency: Consistency) -> Result<(), ReplicaError> {
        let (received, required) = (self.requirement.counted(&self.done), self.requirement.count());
        if self.is_enough() {
            return Ok(());
        }
        if !self.was_sent {
            // Those that seemed to live did not, and nobody has heard of it.
            return Err(ReplicaError::Unavailable { consistency, required, alive: 0 });
        }
        Err(match self.failed_for_good() {
            None => ReplicaError::WriteTimeout { received, required },
            Some(failures) => ReplicaError::WriteFailure { received, required, failures },
        })
    }

    /// The same of a read of which too few have answered.
    pub(super) fn read_error(mut self) -> ReplicaError {
        let (received, required) = (self.requirement.counted(&self.done), self.requirement.count());
        match self.failed_for_good() {
            None => ReplicaError::ReadTimeout { received, required },
            Some(failures) => ReplicaError::ReadFailure { received, required, failures },
        }
    }

    /// Who failed, when those alone are too many: else the others' silence is to blame.
    fn failed_for_good(&mut self) -> Option<Vec<(IpAddr, Failure)>> {
        self.requirement.shortage(&self.not_failed)?;
        (!self.failures.is_empty()).then(|| std::mem::take(&mut self.failures))
    }
}
