//! A value that changes, and whose readers can wait until it is what they want.
//!
//! Readers are woken in the order in which they began to wait. `tokio::sync::watch` wakes several of them in an order
//! drawn from the system's randomness, so that a run of the simulator was not repeated.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The value, for who changes it. A clone changes the same.
pub struct Latest<T>(Arc<Shared<T>>);

/// The value, for who reads it.
pub struct LatestReader<T>(Arc<Shared<T>>);

/// Nobody changes the value any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is not what was waited for, and will not change")]
pub struct NeverChanges;

struct Shared<T> {
    value: Mutex<T>,
    changed: Notify,
    /// How many can change it.
    writer_count: AtomicUsize,
}

impl<T> Shared<T> {
    fn value(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Copy> Latest<T> {
    /// A value to begin with.
    pub fn new(value: T) -> Self {
        let (value, writer_count) = (Mutex::new(value), AtomicUsize::new(1));
        Latest(Arc::new(Shared { value, changed: Notify::new(), writer_count }))
    }

    /// A reader of it.
    pub fn reader(&self) -> LatestReader<T> {
        LatestReader(Arc::clone(&self.0))
    }

    /// What it is now.
    pub fn get(&self) -> T {
        *self.0.value()
    }

    /// Puts another one in its place.
    pub fn set(&self, value: T) {
        self.change(|_| Some(value));
    }

    /// Puts in its place what `change` gives; did that give anything?
    pub fn change(&self, change: impl FnOnce(T) -> Option<T>) -> bool {
        let is_changed = {
            let mut value = self.0.value();
            let changed = change(*value);
            changed.inspect(|changed| *value = *changed).is_some()
        };
        if is_changed {
            self.0.changed.notify_waiters();
        }
        is_changed
    }
}

impl<T: Copy> LatestReader<T> {
    /// What it is now.
    pub fn get(&self) -> T {
        *self.0.value()
    }

    /// Waits until it is what is wanted.
    ///
    /// # Errors
    /// It is not, and nobody is left to change it.
    pub async fn wait_for(&self, is_wanted: impl Fn(T) -> bool) -> Result<T, NeverChanges> {
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            // Before the value is looked at: a change after that is not missed.
            changed.as_mut().enable();
            let value = self.get();
            if is_wanted(value) {
                return Ok(value);
            }
            if self.0.writer_count.load(Ordering::Acquire) == 0 {
                return Err(NeverChanges);
            }
            changed.await;
        }
    }
}

impl<T> Clone for Latest<T> {
    fn clone(&self) -> Self {
        self.0.writer_count.fetch_add(1, Ordering::Relaxed);
        Latest(Arc::clone(&self.0))
    }
}

impl<T> Drop for Latest<T> {
    fn drop(&mut self) {
        if self.0.writer_count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

impl<T> Clone for LatestReader<T> {
    fn clone(&self) -> Self {
        LatestReader(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Latest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Latest").field(&*self.0.value()).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for LatestReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LatestReader").field(&*self.0.value()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    fn run(story: impl Future<Output = ()>) {
        let tokio = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        tokio::task::LocalSet::new().block_on(&tokio, story);
    }

    #[test]
    fn readers_are_woken_in_the_order_in_which_they_wait() {
        run(async {
            for _ in 0..8 {
                let (latest, woken) = (Latest::new(0), Rc::new(RefCell::new(Vec::new())));
                for number in 0..16 {
                    let (reader, woken) = (latest.reader(), Rc::clone(&woken));
                    tokio::task::spawn_local(async move {
                        reader.wait_for(|value| value > 0).await.expect("it changes");
                        woken.borrow_mut().push(number);
                    });
                }
                tokio::task::yield_now().await;
                latest.set(1);
                tokio::task::yield_now().await;
                assert_eq!(*woken.borrow(), (0..16).collect::<Vec<_>>());
            }
        });
    }

    #[test]
    fn who_waits_for_what_never_comes_is_told_when_the_last_writer_goes() {
        run(async {
            let latest = Latest::new(false);
            let (reader, other) = (latest.reader(), latest.clone());
            let waiting = tokio::task::spawn_local(async move { reader.wait_for(|value| value).await });
            drop(latest);
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished(), "one is left");
            drop(other);
            assert_eq!(waiting.await.expect("ends"), Err(NeverChanges));
        });
    }

    #[test]
    fn a_change_that_changes_nothing_wakes_nobody() {
        run(async {
            let latest = Latest::new(3);
            assert!(!latest.change(|value| (value < 2).then_some(2)));
            assert!(latest.change(|value| (value < 5).then_some(5)));
            assert_eq!((latest.get(), latest.reader().wait_for(|value| value == 5).await), (5, Ok(5)));
        });
    }
}
