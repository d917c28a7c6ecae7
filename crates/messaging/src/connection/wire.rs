//! A stream that carries frames both ways, turn by turn.

use std::io;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::channel::Channel;
use super::guests::Guest;
use super::meeting::Met;
use super::outbox::Outbox;
use super::room::{OWN_BYTES, Part, Room};
use crate::decoder::{Decoder, Frame};
use crate::frame::FrameError;
use crate::handshake::Established;

/// So much room is made for what comes next, at least.
const READ_BYTES_MIN: usize = 16 << 10;
/// And at most: a long frame is read in several steps, so that a length alone takes no memory.
const READ_BYTES_MAX: usize = 1 << 20;

/// A frame of which so much has come is long: the rest is read when there is room, and has to come within this. No
/// network that nodes are joined by is slower than a megabyte a second.
const LONG_BYTES: usize = OWN_BYTES;
const LONG_PATIENCE: Duration = Duration::from_secs(30);
/// How long until it is looked again whether there is room for the rest.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(20);

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The other side closed it.
    #[error("the other side closed the connection")]
    Closed,
    /// The stream broke.
    #[error("the connection broke: {0}")]
    Stream(#[from] io::Error),
    /// What came makes no sense.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// An answer to what nobody asked.
    #[error("answer {id} to what was not asked")]
    NotAsked {
        /// As the answer says.
        id: u32,
    },
    /// It would hold memory for ever.
    #[error("a long frame has not come, or there was no room for it, within {LONG_PATIENCE:?}")]
    Slow,
    /// This node is told not to talk to the other one.
    #[error("the nodes are cut off from each other")]
    CutOff,
    /// A message that this side of a connection does not get.
    #[error("message of a kind that does not belong here")]
    Misplaced,
}

/// One end's stream, and the frames that come from it.
pub(super) struct Wire {
    pub(super) established: Established,
    channel: Channel,
    decoder: Decoder,
    /// What has come of the next frame.
    part: Part,
    /// `None` when the next frame is not known to be long.
    long: Option<Long>,
    /// Keeps its place among those that were let in.
    _guest: Option<Guest>,
}

/// A long frame that has come in part.
struct Long {
    deadline: Instant,
    /// When to look at it again.
    look: Pin<Box<Sleep>>,
}

impl Wire {
    pub(super) fn new(met: Met, room: &Room) -> Wire {
        let Met { established, channel, input, guest, .. } = met;
        let (decoder, part) = (Decoder::new(input), room.part());
        Wire { established, channel, decoder, part, long: None, _guest: guest }
    }

    /// Hands over what the outbox has, as far as the stream takes it. The task is woken when there is more, or room.
    pub(super) fn send(&mut self, outbox: &Outbox, task: &mut TaskContext<'_>) -> Result<(), WireError> {
        while let Some(bytes) = outbox.next(task) {
            match self.channel.poll_write(&bytes, task)? {
                Poll::Ready(0) => return Err(WireError::Closed),
                Poll::Ready(count) => outbox.advance(count),
                Poll::Pending => break,
            }
        }
        // What TLS has taken and the stream below has not yet: the task is woken when it does.
        match self.channel.poll_flush(task) {
            Poll::Ready(Err(error)) => Err(error.into()),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// The next frame, once it is there.
    pub(super) fn receive(&mut self, task: &mut TaskContext<'_>) -> Poll<Result<Frame, WireError>> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                self.long = None;
                self.part.hold(self.decoder.input().len());
                self.part.exceed_no_more();
                return Poll::Ready(Ok(frame));
            }
            ready!(self.may_read(task))?;
            let is_long = self.decoder.input().len() >= LONG_BYTES;
            let bytes_max = if is_long { READ_BYTES_MAX } else { LONG_BYTES };
            let most = self.decoder.wanted_bytes().clamp(READ_BYTES_MIN, bytes_max);
            let input = self.decoder.input();
            input.reserve(most);
            if ready!(self.channel.poll_read_some(input, most, task))? == 0 {
                return Poll::Ready(Err(WireError::Closed));
            }
            self.part.hold(self.decoder.input().len());
        }
    }

    /// Waits until there is room for more of a long frame.
    fn may_read(&mut self, task: &mut TaskContext<'_>) -> Poll<Result<(), WireError>> {
        if self.decoder.input().len() < LONG_BYTES {
            return Poll::Ready(Ok(()));
        }
        let now = Instant::now();
        let long = self.long.get_or_insert_with(|| {
            let deadline = now + LONG_PATIENCE;
            Long { deadline, look: Box::pin(sleep_until(deadline)) }
        });
        if now >= long.deadline {
            return Poll::Ready(Err(WireError::Slow));
        }
        let has_room = self.part.has_room() || self.part.may_exceed();
        long.look.as_mut().reset(if has_room { long.deadline } else { now + NO_ROOM_PAUSE });
        // Should nothing come any more, the task is woken all the same; it is not over yet.
        _ = long.look.as_mut().poll(task);
        if has_room { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}
