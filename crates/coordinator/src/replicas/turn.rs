//! Nodes that change one partition by conditions do so in turn: one of its replicas says whose turn it is.
//!
//! Without that they outbid each other's ballots, and under many rivals nobody comes to an end. Each node waits with
//! one of its clients at a time, so that nodes take turns, however many clients each has. A turn is a courtesy, and
//! nothing hangs on it but time: who hears nothing, since the giver is dead, goes on without.

use std::rc::Rc;
use std::time::Duration;

use replica::{Answer, Request};
use ring::NodeIndex;
use rows::PartitionKey;
use runtime::trace;
use schema::TableId;
use storage::Claim;
use tokio::time::{Instant, timeout_at};
use types::Token;

use super::Replicas;

/// So long it may take to tell that a turn is over: when nobody hears of it, it ends by itself, but later.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// A turn; over when it is dropped.
pub(super) enum Turn {
    /// Of a partition in which this node gives turns.
    Own { _held: Claim },
    /// Another node has given it.
    Given { _until_dropped: Given },
}

/// A turn that another node has given.
pub(super) struct Given {
    replicas: Rc<Replicas>,
    giver: NodeIndex,
    table: TableId,
    key: PartitionKey,
}

/// Which of these nodes gives turns in a partition: the same for all who ask, and of other partitions others.
pub(super) fn giver_among(
    replicas: &Replicas,
    nodes: impl IntoIterator<Item = NodeIndex>,
    token: Token,
) -> Option<NodeIndex> {
    let view = &replicas.view;
    let rank = |node: &NodeIndex| {
        let mut bytes = view.host_of(*node).into_bytes();
        bytes[..8].copy_from_slice(&token.0.to_be_bytes());
        (Token::of(&bytes), *node)
    };
    nodes.into_iter().filter(|node| view.is_alive(*node)).max_by_key(rank)
}

/// Waits for a turn; `None` when nobody gives one in time.
///
/// # Cancel safety
/// Dropped, the place in the queue is given up in time.
pub(super) async fn wait_for(
    replicas: &Rc<Replicas>,
    giver: NodeIndex,
    (table, key): (TableId, PartitionKey),
    deadline: Instant,
) -> Option<Turn> {
    trace::note(|| "Waiting for other nodes' conditional changes of the partition".into());
    // It may be long: others come first. But the giver may hang, and time must be left then.
    let half = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
    let Some(peer) = replicas.view.peer(giver) else {
        let owner = replicas.shard.shards().owner(key.token);
        let taken = timeout_at(half, replicas.shard.take_turn(owner, table, key)).await;
        return taken.ok()?.ok().map(|held| Turn::Own { _held: held });
    };
    let wanted = replica::Turn { table, key: key.clone(), is_over: false };
    let asked = replicas.ask(peer, [table], half, |out| Request::put_turn(&wanted, out));
    match timeout_at(half, asked).await {
        Ok(Ok(Answer::Paxos(_))) => {
            let given = Given { replicas: Rc::clone(replicas), giver, table, key };
            Some(Turn::Given { _until_dropped: given })
        }
        other => {
            tracing::debug!(giver = %replicas.view.address_of(giver), ?other, "nobody gives a turn in time");
            None
        }
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        let Given { replicas, giver, table, key } = self;
        let Some(peer) = replicas.view.peer(*giver) else { return };
        let turn = replica::Turn { table: *table, key: key.clone(), is_over: true };
        let deadline = Instant::now() + TOLD_WITHIN;
        let told = replicas.ask(peer, [*table], deadline, |out| Request::put_turn(&turn, out));
        runtime::spawn_local("the end of a turn", Box::pin(async move { _ = told.await }));
    }
}
