//! A table is emptied on all nodes of the ring, which must all live: as in Cassandra, where nobody would tell one that
//! comes back.

use std::time::Duration;

use futures_util::future::join_all;
use replica::{Answer, Request};
use ring::NodeIndex;
use schema::TableId;
use tokio::time::{Instant, timeout_at};

use super::error::ReplicaError;
use super::write::said_of;
use super::{Missed, Replicas, ask, misanswered};
use crate::{Consistency, Coordinator};

impl Replicas {
    /// Empties a table on all nodes.
    ///
    /// # Errors
    /// `Unavailable`, and nothing is emptied, when one of them does not live; else it may be empty on some.
    pub(crate) async fn truncate(
        &self,
        coordinator: &Coordinator,
        table: TableId,
        patience: Duration,
    ) -> Result<(), ReplicaError> {
        let deadline = Instant::now() + patience;
        let nodes: Vec<NodeIndex> = self.view.nodes().collect();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let required = count(nodes.len());
        let alive = nodes.iter().filter(|node| self.view.is_alive(**node)).count();
        if alive < nodes.len() {
            let (consistency, alive) = (Consistency::All, count(alive));
            return Err(ReplicaError::Unavailable { consistency, required, alive });
        }
        let emptied = nodes.iter().map(|node| self.truncate_on(*node, coordinator, table, deadline));
        let (mut received, mut failures) = (0, Vec::new());
        for (node, emptied) in nodes.iter().zip(join_all(emptied).await) {
            match emptied {
                Ok(()) => received += 1,
                Err(Missed::Silent { .. }) => {}
                Err(Missed::Failed(failure)) => failures.push((self.view.address_of(*node), failure)),
            }
        }
        match received == required {
            true => Ok(()),
            false if failures.is_empty() => Err(ReplicaError::WriteTimeout { received, required }),
            false => Err(ReplicaError::WriteFailure { received, required, failures }),
        }
    }

    async fn truncate_on(
        &self,
        node: NodeIndex,
        coordinator: &Coordinator,
        table: TableId,
        deadline: Instant,
    ) -> Result<(), Missed> {
        let Some(peer) = self.view.peer(node) else {
            let emptied = timeout_at(deadline, coordinator.truncate_here(table)).await;
            let emptied = emptied.map_err(|_| Missed::Silent { was_sent: true })?;
            return emptied.map_err(|error| super::failed(error.to_string()));
        };
        match ask(peer, deadline, |out| Request::put_truncate(table, out)).await? {
            Answer::Written(written) => said_of(&Ok(written), 0),
            _ => Err(misanswered()),
        }
    }
}
