//! A door that work passes while it lasts, and that closing waits for.

use std::sync::Arc;
use std::sync::Mutex;

use tokio::sync::Notify;

use crate::pool::lock;

/// The gate no longer lets anybody in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("gate is closed")]
pub struct GateClosed;

/// Counts who is inside. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct State {
    inside_count: usize,
    closed: bool,
}

/// Being inside; dropping it leaves.
#[derive(Debug)]
pub struct GateEntry {
    shared: Arc<Shared>,
}

impl Gate {
    /// An open gate.
    pub fn new() -> Gate {
        Gate::default()
    }

    /// Goes in, unless the gate is closed.
    pub fn enter(&self) -> Result<GateEntry, GateClosed> {
        let mut state = lock(&self.shared.state);
        if state.closed {
            return Err(GateClosed);
        }
        state.inside_count += 1;
        Ok(GateEntry { shared: Arc::clone(&self.shared) })
    }

    /// Whether [`Gate::close`] was called.
    pub fn is_closed(&self) -> bool {
        lock(&self.shared.state).closed
    }

    /// How many are inside.
    pub fn inside_count(&self) -> usize {
        lock(&self.shared.state).inside_count
    }

    /// Lets nobody in any more and waits until all have left.
    ///
    /// # Cancel safety
    /// The gate is closed by the first poll and stays so.
    pub async fn close(&self) {
        lock(&self.shared.state).closed = true;
        loop {
            let emptied = self.shared.emptied.notified();
            tokio::pin!(emptied);
            // Registered before the look, so that leaving in between is not missed.
            emptied.as_mut().enable();
            if lock(&self.shared.state).inside_count == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl Drop for GateEntry {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.inside_count -= 1;
        let emptied = state.inside_count == 0;
        drop(state);
        if emptied {
            self.shared.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[expect(clippy::disallowed_methods, reason = "a test without a shard")]
    #[tokio::test(start_paused = true)]
    async fn closing_waits_for_those_inside_and_refuses_others() {
        let gate = Gate::new();
        let entry = gate.enter().expect("open");
        let closing = tokio::spawn({
            let gate = gate.clone();
            async move { gate.close().await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!closing.is_finished());
        assert_eq!(gate.enter().err(), Some(GateClosed));
        drop(entry);
        closing.await.expect("closed");
        assert_eq!(gate.inside_count(), 0);
    }
}
