//! Which replica decides about the conditional changes of a partition, so that nodes do not outbid each other.

use replica::{Answer, Deciding, Request};
use ring::NodeIndex;
use runtime::Plant;
use schema::TableId;
use tokio::time::{Instant, timeout_at};
use types::Token;

use super::requirement::Requirement;
use super::view::Plan;
use super::{Missed, ReplicaError, Replicas};
use crate::{Consistency, CoordinatorError};

/// The replicas of a partition that are to agree at that level.
///
/// # Errors
/// As [`Replicas::admit`].
pub(crate) fn who_agree_on(
    replicas: &Replicas,
    table: TableId,
    token: Token,
    level: Consistency,
) -> Result<Vec<NodeIndex>, ReplicaError> {
    let (plan, requirement) = replicas.admit(table, token, level)?;
    Ok(who_agree(replicas, &plan, &requirement))
}

/// The replicas that are to agree: of another data centre none at `LOCAL_SERIAL`, and none that is getting its rows, of
/// which nobody knows what it had promised.
pub(super) fn who_agree(
    Replicas { view, .. }: &Replicas,
    plan: &Plan<'_>,
    requirement: &Requirement,
) -> Vec<NodeIndex> {
    let here = view.center_of(view.here());
    let is_one =
        |node: &NodeIndex| view.has_rows(*node) && (!requirement.is_local() || view.center_of(*node) == here);
    plan.nodes.iter().copied().filter(is_one).collect()
}

/// Is this node a replica of a partition of which reads wait for what it has accepted?
pub(crate) fn is_settled_here(replicas: &Replicas, table: TableId, token: Token) -> bool {
    let plan = replicas.plan_of(table, token);
    plan.is_some_and(|plan| plan.tells_chosen() && plan.nodes.contains(&replicas.view.here()))
}

/// The replicas of a partition that live and may decide about it at that level, the first before the others: all nodes
/// that see the same ring see the same one, and of other partitions another one.
///
/// # Errors
/// `Unavailable`, `Overloaded` or `NoTable`.
pub(crate) fn deciders_of(
    replicas: &Replicas,
    table: TableId,
    token: Token,
    level: Consistency,
) -> Result<Vec<NodeIndex>, ReplicaError> {
    let mut nodes = who_agree_on(replicas, table, token, level)?;
    nodes.retain(|node| replicas.view.is_alive(*node));
    nodes.sort_by_cached_key(|node| {
        let mut bytes = replicas.view.host_of(*node).into_bytes();
        bytes[..8].copy_from_slice(&token.0.to_be_bytes());
        (Token::of(&bytes), *node)
    });
    let runtime = replicas.shard.local().runtime();
    if runtime.plants.has(Plant::DecidersDiffer) && !nodes.is_empty() {
        let first = runtime.random.below(nodes.len() as u64) as usize;
        nodes.rotate_left(first);
    }
    Ok(nodes)
}

/// Is that this node?
pub(crate) fn is_here(replicas: &Replicas, node: NodeIndex) -> bool {
    node == replicas.view.here()
}

/// Has another node decide; `None` when nothing was sent to it.
///
/// # Errors
/// `InDoubt`: it was asked, and nobody knows what came of it.
pub(crate) async fn ask_to_decide(
    replicas: &Replicas,
    node: NodeIndex,
    deciding: &Deciding,
    deadline: Instant,
) -> Result<Option<Answer>, CoordinatorError> {
    let peer = replicas.view.peer(node).expect("it is another node");
    let asked = replicas.ask(peer, [deciding.table], deadline, |out| Request::put_decide(deciding, out));
    match timeout_at(deadline, asked).await {
        Ok(Ok(answer)) => Ok(Some(answer)),
        Ok(Err(Missed::Silent { was_sent: false })) => Ok(None),
        missed => {
            tracing::debug!(?missed, "another node was to decide about a conditional change");
            Err(CoordinatorError::InDoubt)
        }
    }
}
