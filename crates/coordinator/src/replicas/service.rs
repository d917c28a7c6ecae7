//! How a node answers others.

use bytes::Bytes;
use messaging::{Established, Request, Service};
use storage::ShardHandle;
use tokio::time::timeout_at;

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
    fn request(&self, from: &Established, request: Request) {
        let shard = self.shard.clone();
        let host = from.host_id;
        let work = async move {
            // Nobody waits for it after that. A write that has begun goes on.
            let done = timeout_at(request.deadline, replica::carry_out(&shard, request.body.clone())).await;
            match done {
                Ok(Ok(answer)) => {
                    if let Err(error) = request.answer(|out| answer.put(out)) {
                        tracing::warn!(%host, %error, "an answer to another node is too long");
                    }
                }
                // It is declined: there is nothing to say to who wrote it.
                Ok(Err(error)) => tracing::warn!(%host, %error, "a request of another node makes no sense"),
                Err(_) => {}
            }
        };
        runtime::spawn_local("a request of another node", Box::pin(work));
    }

    fn notice(&self, from: &Established, _body: Bytes) {
        tracing::debug!(host = %from.host_id, "a notice of a kind that is not known");
    }
}
