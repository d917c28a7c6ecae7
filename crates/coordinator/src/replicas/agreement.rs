//! How the replicas of a partition agree on conditional changes: Paxos, as [`replica::Phase`] has its phases.
//!
//! ```text
//!   ready    prepare ─► a quorum has promised ─┬─ something is unfinished: propose it anew, write it ─► ready
//!                                              └─ nothing is ─► (read, decide)
//!   settle   propose the change, or that there is none ─► a quorum has accepted: chosen ─► write ─► commit
//! ```
//!
//! What is chosen is written by [`Replicas::write`] like any other change, with the ballot's time as its timestamp. Who
//! comes between the two finds it accepted, and makes it good first.

use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use replica::{Answer, Ballot, PaxosAnswer, PaxosRequest, Phase, Promise, Proposal, Request};
use ring::NodeIndex;
use rows::{Mutation, PartitionKey};
use runtime::{Plant, trace};
use schema::{Schema, TableId};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use super::error::ReplicaError;
use super::requirement::{Counted, Requirement};
use super::view::Plan;
use super::write::Tally;
use super::{Missed, Replicas, misanswered, turn};
use crate::{ConditionalLevels, Consistency};

/// The longest wait before a ballot is tried again that others came before.
const BACKOFF_MAX: Duration = Duration::from_millis(100);

/// Somebody's part in agreeing on a partition, until it is settled.
pub(crate) struct Agreement {
    replicas: Rc<Replicas>,
    table: TableId,
    key: PartitionKey,
    levels: ConditionalLevels,
    /// The last that was made here.
    ballot: Ballot,
    /// The greatest that was heard of.
    heard: Ballot,
    /// Changes that were proposed here and may have been chosen, or may be yet, with the ballots that they had.
    in_doubt: Vec<(Ballot, Mutation)>,
    /// Has a quorum promised the last one, with nothing unfinished before it?
    is_promised: bool,
    attempt_count: u32,
    /// This node's among others; asked for once.
    turn: Option<turn::Turn>,
    has_asked_for_turn: bool,
    /// How long replicas are waited for that are told something by the way.
    patience: Duration,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Nothing is unfinished: to be read, and decided.
    ToDecide,
    /// What was proposed here before, and was in doubt, is made.
    Made,
}

/// How a proposal came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// As it was proposed.
    Done,
    /// Others came before: it is to be decided again.
    Again,
}

/// What replicas have said to a phase.
enum Said {
    /// A quorum has promised this, or has accepted.
    Yes(Vec<Promise>),
    /// Too few: somebody has promised a later ballot.
    Later {
        promised: Ballot,
        /// May any replica have done what it was asked?
        by_any: bool,
    },
}

/// What a replica has said.
enum Word {
    Promised(Promise),
    Done,
    Refused(Ballot),
}

impl Agreement {
    /// That on a partition.
    ///
    /// # Errors
    /// Too few replicas live for one of the levels: nothing was done.
    pub(crate) fn new(
        replicas: Rc<Replicas>,
        table: TableId,
        key: PartitionKey,
        levels: ConditionalLevels,
        patience: Duration,
    ) -> Result<Agreement, ReplicaError> {
        for level in [levels.agreement, levels.write] {
            replicas.admit(table, key.token, level)?;
        }
        let (ballot, heard) = (Ballot::default(), Ballot::default());
        let (in_doubt, is_promised, attempt_count) = (Vec::new(), false, 0);
        Ok(Agreement {
            replicas,
            table,
            key,
            levels,
            ballot,
            heard,
            in_doubt,
            is_promised,
            attempt_count,
            turn: None,
            has_asked_for_turn: false,
            patience,
        })
    }

    /// Goes on with the ring as it is now; not between what was read and what is proposed.
    pub(crate) fn renew(&mut self, replicas: Rc<Replicas>) {
        self.replicas = replicas;
    }

    /// The level of the agreement.
    pub(crate) fn level(&self) -> Consistency {
        self.levels.agreement
    }

    /// The way to the replicas.
    pub(crate) fn replicas(&self) -> &Rc<Replicas> {
        &self.replicas
    }

    /// The time of the ballot, in µs: what is decided now is written with it.
    pub(crate) fn timestamp(&self) -> i64 {
        self.ballot.micros()
    }

    /// Was a change proposed here of which nobody knows yet?
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.in_doubt.is_empty()
    }

    /// Has a quorum promise, and makes good what is unfinished.
    ///
    /// # Errors
    /// Too few replicas live, or have answered; `InDoubt` when a change that was proposed here may have been made, and
    /// others were since.
    ///
    /// # Cancel safety
    /// Dropped, what was unfinished is so, or done.
    pub(crate) async fn ready(&mut self, deadline: Instant) -> Result<Ready, ReplicaError> {
        if !std::mem::replace(&mut self.has_asked_for_turn, true) {
            self.turn = self.wait_for_turn(deadline).await;
        }
        loop {
            if Instant::now() >= deadline {
                return Err(ReplicaError::WriteTimeout { received: 0, required: 1 });
            }
            self.next_ballot();
            let promises = match self.ask(Phase::Prepare(self.ballot), deadline).await? {
                Said::Yes(promises) => promises,
                Said::Later { promised, .. } => {
                    self.give_way(promised).await;
                    continue;
                }
            };
            if let Some(own) = promises.iter().find_map(|promise| self.own(promise.origin)) {
                // Somebody else has made it good, and knows nothing of the level that is asked for here.
                self.write(Some(own), self.levels, deadline).await.map_err(of_what_is_chosen)?;
                return Ok(Ready::Made);
            }
            let committed = promises.iter().map(|promise| promise.committed).max().unwrap_or_default();
            let accepted = promises.into_iter().filter_map(|promise| promise.accepted);
            let unfinished = accepted.max_by_key(|accepted| accepted.ballot);
            let is_unfinished = |accepted: &Proposal| {
                accepted.ballot > committed && !self.replicas.has_planted(Plant::AcceptedPassedOver)
            };
            match unfinished.filter(|accepted| is_unfinished(accepted)) {
                Some(proposal) => {
                    let is_own = self.own(proposal.origin).is_some();
                    if self.finish(proposal, is_own, deadline).await? == Settled::Done && is_own {
                        return Ok(Ready::Made);
                    }
                }
                // Others have changed it since, and what they have made good may have been ours.
                None if self.in_doubt.iter().any(|(own, _)| committed > *own) => {
                    return Err(ReplicaError::InDoubt);
                }
                None => {
                    self.is_promised = true;
                    return Ok(Ready::ToDecide);
                }
            }
        }
    }

    /// Waits until no other node is to be expected to come between; `None` when nobody says whose turn it is.
    async fn wait_for_turn(&self, deadline: Instant) -> Option<turn::Turn> {
        let (plan, requirement) =
            self.replicas.admit(self.table, self.key.token, self.levels.agreement).ok()?;
        let nodes = self.who_agree(&plan, &requirement);
        let giver = turn::giver_among(&self.replicas, nodes, self.key.token)?;
        let place = (self.table, self.key.clone());
        turn::wait_for(&self.replicas, giver, place, deadline).await
    }

    /// The change that was proposed here under that ballot.
    fn own(&self, origin: Ballot) -> Option<Mutation> {
        self.in_doubt.iter().find(|(own, _)| *own == origin).map(|(_, mutation)| mutation.clone())
    }

    /// Makes good what somebody has left unfinished, or what was proposed here.
    async fn finish(
        &mut self,
        mut proposal: Box<Proposal>,
        is_own: bool,
        deadline: Instant,
    ) -> Result<Settled, ReplicaError> {
        trace::note(|| "Finishing incomplete paxos round".into());
        proposal.ballot = self.ballot;
        if proposal.planned_on < self.truncated_at() {
            // It came before the table was emptied.
            proposal.mutation = None;
        }
        match self.ask(Phase::Propose(proposal.clone()), deadline).await? {
            Said::Later { promised, .. } => {
                self.give_way(promised).await;
                Ok(Settled::Again)
            }
            Said::Yes(_) => {
                let agreement = self.levels.agreement;
                let levels =
                    if is_own { self.levels } else { ConditionalLevels { agreement, write: agreement } };
                let written = self.write(proposal.mutation.clone(), levels, deadline).await;
                written.map_err(|error| if is_own { of_what_is_chosen(error) } else { error })?;
                self.tell_committed(proposal);
                Ok(Settled::Done)
            }
        }
    }

    /// Proposes a change, or that there is none, as it was decided on what was read since all was ready; writes what is
    /// chosen.
    ///
    /// # Errors
    /// Too few replicas live or have answered. The change may have been made, or may be yet; it will be after `Chosen`.
    ///
    /// # Cancel safety
    /// Dropped, it may have been made, or may be yet.
    pub(crate) async fn settle(
        &mut self,
        mutation: Option<Mutation>,
        deadline: Instant,
    ) -> Result<Settled, ReplicaError> {
        // Once for each promise: a second proposal under one ballot could be another one.
        assert!(std::mem::take(&mut self.is_promised), "what is proposed was decided under a promise");
        if mutation.is_none() && self.replicas.has_planted(Plant::RefusedUnproposed) {
            return Ok(Settled::Done);
        }
        let (ballot, planned_on) = (self.ballot, self.replicas.planned_on());
        let proposal = Box::new(Proposal { ballot, origin: ballot, planned_on, mutation: mutation.clone() });
        // From here on nobody knows, until enough have answered.
        self.in_doubt.extend(mutation.clone().map(|mutation| (ballot, mutation)));
        match self.ask(Phase::Propose(proposal.clone()), deadline).await? {
            Said::Later { promised, by_any } => {
                if !by_any {
                    self.in_doubt.retain(|(own, _)| *own != ballot);
                }
                self.give_way(promised).await;
                Ok(Settled::Again)
            }
            Said::Yes(_) => {
                // What was proposed before can not be chosen any more.
                self.in_doubt.clear();
                self.write(mutation, self.levels, deadline).await.map_err(of_what_is_chosen)?;
                self.tell_committed(proposal);
                // Behind the commit, so that the next one finds nothing unfinished.
                self.turn = None;
                Ok(Settled::Done)
            }
        }
    }

    /// Writes what is chosen, at the level that the client asks for and at that of the agreement in any case: else the
    /// next one would have to make it good again.
    async fn write(
        &self,
        mutation: Option<Mutation>,
        levels: ConditionalLevels,
        deadline: Instant,
    ) -> Result<(), ReplicaError> {
        let Some(mutation) = mutation else { return Ok(()) };
        let (plan, agreed) = self.replicas.admit(self.table, self.key.token, levels.agreement)?;
        let wanted = Requirement::of(levels.write, plan.factors);
        let implies = |one: &Requirement, other| one.implies(other, plan.factors.center_count);
        let first = if implies(&wanted, &agreed) { levels.write } else { levels.agreement };
        let second = (first != levels.write && !implies(&agreed, &wanted)).then_some(levels.write);
        for level in [Some(first), second].into_iter().flatten() {
            let patience = deadline.saturating_duration_since(Instant::now());
            self.replicas.write(vec![mutation.clone()], level, patience).await?;
        }
        Ok(())
    }

    fn next_ballot(&mut self) {
        let given = self.replicas.shard.local().timestamps().next_after_all();
        let node = self.replicas.view.host_of(self.replicas.view.here());
        self.ballot = ballot_after(self.heard, given, node);
        (self.heard, self.is_promised) = (self.ballot, false);
    }

    /// Lets others go first for a moment: longer from try to try.
    async fn give_way(&mut self, promised: Ballot) {
        self.heard = self.heard.max(promised);
        self.attempt_count += 1;
        let shard = self.replicas.shard.local();
        shard.timestamps().hear(promised.micros());
        let longest = BACKOFF_MAX.min(Duration::from_millis(1 << self.attempt_count.min(10)));
        let micros = shard.runtime().random.below(longest.as_micros() as u64);
        sleep(Duration::from_micros(micros)).await;
    }

    fn truncated_at(&self) -> u64 {
        self.replicas.shard.local().with_schema(|schema: &Schema| schema.truncated_at(self.table))
    }

    /// Tells the replicas that a quorum has what was accepted. Who does not hear it has it made good once more, which
    /// changes nothing.
    fn tell_committed(&self, proposal: Box<Proposal>) {
        let agreed = self.replicas.admit(self.table, self.key.token, self.levels.agreement);
        let Ok((plan, requirement)) = agreed else { return };
        let deadline = Instant::now() + self.patience;
        let phase = Phase::Commit(proposal);
        let told = self.who_agree(&plan, &requirement).into_iter();
        let told: Vec<_> = told.map(|node| self.ask_one(node, phase.clone(), deadline)).collect();
        runtime::spawn_local(
            "a commit",
            Box::pin(async move {
                futures_util::future::join_all(told).await;
            }),
        );
    }

    /// Asks all replicas that are to agree, and waits until a quorum has done it, or can not any more.
    async fn ask(&self, phase: Phase, deadline: Instant) -> Result<Said, ReplicaError> {
        let level = self.levels.agreement;
        let (plan, requirement) = self.replicas.admit(self.table, self.key.token, level)?;
        let view = &self.replicas.view;
        let asked = self.who_agree(&plan, &requirement);
        let centers = asked.iter().map(|node| view.center_of(*node));
        let mut tally = Tally::new(requirement, Counted::none(plan.factors), centers);
        let mut answers: FuturesUnordered<_> = asked
            .iter()
            .map(|node| {
                let (node, word) = (*node, self.ask_one(*node, phase.clone(), deadline));
                async move { (node, word.await) }
            })
            .collect();
        let (mut promises, mut later, mut by_any) = (Vec::new(), None::<Ballot>, false);
        while !tally.is_decided()
            && let Ok(Some((node, word))) = timeout_at(deadline, answers.next()).await
        {
            let said = match word {
                Ok(Word::Promised(promise)) => {
                    promises.push(promise);
                    Ok(())
                }
                Ok(Word::Done) => {
                    by_any = true;
                    Ok(())
                }
                Ok(Word::Refused(promised)) => {
                    later = later.max(Some(promised));
                    Err(Missed::Silent { was_sent: true })
                }
                Err(missed) => {
                    by_any |= missed != (Missed::Silent { was_sent: false });
                    Err(missed)
                }
            };
            tally.take_in(view, node, said);
        }
        if tally.is_enough() {
            return Ok(Said::Yes(promises));
        }
        // Those who have not answered were asked, or may be yet.
        by_any |= !answers.is_empty();
        tally.note_sent(!answers.is_empty());
        match later {
            Some(promised) => Ok(Said::Later { promised, by_any }),
            None => Err(tally.write_outcome(level).err().unwrap_or(ReplicaError::InDoubt)),
        }
    }

    /// The replicas that are to agree: of another data centre none at `LOCAL_SERIAL`, and none that is getting its
    /// rows, of which nobody knows what it had promised.
    fn who_agree(&self, plan: &Plan<'_>, requirement: &Requirement) -> Vec<NodeIndex> {
        let view = &self.replicas.view;
        let here = view.center_of(view.here());
        let is_one = |node: &NodeIndex| {
            view.has_rows(*node) && (!requirement.is_local() || view.center_of(*node) == here)
        };
        plan.nodes.iter().copied().filter(is_one).collect()
    }

    /// Asks one replica.
    fn ask_one(
        &self,
        node: NodeIndex,
        phase: Phase,
        deadline: Instant,
    ) -> LocalBoxFuture<'static, Result<Word, Missed>> {
        let request = PaxosRequest { table: self.table, key: self.key.clone(), phase };
        let Some(peer) = self.replicas.view.peer(node) else {
            let (shard, planned_on) = (self.replicas.shard.clone(), self.replicas.planned_on());
            let agreeing = async move { replica::agree(&shard, planned_on, request).await };
            // A task, so that it goes on when the others were enough.
            let agreeing = runtime::spawn_local(
                "a replica's own agreement",
                trace::carry(trace::current(), Box::pin(agreeing)),
            );
            return async move {
                match agreeing.await {
                    Ok(Ok(answer)) => Ok(word_of(answer)),
                    Ok(Err(failure)) => Err(Missed::Failed(failure)),
                    Err(error) => Err(super::failed(error.to_string())),
                }
            }
            .boxed_local();
        };
        let answer = self.replicas.ask(peer, [self.table], deadline, |out| Request::put_paxos(&request, out));
        async move {
            match answer.await? {
                Answer::Paxos(answer) => Ok(word_of(answer)),
                Answer::Failed(failure) => Err(Missed::Failed(failure)),
                _ => Err(misanswered()),
            }
        }
        .boxed_local()
    }
}

fn word_of(answer: PaxosAnswer) -> Word {
    match answer {
        PaxosAnswer::Promised(promise) => Word::Promised(promise),
        PaxosAnswer::Done => Word::Done,
        PaxosAnswer::Refused(promised) => Word::Refused(promised),
    }
}

/// A ballot of a node later than all that were heard of, at that timestamp or behind it, in µs: one that is far ahead
/// of the clock is passed without the clock's being set.
fn ballot_after(heard: Ballot, given: i64, node: Uuid) -> Ballot {
    let ballot = Ballot::new(given.max(heard.micros().saturating_add(1)), node);
    assert!(ballot > heard, "each ballot is later than all that were heard of");
    ballot
}

/// What stands in the way of what is chosen does not take it back.
fn of_what_is_chosen(error: ReplicaError) -> ReplicaError {
    match error {
        ReplicaError::WriteTimeout { received, required }
        | ReplicaError::WriteFailure { received, required, .. } => {
            ReplicaError::Chosen { received, required }
        }
        ReplicaError::Unavailable { required, .. } => ReplicaError::Chosen { received: 0, required },
        ReplicaError::Coordinator(_) => ReplicaError::Chosen { received: 0, required: 1 },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ballot_is_later_than_all_that_were_heard_of() {
        let (one, other) = (Uuid::from_u128(1 << 64), Uuid::max());
        assert_eq!(ballot_after(Ballot::default(), 7, one), Ballot::new(7, one));
        assert_eq!(ballot_after(Ballot::new(7, other), 7, one), Ballot::new(8, one));
        assert_eq!(ballot_after(Ballot::new(9_000, other), 7, one), Ballot::new(9_001, one));
        let last = runtime::caught(|| ballot_after(Ballot::new(i64::MAX, other), 7, one));
        let broken = last.expect_err("there is none behind it");
        assert_eq!(broken.what, "each ballot is later than all that were heard of");
    }
}
