//! Traces: what a request that its client wants traced did, step by step, on whichever thread.
//!
//! A [`Trace`] is in force for a future ([`carry`]) and everything it awaits. Code below
//! says what it does with [`note`], which costs next to nothing while no trace is in force. What is
//! sent to another shard takes the trace along: [`current`] here, [`carry`] there. What another node has done
//! comes back with its answer ([`Trace::add_of_node`]). Whoever began the trace takes the steps as they come
//! ([`Steps`]), also those of work that nobody waits for any more.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::Either;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::Runtime;

/// Steps that a trace takes; what comes later is left out.
const EVENT_COUNT_MAX: usize = 1_000;

tokio::task_local! {
    static CURRENT: Trace;
}

/// Where the steps of one request go. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Trace {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    runtime: Runtime,
    started: Duration,
    event_count: AtomicUsize,
    events: mpsc::UnboundedSender<TraceEvent>,
}

/// The steps of one request, as they come.
#[derive(Debug)]
pub struct Steps(mpsc::UnboundedReceiver<TraceEvent>);

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
    /// Which other node has done it; `None`: this one.
    pub node: Option<SocketAddr>,
}

impl Steps {
    /// Those that have come and were not taken yet.
    pub fn so_far(&mut self) -> Vec<TraceEvent> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }

    /// The next one; `None` when all work is over that the trace was in force for.
    ///
    /// # Cancel safety
    /// None is lost.
    pub async fn next(&mut self) -> Option<TraceEvent> {
        self.0.recv().await
    }
}

impl Trace {
    /// A trace that begins now.
    pub fn start(runtime: &Runtime) -> (Trace, Steps) {
        let (events, taken) = mpsc::unbounded_channel();
        let (started, event_count) = (runtime.clock.elapsed(), AtomicUsize::new(0));
        let inner = Inner { runtime: runtime.clone(), started, event_count, events };
        (Trace { inner: Arc::new(inner) }, Steps(taken))
    }

    /// Time since it began.
    pub fn elapsed(&self) -> Duration {
        self.inner.runtime.clock.elapsed().saturating_sub(self.inner.started)
    }

    /// Adds what another node has done.
    pub fn add_of_node(&self, node: SocketAddr, events: Vec<TraceEvent>) {
        events.into_iter().for_each(|event| self.push(TraceEvent { node: Some(node), ..event }));
    }

    /// Adds a step, where this trace need not be the one in force.
    pub fn add(&self, activity: String) {
        let Runtime { clock, random, .. } = &self.inner.runtime;
        let event = TraceEvent {
            id: random.uuid_v1(&**clock),
            activity,
            elapsed: self.elapsed(),
            thread: std::thread::current().name().unwrap_or("unnamed").to_owned(),
            node: None,
        };
        self.push(event);
    }

    fn push(&self, event: TraceEvent) {
        if self.inner.event_count.fetch_add(1, Ordering::Relaxed) < EVENT_COUNT_MAX {
            // Nobody may want them any more.
            _ = self.inner.events.send(event);
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
        let (trace, mut steps) = Trace::start(&Runtime::in_memory_for_tests());
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
        let activities: Vec<_> = steps.so_far().into_iter().map(|event| event.activity).collect();
        assert_eq!(activities, ["first", "second"]);
        assert!(current().is_none());
    }

    #[tokio::test]
    async fn a_trace_is_bounded() {
        let (trace, mut steps) = Trace::start(&Runtime::in_memory_for_tests());
        carry(Some(trace), async { (0..2_000).for_each(|_| note(String::new)) }).await;
        assert_eq!(steps.so_far().len(), EVENT_COUNT_MAX);
        assert_eq!(steps.next().await, None, "nobody adds any more");
    }

    #[tokio::test]
    async fn what_another_node_has_done_keeps_its_times() {
        let runtime = Runtime::in_memory_for_tests();
        let (of_node, mut its_steps) = Trace::start(&runtime);
        of_node.add("there".into());
        let (trace, mut steps) = Trace::start(&runtime);
        let (node, told) = (SocketAddr::from(([127, 0, 0, 2], 7000)), its_steps.so_far());
        trace.add_of_node(node, told.clone());
        let expected: Vec<_> =
            told.into_iter().map(|event| TraceEvent { node: Some(node), ..event }).collect();
        assert_eq!(steps.so_far(), expected);
    }
}
