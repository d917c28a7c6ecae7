//! Traces: what a request that its client wants traced did, step by step, on whichever thread.
//!
//! A [`Trace`] is in force for a future ([`carry`]) and everything it awaits. Code below
//! says what it does with [`note`], which costs next to nothing while no trace is in force. What is
//! sent to another shard takes the trace along: [`current`] here, [`carry`] there.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::Either;
use uuid::Uuid;

use crate::Runtime;

/// Steps that a trace keeps; what comes later is not kept.
const EVENT_COUNT_MAX: usize = 1_000;

tokio::task_local! {
    static CURRENT: Trace;
}

/// The steps of one request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Trace {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    runtime: Runtime,
    started: Duration,
    events: Mutex<Vec<TraceEvent>>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// A time id: when it was.
    pub id: Uuid,
    /// What was done, in words.
    pub activity: String,
    /// Time since the request began.
    pub elapsed: Duration,
    /// Name of the thread.
    pub thread: String,
}

impl Trace {
    /// A trace that begins now.
    pub fn start(runtime: &Runtime) -> Trace {
        let started = runtime.clock.elapsed();
        Trace { inner: Arc::new(Inner { runtime: runtime.clone(), started, events: Mutex::default() }) }
    }

    /// Time since it began.
    pub fn elapsed(&self) -> Duration {
        self.inner.runtime.clock.elapsed().saturating_sub(self.inner.started)
    }

    /// The steps so far.
    pub fn events(&self) -> Vec<TraceEvent> {
        self.inner.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, activity: String) {
        let Runtime { clock, random, .. } = &self.inner.runtime;
        let event = TraceEvent {
            id: random.uuid_v1(&**clock),
            activity,
            elapsed: self.elapsed(),
            thread: std::thread::current().name().unwrap_or("unnamed").to_owned(),
        };
        let mut events = self.inner.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() < EVENT_COUNT_MAX {
            events.push(event);
        }
    }
}

/// Notes a step in the trace in force, if there is one.
pub fn note(activity: impl FnOnce() -> String) {
    // No trace in force is the common case, and no error.
    _ = CURRENT.try_with(|trace| trace.add(activity()));
}

/// The trace in force, to be carried elsewhere.
pub fn current() -> Option<Trace> {
    CURRENT.try_with(Trace::clone).ok()
}

/// Runs a future with that trace in force; without one, as it is.
pub fn carry<T>(trace: Option<Trace>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    // Not an async function: that would hold the work twice, and every message between shards is one.
    match trace {
        None => Either::Left(work),
        Some(trace) => Either::Right(CURRENT.scope(trace, work)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test without a shard")]
    #[tokio::test]
    async fn steps_are_kept_in_the_trace_in_force_and_nowhere_else() {
        let trace = Trace::start(&Runtime::in_memory_for_tests());
        note(|| "before".into());
        carry(Some(trace.clone()), async {
            note(|| "first".into());
            let here = current();
            tokio::spawn(async move {
                note(|| "lost".into());
                carry(here, async { note(|| "second".into()) }).await;
            })
            .await
            .expect("task");
        })
        .await;
        note(|| "after".into());
        let activities: Vec<_> = trace.events().into_iter().map(|event| event.activity).collect();
        assert_eq!(activities, ["first", "second"]);
        assert!(current().is_none());
    }

    #[tokio::test]
    async fn a_trace_is_bounded() {
        let trace = Trace::start(&Runtime::in_memory_for_tests());
        carry(Some(trace.clone()), async { (0..2_000).for_each(|_| note(String::new)) }).await;
        assert_eq!(trace.events().len(), EVENT_COUNT_MAX);
    }
}
