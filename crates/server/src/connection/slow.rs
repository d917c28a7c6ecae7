//! Which requests took long, from when they were begun until their answer was there.

use std::time::Duration;

use protocol::{Frame, Request};

use super::ShardServer;
use super::drive::Connection;
use super::failed::statement;
use crate::convert;
use crate::slow_queries::SlowQuery;

impl ShardServer {
    /// Now, as times of requests are measured.
    pub(super) fn time(&self) -> Duration {
        self.clock.elapsed()
    }

    /// How long it took what was begun then, if that is long.
    pub(super) fn slow_since(&self, begun: Duration) -> Option<Duration> {
        let took = self.time().saturating_sub(begun);
        self.clients.slow_queries().is_slow(took).then_some(took)
    }

    /// Has the log tell of a request that took so long.
    pub(super) fn note_slow(&self, keyspace: Option<&str>, request: &Request, took: Duration) {
        let query = SlowQuery {
            statement: statement(&self.engine, request),
            keyspace: keyspace.unwrap_or_default().to_owned(),
            consistency: consistency(request),
        };
        self.clients.slow_queries().add(query, took);
    }
}

impl Connection {
    /// The same of requests that went together.
    pub(super) fn note_slow_frames<'f>(&mut self, frames: impl Iterator<Item = &'f Frame>, begun: Duration) {
        let Some(took) = self.server.slow_since(begun) else { return };
        for frame in frames {
            // It was parsed when its way was chosen.
            if let Ok(envelope) = self.decoder.decode_request(frame) {
                let session = self.session.state.borrow();
                self.server.note_slow(session.keyspace.as_deref(), &envelope.request, took);
            }
        }
    }
}

fn consistency(request: &Request) -> &'static str {
    let level = match request {
        Request::Query(query) => query.parameters.consistency,
        Request::Execute(execute) => execute.parameters.consistency,
        Request::Batch(batch) => batch.parameters.consistency,
        _ => return "",
    };
    convert::consistency(level).name()
}
