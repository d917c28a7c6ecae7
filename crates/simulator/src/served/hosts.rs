//! Several machines in one thread: each has its own tasks, which die with it, and its own disk.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use runtime::MemoryDisk;
use tokio::task::LocalSet;
use tokio::time::Instant;

/// The machines, by their numbers.
pub(crate) struct Hosts(Vec<Host>);

#[derive(Default)]
struct Host {
    /// `None` while nothing runs there.
    tasks: RefCell<Option<LocalSet>>,
    disk: RefCell<MemoryDisk>,
    /// Is it to be killed when the thread is next at nobody's disposal?
    is_doomed: Cell<bool>,
    /// The change of its disk that it does not outlive.
    changes_max: Cell<Option<u64>>,
    /// Do its tasks stand still? Its connections stay open, and its clock goes on.
    is_paused: Cell<bool>,
    /// When the last life ended.
    died: Cell<Option<Instant>>,
}

impl Hosts {
    pub(crate) fn new(count: usize) -> Hosts {
        Hosts((0..count).map(|_| Host::default()).collect())
    }

    pub(crate) fn disk(&self, host: usize) -> MemoryDisk {
        self.0[host].disk.borrow().clone()
    }

    /// The disk as the end of a life has left it.
    pub(crate) fn put_disk(&self, host: usize, disk: MemoryDisk) {
        assert!(!self.is_alive(host), "a disk is changed between two lives");
        *self.0[host].disk.borrow_mut() = disk;
    }

    /// Starts a machine, which does this and whatever comes of it.
    pub(crate) fn start(&self, host: usize, body: impl Future<Output = ()> + 'static) {
        assert!(!self.is_alive(host), "a machine has one life at a time");
        let tasks = LocalSet::new();
        tasks.spawn_local(body);
        self.0[host].is_doomed.set(false);
        self.0[host].is_paused.set(false);
        self.0[host].changes_max.set(None);
        *self.0[host].tasks.borrow_mut() = Some(tasks);
    }

    pub(crate) fn is_alive(&self, host: usize) -> bool {
        self.0[host].tasks.borrow().is_some()
    }

    /// Stops a machine's process where its tasks stand, until it goes on.
    pub(crate) fn pause(&self, host: usize) {
        self.0[host].is_paused.set(true);
    }

    /// Has a machine that stood still go on.
    pub(crate) fn go_on(&self, host: usize) {
        self.0[host].is_paused.set(false);
    }

    pub(crate) fn is_paused(&self, host: usize) -> bool {
        self.0[host].is_paused.get()
    }

    /// When a machine's last life ended.
    pub(crate) fn died(&self, host: usize) -> Instant {
        self.0[host].died.get().expect("it has lived")
    }

    /// Has a life of a machine ended since then?
    pub(crate) fn has_died_since(&self, host: usize, when: Instant) -> bool {
        self.0[host].died.get().is_some_and(|died| died >= when)
    }

    /// Ends a machine's life when its tasks have had their turn: a node that can not go on ends itself so.
    pub(crate) fn doom(&self, host: usize) {
        self.0[host].is_doomed.set(true);
    }

    /// Ends a machine's life where its tasks stand.
    pub(crate) async fn kill(&self, host: usize) {
        self.doom(host);
        while self.is_alive(host) {
            tokio::task::yield_now().await;
        }
    }

    /// Ends a machine's process once its disk was changed so many times more.
    pub(crate) fn kill_after_changes(&self, host: usize, change_count: u64) {
        let host = &self.0[host];
        let changed_count = host.disk.borrow().faults().change_count();
        host.changes_max.set(Some(changed_count + change_count));
    }

    /// Runs all machines until `body`, which belongs to none of them, is done.
    pub(crate) async fn run_beside<T>(&self, body: impl Future<Output = T>) -> T {
        let outside = LocalSet::new();
        let mut body = pin!(outside.run_until(body));
        poll_fn(|context| {
            if let Poll::Ready(output) = body.as_mut().poll(context) {
                return Poll::Ready(output);
            }
            self.0.iter().for_each(|host| host.run(context));
            Poll::Pending
        })
        .await
    }

    /// Ends all lives.
    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|host| drop(host.tasks.take()));
    }
}

impl Host {
    /// Lets the machine's tasks go on. Without power they do not.
    fn run(&self, context: &mut Context<'_>) {
        let Some(mut tasks) = self.tasks.take() else { return };
        if !self.is_doomed.get() && !self.is_paused.get() {
            _ = Pin::new(&mut tasks).poll(context);
        }
        if self.is_doomed.get() || self.is_disk_done() {
            self.died.set(Some(Instant::now()));
            return drop(tasks);
        }
        *self.tasks.borrow_mut() = Some(tasks);
    }

    /// Has the power gone, or the last change been made?
    fn is_disk_done(&self) -> bool {
        let disk = self.disk.borrow();
        let is_last_made = |last: u64| disk.faults().change_count() >= last;
        disk.faults().is_off() || self.changes_max.get().is_some_and(is_last_made)
    }
}
