//! The executor of flush and compaction: long jobs over immutable inputs, whose result goes back to
//! the shard as one message.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

use crate::Panicked;
use crate::delay::Delay;
use crate::panicked::caught;
use crate::pool::{Pool, Refused};

/// A tenth of the share that a thread of a shard gets of a core that both want.
const NICENESS: i32 = 10;

/// The executor no longer takes jobs, or has too many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("background work is stopped")]
pub struct Stopped;

/// Why a job gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// It was not begun.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// It was begun, and something in it is wrong.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

/// Runs jobs somewhere else. Cheap to clone; the last handle dropped stops the threads.
#[derive(Clone)]
pub struct Background {
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    /// And turns for jobs that take long: fewer than there are threads.
    Pool(Arc<Pool>, Arc<Semaphore>),
    Inline(Arc<AtomicBool>),
    Tasks {
        delay: Delay,
        stopped: Arc<AtomicBool>,
    },
}

impl Background {
    /// Threads named `background-<index>`, which give way to those that serve clients.
    pub fn pool(thread_count: usize) -> io::Result<Background> {
        let pool = Arc::new(Pool::start("background", thread_count, NICENESS)?);
        let turns = Arc::new(Semaphore::new(thread_count.saturating_sub(1).max(1)));
        Ok(Background { kind: Kind::Pool(pool, turns) })
    }

    /// Runs each job at once, inside `spawn`. For plain tests.
    pub fn inline() -> Background {
        Background { kind: Kind::Inline(Arc::new(AtomicBool::new(false))) }
    }

    /// Runs each job as a task of the surrounding `LocalSet`, after a virtual delay. For the
    /// simulator: one thread, and an order that depends on the seed alone.
    pub fn tasks(delay: Duration) -> Background {
        Background::delayed_tasks(Delay::fixed(delay))
    }

    /// As [`Background::tasks`], after a time up to `delay_max` that the seed decides for each job.
    pub fn seeded_tasks(seed: u64, delay_max: Duration) -> Background {
        Background::delayed_tasks(Delay::seeded(seed, delay_max))
    }

    fn delayed_tasks(delay: Delay) -> Background {
        Background { kind: Kind::Tasks { delay, stopped: Arc::new(AtomicBool::new(false)) } }
    }

    /// Starts a job that nobody waits for. Its name shows in logs when it panics.
    pub fn spawn(&self, name: &'static str, job: Box<dyn FnOnce() + Send>) -> Result<(), Stopped> {
        match &self.kind {
            Kind::Pool(pool, _) => pool.submit(name, job).map_err(|refused| match refused {
                Refused::Stopped(_) => Stopped,
                Refused::Full(_) => {
                    tracing::error!(job = name, "too many background jobs wait, one is refused");
                    Stopped
                }
            }),
            Kind::Inline(stopped) | Kind::Tasks { stopped, .. } if stopped.load(Ordering::SeqCst) => {
                Err(Stopped)
            }
            Kind::Inline(_) => {
                job();
                Ok(())
            }
            Kind::Tasks { delay, stopped } => {
                let (delay, stopped) = (delay.clone(), Arc::clone(stopped));
                crate::spawn_local("background", async move {
                    delay.pass().await;
                    if !stopped.load(Ordering::SeqCst) {
                        job();
                    }
                });
                Ok(())
            }
        }
    }

    /// Starts a job at once and gives a future of its result.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the job; only its result is lost.
    pub fn run<T, Job>(
        &self,
        name: &'static str,
        job: Job,
    ) -> impl Future<Output = Result<T, JobError>> + use<T, Job>
    where
        T: Send + 'static,
        Job: FnOnce() -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let started = self.spawn(name, Box::new(move || _ = reply.send(caught(job))));
        async move {
            started?;
            match answer.await {
                Ok(done) => Ok(done?),
                // Dropped before it was begun.
                Err(_) => Err(Stopped.into()),
            }
        }
    }

    /// Runs a job that goes through whole files without ever stopping. Of a pool of several threads one is left for
    /// others: a flush must not wait until such jobs have ended.
    ///
    /// # Cancel safety
    /// As [`Background::run`]; a job that has not begun never does.
    pub async fn run_long<T, Job>(&self, name: &'static str, job: Job) -> Result<T, JobError>
    where
        T: Send + 'static,
        Job: FnOnce() -> T + Send + 'static,
    {
        let turn = match &self.kind {
            Kind::Pool(_, turns) => Some(Arc::clone(turns).acquire_owned().await.map_err(|_| Stopped)?),
            Kind::Inline(_) | Kind::Tasks { .. } => None,
        };
        let job = move || {
            let _turn = turn;
            job()
        };
        self.run(name, job).await
    }

    /// Takes no more jobs. A pool does those that wait and this returns when all have ended; tasks
    /// that have not begun are dropped.
    pub fn stop(&self) {
        match &self.kind {
            Kind::Pool(pool, _) => pool.stop(),
            Kind::Inline(stopped) | Kind::Tasks { stopped, .. } => stopped.store(true, Ordering::SeqCst),
        }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Pool(..) => "Background::pool",
            Kind::Inline(_) => "Background::inline",
            Kind::Tasks { .. } => "Background::tasks",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[tokio::test]
    async fn a_pool_survives_a_panic_and_tells_it_from_a_stop() {
        let background = Background::pool(1).expect("threads");
        let panicked = Panicked { what: "on purpose".into() };
        assert_eq!(
            background.run("panic", || panic!("on purpose")).await,
            Err::<(), JobError>(panicked.into())
        );
        assert_eq!(background.run("add", || 1 + 1).await, Ok(2));
        background.stop();
        assert_eq!(background.run("late", || 1 + 1).await, Err(JobError::Stopped(Stopped)));
    }

    #[expect(clippy::disallowed_methods, reason = "a test without a shard")]
    #[tokio::test]
    async fn long_jobs_leave_a_thread_to_others() {
        let background = Background::pool(3).expect("threads");
        let (enough, wait) = std::sync::mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let long = || {
            let wait = Arc::clone(&wait);
            tokio::spawn({
                let background = background.clone();
                async move { background.run_long("long", move || _ = wait.lock().expect("sound").recv()).await }
            })
        };
        let all: Vec<_> = (0..5).map(|_| long()).collect();
        tokio::task::yield_now().await;
        assert_eq!(background.run("short", || 1 + 1).await, Ok(2));
        drop(enough);
        for one in all {
            assert_eq!(one.await.expect("no panic"), Ok(()));
        }
    }

    #[test]
    fn stop_waits_for_queued_jobs_and_refuses_new_ones() {
        let background = Background::pool(2).expect("threads");
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let done = Arc::clone(&done);
            background
                .spawn("count", Box::new(move || _ = done.fetch_add(1, Ordering::SeqCst)))
                .expect("open");
        }
        background.stop();
        assert_eq!(done.load(Ordering::SeqCst), 100);
        assert_eq!(background.spawn("late", Box::new(|| {})), Err(Stopped));
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_run_after_their_virtual_delay() {
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let background = Background::tasks(Duration::from_secs(60));
                let start = tokio::time::Instant::now();
                assert_eq!(background.run("job", || 7).await, Ok(7));
                assert!(start.elapsed() >= Duration::from_secs(60));
            })
            .await;
    }
}
