//! One replica counts what is added to the counters of a partition, and the others write what it has counted in all.
//!
//! ```text
//!   increments ─► the nearest replica counts: on its disk ─► what it has counted ─► all replicas, as any write
//! ```
//!
//! What it has counted can be written as often as anybody likes. To count is not so: who was asked and has not answered
//! may have counted, and nobody else is asked then.

use std::time::Duration;

use bytes::BytesMut;
use futures_util::future::{FutureExt, LocalBoxFuture};
use replica::{Answer, Failure, Request};
use ring::NodeIndex;
use rows::Mutation;
use runtime::{Plant, trace};
use schema::TableId;
use tokio::time::{Instant, timeout_at};
use types::Token;

use super::error::ReplicaError;
use super::view::Plan;
use super::{Missed, Replicas, misanswered};
use crate::Consistency;

/// Counts what a mutation adds to counters, and returns when as many replicas as the level asks for have it.
///
/// # Errors
/// Nothing is counted after `Unavailable`, and nothing is left of it after `Outdated`. After others it may be.
///
/// # Cancel safety
/// Dropped, it may be counted, and is written on the others some time then.
pub(crate) async fn count_by_one(
    replicas: &Replicas,
    mutation: &Mutation,
    consistency: Consistency,
    patience: Duration,
) -> Result<(), ReplicaError> {
    // Somebody has to count. Cassandra knows no such level for counters, but for those of a batch.
    let level = if consistency == Consistency::Any { Consistency::One } else { consistency };
    let begun = Instant::now();
    // Should this node count itself and be killed before the others are asked, it owes them what its log has from
    // here on.
    let _under_way = replicas.marker.begin_write(begun);
    let (plan, requirement) = replicas.admit(mutation.table, mutation.key.token, level)?;
    let count = Count { replicas, mutation, deadline: begun + patience };
    let required = requirement.count();
    let (by, counted) = count.by_one(&plan).await.map_err(|missed| match missed {
        Uncounted::Nobody => ReplicaError::Unavailable { consistency, required, alive: 0 },
        Uncounted::Outdated { epoch } => ReplicaError::Outdated { epoch },
        Uncounted::Silent => ReplicaError::WriteTimeout { received: 0, required },
        Uncounted::Failed(node, failure) => {
            let failures = vec![(replicas.view.address_of(node), failure)];
            ReplicaError::WriteFailure { received: 0, required, failures }
        }
    })?;
    let left = count.deadline.saturating_duration_since(Instant::now());
    replicas.write(vec![counted], level, left).await.map_err(|error| match error {
        // Emptied on whoever has counted, too: it is to be counted again.
        error @ (ReplicaError::Outdated { .. }
        | ReplicaError::WriteTimeout { .. }
        | ReplicaError::WriteFailure { .. }) => error,
        // Nothing was sent now; but one has counted, and nobody has marked what the others miss of it.
        _ => {
            drop(Unanswered { begun, ..Unanswered::of(replicas, by, mutation) });
            ReplicaError::WriteTimeout { received: 1, required }
        }
    })
}

/// What is to be counted.
struct Count<'r> {
    replicas: &'r Replicas,
    mutation: &'r Mutation,
    deadline: Instant,
}

impl Count<'_> {
    /// Has one replica count; another one only when that did surely not.
    async fn by_one(&self, plan: &Plan<'_>) -> Result<(NodeIndex, Mutation), Uncounted> {
        let Count { replicas, mutation, deadline } = self;
        let view = &replicas.view;
        let mut uncounted = Uncounted::Nobody;
        for node in view.readers(plan).into_iter().filter(|node| view.is_alive(*node)) {
            trace::note(|| format!("Enqueuing counter update to {}", view.address_of(node)));
            let mut unanswered = Unanswered::of(replicas, node, mutation);
            let asked = timeout_at(*deadline, self.ask(node)).await;
            let asked = asked.unwrap_or(Err(Missed::Silent { was_sent: true }));
            let is_open = matches!(
                asked,
                Err(Missed::Silent { was_sent: true } | Missed::Failed(Failure::Other { .. }))
            );
            unanswered.is_heard = !is_open;
            drop(unanswered);
            uncounted = match asked {
                Ok(counted) => return Ok((node, counted)),
                Err(Missed::Silent { was_sent: false }) => continue,
                Err(Missed::Silent { .. }) if replicas.has_planted(Plant::SilentTakenForUncounted) => {
                    continue;
                }
                Err(Missed::Silent { was_sent: true }) => return Err(Uncounted::Silent),
                Err(Missed::Failed(failure)) => Uncounted::of(node, failure),
            };
            if !uncounted.is_for_sure() {
                break;
            }
        }
        Err(uncounted)
    }

    fn ask(&self, node: NodeIndex) -> LocalBoxFuture<'static, Result<Mutation, Missed>> {
        let Count { replicas, mutation, deadline } = *self;
        let Some(peer) = replicas.view.peer(node) else {
            let (shard, planned_on) = (replicas.shard.clone(), replicas.planned_on());
            let mutation = mutation.clone();
            return async move { replica::count(&shard, planned_on, mutation).await.map_err(Missed::Failed) }
                .boxed_local();
        };
        let put = |out: &mut BytesMut| Request::put_count(mutation, out);
        let answer = replicas.ask(peer, [mutation.table], deadline, put);
        let (shard, table, key) = (replicas.shard.clone(), mutation.table, mutation.key.clone());
        async move {
            match answer.await? {
                Answer::Counted(counted) if counted.table == table && counted.key == key => {
                    let checked = replica::check_mutations(&shard, std::slice::from_ref(&counted));
                    checked.map(|()| counted).map_err(|_| misanswered())
                }
                Answer::Failed(failure) => Err(Missed::Failed(failure)),
                _ => Err(misanswered()),
            }
        }
        .boxed_local()
    }
}

/// Who was asked to count. When it is dropped unheard, that node may have counted what no other replica has: another
/// node is compared with them then, and what this one may have counted they have missed.
struct Unanswered<'r> {
    replicas: &'r Replicas,
    node: NodeIndex,
    place: (TableId, Token),
    begun: Instant,
    is_heard: bool,
}

impl Unanswered<'_> {
    fn of<'r>(replicas: &'r Replicas, node: NodeIndex, mutation: &Mutation) -> Unanswered<'r> {
        let place = (mutation.table, mutation.key.token);
        Unanswered { replicas, node, place, begun: Instant::now(), is_heard: false }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.is_heard {
            return;
        }
        let Replicas { marker, view, .. } = self.replicas;
        if self.node != view.here() {
            return marker.mark(view, self.node, self.place, None);
        }
        let (table, token) = self.place;
        for other in self.replicas.others_of(table, token) {
            marker.mark(view, other, self.place, Some(self.begun));
        }
    }
}

/// Why nobody has said that it has counted.
enum Uncounted {
    /// Nobody could be asked.
    Nobody,
    /// The table was emptied since.
    Outdated { epoch: u64 },
    /// Who was asked has not answered, and may have counted.
    Silent,
    /// It said why.
    Failed(NodeIndex, Failure),
}

impl Uncounted {
    fn of(node: NodeIndex, failure: Failure) -> Uncounted {
        match failure {
            Failure::Outdated { epoch } => Uncounted::Outdated { epoch },
            failure => Uncounted::Failed(node, failure),
        }
    }

    /// Is it sure that who was asked has not counted, and may another one?
    fn is_for_sure(&self) -> bool {
        matches!(self, Uncounted::Failed(_, Failure::NoTable { .. } | Failure::Overloaded { .. }))
    }
}
