//! A connection that answers: requests come in, in whatever order answers go out.

use std::rc::Rc;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use super::outbox::Outbox;
use super::wire::{Wire, WireError};
use super::{Met, Node};
use crate::Frame;
use crate::encoder::BodyTooLong;
use crate::handshake::Established;
use crate::message::{Context, Kind};

/// While so many bytes of answers are not sent, no request is taken: who asks and does not listen waits.
const UNSENT_BYTES_MAX: usize = 4 << 20;
/// While so many requests are under way, or so many bytes of them, no more are taken, be they in one frame: each may be
/// a task, and holds what was asked.
const UNDER_WAY_MAX: usize = 2048;
const UNDER_WAY_BYTES_MAX: usize = 4 << 20;
/// So many frames are taken in a turn; then others have theirs.
const FRAMES_PER_TURN_MAX: usize = 16;

/// Who answers.
pub trait Service {
    /// A request came. It may be answered at once, or later, or be dropped, which declines it.
    fn request(&self, from: &Established, request: Request);
    /// A notice came.
    fn notice(&self, from: &Established, body: Bytes);
}

/// A request that came, and the way back.
pub struct Request {
    /// What is asked.
    pub body: Bytes,
    /// After this nobody waits for the answer.
    pub deadline: Instant,
    /// What who asks knew then.
    pub context: Context,
    id: u32,
    /// Of the body, which may be taken out.
    body_bytes: usize,
    /// `None` once it is answered.
    outbox: Option<Outbox>,
}

impl Request {
    fn new((id, deadline): (u32, Instant), body: Bytes, context: Context, outbox: &Outbox) -> Request {
        let body_bytes = body.len();
        outbox.note_begun(body_bytes);
        Request { body, deadline, context, id, body_bytes, outbox: Some(outbox.clone()) }
    }

    /// Answers. When the connection has ended the answer is dropped: who asked was told.
    ///
    /// # Errors
    /// The body is longer than any message may be; the request is declined.
    pub fn answer(mut self, write: impl FnOnce(&mut BytesMut)) -> Result<(), BodyTooLong> {
        let outbox = self.outbox.clone().expect("it is answered once");
        outbox.push(Kind::Answer { id: self.id }, write)?;
        outbox.note_ended(self.body_bytes);
        self.outbox = None;
        Ok(())
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(outbox) = self.outbox.take() {
            outbox.push(Kind::Declined { id: self.id }, |_| {}).expect("a message without a body fits");
            outbox.note_ended(self.body_bytes);
        }
    }
}

/// Answers on a connection until it ends.
///
/// # Cancel safety
/// Dropped, the connection is closed.
pub async fn answer(met: Met, node: Rc<dyn Node>, service: Rc<dyn Service>) -> WireError {
    let outbox = Outbox::new(node.clone());
    outbox.connect(&met);
    // Requests that are still under way hold it, and would go on filling it.
    let _closes = Closes(outbox.clone());
    let mut wire = Wire::new(met, &node.bounds().room);
    // A frame of which not all requests could be taken at once.
    let mut left: Option<(Frame, Instant)> = None;
    std::future::poll_fn(|task| {
        for _ in 0..FRAMES_PER_TURN_MAX {
            if let Err(error) = wire.send(&outbox, task) {
                return Poll::Ready(error);
            }
            // Sending goes on when the stream has room or a request has ended, and with it this.
            if !has_room(&outbox) {
                return Poll::Pending;
            }
            let (mut frame, opened) = match left.take() {
                Some(left) => left,
                None => match wire.receive(task) {
                    Poll::Ready(Ok(frame)) => {
                        let opened = outbox.hear(frame.stamp);
                        (frame, opened)
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(error),
                    Poll::Pending => return Poll::Pending,
                },
            };
            if node.is_cut_off(wire.established.host_id) {
                return Poll::Ready(WireError::CutOff);
            }
            node.heard(&wire.established, frame.context);
            match take((&mut frame, opened), &wire.established, &outbox, &*service) {
                Ok(true) => {}
                Ok(false) => left = Some((frame, opened)),
                Err(error) => return Poll::Ready(error),
            }
        }
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Closes an outbox when its connection has ended, however it has.
struct Closes(Outbox);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// May more be asked on this connection? If not, then because of what it holds itself: its task is woken when that
/// becomes less.
fn has_room(outbox: &Outbox) -> bool {
    let (count, bytes) = outbox.under_way();
    let is_behind = count >= UNDER_WAY_MAX || bytes >= UNDER_WAY_BYTES_MAX;
    !is_behind && outbox.unsent_bytes() < UNSENT_BYTES_MAX && outbox.has_room()
}

/// Takes the messages of a frame that was opened then, as long as there is room for requests; are those all? What came
/// too late is not done: whoever asked has given it up, and may have seen to it that it is done otherwise.
fn take(
    (frame, opened): (&mut Frame, Instant),
    from: &Established,
    outbox: &Outbox,
    service: &dyn Service,
) -> Result<bool, WireError> {
    let context = frame.context;
    while has_room(outbox) {
        let Some(message) = frame.next_message()? else { return Ok(true) };
        match message.kind {
            Kind::Request { id, patience } => {
                let request = Request::new((id, opened + patience), message.body, context, outbox);
                if request.deadline > Instant::now() {
                    service.request(from, request);
                }
            }
            Kind::Notice => service.notice(from, message.body),
            Kind::Answer { .. } | Kind::Declined { .. } => return Err(WireError::Misplaced),
        }
    }
    Ok(false)
}
