//! How a node answers others.

use bytes::Bytes;
use messaging::{Established, Service};
use replica::{Answer, Failure, Request, Written};
use schema::TableId;
use stdx::index_set::IndexSet;
use storage::ShardHandle;
use tokio::time::timeout_at;

use crate::Coordinator;

/// Carries out what other nodes ask of this shard's replicas.
pub struct ReplicaService {
    shard: ShardHandle,
    /// For what concerns the whole node.
    coordinator: Option<Coordinator>,
}

impl ReplicaService {
    /// That of a shard, for its replicas alone.
    pub fn new(shard: ShardHandle) -> ReplicaService {
        ReplicaService { shard, coordinator: None }
    }

    /// That of a shard of a node in a ring.
    pub(crate) fn of_node(coordinator: Coordinator) -> ReplicaService {
        ReplicaService { shard: coordinator.shard().clone(), coordinator: Some(coordinator) }
    }
}

impl Service for ReplicaService {
    fn request(&self, from: &Established, request: messaging::Request) {
        let host = from.host_id;
        let asked = match Request::read(request.body.clone()) {
            Ok(asked) => asked,
            // It is declined: there is nothing to say to who wrote it.
            Err(error) => return tracing::warn!(%host, %error, "a request of another node makes no sense"),
        };
        let (shard, coordinator) = (self.shard.clone(), self.coordinator.clone());
        let work = async move {
            let doing = async {
                match (asked, coordinator) {
                    (Request::Truncate { table }, Some(coordinator)) => truncate(&coordinator, table).await,
                    (asked, _) => replica::carry_out(&shard, asked).await,
                }
            };
            // Nobody waits for it after that. A write that has begun goes on.
            let Ok(answer) = timeout_at(request.deadline, doing).await else { return };
            if let Err(error) = request.answer(|out| answer.put(out)) {
                tracing::warn!(%host, %error, "an answer to another node is too long");
            }
        };
        runtime::spawn_local("replica", Box::pin(work));
    }

    fn notice(&self, _from: &Established, _body: Bytes) {}
}

/// Empties this node's part of a table.
async fn truncate(coordinator: &Coordinator, table: TableId) -> Answer {
    Answer::Written(match coordinator.truncate_here(table).await {
        Ok(()) => Written { done: IndexSet::first(1), ..Written::default() },
        Err(error) => {
            Written { failure: Some(Failure::Other { what: error.to_string() }), ..Written::default() }
        }
    })
}
