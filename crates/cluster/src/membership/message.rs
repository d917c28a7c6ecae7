//! What nodes ask each other about membership, on urgent connections. `docs/formats/messages.md` draws it.
//!
//! The first byte tells it from what is for agreement, a version follows. The rest is JSON: it is said once in a node's
//! life, but for heartbeats, which are two bytes more.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use messaging::Peer;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use uuid::Uuid;

use super::presence::Claim;
use crate::metadata::{Candidate, Refusal};

/// The first byte of an urgent message that is for membership; [`crate::raft`] has another.
pub(super) const FOR_MEMBERSHIP: u8 = 2;
const VERSION: u8 = 1;
const HEARTBEAT: u8 = 1;
const QUESTION: u8 = 2;
const FAREWELL: u8 = 3;
const LOAD: u8 = 4;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// This node lives.
    Heartbeat { is_serving: bool },
    /// It lives, and is to be taken for a node that does not.
    Farewell,
    /// Its table files have so many bytes.
    Load(u64),
    /// It wants to know something.
    Question(Question),
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Question {
    /// Is there a ring that you know of?
    Ring,
    /// Let me in.
    Join(Candidate),
    /// I am a member, and there: who else is elsewhere?
    Present(Claim),
    /// Let me in, in the place of the member that was at that address.
    Replace(Candidate, SocketAddr),
    /// Do you hear that member?
    Hears(Uuid),
    /// Am I still a member?
    Standing,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// Whether there is a ring.
    Ring {
        /// The id of its cluster.
        cluster_id: Option<Uuid>,
        /// The node that answers, when it knows of none and may found one, too.
        rival: Option<Uuid>,
    },
    /// Whoever asked is a member, and is sent all that was agreed on.
    Admitted,
    /// It is not let in.
    Refused(Refusal),
    /// Not now, in words.
    Later(String),
    /// Where this node is, and others are that have said so.
    Present(BTreeMap<Uuid, Claim>),
    /// Whether the member is heard.
    Hears(bool),
    /// Whether who asked is a member.
    Standing {
        /// How often the ring has changed, as far as the node that answers knows.
        ring_epoch: u64,
        is_member: bool,
    },
}

/// Asks another node, and waits so long; `None` when it does not answer, or with something that is no reply.
pub(super) async fn ask(peer: &Peer, question: &Said, patience: Duration) -> Option<Reply> {
    let asked = peer.ask(patience, |out| question.put(out)).expect("it is short");
    Reply::read(&timeout(patience, asked).await.ok()?.ok()?)
}

impl Said {
    pub(super) fn put(&self, out: &mut BytesMut) {
        out.put_slice(&[FOR_MEMBERSHIP, VERSION]);
        match self {
            Said::Heartbeat { is_serving } => out.put_slice(&[HEARTBEAT, u8::from(*is_serving)]),
            Said::Farewell => out.put_u8(FAREWELL),
            Said::Load(bytes) => {
                out.put_u8(LOAD);
                out.put_u64_le(*bytes);
            }
            Said::Question(question) => {
                out.put_u8(QUESTION);
                put_json(question, out);
            }
        }
    }

    /// Reads what is for membership; `None` when it makes no sense, or another version does.
    pub(super) fn read(bytes: &[u8]) -> Option<Said> {
        match bytes.strip_prefix(&[FOR_MEMBERSHIP, VERSION])? {
            [HEARTBEAT, is_serving] => Some(Said::Heartbeat { is_serving: *is_serving == 1 }),
            [FAREWELL] => Some(Said::Farewell),
            [LOAD, bytes @ ..] => Some(Said::Load(u64::from_le_bytes(bytes.try_into().ok()?))),
            [QUESTION, question @ ..] => serde_json::from_slice(question).ok().map(Said::Question),
            _ => None,
        }
    }
}

impl Reply {
    pub(super) fn put(&self, out: &mut BytesMut) {
        out.put_slice(&[FOR_MEMBERSHIP, VERSION]);
        put_json(self, out);
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Reply> {
        serde_json::from_slice(bytes.strip_prefix(&[FOR_MEMBERSHIP, VERSION])?).ok()
    }
}

fn put_json(value: &impl Serialize, out: &mut BytesMut) {
    serde_json::to_writer(out.writer(), value).expect("all of its keys are texts, and memory takes them");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::testing::candidate;

    fn claim() -> Claim {
        Claim { incarnation: 7, presence: candidate(3).presence() }
    }

    #[test]
    fn what_is_said_is_heard_and_what_makes_no_sense_is_nothing() {
        for said in [
            Said::Heartbeat { is_serving: true },
            Said::Heartbeat { is_serving: false },
            Said::Farewell,
            Said::Load(0x0102_0304_0506_0708),
            Said::Question(Question::Ring),
            Said::Question(Question::Join(candidate(3))),
            Said::Question(Question::Present(claim())),
            Said::Question(Question::Replace(candidate(3), candidate(2).address)),
            Said::Question(Question::Hears(Uuid::from_u128(3))),
            Said::Question(Question::Standing),
        ] {
            let mut bytes = BytesMut::new();
            said.put(&mut bytes);
            assert_eq!(Said::read(&bytes), Some(said));
            for end in 0..bytes.len() {
                assert_eq!(Said::read(&bytes[..end]), None);
            }
        }
        assert_eq!(Said::read(&[FOR_MEMBERSHIP, VERSION + 1, HEARTBEAT, 1]), None);
    }

    #[test]
    fn replies_are_read_as_they_were_said() {
        let later = Reply::Later("nobody leads".to_owned());
        let refused = Reply::Refused(Refusal::NotFounded);
        for reply in [
            Reply::Ring { cluster_id: None, rival: Some(Uuid::from_u128(4)) },
            Reply::Ring { cluster_id: Some(Uuid::from_u128(5)), rival: None },
            Reply::Admitted,
            Reply::Present(BTreeMap::from([(Uuid::from_u128(3), claim())])),
            Reply::Hears(true),
            Reply::Standing { ring_epoch: 8, is_member: false },
            refused,
            later,
        ] {
            let mut bytes = BytesMut::new();
            reply.put(&mut bytes);
            assert_eq!(Reply::read(&bytes), Some(reply));
        }
        assert_eq!(Reply::read(b"{}"), None);
    }
}
