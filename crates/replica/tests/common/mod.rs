//! A node that is asked by bytes.

use std::sync::Arc;

use bytes::BytesMut;
use replica::{Answer, Asked, PlannedOn, carry_out};
use runtime::{ManualClock, MemoryDisk, Runtime};
use schema::Schema;
use storage::{Directory, LocalShards, StorageOptions};

const PLANNED_ON: PlannedOn = PlannedOn { schema_epoch: 7, truncated_at: 0, ring_epoch: 0 };

/// A node of two shards on that disk; its id follows from the seed.
pub(crate) fn start(disk: &Arc<MemoryDisk>, seed: u64, schema: &Arc<Schema>) -> LocalShards {
    let mut runtime = Runtime::in_memory(Arc::clone(disk) as _, seed);
    runtime.clock = Arc::new(ManualClock::default());
    let options = StorageOptions { segment_bytes: 64 << 10, ..StorageOptions::new("/node", 2, 32 << 20) };
    let directory = Directory::open(&runtime, options).expect("opens");
    directory.recover(schema).expect("recovers").start_local(schema).expect("starts")
}

pub(crate) fn run(story: impl Future<Output = ()>) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&tokio.expect("a runtime"), story);
}

pub(crate) async fn ask(node: &LocalShards, put: impl FnOnce(&mut BytesMut)) -> Answer {
    let mut body = BytesMut::new();
    Asked::begin(PLANNED_ON, &mut body);
    put(&mut body);
    let answer = carry_out(&node.handles()[0], Asked::read(body.freeze()).expect("as it was put")).await;
    let mut out = BytesMut::new();
    answer.put(&mut out);
    Answer::read(out.freeze()).expect("as it was put")
}
