//! Brings changes of the log and snapshots to the disk, one after the other, off the shard's thread.
//!
//! What waits at the time goes together: a write, a sync, and all who wait for it are told. After the first failure
//! nothing is written any more: what is on the disk then is for the next start to find out.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use openraft::storage::IOFlushed;
use runtime::{Disk, Io, Plant, Plants, Runtime};
use tokio::sync::{mpsc, oneshot};

use super::contents::{Contents, Record};
use super::log_file::LogFile;
use super::types::Types;

/// What is to be done with the disk.
enum Work {
    Records(Vec<Record>),
    /// The log's file is made anew.
    Rewrite(Contents),
    /// A snapshot takes the place of the one before.
    Snapshot(Bytes),
}

/// Who waits until it is durable.
enum Waits {
    Nobody,
    Caller(oneshot::Sender<io::Result<()>>),
    Raft(IOFlushed<Types>),
}

impl Waits {
    fn tell(self, result: &io::Result<()>) {
        let result = result.as_ref().copied().map_err(again);
        match self {
            Waits::Nobody => {}
            // Who waited may be gone.
            Waits::Caller(caller) => _ = caller.send(result),
            Waits::Raft(flushed) => flushed.io_completed(result),
        }
    }
}

/// The same error for somebody else.
fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

struct Job {
    work: Work,
    waits: Waits,
}

/// Where jobs are handed in. Cheap to clone; of one thread. When all are dropped, the task ends with its work.
#[derive(Clone)]
pub(super) struct Writer {
    /// Not bounded by itself: what waits here is in memory as entries of the log, whose number openraft bounds.
    jobs: mpsc::UnboundedSender<Job>,
    failure: Rc<RefCell<Option<io::Error>>>,
    plants: Plants,
}

impl Writer {
    /// Starts the task.
    pub(super) fn start(file: LogFile, snapshot_path: PathBuf, runtime: &Runtime) -> Writer {
        let (disk, io, plants) = (Arc::clone(&runtime.disk), runtime.io.clone(), runtime.plants.clone());
        let (jobs, receiver) = mpsc::unbounded_channel();
        let failure = Rc::default();
        let task = Task { receiver, file: Some(file), snapshot_path, disk, io, failure: Rc::clone(&failure) };
        super::async_runtime::spawn("raft log", task.run());
        Writer { jobs, failure, plants }
    }

    /// Hands in a change that nobody waits for. What comes later is durable after it.
    ///
    /// # Errors
    /// The disk has failed before.
    pub(super) fn write(&self, record: Record) -> io::Result<()> {
        self.hand_in(Work::Records(vec![record]), Waits::Nobody)
    }

    /// Hands in entries; openraft is told when they are durable.
    ///
    /// # Errors
    /// The disk has failed before.
    pub(super) fn append(&self, entries: Vec<Record>, flushed: IOFlushed<Types>) -> io::Result<()> {
        if self.plants.has(Plant::EntryUnsynced) {
            flushed.io_completed(Ok(()));
            return self.hand_in(Work::Records(entries), Waits::Nobody);
        }
        self.hand_in(Work::Records(entries), Waits::Raft(flushed))
    }

    /// Hands in a new file in the place of the log's.
    ///
    /// # Errors
    /// The disk has failed before.
    pub(super) fn rewrite(&self, contents: Contents) -> io::Result<()> {
        self.hand_in(Work::Rewrite(contents), Waits::Nobody)
    }

    /// Writes a change and waits until it is durable.
    ///
    /// # Errors
    /// The disk fails.
    pub(super) async fn write_durably(&self, record: Record) -> io::Result<()> {
        self.waited(Work::Records(vec![record])).await
    }

    /// Writes a snapshot and waits until it is durable.
    ///
    /// # Errors
    /// The disk fails.
    pub(super) async fn write_snapshot(&self, bytes: Bytes) -> io::Result<()> {
        self.waited(Work::Snapshot(bytes)).await
    }

    async fn waited(&self, work: Work) -> io::Result<()> {
        let (caller, told) = oneshot::channel();
        self.hand_in(work, Waits::Caller(caller))?;
        told.await.unwrap_or_else(|_| Err(io::Error::other("the log is closed")))
    }

    fn hand_in(&self, work: Work, waits: Waits) -> io::Result<()> {
        if let Some(error) = &*self.failure.borrow() {
            return Err(again(error));
        }
        self.jobs.send(Job { work, waits }).map_err(|_| io::Error::other("the log is closed"))
    }
}

struct Task {
    receiver: mpsc::UnboundedReceiver<Job>,
    /// `None` while work is under way.
    file: Option<LogFile>,
    snapshot_path: PathBuf,
    disk: Arc<dyn Disk>,
    io: Io,
    failure: Rc<RefCell<Option<io::Error>>>,
}

impl Task {
    async fn run(mut self) {
        while let Some(first) = self.receiver.recv().await {
            let mut jobs = vec![first];
            while let Ok(next) = self.receiver.try_recv() {
                jobs.push(next);
            }
            let (work, waiters): (Vec<Work>, Vec<Waits>) =
                jobs.into_iter().map(|job| (job.work, job.waits)).unzip();
            let is_waited_for = waiters.iter().any(|waits| !matches!(waits, Waits::Nobody));
            let result = self.carry_out(work, is_waited_for).await;
            if let Err(error) = &result {
                *self.failure.borrow_mut() = Some(again(error));
            }
            waiters.into_iter().for_each(|waits| waits.tell(&result));
        }
    }

    async fn carry_out(&mut self, work: Vec<Work>, is_waited_for: bool) -> io::Result<()> {
        if let Some(error) = &*self.failure.borrow() {
            return Err(again(error));
        }
        let mut file = self.file.take().expect("it is put back");
        let (disk, snapshot_path) = (Arc::clone(&self.disk), self.snapshot_path.clone());
        let act = move || {
            let mut result = work.into_iter().try_for_each(|work| match work {
                Work::Records(records) => file.append(&records),
                Work::Rewrite(contents) => file.rewrite(&contents),
                Work::Snapshot(bytes) => {
                    // What the log says before it is durable before it.
                    file.sync()?;
                    disk.write_atomically(&snapshot_path, &bytes)
                }
            });
            if is_waited_for && result.is_ok() {
                result = file.sync();
            }
            (file, result)
        };
        let (file, result) = self.io.run(act).await;
        self.file = Some(file);
        result
    }
}
