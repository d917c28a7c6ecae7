//! A fixed number of named threads that take jobs from one bounded queue.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Work for a pool.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Jobs that may wait in one pool. A shard keeps far fewer in flight; reaching this is a defect of
/// the caller, which is told rather than fed with memory.
pub(crate) const QUEUED_JOB_COUNT_MAX: usize = 16 * 1024;

/// Why a job was not taken; it is handed back.
pub(crate) enum Refused {
    /// The pool is stopping.
    Stopped(Job),
    /// Too many jobs wait.
    Full(Job),
}

pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

struct Queue {
    jobs: VecDeque<(&'static str, Job)>,
    stopping: bool,
}

impl Pool {
    /// Starts `thread_count` threads (at least one) named `<name>-<index>`, which leave the processor to others as
    /// `niceness` says: from 0 to 19.
    pub(crate) fn start(name: &str, thread_count: usize, niceness: i32) -> io::Result<Pool> {
        let queue = Mutex::new(Queue { jobs: VecDeque::new(), stopping: false });
        let shared = Arc::new(Shared { queue, arrived: Condvar::new() });
        let pool = Pool { shared: Arc::clone(&shared), threads: Mutex::new(Vec::new()) };
        for index in 0..thread_count.max(1) {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("{name}-{index}")).spawn(move || {
                be_nice(niceness);
                work(&shared);
            })?;
            lock(&pool.threads).push(thread);
        }
        Ok(pool)
    }

    pub(crate) fn submit(&self, name: &'static str, job: Job) -> Result<(), Refused> {
        let mut queue = lock(&self.shared.queue);
        if queue.stopping {
            return Err(Refused::Stopped(job));
        }
        if queue.jobs.len() >= QUEUED_JOB_COUNT_MAX {
            return Err(Refused::Full(job));
        }
        queue.jobs.push_back((name, job));
        drop(queue);
        self.shared.arrived.notify_one();
        Ok(())
    }

    /// Takes no more jobs, does those that wait, and returns when all threads have ended. Called
    /// from one of the pool's own threads it does not wait for that one.
    pub(crate) fn stop(&self) {
        lock(&self.shared.queue).stopping = true;
        self.shared.arrived.notify_all();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            if thread.thread().id() != thread::current().id() {
                // A job's panic is caught in `work`, so a thread ends normally.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Has this thread give way to others.
fn be_nice(niceness: i32) {
    if niceness == 0 {
        return;
    }
    // On Linux that is about the calling thread alone.
    if let Err(error) = rustix::process::setpriority_process(None, niceness) {
        tracing::warn!(niceness, %error, "cannot lower the priority of a background thread");
    }
}

fn work(shared: &Shared) {
    loop {
        let mut queue = lock(&shared.queue);
        let (name, job) = loop {
            if let Some(next) = queue.jobs.pop_front() {
                break next;
            }
            if queue.stopping {
                return;
            }
            queue = shared.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!(job = name, "a background job panicked");
        }
    }
}

/// No job runs under these locks, so a poisoned one still holds a sound value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
