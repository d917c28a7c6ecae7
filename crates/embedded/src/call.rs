//! One call, for code that awaits and for code that blocks.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::Error;

/// A call that is under way once it is awaited, or waited for with [`Call::wait`].
///
/// As a future it needs no particular runtime: the work is done on the database's own threads.
///
/// # Cancel safety
/// A call that is dropped before it is polled did nothing. Dropped later, its statement may be carried
/// out or not, as when a connection is cut.
#[must_use = "a call does nothing until it is awaited or waited for"]
pub struct Call<'a, T>(Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>);

impl<'a, T> Call<'a, T> {
    pub(crate) fn new(future: impl Future<Output = Result<T, Error>> + Send + 'a) -> Self {
        Call(Box::pin(future))
    }

    /// Blocks this thread until the answer is there. On a thread of an async runtime this holds up the
    /// runtime's other tasks; await the call there instead.
    ///
    /// # Errors
    /// Those of the call.
    pub fn wait(self) -> Result<T, Error> {
        runtime::block_on(self.0)
    }
}

impl<T> Future for Call<'_, T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl<T> std::fmt::Debug for Call<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Call")
    }
}
