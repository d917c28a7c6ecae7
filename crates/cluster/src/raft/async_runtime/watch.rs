//! A value that is watched: who waits for its change is woken in the order in which it began to wait.
//!
//! Tokio's `watch` wakes in a random order when several wait, and then no run would repeat.

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use openraft::async_runtime::watch::{RecvError, SendError};
use openraft::async_runtime::{self as rt};
use openraft::{OptionalSend, OptionalSync};

/// The kind of channel.
pub(crate) struct Watched;

struct Shared<T> {
    value: RefCell<T>,
    /// How often it was changed.
    version: Cell<u64>,
    sender_count: Cell<usize>,
    receiver_count: Cell<usize>,
    /// Who waits, in the order in which they came.
    waiters: RefCell<BTreeMap<u64, Waker>>,
    /// Number of who waits next.
    next: Cell<u64>,
}

impl<T> Shared<T> {
    fn changed(&self) {
        self.version.set(self.version.get() + 1);
        self.wake();
    }

    fn wake(&self) {
        let waiters = std::mem::take(&mut *self.waiters.borrow_mut());
        waiters.into_values().for_each(Waker::wake);
    }
}

/// Changes the value.
pub(crate) struct WatchSender<T>(Rc<Shared<T>>);

/// Sees its changes.
pub(crate) struct WatchReceiver<T> {
    shared: Rc<Shared<T>>,
    /// The version that was seen last.
    seen: u64,
}

impl rt::Watch for Watched {
    type Sender<T: OptionalSend + OptionalSync> = WatchSender<T>;
    type Receiver<T: OptionalSend + OptionalSync> = WatchReceiver<T>;
    type Ref<'a, T: OptionalSend + 'a> = Ref<'a, T>;

    fn channel<T>(value: T) -> (WatchSender<T>, WatchReceiver<T>) {
        let shared = Rc::new(Shared {
            value: RefCell::new(value),
            version: Cell::new(0),
            sender_count: Cell::new(1),
            receiver_count: Cell::new(1),
            waiters: RefCell::default(),
            next: Cell::new(0),
        });
        (WatchSender(Rc::clone(&shared)), WatchReceiver { shared, seen: 0 })
    }
}

impl<T> rt::WatchSender<Watched, T> for WatchSender<T> {
    fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.0.receiver_count.get() == 0 {
            return Err(SendError(value));
        }
        *self.0.value.borrow_mut() = value;
        self.0.changed();
        Ok(())
    }

    fn send_if_modified<F: FnOnce(&mut T) -> bool>(&self, modify: F) -> bool {
        let is_modified = modify(&mut self.0.value.borrow_mut());
        if is_modified {
            self.0.changed();
        }
        is_modified
    }

    fn borrow_watched(&self) -> Ref<'_, T> {
        self.0.value.borrow()
    }

    fn subscribe(&self) -> WatchReceiver<T> {
        self.0.receiver_count.set(self.0.receiver_count.get() + 1);
        WatchReceiver { shared: Rc::clone(&self.0), seen: self.0.version.get() }
    }
}

impl<T> rt::WatchReceiver<Watched, T> for WatchReceiver<T> {
    async fn changed(&mut self) -> Result<(), RecvError> {
        let number = self.shared.next.get();
        self.shared.next.set(number + 1);
        let (shared, seen) = (&self.shared, &mut self.seen);
        let _forget = Forget { waiters: &shared.waiters, number };
        poll_fn(|task| {
            if shared.version.get() != *seen {
                *seen = shared.version.get();
                return Poll::Ready(Ok(()));
            }
            if shared.sender_count.get() == 0 {
                return Poll::Ready(Err(RecvError(())));
            }
            shared.waiters.borrow_mut().insert(number, task.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn borrow_watched(&self) -> Ref<'_, T> {
        self.shared.value.borrow()
    }

    fn borrow_and_update(&mut self) -> Ref<'_, T> {
        self.seen = self.shared.version.get();
        self.shared.value.borrow()
    }
}

/// Who no longer waits is not woken.
struct Forget<'a> {
    waiters: &'a RefCell<BTreeMap<u64, Waker>>,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.waiters.borrow_mut().remove(&self.number);
    }
}

impl<T> Clone for WatchSender<T> {
    fn clone(&self) -> Self {
        self.0.sender_count.set(self.0.sender_count.get() + 1);
        WatchSender(Rc::clone(&self.0))
    }
}

impl<T> Drop for WatchSender<T> {
    fn drop(&mut self) {
        self.0.sender_count.set(self.0.sender_count.get() - 1);
        if self.0.sender_count.get() == 0 {
            self.0.wake();
        }
    }
}

impl<T> Clone for WatchReceiver<T> {
    fn clone(&self) -> Self {
        self.shared.receiver_count.set(self.shared.receiver_count.get() + 1);
        WatchReceiver { shared: Rc::clone(&self.shared), seen: self.seen }
    }
}

impl<T> Drop for WatchReceiver<T> {
    fn drop(&mut self) {
        self.shared.receiver_count.set(self.shared.receiver_count.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use openraft::async_runtime::{Watch, WatchReceiver as _, WatchSender as _};
    use tokio::task::LocalSet;

    use super::*;

    #[tokio::test]
    async fn who_waits_is_woken_in_the_order_in_which_it_began() {
        LocalSet::new()
            .run_until(async {
                let (sender, receiver) = Watched::channel(0);
                let woken: Rc<RefCell<Vec<u32>>> = Rc::default();
                let tasks: Vec<_> = (0..20)
                    .map(|number| {
                        let (mut receiver, woken) = (receiver.clone(), Rc::clone(&woken));
                        tokio::task::spawn_local(async move {
                            receiver.changed().await.expect("there is a sender");
                            woken.borrow_mut().push(number);
                        })
                    })
                    .collect();
                tokio::task::yield_now().await;
                sender.send(1).expect("there are receivers");
                for task in tasks {
                    task.await.expect("it ends");
                }
                assert_eq!(*woken.borrow(), (0..20).collect::<Vec<u32>>());
            })
            .await;
    }

    #[tokio::test]
    async fn who_waits_for_nobody_is_told() {
        let (sender, mut receiver) = Watched::channel(0);
        drop(sender);
        assert!(receiver.changed().await.is_err());
    }
}
