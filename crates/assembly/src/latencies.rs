//! How long requests of clients have taken, on all shards of a node.

use std::sync::{Arc, Mutex, PoisonError};

use query::{Latencies, RequestKind};
use runtime::Clock;
use stdx::histogram::Counts;

/// Those of a node. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct NodeLatencies {
    clock: Arc<dyn Clock>,
    of_shards: Arc<Mutex<Vec<Arc<Latencies>>>>,
}

impl NodeLatencies {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> NodeLatencies {
        NodeLatencies { clock, of_shards: Arc::default() }
    }

    /// Counts one more shard's.
    pub(crate) fn add(&self, latencies: &Arc<Latencies>) {
        self.of_shards.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(latencies));
    }

    /// Of all requests since the start.
    pub fn all(&self, kind: RequestKind) -> Counts {
        self.sum(|latencies| latencies.all(kind))
    }

    /// Of those of the last two and a half to five minutes.
    pub fn lately(&self, kind: RequestKind) -> Counts {
        let now = self.clock.elapsed();
        self.sum(|latencies| latencies.lately(kind, now))
    }

    fn sum(&self, counts: impl Fn(&Latencies) -> Counts) -> Counts {
        let mut sum = Counts::default();
        let of_shards = self.of_shards.lock().unwrap_or_else(PoisonError::into_inner);
        of_shards.iter().for_each(|latencies| sum += &counts(latencies));
        sum
    }
}
