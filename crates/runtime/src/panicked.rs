//! Work that may panic, and what its panic said.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Work ended in a panic. That is no stop: something in our own code is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Panicked {
    /// What the panic said, on one line.
    pub what: String,
}

impl Panicked {
    /// What a panic's payload says.
    pub fn of(payload: &(dyn Any + Send)) -> Panicked {
        let words = payload.downcast_ref::<String>().map(String::as_str);
        let words =
            words.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
        // What an `assert_eq!` found stands on lines of its own.
        let what = words.lines().map(str::trim).collect::<Vec<_>>().join(", ");
        Panicked { what }
    }
}

/// Does something, up to its panic if there is one. What it left behind must be of no use to anybody then.
///
/// # Errors
/// It panicked.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panicked::of(&*payload))
}

/// As [`caught`], of a future.
///
/// # Errors
/// As [`caught`].
pub async fn caught_in<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| match caught(|| future.as_mut().poll(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_panic_said_stands_on_one_line() {
        let said = |work: fn()| caught(work).expect_err("it panics").what;
        assert_eq!(said(|| panic!("in words")), "in words");
        assert_eq!(said(|| panic!("of {}", 1 + 1)), "of 2");
        assert_eq!(
            said(|| assert_eq!(1 + 1, 3, "sums agree")),
            "assertion `left == right` failed: sums agree, left: 2, right: 3"
        );
        assert_eq!(said(|| std::panic::panic_any(7)), "a panic without words");
    }

    #[tokio::test]
    async fn a_future_is_caught_at_whichever_turn_it_panics() {
        let late = async {
            tokio::task::yield_now().await;
            panic!("late");
        };
        assert_eq!(caught_in(late).await, Err::<(), _>(Panicked { what: "late".into() }));
        assert_eq!(caught_in(async { 7 }).await, Ok(7));
    }
}
