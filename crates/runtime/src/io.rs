//! Short blocking disk work on behalf of a shard, whose own thread must never wait for a disk.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::delay::Delay;
use crate::pool::{Pool, Refused};

/// Runs closures that block. Cheap to clone; the last handle dropped stops the threads.
#[derive(Clone)]
pub struct Io {
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Pool(Arc<Pool>),
    Inline { delay: Delay },
}

impl Io {
    /// Threads named `io-<index>`.
    pub fn pool(thread_count: usize) -> io::Result<Io> {
        Ok(Io { kind: Kind::Pool(Arc::new(Pool::start("io", thread_count, 0)?)) })
    }

    /// Runs the closure at once, on the caller's thread.
    pub fn inline() -> Io {
        Io::delayed(Duration::ZERO)
    }

    /// Waits `delay` (in virtual time, under the simulator), then runs the closure on the caller's
    /// thread. Other tasks run meanwhile, so that races between disk and messages show.
    pub fn delayed(delay: Duration) -> Io {
        Io { kind: Kind::Inline { delay: Delay::fixed(delay) } }
    }

    /// As [`Io::delayed`], by a time up to `delay_max` that the seed decides anew for each closure.
    pub fn seeded(seed: u64, delay_max: Duration) -> Io {
        Io { kind: Kind::Inline { delay: Delay::seeded(seed, delay_max) } }
    }

    /// Runs `work` and gives its result. A panic of `work` goes on in the caller.
    ///
    /// After [`Io::stop`], and when too many closures wait, the caller's own thread does the work.
    ///
    /// # Cancel safety
    /// Once a pool has the closure it runs, whether or not anybody still waits for it.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match &self.kind {
            Kind::Inline { delay } => {
                delay.pass().await;
                work()
            }
            Kind::Pool(pool) => {
                let (reply, answer) = oneshot::channel();
                let job = Box::new(move || _ = reply.send(catch_unwind(AssertUnwindSafe(work))));
                if let Err(Refused::Stopped(job) | Refused::Full(job)) = pool.submit("io", job) {
                    job();
                }
                match answer.await {
                    Ok(Ok(value)) => value,
                    Ok(Err(panic)) => resume_unwind(panic),
                    Err(_) => unreachable!("a job always replies before it is dropped"),
                }
            }
        }
    }

    /// Does what waits and ends the threads. Later work runs on its caller's thread.
    pub fn stop(&self) {
        if let Kind::Pool(pool) = &self.kind {
            pool.stop();
        }
    }
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Pool(_) => f.write_str("Io::pool"),
            Kind::Inline { delay } => write!(f, "Io::inline({delay:?})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pool_runs_work_on_its_own_thread() {
        let io = Io::pool(1).expect("threads");
        let name = io.run(|| std::thread::current().name().map(str::to_owned)).await;
        assert_eq!(name.as_deref(), Some("io-0"));
        io.stop();
        assert_eq!(io.run(|| 3).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_passes_in_virtual_time() {
        let start = tokio::time::Instant::now();
        assert_eq!(Io::delayed(Duration::from_millis(4)).run(|| 5).await, 5);
        assert!(start.elapsed() >= Duration::from_millis(4));
    }
}
