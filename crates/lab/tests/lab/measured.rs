//! A plan for a stub, and what comes of it.

use std::sync::atomic::AtomicBool;

use lab::{LabError, Pace, Plan, Preparation, Repetition, Results, Watch};

use crate::stub::Stub;

/// Rows that are loaded.
pub(crate) const ROW_COUNT: u64 = 200;

/// One thread, two connections, one repetition of two seconds without a warm-up.
pub(crate) fn plan(stub: &Stub, workload: &str, pace: Pace) -> Plan {
    Plan {
        workload: workload.to_owned(),
        settings: Default::default(),
        nodes: vec![stub.address.to_string()],
        keyspace: "bench".to_owned(),
        replication: "{'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned(),
        consistency: "ONE".to_owned(),
        row_count: ROW_COUNT,
        pace,
        connection_count: 2,
        thread_count: 1,
        warmup_s: 0.0,
        measured_s: 2.0,
        repetition_count: 1,
        dropped_count: 0,
        seed: 1,
        error_part_max: 1.0,
        disturbances: Vec::new(),
        timeout_s: lab::DEFAULT_TIMEOUT_S,
        script: None,
    }
}

/// Loads, and measures.
pub(crate) fn measured(plan: &Plan) -> Result<Results, LabError> {
    let stop = AtomicBool::new(false);
    let loaded = &mut |_: &Plan, load: &Repetition| assert_eq!(load.total().response.count(), ROW_COUNT);
    let mut watch = Watch { tell: &mut |_| {}, loaded, stop: &stop };
    lab::run(plan, &Preparation { loads: true, ..Preparation::default() }, &mut watch)
}
