//! How a node answers others.

use bytes::Bytes;
use cluster::membership::Known;
use messaging::{Established, Service};
use replica::Asked;
use storage::ShardHandle;
use tokio::time::timeout_at;

/// Carries out what other nodes ask of this shard's replicas.
pub struct ReplicaService {
    shard: ShardHandle,
    /// How far the node has come, in a ring.
    known: Option<Known>,
}

impl ReplicaService {
    /// That of a shard, for its replicas alone.
    pub fn new(shard: ShardHandle) -> ReplicaService {
        ReplicaService { shard, known: None }
    }

    /// That of a shard of a node in a ring.
    pub(crate) fn of_node(shard: ShardHandle, known: Known) -> ReplicaService {
        ReplicaService { shard, known: Some(known) }
    }
}

impl Service for ReplicaService {
    fn request(&self, from: &Established, request: messaging::Request) {
        let host = from.host_id;
        let asked = match Asked::read(request.body.clone()) {
            Ok(asked) => asked,
            // It is declined: there is nothing to say to who wrote it.
            Err(error) => return tracing::warn!(%host, %error, "a request of another node makes no sense"),
        };
        let (shard, known) = (self.shard.clone(), self.known.clone());
        let work = async move {
            let doing = async {
                if let Some(known) = known
                    && known.schema_epoch() < asked.schema_epoch
                {
                    known.schema_is_here(asked.schema_epoch).await;
                }
                replica::carry_out(&shard, asked).await
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
