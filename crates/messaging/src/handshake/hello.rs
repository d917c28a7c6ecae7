//! The messages of a handshake, and their bytes: `docs/formats/messages.md` draws them.
//!
//! They are the same in all versions to come: fields are only added at an end, and a reader passes over what it does
//! not know. So nodes of any two versions can tell each other why they do not talk.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use uuid::Uuid;

use super::secret::{PROOF_BYTES, Proof};
use crate::frame::{array_at, u32_at};

const MAGIC: &[u8; 8] = b"PERIpeer";
const HEAD_BYTES: usize = MAGIC.len() + 3;
const CHECK_BYTES: usize = 4;
/// The longest message of a handshake; a stranger makes us hold no more.
pub(super) const HANDSHAKE_BYTES_MAX: usize = HEAD_BYTES + u16::MAX as usize + CHECK_BYTES;
/// The longest name of a cluster.
pub const CLUSTER_NAME_BYTES_MAX: usize = 255;
/// The longest text of a refusal.
const TEXT_BYTES_MAX: usize = 1024;

pub(super) const NONCE_BYTES: usize = 32;

const KIND_HELLO: u8 = 1;
const KIND_WELCOME: u8 = 2;
const KIND_PROOF: u8 = 3;
const KIND_REFUSAL: u8 = 4;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Requests of one shard to one shard of the other node.
    Shard {
        /// The shard that connects.
        from: u16,
        /// The shard that is to answer. Of a node that has fewer by now it is another one, counted around.
        to: u16,
    },
    /// What must not wait behind requests: agreement and liveness.
    Urgent,
}

impl Purpose {
    /// On a node of so many shards: it may have been started with another number since this was chosen.
    pub(super) fn among(self, shard_count: u16) -> Purpose {
        match self {
            Purpose::Shard { from, to } => Purpose::Shard { from, to: to % shard_count.max(1) },
            Purpose::Urgent => Purpose::Urgent,
        }
    }
}

/// Who connects, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) version_min: u16,
    pub(super) version_max: u16,
    pub(super) host_id: Uuid,
    pub(super) incarnation: u64,
    /// Not known to a node that has not joined yet.
    pub(super) cluster_id: Option<Uuid>,
    pub(super) purpose: Purpose,
    pub(super) shard_count: u16,
    pub(super) has_secret: bool,
    pub(super) wants_compression: bool,
    pub(super) nonce: [u8; NONCE_BYTES],
    pub(super) cluster_name: String,
}

/// Who was connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    pub(super) version: u16,
    pub(super) host_id: Uuid,
    pub(super) incarnation: u64,
    pub(super) cluster_id: Option<Uuid>,
    pub(super) shard_count: u16,
    pub(super) is_compressing: bool,
    pub(super) nonce: [u8; NONCE_BYTES],
    /// That it knows the secret; zeros when there is none.
    pub(super) proof: Proof,
}

/// Why a node does not talk to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no version that both know.
    Version,
    /// The names of the clusters differ.
    ClusterName,
    /// The ids of the clusters differ: another cluster of the same name.
    ClusterId,
    /// It is the same node.
    Itself,
    /// One of the two has a secret and the other has none, or another.
    Secret,
    /// There is no such shard, to a program of an earlier version.
    Shard,
    /// What they say must be encrypted, and was not.
    Encryption,
    /// Another than those above, of a later version: the text says it.
    Other,
}

impl Reason {
    const ALL: [Reason; 7] = [
        Reason::Version,
        Reason::ClusterName,
        Reason::ClusterId,
        Reason::Itself,
        Reason::Secret,
        Reason::Shard,
        Reason::Encryption,
    ];

    fn code(self) -> u8 {
        let known = Reason::ALL.iter().position(|reason| *reason == self);
        known.map_or(0, |index| index as u8 + 1)
    }

    fn of_code(code: u8) -> Reason {
        usize::from(code)
            .checked_sub(1)
            .and_then(|index| Reason::ALL.get(index))
            .copied()
            .unwrap_or(Reason::Other)
    }
}

/// The answer to who is not talked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) text: String,
}

/// Any message of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Hello(Hello),
    Welcome(Welcome),
    Proof(Proof),
    Refusal(Refusal),
}

/// Bytes that are no message of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeBytesError {
    /// Whoever it is does not speak this protocol.
    #[error("the other side is no Peristyle node")]
    Stranger,
    /// The check is not that of the bytes.
    #[error("message of the handshake is damaged: checksum {got:#010x}, expected {expected:#010x}")]
    Damaged {
        /// As the message says.
        expected: u32,
        /// Of what was read.
        got: u32,
    },
    /// The check is right and the content is not.
    #[error("message {kind} of the handshake makes no sense")]
    Content {
        /// Which message it says to be.
        kind: u8,
    },
}

impl Step {
    /// Its bytes, head and check included.
    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(256);
        out.put_slice(MAGIC);
        out.put_bytes(0, HEAD_BYTES - MAGIC.len());
        let kind = match self {
            Step::Hello(hello) => hello.put(&mut out),
            Step::Welcome(welcome) => welcome.put(&mut out),
            Step::Proof(proof) => {
                out.put_slice(proof);
                KIND_PROOF
            }
            Step::Refusal(refusal) => refusal.put(&mut out),
        };
        let body_bytes =
            u16::try_from(out.len() - HEAD_BYTES).expect("names and texts are cut to their limits");
        out[MAGIC.len()] = kind;
        out[MAGIC.len() + 1..HEAD_BYTES].copy_from_slice(&body_bytes.to_le_bytes());
        let check = crc32fast::hash(&out);
        out.put_u32_le(check);
        out.freeze()
    }

    /// Takes the next message off the input; `None` when more bytes have to come. With it come its bytes.
    pub(super) fn take(input: &mut BytesMut) -> Result<Option<(Step, Bytes)>, HandshakeBytesError> {
        let magic_bytes = input.len().min(MAGIC.len());
        if input[..magic_bytes] != MAGIC[..magic_bytes] {
            return Err(HandshakeBytesError::Stranger);
        }
        let Some(body_bytes) = array_at(input, MAGIC.len() + 1).map(u16::from_le_bytes) else {
            return Ok(None);
        };
        let check_at = HEAD_BYTES + usize::from(body_bytes);
        let Some(expected) = u32_at(input, check_at) else { return Ok(None) };
        let message = input.split_to(check_at + CHECK_BYTES).freeze();
        let got = crc32fast::hash(&message[..check_at]);
        if got != expected {
            return Err(HandshakeBytesError::Damaged { expected, got });
        }
        let kind = message[MAGIC.len()];
        let step = Step::read(kind, &message[HEAD_BYTES..check_at]);
        step.map(|step| Some((step, message))).ok_or(HandshakeBytesError::Content { kind })
    }

    fn read(kind: u8, body: &[u8]) -> Option<Step> {
        match kind {
            KIND_HELLO => Hello::read(body).map(Step::Hello),
            KIND_WELCOME => Welcome::read(body).map(Step::Welcome),
            KIND_PROOF => array_at(body, 0).map(Step::Proof),
            KIND_REFUSAL => Refusal::read(body).map(Step::Refusal),
            _ => None,
        }
    }
}

impl Hello {
    fn put(&self, out: &mut BytesMut) -> u8 {
        out.put_u16_le(self.version_min);
        out.put_u16_le(self.version_max);
        put_node(out, self.host_id, self.incarnation, self.cluster_id, self.shard_count);
        let (purpose, from, to) = match self.purpose {
            Purpose::Shard { from, to } => (1, from, to),
            Purpose::Urgent => (2, 0, 0),
        };
        out.put_u8(purpose);
        out.put_u16_le(from);
        out.put_u16_le(to);
        out.put_u8(u8::from(self.has_secret));
        out.put_u8(u8::from(self.wants_compression));
        out.put_slice(&self.nonce);
        put_text(out, &self.cluster_name, CLUSTER_NAME_BYTES_MAX);
        KIND_HELLO
    }

    fn read(mut body: &[u8]) -> Option<Hello> {
        let body = &mut body;
        let (version_min, version_max) = (body.try_get_u16_le().ok()?, body.try_get_u16_le().ok()?);
        let (host_id, incarnation, cluster_id, shard_count) = get_node(body)?;
        let (purpose, from, to) =
            (body.try_get_u8().ok()?, body.try_get_u16_le().ok()?, body.try_get_u16_le().ok()?);
        let purpose = match purpose {
            1 => Purpose::Shard { from, to },
            2 => Purpose::Urgent,
            _ => return None,
        };
        Some(Hello {
            version_min,
            version_max,
            host_id,
            incarnation,
            cluster_id,
            purpose,
            shard_count,
            has_secret: get_bool(body)?,
            wants_compression: get_bool(body)?,
            nonce: get_array(body)?,
            cluster_name: get_text(body, CLUSTER_NAME_BYTES_MAX)?,
        })
    }
}

impl Welcome {
    fn put(&self, out: &mut BytesMut) -> u8 {
        out.put_slice(&self.proof);
        out.put_u16_le(self.version);
        put_node(out, self.host_id, self.incarnation, self.cluster_id, self.shard_count);
        out.put_u8(u8::from(self.is_compressing));
        out.put_slice(&self.nonce);
        KIND_WELCOME
    }

    fn read(mut body: &[u8]) -> Option<Welcome> {
        let body = &mut body;
        let proof = get_array::<PROOF_BYTES>(body)?;
        let version = body.try_get_u16_le().ok()?;
        let (host_id, incarnation, cluster_id, shard_count) = get_node(body)?;
        Some(Welcome {
            version,
            host_id,
            incarnation,
            cluster_id,
            shard_count,
            is_compressing: get_bool(body)?,
            nonce: get_array(body)?,
            proof,
        })
    }

    /// What a proof vouches for: the bytes of a welcome behind its own proof, fields of later versions included.
    pub(super) fn vouched_for(welcome: &Bytes) -> Bytes {
        welcome.slice(HEAD_BYTES + PROOF_BYTES..welcome.len() - CHECK_BYTES)
    }
}

impl Refusal {
    fn put(&self, out: &mut BytesMut) -> u8 {
        out.put_u8(self.reason.code());
        put_text(out, &self.text, TEXT_BYTES_MAX);
        KIND_REFUSAL
    }

    fn read(mut body: &[u8]) -> Option<Refusal> {
        let body = &mut body;
        let reason = Reason::of_code(body.try_get_u8().ok()?);
        Some(Refusal { reason, text: get_text(body, TEXT_BYTES_MAX)? })
    }
}

/// What both sides say of themselves.
fn put_node(out: &mut BytesMut, host_id: Uuid, incarnation: u64, cluster_id: Option<Uuid>, shard_count: u16) {
    out.put_slice(host_id.as_bytes());
    out.put_u64_le(incarnation);
    out.put_slice(cluster_id.unwrap_or_default().as_bytes());
    out.put_u16_le(shard_count);
}

fn get_node(body: &mut &[u8]) -> Option<(Uuid, u64, Option<Uuid>, u16)> {
    let host_id = Uuid::from_bytes(get_array(body)?);
    let incarnation = body.try_get_u64_le().ok()?;
    let cluster_id = Uuid::from_bytes(get_array(body)?);
    Some((host_id, incarnation, (!cluster_id.is_nil()).then_some(cluster_id), body.try_get_u16_le().ok()?))
}

/// A text behind its length, cut between two letters where it is longer than it may be.
fn put_text(out: &mut BytesMut, text: &str, bytes_max: usize) {
    let text = &text[..text.floor_char_boundary(bytes_max)];
    out.put_u16_le(text.len() as u16);
    out.put_slice(text.as_bytes());
}

fn get_text(body: &mut &[u8], bytes_max: usize) -> Option<String> {
    let length = usize::from(body.try_get_u16_le().ok()?);
    let text = body.split_off(..length).filter(|_| length <= bytes_max)?;
    String::from_utf8(text.to_vec()).ok()
}

fn get_bool(body: &mut &[u8]) -> Option<bool> {
    match body.try_get_u8().ok()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn get_array<const N: usize>(body: &mut &[u8]) -> Option<[u8; N]> {
    body.split_off(..N)?.try_into().ok()
}
