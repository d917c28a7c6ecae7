//! What becomes of a node whose own code has broken a promise.
//!
//! Some work is *vital*: if it is cut off by a panic, what is in memory may no longer be what the log and the files
//! say, and whatever is done next may lose or corrupt data. A write that stands in the log and only partly in the
//! memtable is such: the next flush would move replay past it. What is on the disk is right still, so the node
//! stops before it writes anything more, and a start finds all that was acknowledged.
//!
//! | kind | at a panic in vital work | for |
//! |---|---|---|
//! | [`Failsafe::ending`] | the process ends, so that no shard goes on acknowledging | a node that is a process |
//! | [`Failsafe::default`] | all further calls are refused, in words | the library, the simulator, tests |
//!
//! A panic in work of one request alone is not vital: it ends that request. And nothing here is for bytes that come
//! from a disk, a network or a client: these are checked, and what is wrong with them is an error. In a ring they
//! would stop every replica.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use crate::{Panicked, spawn_local};

/// Our own code broke a promise while it did vital work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an invariant of the node is broken, at work on {work}: {what}")]
pub struct BrokenInvariant {
    /// What it was at work on: `a flush`.
    pub work: &'static str,
    /// Which promise, in the words of its assertion.
    pub what: String,
}

/// Ends the process.
type End = fn(&BrokenInvariant) -> !;

/// Stops a node when vital work panics. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Failsafe(Arc<State>);

#[derive(Default)]
struct State {
    /// The first that was found.
    broken: OnceLock<BrokenInvariant>,
    end: Option<End>,
}

impl Failsafe {
    /// One that ends the process, by `end`.
    pub fn ending(end: fn(&BrokenInvariant) -> !) -> Failsafe {
        Failsafe(Arc::new(State { broken: OnceLock::new(), end: Some(end) }))
    }

    /// Does vital work. Its panic stops the node, and goes on.
    ///
    /// # Panics
    /// As `act` does.
    pub fn guard<T>(&self, work: &'static str, act: impl FnOnce() -> T) -> T {
        match catch_unwind(AssertUnwindSafe(act)) {
            Ok(done) => done,
            Err(payload) => self.trip(work, payload),
        }
    }

    /// As [`Failsafe::guard`], of a future.
    ///
    /// # Panics
    /// As the future does.
    ///
    /// # Cancel safety
    /// As that of the future.
    pub async fn guarded<F: Future>(&self, work: &'static str, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| self.guard(work, || future.as_mut().poll(context))).await
    }

    /// Starts vital work as a task of this thread, beside all requests: nobody waits for it, and nobody would notice
    /// that it is gone.
    pub fn spawn_local(&self, work: &'static str, future: impl Future<Output = ()> + 'static) {
        let (failsafe, future) = (self.clone(), Box::pin(future));
        spawn_local(work, async move { failsafe.guarded(work, future).await });
    }

    /// Is the node sound, as far as is known?
    ///
    /// # Errors
    /// A promise was broken, and nothing may be done any more.
    #[inline]
    pub fn check(&self) -> Result<(), BrokenInvariant> {
        match self.0.broken.get() {
            None => Ok(()),
            Some(broken) => Err(broken.clone()),
        }
    }

    #[cold]
    fn trip(&self, work: &'static str, payload: Box<dyn Any + Send>) -> ! {
        let broken = BrokenInvariant { work, what: Panicked::of(&*payload).what };
        if let Some(end) = self.0.end {
            end(&broken);
        }
        let is_first = self.0.broken.set(broken.clone()).is_ok();
        if is_first {
            tracing::error!("{broken}; nothing is done any more, a start finds all that was acknowledged");
        }
        resume_unwind(payload)
    }
}

impl fmt::Debug for Failsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failsafe").field(&self.0.broken.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panicked::{caught, caught_in};

    #[test]
    fn the_first_broken_promise_is_remembered_and_its_panic_goes_on() {
        let failsafe = Failsafe::default();
        assert_eq!(failsafe.guard("a sum", || 1 + 1), 2);
        assert_eq!(failsafe.check(), Ok(()));
        let clone = failsafe.clone();
        for (work, what) in [("a flush", "sums agree"), ("a merge", "later")] {
            let panicked = caught(|| clone.guard(work, || panic!("{what}"))).expect_err("it goes on");
            assert_eq!(panicked.what, what);
        }
        let broken = failsafe.check().expect_err("all clones are one");
        assert_eq!(broken.to_string(), "an invariant of the node is broken, at work on a flush: sums agree");
    }

    #[test]
    fn a_guard_within_another_names_the_inner_work() {
        let failsafe = Failsafe::default();
        let nested = || failsafe.guard("a flush", || failsafe.guard("a commit", || panic!("deep")));
        assert!(caught(nested).is_err());
        assert_eq!(failsafe.check().expect_err("it is remembered").work, "a commit");
    }

    #[tokio::test]
    async fn a_future_is_guarded_at_each_of_its_turns() {
        let failsafe = Failsafe::default();
        let late = async {
            tokio::task::yield_now().await;
            panic!("late");
        };
        assert!(caught_in(failsafe.guarded("a task", late)).await.is_err());
        assert_eq!(failsafe.check(), Err(BrokenInvariant { work: "a task", what: "late".into() }));
    }

    #[tokio::test]
    async fn a_task_that_nobody_waits_for_is_guarded() {
        let failsafe = Failsafe::default();
        let tasks = tokio::task::LocalSet::new();
        tasks.run_until(async { failsafe.spawn_local("healing", async { panic!("unseen") }) }).await;
        tasks.await;
        assert_eq!(failsafe.check(), Err(BrokenInvariant { work: "healing", what: "unseen".into() }));
    }
}
