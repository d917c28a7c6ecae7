//! Two ends of a new stream meet: TLS, where it is to be, and the handshake, with a stream under them.
//!
//! Who has connected talks in the clear or begins with TLS, as its first byte tells ([`tls::HANDSHAKE_BYTE`]); so one
//! port does for both. Who has certificates takes TLS from everybody, whatever it has to use itself. What comes in the
//! clear is refused once the hello has said from whom, if a talk with that node must be under TLS: the other side is
//! told ([`Reason::Encryption`]), and comes again under TLS if it can. So nodes need not be told at one moment that
//! they have to encrypt.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::BytesMut;
use runtime::{ByteStream, Random};
use tls::{HANDSHAKE_BYTE, REFUSAL, TlsError, TlsStream};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use uuid::Uuid;

use super::Node;
use super::channel::Channel;
use super::guests::Guest;
use crate::handshake::{
    Accepting, Acceptor, Established, HandshakeError, INPUT_BYTES_MAX, Initiator, Purpose, Reason,
};

/// How long a handshake may take: longer than any network does, and short enough for who waits to be asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// A connection whose other side confirms nothing for so long has ended: 30 s in Cassandra
/// (`internode_tcp_user_timeout`).
const UNCONFIRMED_MAX: Duration = Duration::from_secs(10);
/// So many bytes are read at once: no message of a handshake that is usual has more.
const READ_BYTES: usize = 4 << 10;

/// An end of a connection on which both talk.
#[derive(Debug)]
pub struct Met {
    /// What both know of each other.
    pub established: Established,
    /// Since when they talk.
    pub(super) since: Instant,
    /// What frames go over, behind the handshake.
    pub(super) channel: Channel,
    /// What came behind the handshake already.
    pub(super) input: BytesMut,
    /// The place of a connection that was let in; `None` of one that this node has made.
    pub(super) guest: Option<Guest>,
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
    /// They do not come to talk under TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The other side begins with TLS, and this node has no certificates.
    #[error("the other side talks TLS, and this node was given no certificates")]
    TlsUnknown,
    /// The other side is to be talked with under TLS, and this node has no certificates.
    #[error("the other side must be talked with under TLS, and this node was given no certificates")]
    NoCertificates,
    /// This node is told not to talk to the other one.
    #[error("the nodes are cut off from each other")]
    CutOff,
    /// There are as many connections as there may be, or of that address.
    #[error("there are {count} connections already, {of_address} of that address")]
    Crowded {
        /// In all.
        count: usize,
        /// Of that address.
        of_address: usize,
    },
    /// It was long at its handshake, and others came.
    #[error("it was at its handshake when too many others came")]
    SentAway,
    /// The other side said nothing for too long.
    #[error("no answer to the handshake within {PATIENCE:?}")]
    Silence,
}

impl MeetError {
    /// Was there no room for one more?
    pub fn is_for_want_of_room(&self) -> bool {
        matches!(self, MeetError::Crowded { .. } | MeetError::SentAway)
    }

    /// Has the other side gone before it was met?
    pub fn is_departure(&self) -> bool {
        let is_end = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
        };
        matches!(self, MeetError::Stream(error) if is_end(error))
    }

    /// Has one of the two refused the other one, so that somebody has to put something right?
    pub fn is_refusal(&self) -> bool {
        match self {
            MeetError::Handshake(_) | MeetError::TlsUnknown | MeetError::NoCertificates => true,
            MeetError::Tls(error) => !matches!(error, TlsError::Stream(_)),
            // An answer that says why, where bytes of a talk were waited for.
            MeetError::Stream(error) => error.kind() == io::ErrorKind::InvalidData,
            MeetError::CutOff | MeetError::Crowded { .. } | MeetError::SentAway | MeetError::Silence => false,
        }
    }
}

impl Met {
    /// Can nobody on the way read what is said?
    pub fn is_encrypted(&self) -> bool {
        self.channel.is_encrypted()
    }
}

/// Meets whoever connected.
///
/// # Errors
/// There is no connection; the other side was told why, if it could be.
///
/// # Cancel safety
/// Dropped, the stream is closed.
pub async fn accept(stream: ByteStream, node: &dyn Node, random: &dyn Random) -> Result<Met, MeetError> {
    within_patience(async move {
        prepare(&stream)?;
        let mut meeting = Meeting::of(Channel::Plain(stream));
        meeting.receive().await?;
        if meeting.input.first() == Some(&HANDSHAKE_BYTE) {
            meeting = meeting.go_under_tls(node).await?;
        }
        let is_plain = !meeting.channel.is_encrypted();
        let refuses = |host_id| is_plain && node.must_encrypt(Some(host_id));
        let mut acceptor = Acceptor::new(node.identity(), random).refusing(&refuses);
        loop {
            match acceptor.read(&mut meeting.input) {
                Ok(Accepting::Wait) => meeting.receive().await?,
                Ok(Accepting::Send(bytes)) => meeting.channel.write_all(&bytes).await?,
                Ok(Accepting::Established(established)) => return Ok(meeting.over(established)),
                Err(error) => return Err(meeting.refuse(error).await),
            }
        }
    })
    .await
}

/// Whom a node connects to, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Where it is.
    pub(super) address: IpAddr,
    /// Who it must be, if that is known.
    pub(super) host_id: Option<Uuid>,
    pub(super) purpose: Purpose,
    /// Whoever it is, it is talked with under TLS.
    pub(super) must_encrypt: bool,
}

/// Meets whom it connected to.
pub(super) async fn connect(
    stream: ByteStream,
    node: &dyn Node,
    wanted: Wanted,
    random: &dyn Random,
) -> Result<Met, MeetError> {
    within_patience(async move {
        prepare(&stream)?;
        let must_encrypt = wanted.must_encrypt || node.must_encrypt(wanted.host_id);
        let channel = match (must_encrypt, node.credentials()) {
            (false, _) => Channel::Plain(stream),
            (true, None) => return Err(MeetError::NoCertificates),
            (true, Some(credentials)) => {
                let stream = TlsStream::connect(stream, &credentials, wanted.address).await?;
                Channel::Tls(Box::new(stream))
            }
        };
        let mut meeting = Meeting::of(channel);
        let (initiator, hello) = Initiator::begin(node.identity(), wanted.purpose, wanted.host_id, random);
        meeting.channel.write_all(&hello).await?;
        loop {
            match initiator.read(&mut meeting.input) {
                Ok(None) => meeting.receive().await?,
                Ok(Some((established, proof))) => {
                    meeting.channel.write_all(&proof).await?;
                    return Ok(meeting.over(established));
                }
                Err(error) => return Err(meeting.refuse(error).await),
            }
        }
    })
    .await
}

/// A node that vanished is known to be gone by its heartbeats, long before its connections are. But while they stay,
/// those that it made hold a place among [`Guests`](super::Guests), and on those to it nothing is sent when it is back,
/// until TCP tries again, which it does less and less often.
fn prepare(stream: &ByteStream) -> io::Result<()> {
    stream.set_nodelay()?;
    stream.set_unconfirmed_max(UNCONFIRMED_MAX)
}

async fn within_patience(meeting: impl Future<Output = Result<Met, MeetError>>) -> Result<Met, MeetError> {
    tokio::time::timeout(PATIENCE, meeting).await.unwrap_or(Err(MeetError::Silence))
}

struct Meeting {
    channel: Channel,
    input: BytesMut,
}

impl Meeting {
    fn of(channel: Channel) -> Meeting {
        Meeting { channel, input: BytesMut::new() }
    }

    /// What came is the beginning of TLS: the meeting goes on under it.
    async fn go_under_tls(self, node: &dyn Node) -> Result<Meeting, MeetError> {
        let Meeting { channel: Channel::Plain(mut stream), input } = self else {
            unreachable!("a talk begins in the clear");
        };
        let Some(credentials) = node.credentials() else {
            // It may be gone.
            _ = stream.write_all(&REFUSAL).await;
            _ = stream.shutdown().await;
            return Err(MeetError::TlsUnknown);
        };
        let stream = TlsStream::accept(stream, input, &credentials).await?;
        Ok(Meeting::of(Channel::Tls(Box::new(stream))))
    }

    /// Waits until something more has come.
    async fn receive(&mut self) -> io::Result<()> {
        // Nothing longer than a message of the handshake is waited for.
        assert!(self.input.len() < INPUT_BYTES_MAX, "a whole message would have been taken");
        match self.channel.read_some(&mut self.input, READ_BYTES).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Tells the other side why, as far as it listens.
    async fn refuse(&mut self, error: HandshakeError) -> MeetError {
        if let Some(refusal) = error.refusal() {
            // It may be gone, and the first error is the one that matters.
            if self.channel.write_all(&refusal).await.is_ok() {
                _ = self.channel.shutdown().await;
            }
        }
        error.into()
    }

    fn over(self, established: Established) -> Met {
        Met { established, since: Instant::now(), channel: self.channel, input: self.input, guest: None }
    }
}

/// Does the other side want to be talked with under TLS only?
pub(super) fn wants_tls(error: &MeetError) -> bool {
    matches!(error, MeetError::Handshake(HandshakeError::Refused { reason: Reason::Encryption, .. }))
}
