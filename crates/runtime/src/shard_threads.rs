//! One thread per shard, each with a single-threaded tokio runtime of its own.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::{Door, TurnFigures, turns};

/// How shard threads are started.
#[derive(Clone, Debug)]
pub struct ShardOptions {
    /// How many.
    pub shard_count: usize,
    /// Whether shard `i` stays on the `i`-th CPU this process may use. Only worth it when the
    /// machine is ours; with more shards than CPUs it is ignored.
    pub pinned: bool,
    /// What shard `i` shuts while it runs and leaves open while it sleeps.
    pub doors: Vec<Arc<Door>>,
    /// Where it is told how long turns of shard `i` take.
    pub turns: Vec<Arc<TurnFigures>>,
}

/// The running threads. Dropping this without [`ShardThreads::join`] leaves them running.
#[derive(Debug)]
pub struct ShardThreads {
    threads: Vec<JoinHandle<()>>,
}

impl ShardThreads {
    /// Starts threads `shard-<index>`. Each calls `body(index)` on itself, inside a `LocalSet`, and
    /// runs the future to its end; the future need not be `Send`. A thread ends with its future:
    /// tell it to, through a message, then [`ShardThreads::join`].
    pub fn start<Body, Work>(options: ShardOptions, body: Body) -> io::Result<ShardThreads>
    where
        Body: Fn(usize) -> Work + Clone + Send + 'static,
        Work: Future<Output = ()>,
    {
        let cpus = if options.pinned { usable_cpus() } else { Vec::new() };
        let mut threads = Vec::with_capacity(options.shard_count);
        for index in 0..options.shard_count {
            let door = options.doors.get(index).cloned().unwrap_or_default();
            let (asleep, awake) = (Arc::clone(&door), Arc::clone(&door));
            let runtime = Builder::new_current_thread()
                .enable_all()
                .on_thread_park(move || asleep.open())
                .on_thread_unpark(move || {
                    awake.shut();
                    turns::begin_turn();
                })
                .build()?;
            let cpu = cpus.get(index).copied().filter(|_| options.shard_count <= cpus.len());
            let figures = options.turns.get(index).cloned();
            let body = body.clone();
            let thread = thread::Builder::new().name(format!("shard-{index}")).spawn(move || {
                door.belongs_to_this_thread();
                if let Some(figures) = figures {
                    turns::measure_this_thread(figures);
                }
                if let Some(cpu) = cpu {
                    pin_this_thread(cpu);
                }
                let local = LocalSet::new();
                local.block_on(&runtime, async move { body(index).await });
            })?;
            threads.push(thread);
        }
        Ok(ShardThreads { threads })
    }

    /// Waits until all shards have ended; an error names one that panicked.
    pub fn join(self) -> io::Result<()> {
        let mut panicked = None;
        for thread in self.threads {
            let name = thread.thread().name().unwrap_or("shard").to_owned();
            if thread.join().is_err() {
                panicked = Some(name);
            }
        }
        match panicked {
            Some(name) => Err(io::Error::other(format!("thread {name} panicked"))),
            None => Ok(()),
        }
    }

    /// Whether any shard has ended, which while nobody asked for it means that it panicked.
    pub fn any_finished(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }
}

fn usable_cpus() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect(),
        Err(_) => Vec::new(),
    }
}

fn pin_this_thread(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        tracing::warn!(cpu, %error, "cannot pin a shard to its cpu");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::mailbox;
    use std::rc::Rc;
    use std::sync::{Arc, Mutex};

    #[test]
    fn shards_run_local_tasks_and_talk_through_mailboxes() {
        let (to_main, mut from_shards) = mailbox(16);
        let to_main = Arc::new(Mutex::new(Some(to_main)));
        let options = ShardOptions { shard_count: 3, pinned: true, doors: Vec::new(), turns: Vec::new() };
        let shards = ShardThreads::start(options, {
            let to_main = Arc::clone(&to_main);
            move |index| {
                let to_main = to_main.lock().expect("lock").clone().expect("sender");
                async move {
                    let local = Rc::new(index);
                    let doubled = tokio::task::spawn_local(async move { *local * 2 }).await.expect("task");
                    to_main.send(doubled).await.expect("room");
                }
            }
        })
        .expect("threads");
        shards.join().expect("no panic");
        to_main.lock().expect("lock").take();
        let mut seen = Vec::new();
        let runtime = Builder::new_current_thread().build().expect("runtime");
        runtime.block_on(async {
            while let Some(n) = from_shards.receive().await {
                seen.push(n)
            }
        });
        seen.sort_unstable();
        assert_eq!(seen, [0, 2, 4]);
    }
}
