//! Events for clients that registered: one channel for the node, one receiver for each of them.

use protocol::Event;
use tokio::sync::broadcast;

/// Events a client may lag behind before it loses some.
const EVENTS_KEPT: usize = 1024;

/// Sends events to all registered connections of the node, on whichever shard they are.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    sender: broadcast::Sender<Event>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Events { sender: broadcast::channel(EVENTS_KEPT).0 }
    }

    pub(crate) fn publish(&self, event: Event) {
        // Nobody registered is no error.
        _ = self.sender.send(event);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.sender.subscribe()
    }
}
