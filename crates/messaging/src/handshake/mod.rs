//! How two nodes find out whether they talk, and in which way; without I/O.
//!
//! ```text
//!   initiator                                         acceptor
//!     Hello: versions, who, which cluster, what for ──►
//!                          ◄── Welcome: one version, who, proof      or  ◄── Refusal: why not
//!     Proof ──►
//!     frames from here on                               frames, once the proof is right
//! ```
//!
//! What must hold before a frame is read: both know a version; the names of their clusters are the same, and the ids,
//! unless one of them has not joined yet; they are two nodes; what they say is encrypted, if it must be; both have the
//! same secret, or none.

mod hello;
mod secret;

use bytes::{Bytes, BytesMut};
use runtime::Random;
use uuid::Uuid;

pub use hello::{CLUSTER_NAME_BYTES_MAX, HandshakeBytesError, Purpose, Reason};
use hello::{HANDSHAKE_BYTES_MAX, Hello, NONCE_BYTES, Refusal, Step, Welcome};
pub use secret::Secret;
use secret::{PROOF_BYTES, Proof, Side};

/// The versions of frames that this program knows.
const VERSION_MIN: u16 = 1;
const VERSION_MAX: u16 = 1;

/// What a node says of itself.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The same in all nodes of a cluster.
    pub cluster_name: String,
    /// Drawn when the cluster was founded; `None` before the node has joined it.
    pub cluster_id: Option<Uuid>,
    /// The node.
    pub host_id: Uuid,
    /// How often it was started: an older one is over.
    pub incarnation: u64,
    /// How many shards it has.
    pub shard_count: u16,
    /// Does it want frames to be compressed?
    pub wants_compression: bool,
    /// What strangers do not know.
    pub secret: Option<Secret>,
}

/// What both sides know once they talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Established {
    /// Version of all frames.
    pub version: u16,
    /// Are long frames compressed?
    pub is_compressing: bool,
    /// What the initiator asked for.
    pub purpose: Purpose,
    /// The other node.
    pub host_id: Uuid,
    /// Its incarnation.
    pub incarnation: u64,
    /// How many shards it has.
    pub shard_count: u16,
    /// Its cluster's id; `None` when it has not joined yet.
    pub cluster_id: Option<Uuid>,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The other side sent what is no message of a handshake.
    #[error(transparent)]
    Bytes(#[from] HandshakeBytesError),
    /// The other side does not talk to us.
    #[error("the other node refuses: {text}")]
    Refused {
        /// As it was told.
        reason: Reason,
        /// The same in words.
        text: String,
    },
    /// We do not talk to the other side.
    #[error("{text}")]
    Refusing {
        /// As it is told.
        reason: Reason,
        /// The same in words.
        text: String,
    },
    /// At this address there is another node than the one that was looked for.
    #[error("this is node {found}, not {wanted}")]
    OtherHost {
        /// Who was looked for.
        wanted: Uuid,
        /// Who answered.
        found: Uuid,
    },
    /// A message at a time at which it may not come.
    #[error("message out of turn")]
    OutOfTurn,
}

fn refusing<T>(reason: Reason, text: impl Into<String>) -> Result<T, HandshakeError> {
    Err(HandshakeError::Refusing { reason, text: text.into() })
}

/// The side that connects.
#[derive(Debug)]
pub struct Initiator {
    identity: Identity,
    purpose: Purpose,
    /// Whom it wants to talk to; `None`: to whoever is there.
    wanted: Option<Uuid>,
    hello: Bytes,
}

impl Initiator {
    /// Begins; what is to be sent comes with it.
    pub fn begin(
        identity: Identity,
        purpose: Purpose,
        wanted: Option<Uuid>,
        random: &dyn Random,
    ) -> (Initiator, Bytes) {
        let hello = Step::Hello(Hello {
            version_min: VERSION_MIN,
            version_max: VERSION_MAX,
            host_id: identity.host_id,
            incarnation: identity.incarnation,
            cluster_id: identity.cluster_id,
            purpose,
            shard_count: identity.shard_count,
            has_secret: identity.secret.is_some(),
            wants_compression: identity.wants_compression,
            nonce: nonce(random),
            cluster_name: identity.cluster_name.clone(),
        })
        .encode();
        (Initiator { identity, purpose, wanted, hello: hello.clone() }, hello)
    }

    /// Reads what came. When both talk: what they know, and what is still to be sent before the first frame; bytes of
    /// frames stay in the input. `None` when more has to come.
    ///
    /// # Errors
    /// There is no connection.
    pub fn read(&self, input: &mut BytesMut) -> Result<Option<(Established, Bytes)>, HandshakeError> {
        let Some((step, bytes)) = Step::take(input)? else { return Ok(None) };
        let welcome = match step {
            Step::Welcome(welcome) => welcome,
            Step::Refusal(Refusal { reason, text }) => return Err(HandshakeError::Refused { reason, text }),
            Step::Hello(_) | Step::Proof(_) => return Err(HandshakeError::OutOfTurn),
        };
        self.check(&welcome)?;
        let said = [self.hello.clone(), Welcome::vouched_for(&bytes)];
        let proof = match &self.identity.secret {
            Some(secret) if !secret.is_proven(Side::Acceptor, &said, &welcome.proof) => {
                return refusing(Reason::Secret, "the other node has another secret");
            }
            Some(secret) => secret.proof(Side::Initiator, &said),
            None => [0; PROOF_BYTES],
        };
        let established = Established {
            version: welcome.version,
            is_compressing: welcome.is_compressing,
            purpose: self.purpose,
            host_id: welcome.host_id,
            incarnation: welcome.incarnation,
            shard_count: welcome.shard_count,
            cluster_id: welcome.cluster_id,
        };
        Ok(Some((established, Step::Proof(proof).encode())))
    }

    fn check(&self, welcome: &Welcome) -> Result<(), HandshakeError> {
        if let Some(wanted) = self.wanted.filter(|wanted| *wanted != welcome.host_id) {
            return Err(HandshakeError::OtherHost { wanted, found: welcome.host_id });
        }
        if !(VERSION_MIN..=VERSION_MAX).contains(&welcome.version) {
            return refusing(Reason::Version, format!("version {} is not known here", welcome.version));
        }
        check_cluster_id(self.identity.cluster_id, welcome.cluster_id)
    }
}

/// The side that was connected to.
pub struct Acceptor<'a> {
    identity: Identity,
    /// Is a node refused since what it says is not encrypted?
    refuses: &'a dyn Fn(Uuid) -> bool,
    nonce: [u8; NONCE_BYTES],
    /// What was agreed and waits for the proof, and what the proof is about.
    welcomed: Option<(Established, [Bytes; 2])>,
}

/// What comes next for the side that was connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepting {
    /// More bytes have to come.
    Wait,
    /// These are to be sent.
    Send(Bytes),
    /// Both talk; bytes of frames stay in the input.
    Established(Established),
}

impl<'a> Acceptor<'a> {
    /// Waits for a hello.
    pub fn new(identity: Identity, random: &dyn Random) -> Acceptor<'a> {
        Acceptor { identity, refuses: &|_| false, nonce: nonce(random), welcomed: None }
    }

    /// Refuses those nodes: what they say is not encrypted, and must be.
    #[must_use]
    pub fn refusing(self, refuses: &'a dyn Fn(Uuid) -> bool) -> Acceptor<'a> {
        Acceptor { refuses, ..self }
    }

    /// Reads what came; again until it has to wait, or both talk.
    ///
    /// # Errors
    /// There is no connection. Where the other side can be told why, [`HandshakeError::refusal`] is to be sent before
    /// the connection is closed.
    pub fn read(&mut self, input: &mut BytesMut) -> Result<Accepting, HandshakeError> {
        let Some((step, bytes)) = Step::take(input)? else { return Ok(Accepting::Wait) };
        match (step, self.welcomed.take()) {
            (Step::Hello(hello), None) => self.welcome(&hello, bytes).map(Accepting::Send),
            (Step::Proof(proof), Some((established, said))) => {
                self.check_proof(&said, &proof)?;
                Ok(Accepting::Established(established))
            }
            _ => Err(HandshakeError::OutOfTurn),
        }
    }

    fn welcome(&mut self, hello: &Hello, bytes: Bytes) -> Result<Bytes, HandshakeError> {
        let version = self.check(hello)?;
        let mut welcome = Welcome {
            version,
            host_id: self.identity.host_id,
            incarnation: self.identity.incarnation,
            cluster_id: self.identity.cluster_id,
            shard_count: self.identity.shard_count,
            is_compressing: self.identity.wants_compression && hello.wants_compression,
            nonce: self.nonce,
            proof: [0; PROOF_BYTES],
        };
        let said = [bytes, Welcome::vouched_for(&Step::Welcome(welcome.clone()).encode())];
        if let Some(secret) = &self.identity.secret {
            welcome.proof = secret.proof(Side::Acceptor, &said);
        }
        let established = Established {
            version,
            is_compressing: welcome.is_compressing,
            purpose: hello.purpose.among(self.identity.shard_count),
            host_id: hello.host_id,
            incarnation: hello.incarnation,
            shard_count: hello.shard_count,
            cluster_id: hello.cluster_id,
        };
        self.welcomed = Some((established, said));
        Ok(Step::Welcome(welcome).encode())
    }

    /// The version in which both talk.
    fn check(&self, hello: &Hello) -> Result<u16, HandshakeError> {
        let identity = &self.identity;
        let version = hello.version_max.min(VERSION_MAX);
        if version < hello.version_min.max(VERSION_MIN) {
            let (min, max) = (hello.version_min, hello.version_max);
            return refusing(
                Reason::Version,
                format!("versions {min} to {max} are offered, {VERSION_MIN} to {VERSION_MAX} are known here"),
            );
        }
        if hello.cluster_name != identity.cluster_name {
            let (theirs, ours) = (&hello.cluster_name, &identity.cluster_name);
            return refusing(Reason::ClusterName, format!("this is cluster '{ours}', not '{theirs}'"));
        }
        check_cluster_id(identity.cluster_id, hello.cluster_id)?;
        if hello.host_id == identity.host_id {
            return refusing(Reason::Itself, format!("node {} is this node", hello.host_id));
        }
        if (self.refuses)(hello.host_id) {
            return refusing(
                Reason::Encryption,
                "what the two nodes say must be encrypted (internode_encryption)",
            );
        }
        if hello.has_secret != identity.secret.is_some() {
            return refusing(Reason::Secret, "one of the two nodes has a secret and the other has none");
        }
        Ok(version)
    }

    fn check_proof(&self, said: &[Bytes; 2], proof: &Proof) -> Result<(), HandshakeError> {
        let Some(secret) = &self.identity.secret else { return Ok(()) };
        match secret.is_proven(Side::Initiator, said, proof) {
            true => Ok(()),
            false => refusing(Reason::Secret, "the other node has another secret"),
        }
    }
}

impl HandshakeError {
    /// What the other side is to be sent, if it can be told.
    pub fn refusal(&self) -> Option<Bytes> {
        let HandshakeError::Refusing { reason, text } = self else { return None };
        Some(Step::Refusal(Refusal { reason: *reason, text: text.clone() }).encode())
    }
}

/// How many bytes a side has to hold at most while it waits for a message of a handshake.
pub const INPUT_BYTES_MAX: usize = HANDSHAKE_BYTES_MAX;

fn check_cluster_id(ours: Option<Uuid>, theirs: Option<Uuid>) -> Result<(), HandshakeError> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours != theirs => {
            refusing(Reason::ClusterId, format!("this is cluster {ours}, not {theirs} of the same name"))
        }
        _ => Ok(()),
    }
}

fn nonce(random: &dyn Random) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    random.fill(&mut nonce);
    nonce
}
