//! How a node answers others.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cluster::membership::Known;
use messaging::{Established, Seldom, Service};
use replica::{Answer, Asked, Failure, Phase, Request};
use runtime::{Plant, trace};
use storage::ShardHandle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;
use uuid::Uuid;

use super::traced::Received;
use super::{Marks, RingSeat};
use crate::batch_keeper::BatchKeeper;
use crate::conditional::Deciders;

/// Carries out what other nodes ask of this shard's replicas.
pub struct ReplicaService {
    shard: ShardHandle,
    /// How far the node has come, in a ring.
    known: Option<Known>,
    /// Who keeps logged batches of others, in a ring.
    keeper: Option<Rc<BatchKeeper>>,
    /// Who decides about conditional changes, in a ring.
    deciders: Option<Deciders>,
    /// Where it is noted what others write, in a ring.
    marks: Option<Marks>,
    /// Has a permit for each request that may wait for the schema.
    waiting: Arc<Semaphore>,
    /// Requests that could not be read.
    unreadable: Seldom,
}

/// So many requests wait at the same time until this node has emptied their table; others are declined.
const WAITING_MAX: usize = 256;

/// For what a request waits, and its permit to do so.
type Waits = (Known, OwnedSemaphorePermit);

/// Requests wait already for the schema, as many as may.
struct TooManyWait;

impl ReplicaService {
    /// Must a request wait until this node has the schema of that epoch, too?
    fn has_to_wait(&self, schema_epoch: u64) -> Result<Option<Waits>, TooManyWait> {
        let unwaited = self.shard.local().runtime().plants.has(Plant::EpochUnawaited);
        let Some(known) = self.known.as_ref().filter(|_| !unwaited) else { return Ok(None) };
        if known.schema_epoch() >= schema_epoch {
            return Ok(None);
        }
        let turn = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| TooManyWait)?;
        Ok(Some((known.clone(), turn)))
    }

    /// That of a shard, for its replicas alone.
    pub fn new(shard: ShardHandle) -> ReplicaService {
        ReplicaService::answering(shard, None)
    }

    /// That of a shard of a node that knows so much of its ring.
    pub fn of_node(shard: ShardHandle, known: Known) -> ReplicaService {
        ReplicaService::answering(shard, Some(known))
    }

    /// That of a seat, which keeps logged batches of others, and decides about conditional changes.
    pub(crate) fn of_seat(seat: &RingSeat, keeper: BatchKeeper, deciders: Deciders) -> ReplicaService {
        let service = ReplicaService::of_node(seat.shard().clone(), seat.known().clone());
        let (keeper, marks) = (Some(Rc::new(keeper)), Some(seat.marks().clone()));
        ReplicaService { keeper, deciders: Some(deciders), marks, ..service }
    }

    fn answering(shard: ShardHandle, known: Option<Known>) -> ReplicaService {
        let waiting = Arc::new(Semaphore::new(WAITING_MAX));
        let (keeper, deciders, marks) = (None, None, None);
        ReplicaService { shard, known, keeper, deciders, marks, waiting, unreadable: Seldom::default() }
    }

    /// If that node is killed, others may not have been asked for it.
    fn note(&self, from: Uuid, asked: &Asked) {
        let Some(marks) = &self.marks else { return };
        let mutations = match &asked.request {
            Request::Write { mutations, .. } => mutations.as_slice(),
            Request::Count(mutation) => std::slice::from_ref(&**mutation),
            Request::Paxos(request) => match &request.phase {
                Phase::Write(chosen) => chosen.mutations.as_slice(),
                Phase::Prepare(_) | Phase::Propose(_) => return,
            },
            _ => return,
        };
        let places = mutations.iter().map(|mutation| (mutation.table, mutation.key.token));
        marks.of(self.shard.local().index()).note_received(from, places);
    }
}

impl Service for ReplicaService {
    fn request(&self, from: &Established, request: messaging::Request) {
        let host = from.host_id;
        let asked = match Asked::read(request.body.clone()) {
            Ok(asked) => asked,
            // It is declined: there is nothing to say to who wrote it.
            Err(error) => {
                if let Some(count) = self.unreadable.note() {
                    tracing::warn!(%host, %error, count, "requests of other nodes make no sense");
                }
                return;
            }
        };
        self.note(host, &asked);
        let (shard, known, planned_on) = (self.shard.clone(), self.known.clone(), asked.planned_on);
        let (keeper, deciders) = (self.keeper.clone(), self.deciders.clone());
        let awaited = match &asked.request {
            // A statement is planned here anew.
            Request::Decide(_) => planned_on.schema_epoch,
            // So that this node has emptied its table, too.
            _ => planned_on.truncated_at,
        };
        let waits = match self.has_to_wait(awaited) {
            Ok(waits) => waits,
            // A statement may be decided by another one.
            Err(TooManyWait) if matches!(asked.request, Request::Decide(_)) => {
                let what = "too many requests wait for the schema".to_owned();
                let refused = Answer::Failed(Failure::Overloaded { what });
                _ = request.answer(|out| refused.put(out));
                return;
            }
            // It is declined.
            Err(TooManyWait) => return,
        };
        // Boxed, so that the many requests without a trace need no room for it.
        let traced = asked
            .is_traced
            .then(|| Received::begin(&asked.request, host, known.as_ref(), shard.local().runtime()));
        let work = async move {
            let doing = async {
                if let Some((known, turn)) = waits {
                    known.schema_is_here(awaited).await;
                    drop(turn);
                }
                match (keeper, deciders, asked) {
                    (Some(keeper), _, Asked { planned_on, request: Request::Batch(request), .. }) => {
                        Answer::Written(keeper.carry_out(planned_on.schema_epoch, request).await)
                    }
                    (_, Some(deciders), Asked { request: Request::Decide(deciding), .. }) => {
                        deciders.ask(shard.shards().owner(deciding.key.token), *deciding).await
                    }
                    (_, _, asked) => replica::carry_out(&shard, asked).await,
                }
            };
            // Nobody waits for it after that. A write that has begun goes on.
            let doing = trace::carry(traced.as_ref().map(|traced| traced.trace()), doing);
            let Ok(answer) = timeout_at(request.deadline, doing).await else { return };
            // Behind the work and not before it: who gets its rows from here waits until this node knows of its fence,
            // and then finds all that was acknowledged without it. It is declined: who asked comes so far by itself.
            // What counts is what it had planned on, and not how far it had come when the frame was sealed.
            if known.is_some_and(|known| planned_on.ring_epoch < known.fence()) {
                return tracing::debug!(%host, ?planned_on, "a request of an earlier ring is not answered");
            }
            let answered = request.answer(|out| {
                if let Some(traced) = traced {
                    Answer::put_steps(&traced.finish(), out);
                }
                answer.put(out);
            });
            if let Err(error) = answered {
                tracing::warn!(%host, %error, "an answer to another node is too long");
            }
        };
        runtime::spawn_local("replica", Box::pin(work));
    }

    fn notice(&self, _from: &Established, _body: Bytes) {}
}
