//! How a conditional change comes to the shard that decides about its partition, and the answer back.
//!
//! In a ring one replica decides for all: the first that lives, in an order that is another one for each partition. It
//! is chosen by whoever has the client, and is no office: two that decide about one partition outbid each other, and
//! that is all. On its node the shard decides that owns the partition.

use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use replica::{Answer, Deciding, Failure, PaxosAnswer};
use ring::NodeIndex;
use rows::PartitionKey;
use runtime::trace::{self, Trace};
use schema::TableId;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::settle_partition;
use crate::replicas::Replicas;
use crate::replicas::deciders::{ask_to_decide, deciders_of, is_here};
use crate::{Consistency, Coordinator, CoordinatorError, TimeoutKind};

/// So many changes wait for a shard to take them up.
const WAITING_MAX: usize = 1_024;

/// Whoever carries out statements, and so can decide about one that another node, or another shard, has sent.
pub trait Decider {
    /// Carries out a change on this shard, and gives its answer; both as it writes them itself.
    fn decide(self: Rc<Self>, change: Bytes) -> LocalBoxFuture<'static, Bytes>;
}

/// The ways to the shards of a node that decide about conditional changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deciders(Arc<Mutex<BTreeMap<usize, mpsc::Sender<ToDecide>>>>);

/// Something for a shard to decide, and the way back.
#[derive(Debug)]
pub(crate) struct ToDecide {
    deciding: Deciding,
    trace: Option<Trace>,
    reply: oneshot::Sender<Answer>,
}

impl Deciders {
    /// The way to a shard, and its end there.
    pub(crate) fn open(&self, shard: usize) -> mpsc::Receiver<ToDecide> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(shard, sender);
        receiver
    }

    /// Has a shard of this node decide.
    pub(crate) async fn ask(&self, shard: usize, deciding: Deciding) -> Answer {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&shard).cloned();
        let (reply, answer) = oneshot::channel();
        let to_decide = ToDecide { deciding, trace: trace::current(), reply };
        let taken = sender.is_some_and(|sender| sender.try_send(to_decide).is_ok());
        if !taken {
            let what = "too many conditional changes wait for the shard".to_owned();
            return Answer::Failed(Failure::Overloaded { what });
        }
        answer
            .await
            .unwrap_or_else(|_| Answer::Failed(Failure::Other { what: "the shard has ended".to_owned() }))
    }
}

/// Decides about all that comes to a shard.
pub(crate) async fn decide_all(coordinator: Coordinator, mut waiting: mpsc::Receiver<ToDecide>) {
    while let Some(ToDecide { deciding, trace, reply }) = waiting.recv().await {
        let coordinator = coordinator.clone();
        let decide = async move { _ = reply.send(decide_here(&coordinator, deciding).await) };
        runtime::spawn_local("a conditional change", trace::carry(trace, Box::pin(decide)));
    }
}

async fn decide_here(coordinator: &Coordinator, deciding: Deciding) -> Answer {
    let Deciding { table, key, is_local, change } = deciding;
    if let Some(change) = change {
        return match coordinator.decider.get().and_then(Weak::upgrade) {
            Some(decider) => Answer::Decided(decider.decide(change).await),
            None => Answer::Failed(Failure::Overloaded { what: "the shard has not started yet".to_owned() }),
        };
    }
    let level = if is_local { Consistency::LocalSerial } else { Consistency::Serial };
    match settle_partition(coordinator, table, &key, level).await {
        Ok(()) => Answer::Paxos(PaxosAnswer::Done),
        Err(CoordinatorError::Overloaded { what }) => Answer::Failed(Failure::Overloaded { what }),
        Err(error) => Answer::Failed(Failure::Other { what: error.to_string() }),
    }
}

/// Before a read at `SERIAL`: has the replicas agree that nothing is unfinished of a partition.
pub(super) async fn settle(
    coordinator: &Coordinator,
    table: TableId,
    key: PartitionKey,
    level: Consistency,
) -> Result<(), CoordinatorError> {
    let others = others_that_decide(coordinator, table, &key, level)?;
    let answer = match others {
        Some(others) => others.carry(None).await?,
        None => None,
    };
    match answer {
        None => settle_partition(coordinator, table, &key, level).await,
        Some(Answer::Paxos(PaxosAnswer::Done)) => Ok(()),
        Some(_) => Err(CoordinatorError::InDoubt),
    }
}

/// Whoever decides about statements that others have sent to the shard of this coordinator, from now on.
///
/// # Panics
/// When there is one already.
pub fn decide_by(coordinator: &Coordinator, decider: Weak<dyn Decider>) {
    let is_first = coordinator.decider.set(decider).is_ok();
    assert!(is_first, "a shard has one engine");
}

/// Others that may decide about a partition at that level, when this shard is not the first to: on a node that is alone
/// each shard is.
///
/// # Errors
/// `Unavailable` and `Overloaded`.
pub fn others_that_decide(
    coordinator: &Coordinator,
    table: TableId,
    key: &PartitionKey,
    level: Consistency,
) -> Result<Option<OthersThatDecide>, CoordinatorError> {
    let Some(replicas) = coordinator.replicas_of(table) else { return Ok(None) };
    let nodes = deciders_of(&replicas, table, key.token, level)?;
    let (coordinator, key) = (coordinator.clone(), key.clone());
    let is_local = level == Consistency::LocalSerial;
    let others = OthersThatDecide { coordinator, replicas, table, key, is_local, nodes };
    let is_first_here = others.nodes.first().is_some_and(|node| others.is_this_shard(*node));
    Ok((!is_first_here).then_some(others))
}

/// Those that may decide about a partition, one after the other.
pub struct OthersThatDecide {
    coordinator: Coordinator,
    replicas: Rc<Replicas>,
    table: TableId,
    key: PartitionKey,
    is_local: bool,
    nodes: Vec<NodeIndex>,
}

impl OthersThatDecide {
    /// Has one of them decide about a change with a condition; `None` when that is this shard, after all.
    ///
    /// # Errors
    /// `Overloaded`: nothing was done. `InDoubt`: it may be done.
    ///
    /// # Cancel safety
    /// Dropped, it may be done.
    pub async fn decide(self, change: Bytes) -> Result<Option<Bytes>, CoordinatorError> {
        match self.carry(Some(change)).await? {
            None => Ok(None),
            Some(Answer::Decided(decision)) => Ok(Some(decision)),
            Some(_) => Err(CoordinatorError::InDoubt),
        }
    }

    /// Asks them one after the other, until one was asked; `None` when this shard is the one.
    async fn carry(self, change: Option<Bytes>) -> Result<Option<Answer>, CoordinatorError> {
        let coordinator = &self.coordinator;
        let time = coordinator.patience(TimeoutKind::Contention) + coordinator.patience(TimeoutKind::Write);
        let deadline = Instant::now() + time;
        let (table, key, is_local) = (self.table, self.key.clone(), self.is_local);
        let deciding = Deciding { table, key, is_local, change };
        let mut stands_in_the_way = "no replica can decide".to_owned();
        for node in &self.nodes {
            let answer = match is_here(&self.replicas, *node) {
                true if self.is_this_shard(*node) => return Ok(None),
                true => Some(coordinator.node.deciders.ask(self.owner(), deciding.clone()).await),
                false => ask_to_decide(&self.replicas, *node, &deciding, deadline).await?,
            };
            match answer {
                None => {}
                Some(Answer::Failed(Failure::Overloaded { what })) => stands_in_the_way = what,
                Some(answer) => return Ok(Some(answer)),
            }
        }
        Err(CoordinatorError::Overloaded { what: stands_in_the_way })
    }

    fn owner(&self) -> usize {
        self.coordinator.owners().of(self.key.token)
    }

    fn is_this_shard(&self, node: NodeIndex) -> bool {
        is_here(&self.replicas, node) && self.owner() == self.coordinator.shard().local().index()
    }
}
