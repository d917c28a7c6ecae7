//! What a trace tells of other nodes: what is sent to them, what they have done with it, and what they have answered.
//!
//! A request says that it is traced, and its answer brings the steps that were taken for it, each with its own time. So
//! all of them are there when the coordinator writes the trace down, and a node writes nothing of others' requests. Who
//! does not answer has told nothing. Words are those of Cassandra 5.0.

use std::net::SocketAddr;

use ::replica::{Answer, Asked, BodyError, Request};
use bytes::Bytes;
use cluster::membership::Known;
use messaging::AskError;
use runtime::Runtime;
use runtime::trace::{Steps, Trace, TraceEvent};
use uuid::Uuid;

/// A request of a trace that another node was sent.
pub(super) struct Sent {
    trace: Trace,
    to: SocketAddr,
    verb: &'static str,
    /// Is it known what became of it?
    is_over: bool,
}

impl Sent {
    /// That with this body.
    pub(super) fn of(trace: Trace, to: SocketAddr, body: &[u8]) -> Sent {
        let byte_count = body.len();
        let asked = Asked::read(Bytes::copy_from_slice(body));
        let verb = asked.map_or("unknown", |asked| asked.request.verb());
        trace.add(format!("Sending {verb}_REQ message to /{to} message size {byte_count} bytes"));
        Sent { trace, to, verb, is_over: false }
    }

    /// The answer; what the other node has done for it is in the trace then.
    ///
    /// # Errors
    /// There is none, which is in the trace, too.
    pub(super) fn take_in(
        mut self,
        answer: Result<Bytes, AskError>,
    ) -> Result<Result<Answer, BodyError>, AskError> {
        self.is_over = true;
        let Sent { trace, to, verb, .. } = &self;
        let answer = answer.inspect_err(|error| trace.add(format!("No {verb}_RSP from /{to}: {error}")))?;
        Ok(Answer::read_traced(answer).map(|(steps, answer)| {
            trace.add_of_node(*to, steps);
            trace.add(format!("{verb}_RSP message received from /{to}"));
            answer
        }))
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let Sent { trace, to, verb, is_over } = self;
        if !*is_over {
            trace.add(format!("No {verb}_RSP from /{to} yet, and nobody waits for it any more"));
        }
    }
}

/// A request of another node that wants to be told what is done for it.
pub(super) struct Received {
    trace: Trace,
    steps: Steps,
    from: String,
    verb: &'static str,
}

impl Received {
    /// It has come from that node.
    pub(super) fn begin(
        request: &Request,
        host: Uuid,
        known: Option<&Known>,
        runtime: &Runtime,
    ) -> Box<Received> {
        let members = known.and_then(Known::members);
        let address = members.and_then(|members| Some(members.get(host)?.candidate.address));
        let from = address.map_or_else(|| host.to_string(), |address| format!("/{address}"));
        let ((trace, steps), verb) = (Trace::start(runtime), request.verb());
        trace.add(format!("{verb}_REQ message received from {from}"));
        Box::new(Received { trace, steps, from, verb })
    }

    /// What is to be in force while it is carried out.
    pub(super) fn trace(&self) -> Trace {
        self.trace.clone()
    }

    /// What was done for it, which is all but sending the answer.
    pub(super) fn finish(mut self) -> Vec<TraceEvent> {
        let Received { from, verb, .. } = &self;
        self.trace.add(format!("Enqueuing {verb}_RSP response to {from}"));
        self.steps.so_far()
    }
}
