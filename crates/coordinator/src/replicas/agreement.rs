//! How the replicas of a partition agree on conditional changes: Paxos, as [`replica::Phase`] has its phases.
//!
//! ```text
//!   ready    has a quorum promised with what was accepted last? ────────────────────────────► (read, decide)
//!            else prepare ─► a quorum has promised ─┬─ nothing is unfinished ───────────────► (read, decide)
//!                                                   └─ propose that anew, write it ─────────► (read, decide)
//!   settle   propose the changes, or that there are none ─► a quorum has accepted: chosen ─► write ─► commit
//!                                                                                  └─► clients are told
//! ```
//!
//! What is chosen is written like any other change (`chosen.rs`). Who comes between the two finds it accepted, and
//! makes it good first; whoever reads as many replicas as meet each quorum waits for it. So its clients are told as
//! soon as it is chosen: in one data centre, and unless they have asked for more replicas than have agreed. Of several,
//! a replica behind a cut could not tell what is chosen, and reads at the levels of its data centre would wait.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use replica::{Ballot, Operation, OperationLog, Phase, Proposal, Proposing, Seen};
use ring::NodeIndex;
use rows::{Mutation, PartitionKey};
use runtime::{Plant, trace};
use schema::{Schema, TableId};
use storage::Unit;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::chosen::{WrittenBy, write_chosen};
use super::error::ReplicaError;
use super::phases::{Said, ask, write_as_one};
use super::requirement::Requirement;
use super::{AgreementCounts, Replicas};
use crate::Consistency;

/// The longest wait before a ballot is tried again that others came before.
const BACKOFF_MAX: Duration = Duration::from_millis(100);

/// Changes of more bytes do not go with what is proposed next: for that a promise is asked for.
const KNOWN_BYTES_MAX: usize = 16 << 10;

/// What was chosen last, and who has written it.
type Known = (Box<Proposal>, WrittenBy);

/// A node's part in agreeing on a partition. One change is settled after the other.
pub(crate) struct Agreement {
    replicas: Rc<Replicas>,
    table: TableId,
    key: PartitionKey,
    /// `SERIAL` or `LOCAL_SERIAL`.
    level: Consistency,
    /// The greatest ballot that was heard of.
    heard: Ballot,
    /// The last timestamp that was given to a change.
    timestamp: i64,
    /// Changes that were proposed here and may have been chosen, or may be yet, as they were proposed at first.
    in_doubt: Vec<Proposal>,
    /// What was proposed under these ballots at first can never be chosen: other proposals have come of its operations.
    barred: Vec<Ballot>,
    promised: Option<Promised>,
    attempt_count: u32,
    counts: Arc<AgreementCounts>,
}

/// What a quorum has promised.
#[derive(Debug)]
struct Promised {
    /// This ballot.
    ballot: Ballot,
    /// What was chosen last, if it was proposed here.
    known: Option<Known>,
    /// Are changes decided on what this node's own replica has, which others then compare with theirs? Not after others
    /// came before, or had something else.
    on_own_rows: bool,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// Nothing is unfinished: to be read, and decided.
    ToDecide,
    /// What was proposed here before, and was in doubt, is made.
    Made,
}

/// What was unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finished {
    /// It is made, as it was proposed here.
    Own,
    /// It is made as somebody else has proposed it, or there was nothing of it to make.
    Other,
    /// Others came before.
    Not,
}

/// What is to be settled.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// The changes.
    pub(crate) mutations: Vec<Mutation>,
    /// The operations whose outcome was decided with them, and that.
    pub(crate) operations: Vec<(Uuid, Bytes)>,
    /// What they were decided on.
    pub(crate) seen: Vec<Seen>,
}

/// How a proposal came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// As it was proposed.
    Done,
    /// Others came before: it is to be decided again.
    Again,
}

impl Agreement {
    /// That on a partition of which this node is a replica.
    pub(crate) fn new(
        replicas: Rc<Replicas>,
        (table, key): (TableId, PartitionKey),
        level: Consistency,
        counts: Arc<AgreementCounts>,
    ) -> Agreement {
        Agreement {
            replicas,
            table,
            key,
            level,
            heard: Ballot::default(),
            timestamp: 0,
            in_doubt: Vec::new(),
            barred: Vec::new(),
            promised: None,
            attempt_count: 0,
            counts,
        }
    }

    /// Goes on with the ring and the schema as they are now; not between what was read and what is proposed.
    pub(crate) fn renew(&mut self, replicas: Rc<Replicas>) {
        if !Rc::ptr_eq(&self.replicas, &replicas) {
            // Who had promised may be no replica any more.
            self.promised = None;
            self.replicas = replicas;
        }
    }

    /// The level of the agreement.
    pub(crate) fn level(&self) -> Consistency {
        self.level
    }

    /// The way to the replicas.
    pub(crate) fn replicas(&self) -> &Rc<Replicas> {
        &self.replicas
    }

    /// Are changes decided on what this node's own replica has? Else on what a quorum has.
    pub(crate) fn is_on_own_rows(&self) -> bool {
        self.promised.as_ref().is_some_and(|promised| promised.on_own_rows)
    }

    /// A timestamp in µs for a change that is decided now: later than those of all that were chosen before.
    pub(crate) fn timestamp(&mut self) -> i64 {
        let given = self.replicas.shard.local().timestamps().next_after_all();
        self.timestamp = given.max(self.timestamp.saturating_add(1));
        self.timestamp
    }

    /// What was proposed here and is in doubt is left to whoever finds it: those who asked for it were told so.
    pub(crate) fn leave_in_doubt(&mut self) {
        self.in_doubt.clear();
    }

    /// Was a change proposed here of which nobody knows yet?
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.in_doubt.is_empty()
    }

    /// Has a quorum's promise, and makes good what is unfinished: what was proposed here at these levels.
    ///
    /// # Errors
    /// Too few replicas live, or have answered; `InDoubt` when a change that was proposed here may have been made, and
    /// others were since.
    ///
    /// # Cancel safety
    /// Dropped, what was unfinished is so, or done.
    pub(crate) async fn ready(
        &mut self,
        levels: &[Consistency],
        deadline: Instant,
    ) -> Result<Ready, ReplicaError> {
        if self.promised.is_some() {
            return Ok(Ready::ToDecide);
        }
        loop {
            if Instant::now() >= deadline {
                return Err(ReplicaError::WriteTimeout { received: 0, required: 1 });
            }
            let ballot = self.next_ballot();
            let promises = match self.ask(&Phase::Prepare(ballot), &[], deadline).await? {
                Said::Yes(promises) => promises,
                Said::No { later, .. } => {
                    self.give_way(later).await;
                    continue;
                }
            };
            if let Some(own) = promises.iter().find_map(|promise| self.own(promise.origin)) {
                // Somebody else has made it good, and knows nothing of the levels that are asked for here.
                let place = (self.table, self.key.token);
                let levels = if own.is_empty() { Vec::new() } else { self.to_be_met(levels)? };
                for level in levels {
                    let patience = deadline.saturating_duration_since(Instant::now());
                    let written = write_as_one(&self.replicas, place, &own, level, patience).await;
                    written.map_err(of_what_is_chosen)?;
                }
                return Ok(Ready::Made);
            }
            let timestamps = promises.iter().flat_map(|promise| {
                [promise.timestamp, promise.accepted.as_ref().map_or(0, |accepted| accepted.timestamp)]
            });
            self.timestamp = timestamps.fold(self.timestamp, i64::max);
            let committed = promises.iter().map(|promise| promise.committed).max().unwrap_or_default();
            let accepted = promises.into_iter().filter_map(|promise| promise.accepted);
            let unfinished = accepted.max_by_key(|accepted| accepted.ballot);
            // One that others know to be committed may not be written where it was accepted.
            let is_unfinished = |accepted: &Proposal| {
                accepted.ballot >= committed && !self.replicas.has_planted(Plant::AcceptedPassedOver)
            };
            match unfinished.filter(|accepted| is_unfinished(accepted)) {
                Some(proposal) => {
                    match self.finish(proposal, ballot, levels, deadline).await? {
                        Finished::Own => return Ok(Ready::Made),
                        // What it has made good came behind what was proposed here.
                        Finished::Other if self.is_in_doubt() => return Err(ReplicaError::InDoubt),
                        Finished::Other | Finished::Not => self.attempt_count += 1,
                    }
                    if let Some(promised) = &mut self.promised {
                        // This node's replica may have missed what came before.
                        promised.on_own_rows = false;
                        return Ok(Ready::ToDecide);
                    }
                }
                // Others have changed it since, and what they have made good may have been ours.
                None if self.in_doubt.iter().any(|own| committed > own.origin) => {
                    return Err(ReplicaError::InDoubt);
                }
                None => {
                    let on_own_rows =
                        self.attempt_count == 0 && !self.is_in_doubt() && self.do_all_others_differ()?;
                    self.promised = Some(Promised { ballot, known: None, on_own_rows });
                    return Ok(Ready::ToDecide);
                }
            }
        }
    }

    /// What was proposed here under that ballot, if it is in doubt.
    fn in_doubt_under(&self, origin: Ballot) -> Option<&Proposal> {
        self.in_doubt.iter().find(|own| own.origin == origin)
    }

    /// What was proposed here under that ballot is not made, nor will be.
    fn doubt_no_more(&mut self, origin: Ballot) {
        self.in_doubt.retain(|own| own.origin != origin);
    }

    /// The change that was proposed here under that ballot, if that is in doubt, without what came before its table was
    /// emptied.
    fn own(&self, origin: Ballot) -> Option<Vec<Mutation>> {
        let mut own = self.in_doubt_under(origin)?.clone();
        self.leave_out_emptied(&mut own);
        Some(own.mutations)
    }

    /// Leaves out what it changes, if its table was emptied since it was planned.
    fn leave_out_emptied(&self, proposal: &mut Proposal) {
        let shard = self.replicas.shard.local();
        let truncated_at = shard.with_schema(|schema: &Schema| schema.truncated_at(self.table));
        if proposal.planned_on < truncated_at {
            proposal.leave_out(self.table);
        }
    }

    /// Makes good what somebody has left unfinished, or what was proposed here, behind a ballot that was promised.
    async fn finish(
        &mut self,
        mut proposal: Box<Proposal>,
        promised: Ballot,
        levels: &[Consistency],
        deadline: Instant,
    ) -> Result<Finished, ReplicaError> {
        trace::note(|| "Finishing incomplete paxos round".into());
        self.counts.note_unfinished();
        proposal.ballot = promised;
        self.leave_out_emptied(&mut proposal);
        // Nobody has chosen it, nor can: it is another one without its changes, and who has proposed those must not
        // take them for made.
        if self.barred.contains(&proposal.origin) {
            proposal.mutations.clear();
            if !self.replicas.has_planted(Plant::EmptiedTakenForMade) {
                proposal.origin = promised;
            }
        }
        let is_own = self.in_doubt_under(proposal.origin).is_some();
        let (next, known, seen) = (self.ballot_behind(promised), None, Vec::new());
        let proposing = Proposing { proposal: proposal.clone(), next, known, seen };
        match self.ask(&Phase::Propose(proposing), &[], deadline).await? {
            Said::No { later, .. } => {
                self.give_way(later).await;
                Ok(Finished::Not)
            }
            Said::Yes(_) if is_own => {
                self.write(proposal, levels, deadline).await.map_err(of_what_is_chosen)?;
                Ok(Finished::Own)
            }
            Said::Yes(_) => {
                self.write(proposal, &[], deadline).await?;
                Ok(Finished::Other)
            }
        }
    }

    /// Proposes changes one after the other, or that there are none, as they were decided since all was ready on what
    /// was seen, with what has come of operations; writes what is chosen, at these levels. Tells, once they are chosen,
    /// that they are made, when nobody can see any more that they are not.
    ///
    /// # Errors
    /// Too few replicas live or have answered. The changes may have been made, or may be yet; they will be after
    /// `Chosen`.
    ///
    /// # Cancel safety
    /// Dropped, they may have been made, or may be yet.
    pub(crate) async fn settle(
        &mut self,
        Settling { mut mutations, operations, seen }: Settling,
        levels: &[Consistency],
        deadline: Instant,
        tell: impl FnOnce(),
    ) -> Result<Settled, ReplicaError> {
        // Once for each promise: a second proposal under one ballot could be another one.
        let promised = self.promised.take().expect("what is proposed was decided under a promise");
        if mutations.is_empty() && self.replicas.has_planted(Plant::RefusedUnproposed) {
            return Ok(Settled::Done);
        }
        let Promised { ballot, known, .. } = promised;
        mutations.extend(self.written_of(operations, ballot)?);
        let (planned_on, timestamp) = (self.replicas.planned_on(), self.timestamp);
        let proposal = Box::new(Proposal { ballot, origin: ballot, planned_on, timestamp, mutations });
        // From here on nobody knows, until enough have answered.
        if !proposal.mutations.is_empty() {
            self.in_doubt.push((*proposal).clone());
        }
        let (known, written_by) = known.unzip();
        let have_written = written_by.map(|written_by| written_by.borrow().clone()).unwrap_or_default();
        self.replicas.commits.forget(self.table, &self.key);
        let proposing =
            Proposing { proposal: proposal.clone(), next: self.ballot_behind(ballot), known, seen };
        let asked = self.ask(&Phase::Propose(proposing), &have_written, deadline).await;
        // Nobody was asked.
        let is_unasked = matches!(
            asked,
            Err(ReplicaError::Unavailable { .. } | ReplicaError::NoTable | ReplicaError::Coordinator(_))
        );
        if is_unasked {
            self.doubt_no_more(ballot);
        }
        match asked? {
            Said::No { later, by_any, .. } => {
                if !by_any {
                    self.doubt_no_more(ballot);
                }
                self.give_way(later).await;
                Ok(Settled::Again)
            }
            Said::Yes(_) => {
                // What was proposed before can not be chosen any more.
                self.in_doubt.clear();
                self.barred.clear();
                self.attempt_count = 0;
                self.counts.note_settled();
                if proposal.mutations.is_empty() || self.may_be_told(levels).unwrap_or(false) {
                    tell();
                } else {
                    self.counts.note_round(false);
                }
                self.write(proposal, levels, deadline).await.map_err(of_what_is_chosen)?;
                Ok(Settled::Done)
            }
        }
    }

    /// Asks the replicas for a phase. What is proposed for operations that came by other proposals can not be chosen
    /// any more; and this node's replica has missed those.
    async fn ask(
        &mut self,
        phase: &Phase,
        have_written: &[NodeIndex],
        deadline: Instant,
    ) -> Result<Said, ReplicaError> {
        let of = (self.table, &self.key, self.level);
        let said = ask(&self.replicas, of, phase, have_written, deadline).await?;
        self.counts.note_round(matches!(said, Said::No { .. }));
        if let (Said::No { known, .. }, Phase::Propose(proposing)) = (&said, phase)
            && !known.is_empty()
        {
            let barred = proposing.proposal.origin;
            self.barred.push(barred);
            self.doubt_no_more(barred);
            self.take_over(known).await;
        }
        Ok(said)
    }

    /// What is written of operations that are proposed under that ballot at first.
    fn written_of(
        &self,
        operations: Vec<(Uuid, Bytes)>,
        origin: Ballot,
    ) -> Result<Option<Mutation>, ReplicaError> {
        if operations.is_empty() {
            return Ok(None);
        }
        let named = operations.into_iter().map(|(id, outcome)| Operation { id, origin, outcome });
        let (shard, named) = (self.replicas.shard.local(), named.collect::<Vec<_>>());
        let log = shard.with_schema(|schema| OperationLog::of(schema, self.table));
        let log = log.map_err(|_| ReplicaError::NoTable)?;
        Ok(log.mutation(&self.key, &named, (self.timestamp, shard.now_seconds())))
    }

    /// This node's replica has missed what came of these operations: it is to have it, too.
    async fn take_over(&self, operations: &[Operation]) {
        let shard = &self.replicas.shard;
        let at = (shard.local().timestamps().next_after_all(), shard.local().now_seconds());
        let log = shard.local().with_schema(|schema| OperationLog::of(schema, self.table));
        let mutation = log.ok().and_then(|log| log.mutation(&self.key, operations, at));
        // Where it fails, others tell it again.
        let mutations = mutation.into_iter().collect();
        replica::write(shard, self.replicas.planned_on(), Unit::All, mutations).await;
    }

    /// Writes what is chosen, at the levels that clients ask for and at that of the agreement in any case: else the
    /// next one would have to make it good again. Then this node may propose what comes next.
    async fn write(
        &mut self,
        proposal: Box<Proposal>,
        levels: &[Consistency],
        deadline: Instant,
    ) -> Result<(), ReplicaError> {
        let mut written_by = WrittenBy::default();
        if !proposal.mutations.is_empty() {
            for level in self.to_be_met(levels)? {
                let patience = deadline.saturating_duration_since(Instant::now());
                let place = (self.table, &self.key);
                written_by =
                    write_chosen(&self.replicas, place, &proposal, (level, self.level), patience).await?;
            }
        }
        let here = self.replicas.view.here();
        let is_here = proposal.mutations.is_empty() || written_by.borrow().contains(&here);
        let bytes: usize = proposal.mutations.iter().map(|mutation| mutation.as_encoded().len()).sum();
        if is_here && bytes <= KNOWN_BYTES_MAX {
            let (ballot, on_own_rows) =
                (proposal.ballot.next(), self.do_all_others_differ().unwrap_or(false));
            self.promised = Some(Promised { ballot, known: Some((proposal, written_by)), on_own_rows });
        }
        Ok(())
    }

    /// Is whatever is chosen seen from then on by whoever reads as many replicas as meet these levels?
    fn may_be_told(&self, levels: &[Consistency]) -> Result<bool, ReplicaError> {
        let (plan, agreed) = self.replicas.admit(self.table, self.key.token, self.level)?;
        let centers = plan.factors.center_count;
        let is_met = |level: &Consistency| agreed.implies(&Requirement::of(*level, plan.factors), centers);
        Ok(plan.tells_chosen() && levels.iter().all(is_met))
    }

    /// Does each other replica have what a quorum has and this node lacks? Where several may lack it, one of them might
    /// accept what was decided without that, and have it made good by somebody else.
    fn do_all_others_differ(&self) -> Result<bool, ReplicaError> {
        let (plan, requirement) = self.replicas.admit(self.table, self.key.token, self.level)?;
        let view = &self.replicas.view;
        let here = view.center_of(view.here());
        let is_asked = |node: &&NodeIndex| !requirement.is_local() || view.center_of(**node) == here;
        let replica_count = plan.nodes.iter().filter(is_asked).count();
        Ok(replica_count <= requirement.count() as usize + 1)
    }

    /// The least of levels that together mean all of these, and that of the agreement.
    fn to_be_met(&self, levels: &[Consistency]) -> Result<Vec<Consistency>, ReplicaError> {
        let (plan, agreed) = self.replicas.admit(self.table, self.key.token, self.level)?;
        let implies = |one: &Requirement, other: &Requirement| one.implies(other, plan.factors.center_count);
        let mut wanted = vec![(self.level, agreed)];
        for level in levels {
            let requirement = Requirement::of(*level, plan.factors);
            if wanted.iter().any(|(_, other)| implies(other, &requirement)) {
                continue;
            }
            wanted.retain(|(_, other)| !implies(&requirement, other));
            wanted.push((*level, requirement));
        }
        Ok(wanted.into_iter().map(|(level, _)| level).collect())
    }

    /// A ballot that is later than all that were heard of.
    fn next_ballot(&mut self) -> Ballot {
        let given = self.replicas.shard.local().timestamps().next_after_all();
        let node = self.replicas.view.host_of(self.replicas.view.here());
        self.heard = ballot_after(self.heard, given, node);
        self.heard
    }

    /// The ballot that is promised with what is accepted under this one.
    fn ballot_behind(&mut self, ballot: Ballot) -> Ballot {
        let next = ballot.next();
        self.heard = self.heard.max(next);
        next
    }

    /// Lets others go first for a moment: longer from try to try. Who only had something else is not waited for.
    async fn give_way(&mut self, promised: Option<Ballot>) {
        self.attempt_count += 1;
        let Some(promised) = promised else { return };
        self.heard = self.heard.max(promised);
        let shard = self.replicas.shard.local();
        shard.timestamps().hear(promised.micros());
        let longest = BACKOFF_MAX.min(Duration::from_millis(1 << self.attempt_count.min(10)));
        let micros = shard.runtime().random.below(longest.as_micros() as u64);
        sleep(Duration::from_micros(micros)).await;
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
