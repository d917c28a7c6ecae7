//! A node that has no others: it is the only one, or is left out.

use cluster::MetadataLog;
use cluster::membership::{Known, proposals};
use cluster::metadata::Metadata;
use coordinator::replicas::RingSeat;
use coordinator::{Coordinator, CoordinatorError};
use runtime::Disk;
use tokio::sync::mpsc::unbounded_channel;

use super::fenced::candidate;
use super::*;

/// The coordinator of a node that knows these members.
fn coordinator(shards: &LocalShards, members: Option<Members>) -> Coordinator {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let log = MetadataLog::open(&disk, "/schema.log".as_ref(), Schema::default()).expect("a new one");
    let metadata = Metadata { schema: schema(true), members: members.map(Arc::new) };
    let (known, handle) = (Known::new(Me(0).identity(), &metadata), shards.handles()[0].clone());
    let marks = Marks::new(1, Arc::default());
    let seat = RingSeat::take(known, proposals().0, Arc::default(), handle.clone(), marks);
    Coordinator::in_ring(coordinator::Node::new(log), handle, seat, unbounded_channel().1)
}

/// Its place was taken, and it has not ended yet: what it wrote as if it were alone would be acknowledged and lost.
#[test]
fn who_is_left_out_of_its_ring_is_not_alone() {
    run(async {
        let ring_of = |number| Members::founded(Uuid::from_u128(77), candidate(number)).expect("a ring");
        let shards = start_storage(true, 0, SyncMode::Batch);
        let write = async |members: Option<Members>, pk: i32| {
            coordinator(&shards, members).write(vec![insert(pk, "v", 1)], Consistency::One).await
        };
        write(None, 1).await.expect("it is in no ring yet");
        write(Some(ring_of(1)), 2).await.expect("it is the only one");
        let left_out = coordinator(&shards, Some(ring_of(51)));
        let refused = left_out.write(vec![insert(3, "v", 1)], Consistency::One).await;
        let is_unavailable = |error: &CoordinatorError| {
            matches!(error, CoordinatorError::Unavailable { required: 1, alive: 0, .. })
        };
        assert!(refused.as_ref().is_err_and(is_unavailable), "{refused:?}");
        let refused = left_out.read(&command(1), Consistency::One).await.map(drop);
        assert!(refused.as_ref().is_err_and(is_unavailable), "{refused:?}");
        let refused = left_out.truncate(table().id()).await;
        assert!(refused.as_ref().is_err_and(is_unavailable), "{refused:?}");
        assert!(left_out.plain_write(insert(3, "v", 1), Consistency::One).is_none());
        let alone = coordinator(&shards, Some(ring_of(1)));
        let page = alone.read(&command(2), Consistency::One).await.expect("it is there");
        assert_eq!(page.partitions.len(), 1, "nothing was emptied");
    });
}
