//! The events that a client wants to hear of.

use std::future::pending;

use protocol::{Event, EventKind};
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};

use crate::events::Events;

/// Nothing until its client registers.
#[derive(Default)]
pub(super) struct Subscription {
    receiver: Option<broadcast::Receiver<Event>>,
    kinds: Vec<EventKind>,
}

impl Subscription {
    /// Adds kinds of events.
    pub(super) fn add(&mut self, events: &Events, kinds: &[EventKind]) {
        self.receiver.get_or_insert_with(|| events.subscribe());
        self.kinds.extend_from_slice(kinds);
    }

    /// The next event, when it comes; never, for a client that did not register.
    ///
    /// # Cancel safety
    /// No event is lost.
    pub(super) async fn next(&mut self) -> Event {
        let Some(receiver) = &mut self.receiver else { return pending().await };
        loop {
            match receiver.recv().await {
                Ok(event) if self.kinds.contains(&event.kind()) => return event,
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => note_missed(missed),
                Err(RecvError::Closed) => return pending().await,
            }
        }
    }

    /// The next event, if it is there.
    pub(super) fn next_now(&mut self) -> Option<Event> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match receiver.try_recv() {
                Ok(event) if self.kinds.contains(&event.kind()) => return Some(event),
                Ok(_) => {}
                Err(TryRecvError::Lagged(missed)) => note_missed(missed),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }
}

fn note_missed(missed: u64) {
    tracing::warn!(missed, "a client is too slow for its events");
}
