//! A stream that carries frames both ways, turn by turn.

use std::io;
use std::task::{Context as TaskContext, Poll, ready};

use super::channel::Channel;
use super::meeting::Met;
use super::outbox::Outbox;
use crate::decoder::{Decoder, Frame};
use crate::frame::FrameError;
use crate::handshake::Established;

/// So much room is made for what comes next, at least.
const READ_BYTES_MIN: usize = 16 << 10;
/// And at most: a long frame is read in several steps, so that a length alone takes no memory.
const READ_BYTES_MAX: usize = 1 << 20;

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
}

impl Wire {
    pub(super) fn new(met: Met) -> Wire {
        Wire { established: met.established, channel: met.channel, decoder: Decoder::new(met.input) }
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
                return Poll::Ready(Ok(frame));
            }
            let most = self.decoder.wanted_bytes().clamp(READ_BYTES_MIN, READ_BYTES_MAX);
            let input = self.decoder.input();
            input.reserve(most);
            if ready!(self.channel.poll_read_some(input, most, task))? == 0 {
                return Poll::Ready(Err(WireError::Closed));
            }
        }
    }
}
