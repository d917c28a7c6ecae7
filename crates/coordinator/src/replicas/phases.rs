//! How the replicas of a partition are asked for a phase of an agreement, and what they say together.

use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use replica::{Answer, Ballot, Operation, PaxosAnswer, PaxosRequest, Phase, Promise, Request};
use ring::NodeIndex;
use rows::{Mutation, PartitionKey};
use schema::TableId;
use storage::Unit;
use tokio::time::{Instant, timeout_at};
use types::Token;

use super::deciders::who_agree;
use super::error::ReplicaError;
use super::requirement::Counted;
use super::write::{Tally, Term, begin_group_of, own_part, together};
use super::{Missed, Replicas, misanswered};
use crate::Consistency;

/// Of a table, and the level at which its replicas agree.
pub(super) type Partition<'a> = (TableId, &'a PartitionKey, Consistency);

/// What replicas have said to a phase.
pub(super) enum Said {
    /// A quorum has promised this, or has accepted.
    Yes(Vec<Promise>),
    /// Too few.
    No {
        /// Somebody has promised this later ballot.
        later: Option<Ballot>,
        /// May any replica have done what it was asked?
        by_any: bool,
        /// What some know to have come of operations, by other proposals.
        known: Vec<Operation>,
    },
}

/// What a replica has said.
pub(super) enum Word {
    Promised(Promise),
    Done,
    Refused(Ballot),
    Differs,
    Known(Vec<Operation>),
}

/// Asks all replicas that are to agree, and waits until a quorum has done it, or can not any more. What was decided
/// on this node's own rows it accepts itself when that makes a quorum: else it alone might have what was decided on
/// rows that the others know better, and it would be made good. Those that have written what was chosen before are only
/// told that it was.
pub(super) async fn ask(
    replicas: &Replicas,
    (table, key, level): Partition<'_>,
    phase: &Phase,
    have_written: &[NodeIndex],
    deadline: Instant,
) -> Result<Said, ReplicaError> {
    let (plan, requirement) = replicas.admit(table, key.token, level)?;
    let view = &replicas.view;
    let asked = who_agree(replicas, &plan, &requirement);
    let centers = asked.iter().map(|node| view.center_of(*node));
    let mut tally = Tally::new(requirement, Counted::none(plan.factors), centers);
    let waits = matches!(phase, Phase::Propose(proposing) if !proposing.seen.is_empty());
    let mut own = asked.iter().copied().find(|node| waits && *node == view.here());
    let ask_node = |node: NodeIndex| {
        let phase = if have_written.contains(&node) { phase.without_known_changes() } else { phase.clone() };
        let request = PaxosRequest { table, key: key.clone(), phase };
        let word = ask_one(replicas, node, request, deadline);
        async move { (node, word.await) }
    };
    let at_once = asked.iter().copied().filter(|node| Some(*node) != own);
    let mut answers: FuturesUnordered<_> = at_once.map(ask_node).collect();
    let (mut promises, mut later, mut by_any, mut differs) = (Vec::new(), None::<Ballot>, false, false);
    let mut known = Vec::new();
    while !tally.is_decided() {
        if let Some(node) = own.take_if(|node| tally.would_be_enough(view.center_of(*node))) {
            answers.push(ask_node(node));
        }
        let Ok(Some((node, word))) = timeout_at(deadline, answers.next()).await else { break };
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
            Ok(Word::Differs) => {
                differs = true;
                Err(Missed::Silent { was_sent: true })
            }
            Ok(Word::Known(operations)) => {
                differs = true;
                known.extend(operations);
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
    match later.is_some() || differs {
        true => Ok(Said::No { later, by_any, known }),
        false => Err(tally.write_outcome(level).err().unwrap_or(ReplicaError::InDoubt)),
    }
}

/// Asks one replica.
pub(super) fn ask_one(
    replicas: &Replicas,
    node: NodeIndex,
    request: PaxosRequest,
    deadline: Instant,
) -> LocalBoxFuture<'static, Result<Word, Missed>> {
    let Some(peer) = replicas.view.peer(node) else {
        let (shard, planned_on) = (replicas.shard.clone(), replicas.planned_on());
        let agreeing = Box::pin(async move { replica::agree(&shard, planned_on, request).await });
        let agreeing = own_part("a replica's own agreement", deadline, agreeing);
        return async move { agreeing.await?.map(word_of).map_err(Missed::Failed) }.boxed_local();
    };
    let answer = replicas.ask(peer, [request.table], deadline, |out| Request::put_paxos(&request, out));
    async move {
        match answer.await? {
            Answer::Paxos(answer) => Ok(word_of(answer)),
            Answer::Failed(failure) => Err(Missed::Failed(failure)),
            _ => Err(misanswered()),
        }
    }
    .boxed_local()
}

fn word_of(answer: PaxosAnswer) -> Word {
    match answer {
        PaxosAnswer::Promised(promise) => Word::Promised(promise),
        PaxosAnswer::Done => Word::Done,
        PaxosAnswer::Refused(promised) => Word::Refused(promised),
        PaxosAnswer::Differs => Word::Differs,
        PaxosAnswer::Known(operations) => Word::Known(operations),
    }
}

/// Writes mutations to all replicas of one place, whatever the tables are that they are of, as one; returns when as
/// many as the level asks for have them.
///
/// # Errors
/// As [`Replicas::write`].
///
/// # Cancel safety
/// As [`Replicas::write`].
pub(super) async fn write_as_one(
    replicas: &Replicas,
    place: (TableId, Token),
    mutations: &[Mutation],
    consistency: Consistency,
    patience: Duration,
) -> Result<(), ReplicaError> {
    let term = Term::of(patience);
    let (plan, requirement) = replicas.admit(place.0, place.1, consistency)?;
    let write_at = |node| replicas.begin_write(node, Unit::All, mutations, term.deadline);
    let group = begin_group_of(replicas, &plan, requirement, (Unit::All, Rc::new([place])), term, write_at);
    together(group.finish(consistency).await)
}
