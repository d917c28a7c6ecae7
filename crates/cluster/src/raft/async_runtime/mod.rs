//! What openraft runs on: tasks, timers, channels and randomness of this node.
//!
//! Everything goes through here, so that a run repeats in the simulator: tasks stay on their thread and die with it,
//! time is tokio's, which a test may pause, and who waits is woken in the order in which it began to wait. Randomness
//! comes from the node's own source, which tasks inherit: many nodes may live in one thread.

mod channels;
mod watch;

use std::convert::Infallible;
use std::future::Future;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::sync::Arc;
use std::time::Duration;

use openraft::{AsyncRuntime, Instant, OptionalSend};
use runtime::Random;
use tokio::task::{JoinError, JoinHandle};

tokio::task_local! {
    /// The source of randomness of the node whose task this is.
    static RANDOM: Arc<dyn Random>;
}

/// Runs a future as one of a node's: what it starts has the node's randomness too.
pub(super) fn of_node<F: Future>(
    random: &Arc<dyn Random>,
    future: F,
) -> impl Future<Output = F::Output> + use<F> {
    RANDOM.scope(Arc::clone(random), future)
}

/// Starts a task that inherits the node of who starts it.
///
/// # Panics
/// It is started by no task of a node.
pub(super) fn spawn<F>(what: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let random = RANDOM.try_with(Arc::clone).expect("only tasks of a node start tasks");
    runtime::spawn_local(what, RANDOM.scope(random, future))
}

/// The runtime, as openraft wants it.
#[derive(Debug)]
pub(crate) struct NodeRuntime;

impl AsyncRuntime for NodeRuntime {
    type JoinError = JoinError;
    type JoinHandle<T: OptionalSend + 'static> = JoinHandle<T>;
    type Sleep = tokio::time::Sleep;
    type Instant = Moment;
    type TimeoutError = tokio::time::error::Elapsed;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = tokio::time::Timeout<T>;
    type ThreadLocalRng = NodeRandom;
    type Mpsc = channels::Queue;
    type Watch = watch::Watched;
    type Oneshot = channels::Reply;
    type Mutex<T: OptionalSend + 'static> = channels::Lock<T>;

    fn spawn<T>(future: T) -> JoinHandle<T::Output>
    where
        T: Future + 'static,
        T::Output: 'static,
    {
        spawn("raft", future)
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        tokio::time::sleep(duration)
    }

    fn sleep_until(deadline: Moment) -> Self::Sleep {
        tokio::time::sleep_until(deadline.0)
    }

    fn timeout<R, F: Future<Output = R>>(duration: Duration, future: F) -> Self::Timeout<R, F> {
        tokio::time::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R>>(deadline: Moment, future: F) -> Self::Timeout<R, F> {
        tokio::time::timeout_at(deadline.0, future)
    }

    fn is_panic(error: &JoinError) -> bool {
        error.is_panic()
    }

    fn thread_rng() -> NodeRandom {
        NodeRandom(RANDOM.try_with(Arc::clone).expect("only tasks of a node roll dice"))
    }

    fn new(_threads: usize) -> Self {
        unreachable!("openraft's own tests alone make runtimes")
    }

    fn block_on<F: Future<Output = T>, T>(&mut self, _future: F) -> T {
        unreachable!("openraft's own tests alone make runtimes")
    }
}

/// A node's source of randomness, as openraft wants it.
pub(crate) struct NodeRandom(Arc<dyn Random>);

impl rand_core::TryRng for NodeRandom {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        // The upper half of 64 random bits.
        Ok((self.0.next_u64() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill(bytes);
        Ok(())
    }
}

/// A moment of tokio's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(tokio::time::Instant);

impl Instant for Moment {
    fn now() -> Moment {
        Moment(tokio::time::Instant::now())
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, time: Duration) -> Moment {
        Moment(self.0 + time)
    }
}

impl AddAssign<Duration> for Moment {
    fn add_assign(&mut self, time: Duration) {
        self.0 += time;
    }
}

impl Sub<Duration> for Moment {
    type Output = Moment;

    fn sub(self, time: Duration) -> Moment {
        Moment(self.0 - time)
    }
}

impl Sub for Moment {
    type Output = Duration;

    fn sub(self, earlier: Moment) -> Duration {
        self.0 - earlier.0
    }
}

impl SubAssign<Duration> for Moment {
    fn sub_assign(&mut self, time: Duration) {
        self.0 -= time;
    }
}
