//! Two ends of a new stream meet: the handshake, with a stream under it.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use runtime::{ByteStream, Random};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;

use crate::handshake::{
    Accepting, Acceptor, Established, HandshakeError, INPUT_BYTES_MAX, Identity, Initiator, Purpose,
};

/// How long a handshake may take: longer than any network does, and short enough for who waits to be asked.
const PATIENCE: Duration = Duration::from_secs(2);

/// An end of a connection on which both talk.
#[derive(Debug)]
pub struct Met {
    /// What both know of each other.
    pub established: Established,
    /// The stream, behind the handshake.
    pub stream: ByteStream,
    /// What came behind the handshake already.
    pub input: BytesMut,
}

/// Why two nodes do not talk.
#[derive(Debug, thiserror::Error)]
pub enum MeetError {
    /// One of them does not want to.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The stream ended, or there was none.
    #[error("the connection broke during the handshake: {0}")]
    Stream(#[from] io::Error),
    /// This node is told not to talk to the other one.
    #[error("the nodes are cut off from each other")]
    CutOff,
    /// The other side said nothing for too long.
    #[error("no answer to the handshake within {PATIENCE:?}")]
    Silence,
}

/// Meets whoever connected.
///
/// # Errors
/// There is no connection; the other side was told why, if it could be.
///
/// # Cancel safety
/// Dropped, the stream is closed.
pub async fn accept(stream: ByteStream, identity: Identity, random: &dyn Random) -> Result<Met, MeetError> {
    within_patience(async move {
        let mut meeting = Meeting::on(stream)?;
        let mut acceptor = Acceptor::new(identity, random);
        loop {
            match acceptor.read(&mut meeting.input) {
                Ok(Accepting::Wait) => meeting.receive().await?,
                Ok(Accepting::Send(bytes)) => meeting.stream.write_all(&bytes).await?,
                Ok(Accepting::Established(established)) => return Ok(meeting.over(established)),
                Err(error) => return Err(meeting.refuse(error).await),
            }
        }
    })
    .await
}

/// Meets whom it connected to.
pub(super) async fn connect(
    stream: ByteStream,
    identity: Identity,
    purpose: Purpose,
    wanted: Option<Uuid>,
    random: &dyn Random,
) -> Result<Met, MeetError> {
    within_patience(async move {
        let mut meeting = Meeting::on(stream)?;
        let (initiator, hello) = Initiator::begin(identity, purpose, wanted, random);
        meeting.stream.write_all(&hello).await?;
        loop {
            match initiator.read(&mut meeting.input) {
                Ok(None) => meeting.receive().await?,
                Ok(Some((established, proof))) => {
                    meeting.stream.write_all(&proof).await?;
                    return Ok(meeting.over(established));
                }
                Err(error) => return Err(meeting.refuse(error).await),
            }
        }
    })
    .await
}

async fn within_patience(meeting: impl Future<Output = Result<Met, MeetError>>) -> Result<Met, MeetError> {
    tokio::time::timeout(PATIENCE, meeting).await.unwrap_or(Err(MeetError::Silence))
}

struct Meeting {
    stream: ByteStream,
    input: BytesMut,
}

impl Meeting {
    fn on(stream: ByteStream) -> io::Result<Meeting> {
        stream.set_nodelay()?;
        Ok(Meeting { stream, input: BytesMut::new() })
    }

    /// Waits until something more has come.
    async fn receive(&mut self) -> io::Result<()> {
        // Nothing longer than a message of the handshake is waited for.
        assert!(self.input.len() < INPUT_BYTES_MAX, "a whole message would have been taken");
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Tells the other side why, as far as it listens.
    async fn refuse(&mut self, error: HandshakeError) -> MeetError {
        if let Some(refusal) = error.refusal() {
            // It may be gone, and the first error is the one that matters.
            if self.stream.write_all(&refusal).await.is_ok() {
                _ = self.stream.shutdown().await;
            }
        }
        error.into()
    }

    fn over(self, established: Established) -> Met {
        Met { established, stream: self.stream, input: self.input }
    }
}
