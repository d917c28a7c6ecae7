//! How a node answers others.

use bytes::Bytes;
use messaging::{Established, Request, Service};
use storage::ShardHandle;

/// Carries out what other nodes ask of this shard's replicas.
pub struct ReplicaService {
    shard: ShardHandle,
}

impl ReplicaService {
    /// That of a shard.
    pub fn new(shard: ShardHandle) -> ReplicaService {
        ReplicaService { shard }
    }
}

impl Service for ReplicaService {
    fn request(&self, _from: &Established, request: Request) {
        let shard = self.shard.clone();
        let work = async move {
            // A body that makes no sense is declined: there is nothing to say to who wrote it.
            if let Ok(answer) = replica::carry_out(&shard, request.body.clone()).await
                && let Err(error) = request.answer(|out| answer.put(out))
            {
                tracing::warn!(%error, "an answer to another node is too long");
            }
        };
        runtime::spawn_local("a request of another node", Box::pin(work));
    }

    fn notice(&self, from: &Established, _body: Bytes) {
        tracing::debug!(host = %from.host_id, "a notice of a kind that is not known");
    }
}
