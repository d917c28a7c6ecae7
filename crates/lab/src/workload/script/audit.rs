//! Counters held against what was acknowledged: none lost, none counted twice.
//!
//! ```text
//!   begin:  sum of all counters = base
//!   later:  base + acknowledged <= sum <= base + acknowledged + doubtful
//! ```
//!
//! An increment that failed, or had no end, is doubtful: it may have been counted, and may be counted later. So all
//! three figures are those since the beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::bound::Bound;
use super::operations::{Stage, Thread};
use crate::results::Audit;
use crate::workload::{Answer, Operation, Operations, Part, Request, Step, rows_of};

/// What is counted, and how it is read.
#[derive(Debug)]
pub(super) struct Auditing {
    pub(super) bound: Bound,
    /// The kind of operation that adds one.
    pub(super) kind: usize,
    acknowledged: AtomicU64,
    doubtful: AtomicU64,
    /// The sum of what was read in this pass.
    sum: AtomicI64,
    /// What it was when the run began.
    base: AtomicI64,
}

impl Auditing {
    /// Nothing was counted yet.
    pub(super) fn new(bound: Bound, kind: usize) -> Auditing {
        Auditing {
            bound,
            kind,
            acknowledged: AtomicU64::new(0),
            doubtful: AtomicU64::new(0),
            sum: AtomicI64::new(0),
            base: AtomicI64::new(0),
        }
    }

    /// An operation was acknowledged.
    pub(super) fn acknowledge(&self, kind: usize) {
        self.acknowledged.fetch_add(u64::from(kind == self.kind), Ordering::Relaxed);
    }

    /// An operation has failed, or its end is not known.
    pub(super) fn doubt(&self, kind: usize) {
        self.doubtful.fetch_add(u64::from(kind == self.kind), Ordering::Relaxed);
    }

    /// What was read is where counting begins.
    pub(super) fn begin(&self) {
        self.base.store(self.sum.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// A pass begins: what one before it has read, and did not end, does not count.
    pub(super) fn forget(&self) {
        self.sum.store(0, Ordering::Relaxed);
    }

    /// What was read, held against what was acknowledged.
    pub(super) fn verdict(&self) -> Audit {
        Audit {
            acknowledged_count: self.acknowledged.load(Ordering::Relaxed),
            doubtful_count: self.doubtful.load(Ordering::Relaxed),
            counted: self.sum.swap(0, Ordering::Relaxed).wrapping_sub(self.base.load(Ordering::Relaxed)),
        }
    }
}

/// Reads every n-th partition, once.
pub(super) struct Auditor {
    stage: Arc<Stage>,
    next: u64,
    step: u64,
    thread: Thread,
}

impl Auditor {
    /// One part of all partitions.
    pub(super) fn new(stage: Arc<Stage>, part: Part) -> Auditor {
        Auditor { stage, next: part.index as u64, step: part.count as u64, thread: Thread::new(part) }
    }
}

impl Operations for Auditor {
    fn begin(&mut self, request: &mut Request<'_>) -> Option<Operation> {
        let stage = self.stage.clone();
        let auditing = stage.auditing.as_ref()?;
        let partition = self.next;
        if partition >= stage.partition_count {
            return None;
        }
        self.next += self.step;
        stage.put(&auditing.bound, partition, 0, &mut self.thread, request);
        Some(Operation { kind: auditing.kind, row: partition, ..Operation::default() })
    }

    fn fail(&mut self, _: &Operation) {}

    fn take(&mut self, _: &mut Operation, answer: Answer<'_>, _: &mut Request<'_>) -> Step {
        let (Answer::Rows(rows), Some(auditing)) = (answer, &self.stage.auditing) else {
            return Step::Wrong("counters were asked for, and none came".to_owned());
        };
        let mut sum = 0i64;
        let fault = rows_of(rows, 1, |cells| {
            // A counter that was never added to is null.
            let cell = cells.next()?.unwrap_or(&[0; 8]);
            let number = cell.try_into().ok().map(i64::from_be_bytes);
            sum = sum.wrapping_add(number.unwrap_or(0));
            number.is_none().then(|| "a counter is no counter".to_owned())
        });
        auditing.sum.fetch_add(sum, Ordering::Relaxed);
        fault.map_or(Step::Done, Step::Wrong)
    }
}
