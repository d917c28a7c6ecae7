//! Waiting for a future on a thread that has nothing else to do.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Runs a future to its end on this thread, which sleeps meanwhile. The future must need no runtime of
/// its own: no timers, no sockets; messages of any kind are fine.
///
/// It works inside a tokio runtime too, where it holds up the thread it is called on. Never on a shard.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    // A task's budget is given anew when the task returns to its runtime, which it does not do here.
    let mut future = pin!(tokio::task::unconstrained(future));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_for_another_thread() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let thread = thread::Builder::new().spawn(move || sender.send(7)).expect("thread");
        assert_eq!(block_on(receiver), Ok(7));
        assert_eq!(thread.join().expect("no panic"), Ok(()));
    }

    #[tokio::test]
    async fn within_a_task_it_outlives_the_tasks_budget() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1_000);
        for number in 0..1_000 {
            sender.try_send(number).expect("room");
        }
        for number in 0..1_000 {
            assert_eq!(block_on(receiver.recv()), Some(number));
        }
    }
}
