//! A write to the replicas of its partitions.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture, join_all, ready};
use futures_util::stream::{FuturesUnordered, StreamExt};
use replica::{Answer, Failure, Request, Written};
use ring::NodeIndex;
use rows::Mutation;
use runtime::{Plant, trace};
use schema::TableId;
use smallvec::SmallVec;
use stdx::index_set::IndexSet;
use storage::Unit;
use tokio::time::{Instant, timeout_at};
use types::Token;

use super::error::ReplicaError;
use super::requirement::{Counted, Factors, Requirement};
use super::settled::UnderWay;
use super::view::{Plan, RingView};
use super::{Marker, Missed, Replicas, failed, misanswered};
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
        let term = Term::of(patience);
        let begun = self.begin_groups(mutations, |_| consistency, term)?;
        let finish = |group: GroupWrite| group.finish(consistency);
        let outcomes = join_all(begun.into_iter().map(finish)).await;
        let written = together(outcomes.into_iter().flatten().collect());
        if written.is_err() && self.has_planted(Plant::SentCalledRefused) {
            return Err(ReplicaError::Unavailable { consistency, required: 1, alive: 0 });
        }
        written
    }

    /// Writes mutations to all their replicas, and waits for each: it has them, or is marked as having missed them. Two
    /// of each partition have them, or the only one: what is marked can be made good, though another one is lost.
    ///
    /// # Errors
    /// Of some partition too few replicas live, or have said that they have it. Others may have.
    ///
    /// # Cancel safety
    /// Dropped, what was sent goes on.
    pub async fn deliver(&self, mutations: Vec<Mutation>, patience: Duration) -> Result<(), ReplicaError> {
        let term = Term::of(patience);
        let two = |factors: &Factors| if factors.total < 2 { Consistency::One } else { Consistency::Two };
        let begun = self.begin_groups(mutations, two, term)?;
        let outcomes = join_all(begun.into_iter().map(GroupWrite::finish_all)).await;
        together(outcomes)
    }

    /// Asks all replicas of these. Those of one set of replicas go together.
    ///
    /// # Errors
    /// As [`Replicas::check`], and nothing is sent.
    fn begin_groups(
        &self,
        mutations: Vec<Mutation>,
        level: impl Fn(&Factors) -> Consistency,
        term: Term,
    ) -> Result<Vec<GroupWrite>, ReplicaError> {
        // None is sent before all are found to have replicas enough.
        let mut groups: Vec<(Plan<'_>, Requirement, Vec<Mutation>)> = Vec::new();
        for mutation in mutations {
            let (plan, requirement) = self.admit_at(mutation.table, mutation.key.token, &level)?;
            // Two keyspaces may have the same nodes, and want more or fewer of them.
            let is_same = |group: &&mut (Plan<'_>, Requirement, _)| {
                group.0.nodes == plan.nodes && group.1 == requirement
            };
            match groups.iter_mut().find(is_same) {
                Some((_, _, mutations)) => mutations.push(mutation),
                None => groups.push((plan, requirement, vec![mutation])),
            }
        }
        let begin = |(plan, requirement, mutations): (Plan<'_>, Requirement, Vec<Mutation>)| {
            self.begin_group(&plan, requirement, Unit::All, &mutations, term)
        };
        Ok(groups.into_iter().map(begin).collect())
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

    /// Asks all replicas of what has the same ones, to write it in these units.
    pub(super) fn begin_group(
        &self,
        plan: &Plan<'_>,
        requirement: Requirement,
        unit: Unit,
        mutations: &[Mutation],
        term: Term,
    ) -> GroupWrite {
        let places = mutations.iter().map(|mutation| (mutation.table, mutation.key.token)).collect();
        let write_at = |node| self.begin_write(node, unit, mutations, term.deadline);
        begin_group_of(self, plan, requirement, (unit, places), term, write_at)
    }

    /// Has one replica write; what comes of it can be waited for.
    pub(super) fn begin_write(
        &self,
        node: NodeIndex,
        unit: Unit,
        mutations: &[Mutation],
        deadline: Instant,
    ) -> LocalBoxFuture<'static, Result<Written, Missed>> {
        let Some(peer) = self.view.peer(node) else {
            let (shard, planned_on) = (self.shard.clone(), self.schema_epoch);
            let mutations = mutations.to_vec();
            let mut write =
                Box::pin(async move { replica::write(&shard, planned_on, unit, mutations).await });
            // Most are over at once.
            if let Some(written) = write.as_mut().now_or_never() {
                return ready(Ok(written)).boxed_local();
            }
            return own_part("a replica's own write", deadline, write).boxed_local();
        };
        let tables = mutations.iter().map(|mutation| mutation.table);
        let answer = self.ask(peer, tables, deadline, |out| Request::put_write(unit, mutations, out));
        async move {
            match answer.await? {
                Answer::Written(written) => Ok(written),
                _ => Err(misanswered()),
            }
        }
        .boxed_local()
    }
}

/// This node's own part in what its replicas are asked for, boxed: a task, so that it goes on when the others were
/// enough, until the deadline, as theirs does.
pub(super) fn own_part<T: 'static>(
    what: &'static str,
    deadline: Instant,
    part: impl Future<Output = T> + Unpin + 'static,
) -> impl Future<Output = Result<T, Missed>> {
    let part = runtime::spawn_local(what, trace::carry(trace::current(), timeout_at(deadline, part)));
    async move {
        let in_time = part.await.map_err(|error| failed(error.to_string()))?;
        in_time.map_err(|_| Missed::Silent { was_sent: true })
    }
}

/// Has all replicas of some places write what is of them, each as `write_at` asks it.
pub(super) fn begin_group_of(
    replicas: &Replicas,
    plan: &Plan<'_>,
    requirement: Requirement,
    (unit, places): (Unit, Rc<[(TableId, Token)]>),
    term: Term,
    write_at: impl Fn(NodeIndex) -> LocalBoxFuture<'static, Result<Written, Missed>>,
) -> GroupWrite {
    let asked = plan.nodes.iter().map(|node| {
        let (node, write) = (*node, write_at(*node));
        async move { (node, write.await) }.boxed_local()
    });
    let asked = asked.collect();
    let counting = plan.nodes.iter().filter(|node| replicas.view.has_rows(**node));
    let centers = counting.map(|node| replicas.view.center_of(*node));
    let tally = Tally::new(requirement, Counted::none(plan.factors), centers);
    let unit_count = match unit {
        Unit::All => 1,
        Unit::Each => places.len(),
    };
    let rest = Rest { asked, watched: Watched::new(replicas, plan.nodes, unit, places, term.begun) };
    let (tallies, deadline) = (vec![tally; unit_count], term.deadline);
    GroupWrite { view: Rc::clone(&replicas.view), rest: Some(rest), deadline, tallies, awaited: None }
}

/// How long something may take.
#[derive(Clone, Copy)]
pub(super) struct Term {
    pub(super) begun: Instant,
    pub(super) deadline: Instant,
}

impl Term {
    /// So long, from now on.
    pub(super) fn of(patience: Duration) -> Term {
        let begun = Instant::now();
        Term { begun, deadline: begun + patience }
    }
}

/// A write of one group that all its replicas were asked for. Dropped, those are waited for all the same that may write
/// it yet: what is compared before that would differ behind it.
pub(super) struct GroupWrite {
    view: Rc<RingView>,
    /// `None` when nobody waits for more of it.
    rest: Option<Rest>,
    deadline: Instant,
    /// Of each unit.
    tallies: Vec<Tally>,
    /// Whoever is waited for, too.
    awaited: Option<NodeIndex>,
}

/// What replicas have not answered yet.
struct Rest {
    asked: Asked,
    watched: Watched,
}

/// Asked of replicas, by node.
type Asked = FuturesUnordered<LocalBoxFuture<'static, (NodeIndex, Result<Written, Missed>)>>;

/// Replicas that have not acknowledged a write yet. When it is dropped, those are marked that do not have it.
struct Watched {
    view: Rc<RingView>,
    marker: Rc<Marker>,
    left: SmallVec<[NodeIndex; 4]>,
    unit: Unit,
    places: Rc<[(TableId, Token)]>,
    begun: Instant,
    /// Who has missed what, by its index among the places.
    missed: Vec<(NodeIndex, usize)>,
    /// The units that this node has written itself.
    own: IndexSet,
    /// Dropped behind the marks.
    _under_way: UnderWay,
}

impl Watched {
    /// All of them.
    fn new(
        replicas: &Replicas,
        nodes: &[NodeIndex],
        unit: Unit,
        places: Rc<[(TableId, Token)]>,
        begun: Instant,
    ) -> Watched {
        let (view, marker) = (Rc::clone(&replicas.view), Rc::clone(&replicas.marker));
        let under_way = marker.begin_write(begun);
        let (left, missed, own) = (SmallVec::from_slice(nodes), Vec::new(), IndexSet::EMPTY);
        Watched { view, marker, left, unit, places, begun, missed, own, _under_way: under_way }
    }

    /// The unit that a place is of.
    fn unit_of(&self, place: usize) -> usize {
        match self.unit {
            Unit::All => 0,
            Unit::Each => place,
        }
    }

    /// One has answered.
    fn answered(&mut self, node: NodeIndex, written: &Result<Written, Missed>) {
        let place = self.left.iter().position(|left| *left == node);
        self.left.swap_remove(place.expect("a replica of the write answers once"));
        if node == self.view.here() {
            self.own = written.as_ref().map(|written| written.done).unwrap_or_default();
        }
        for place in 0..self.places.len() {
            let said = said_of(written, self.unit_of(place));
            // What came before its table was emptied is missed by nobody; beside what was to another one nothing of
            // that was written either.
            let has_nothing_to_miss =
                || is_outdated(&said) && are_of_one_table(self.places.iter().map(|(table, _)| *table));
            if said.is_err() && !has_nothing_to_miss() {
                self.missed.push((node, place));
            }
        }
    }
}

impl Rest {
    /// The next that answers; `None` when all have, or are late.
    async fn next_until(&mut self, deadline: Instant) -> Option<(NodeIndex, Result<Written, Missed>)> {
        let (node, written) = timeout_at(deadline, self.asked.next()).await.ok()??;
        self.watched.answered(node, &written);
        Some((node, written))
    }

    /// Waits for the others behind the client's answer. Those who are late have missed it.
    fn watch(mut self, deadline: Instant) {
        if self.asked.is_empty() {
            return;
        }
        let watch = async move { while self.next_until(deadline).await.is_some() {} };
        runtime::spawn_local("the rest of a write", Box::pin(watch));
    }
}

impl Drop for GroupWrite {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            rest.watch(self.deadline);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        while let Some(node) = self.left.last().copied() {
            self.answered(node, &Err(Missed::Silent { was_sent: true }));
        }
        for (node, place) in std::mem::take(&mut self.missed) {
            let logged = self.own.contains(self.unit_of(place)).then_some(self.begun);
            self.marker.mark(&self.view, node, self.places[place], logged);
        }
    }
}

impl GroupWrite {
    /// The same, that waits for this replica in any case.
    pub(super) fn awaiting(mut self, replica: NodeIndex) -> GroupWrite {
        let is_left = self.rest.as_ref().is_some_and(|rest| rest.watched.left.contains(&replica));
        self.awaited = is_left.then_some(replica);
        self
    }

    /// Waits until enough have each unit, or can not have it any more: the outcome of each.
    pub(super) async fn finish(mut self, consistency: Consistency) -> Vec<Result<(), ReplicaError>> {
        while (self.awaited.is_some() || !self.tallies.iter().all(Tally::is_decided))
            && self.hears_one().await
        {}
        let is_any_left = self.rest.as_ref().is_some_and(|rest| !rest.asked.is_empty());
        outcomes(std::mem::take(&mut self.tallies), consistency, is_any_left)
    }

    /// Waits until all replicas have answered, or can not in time any more; the outcome of what is one unit.
    async fn finish_all(mut self) -> Result<(), ReplicaError> {
        while self.hears_one().await {}
        // Those that are left are marked by this: before the caller hears anything.
        let rest = self.rest.take();
        let is_any_left = rest.is_some_and(|rest| !rest.asked.is_empty());
        outcomes(std::mem::take(&mut self.tallies), Consistency::Two, is_any_left).into_iter().collect()
    }

    /// Waits for one more answer; `false` when there is none in time.
    async fn hears_one(&mut self) -> bool {
        let Some(rest) = &mut self.rest else { return false };
        let Some((node, written)) = rest.next_until(self.deadline).await else { return false };
        self.take_in(node, &written);
        true
    }

    fn take_in(&mut self, node: NodeIndex, written: &Result<Written, Missed>) {
        self.awaited.take_if(|awaited| *awaited == node);
        for (index, tally) in self.tallies.iter_mut().enumerate() {
            tally.take_in(&self.view, node, said_of(written, index));
        }
    }
}

/// The outcome of each unit.
fn outcomes(
    tallies: Vec<Tally>,
    consistency: Consistency,
    is_any_left: bool,
) -> Vec<Result<(), ReplicaError>> {
    let outcome = |mut tally: Tally| {
        // Those who have not answered were sent it, or may be yet.
        tally.note_sent(is_any_left);
        tally.write_outcome(consistency)
    };
    tallies.into_iter().map(outcome).collect()
}

/// What several groups come to. Where one is `Unavailable` and another was sent, something was.
pub(super) fn together(outcomes: Vec<Result<(), ReplicaError>>) -> Result<(), ReplicaError> {
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

/// What a replica has said of one unit of a write.
pub(super) fn said_of(written: &Result<Written, Missed>, index: usize) -> Result<(), Missed> {
    match written {
        Err(missed) => Err(missed.clone()),
        Ok(written) if written.done.contains(index) => Ok(()),
        Ok(Written { failure: Some(failure), .. }) => Err(Missed::Failed(failure.clone())),
        // It took as many as there was room for.
        Ok(_) => {
            Err(Missed::Failed(Failure::Overloaded { what: "there was no room for all of it".to_owned() }))
        }
    }
}

/// Are they all the same one? Of a message that is outdated for one table nothing is written, of no table.
pub(super) fn are_of_one_table(mut tables: impl Iterator<Item = TableId>) -> bool {
    let first = tables.next();
    tables.all(|table| Some(table) == first)
}

/// Was it planned before the table was emptied there?
pub(super) fn is_outdated(said: &Result<(), Missed>) -> bool {
    matches!(said, Err(Missed::Failed(Failure::Outdated { .. })))
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
    failures: Vec<(SocketAddr, Failure)>,
    /// The latest epoch of the schema that one of them knows at which the table was emptied, after this was planned.
    truncated_at: Option<u64>,
    was_sent: bool,
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
        let (failures, truncated_at) = (Vec::new(), None);
        Tally { requirement, done: none, possible, not_failed, failures, truncated_at, was_sent: false }
    }

    pub(super) fn take_in(&mut self, view: &RingView, node: NodeIndex, said: Result<(), Missed>) {
        let center = view.center_of(node);
        let said = match said {
            // One that is getting its rows has the write then, but nobody reads it there yet.
            said if !view.has_rows(node) => {
                self.was_sent |= !matches!(said, Err(Missed::Silent { was_sent: false }));
                return;
            }
            // Who is no replica any more has it, and nobody reads it there.
            Ok(()) if view.is_gone(node) => Err(Missed::Silent { was_sent: true }),
            said => said,
        };
        match said {
            Ok(()) => {
                self.was_sent = true;
                self.done.add(center);
                let are_candidates = self.done.total() <= self.possible.total();
                assert!(are_candidates, "each of those who may answer is counted once");
            }
            Err(Missed::Silent { was_sent }) => {
                self.was_sent |= was_sent;
                self.possible.remove(center);
            }
            Err(Missed::Failed(failure)) => {
                self.was_sent = true;
                if let Failure::Outdated { epoch } = failure {
                    self.truncated_at = self.truncated_at.max(Some(epoch));
                }
                self.failures.push((view.address_of(node), failure));
                self.possible.remove(center);
                self.not_failed.remove(center);
            }
        }
    }

    /// Something was sent to somebody, if it was.
    pub(super) fn note_sent(&mut self, is_sent: bool) {
        self.was_sent |= is_sent;
    }

    /// Would one more of a data centre bring it nearer?
    pub(super) fn would_gain(&self, center: usize) -> bool {
        self.requirement.would_gain(&self.done, center)
    }

    /// Would one more of a data centre be enough?
    pub(super) fn would_be_enough(&self, center: usize) -> bool {
        let mut done = self.done.clone();
        done.add(center);
        self.requirement.shortage(&done).is_none()
    }

    pub(super) fn is_enough(&self) -> bool {
        self.requirement.shortage(&self.done).is_none()
    }

    /// Will nothing that is still to come change the outcome?
    pub(super) fn is_decided(&self) -> bool {
        self.is_enough() || self.requirement.shortage(&self.possible).is_some()
    }

    pub(super) fn write_outcome(mut self, consistency: Consistency) -> Result<(), ReplicaError> {
        let (received, required) = (self.requirement.received(&self.done), self.requirement.count());
        if self.is_enough() {
            return Ok(());
        }
        if !self.was_sent {
            // Those that seemed to live did not, and nobody has heard of it.
            return Err(ReplicaError::Unavailable { consistency, required, alive: 0 });
        }
        if let Some(epoch) = self.truncated_at {
            return Err(ReplicaError::Outdated { epoch });
        }
        Err(match self.failed_for_good() {
            None => ReplicaError::WriteTimeout { received, required },
            Some(failures) => ReplicaError::WriteFailure { received, required, failures },
        })
    }

    /// The same of a read of which too few have answered.
    pub(super) fn read_error(mut self) -> ReplicaError {
        let (received, required) = (self.requirement.received(&self.done), self.requirement.count());
        if let Some(epoch) = self.truncated_at {
            return ReplicaError::Outdated { epoch };
        }
        match self.failed_for_good() {
            None => ReplicaError::ReadTimeout { received, required },
            Some(failures) => ReplicaError::ReadFailure { received, required, failures },
        }
    }

    /// Who failed, when those alone are too many: else the others' silence is to blame.
    fn failed_for_good(&mut self) -> Option<Vec<(SocketAddr, Failure)>> {
        self.requirement.shortage(&self.not_failed)?;
        (!self.failures.is_empty()).then(|| std::mem::take(&mut self.failures))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ring::allocation::{Newcomer, found};
    use uuid::Uuid;

    use super::super::view::Way;
    use super::*;

    #[test]
    fn no_replica_acknowledges_a_write_twice() {
        let newcomer = Newcomer {
            host_id: Uuid::from_u128(1),
            data_center: "dc1".into(),
            rack: "r1".into(),
            num_tokens: 1,
        };
        let topology = Arc::new(found(&[newcomer], 1).expect("a ring"));
        let way = Way { address: ([127, 0, 0, 1], 7000).into(), remote: None, has_rows: true };
        let view = RingView::new(&topology, NodeIndex(0), vec![way], []);
        let factors = Factors { total: 3, of_centers: None, center_count: 1, local: 0 };
        let requirement = Requirement::of(Consistency::Quorum, &factors);
        let mut tally = Tally::new(requirement, Counted::none(&factors), [0].into_iter());
        tally.take_in(&view, NodeIndex(0), Ok(()));
        let again = runtime::caught(|| tally.take_in(&view, NodeIndex(0), Ok(())));
        assert_eq!(again.expect_err("it is seen").what, "each of those who may answer is counted once");
    }
}
